"""Train an estimator's problem, or a task, into a run folder."""

from capnets.learn import Options, make_plan, train
from capnets.learn.problem import TEST_SHARE
from capnets.learn.tasks import task_problem


def train_run(folder, X, estimator, *, test_share=TEST_SHARE, scratch=None, **how):
    options = estimator.options()
    problem = estimator.problem(X, folder=scratch).with_test(test_share, seed=options.seed)
    return train(problem, make_plan(problem, options), folder, **how)


def train_task(folder, task, *, loading=None, resume=False, force=False, callbacks=(), **asked):
    problem = task_problem(task, progress=loading)
    plan = make_plan(problem, Options(**asked))
    return train(problem, plan, folder, resume=resume, force=force, callbacks=callbacks)
