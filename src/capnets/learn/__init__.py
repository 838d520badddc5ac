"""One path from data to a run: a problem, a plan, and `train(problem, plan, folder)`.

`problem.py` describes what is to be learned. `plan.py` decides how and owns every default;
`choice.py` compares networks if none is named. `train.py` trains a plan into a run folder. Tasks,
reviews, tables and arrays are four ways to make a problem; the estimators and the commands call
these functions.
"""

from capnets.learn.choice import choose
from capnets.learn.options import Options
from capnets.learn.plan import Plan, make_plan
from capnets.learn.problem import Problem
from capnets.learn.target import Target
from capnets.learn.train import Learned, learn, train

__all__ = [
    "Learned",
    "Options",
    "Plan",
    "Problem",
    "Target",
    "choose",
    "learn",
    "make_plan",
    "train",
]
