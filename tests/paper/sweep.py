"""Run a small sweep in its own process, to be killed by tests: sweep.py FOLDER JOBS."""

import sys
from dataclasses import replace

from capnets.paper.plan import make_plan
from capnets.paper.scales import find_scale
from capnets.paper.scheduler import reproduce

SCALE = replace(find_scale("smoke"), sets=1000, epochs=12)
PLAN = make_plan(["main-mean"], scale=SCALE, models=["gru", "c-gru"], tasks=["US", "WTri"])

if __name__ == "__main__":
    reproduce(PLAN, sys.argv[1], processes=int(sys.argv[2]))
