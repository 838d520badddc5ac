"""Compute the figures of lifelines that the tests compare with.

lifelines 0.30.3 needs pandas below 3, so it has an environment of its own:

    python -m venv /tmp/lifelines && /tmp/lifelines/bin/pip install lifelines==0.30.3
    /tmp/lifelines/bin/python benchmarks/survival/reference.py

writes tests/training/lifelines.json.
"""

import json
import sys
from pathlib import Path

import lifelines
import numpy as np
import pandas as pd
from lifelines.statistics import multivariate_logrank_test

TESTS = Path(__file__).parents[2] / "tests"
sys.path.insert(0, str(TESTS))
import survival_data  # noqa: E402


def cox(x, time, event):
    """Return the coefficients, their standard errors, log-likelihood and concordance."""
    frame = pd.DataFrame(x).assign(time=time, event=event)
    fitted = lifelines.CoxPHFitter().fit(frame, "time", "event", fit_options={"precision": 1e-12})
    return {
        "coefficients": fitted.params_.tolist(),
        "standard_errors": fitted.standard_errors_.tolist(),
        "log_likelihood": float(fitted.log_likelihood_),
        "concordance": float(fitted.concordance_index_),
    }


def curve(time, event):
    """Return the product-limit estimate at the times of events."""
    fitted = lifelines.KaplanMeierFitter().fit(time, event)
    times = np.unique(time[event > 0])
    return {"times": times.tolist(), "survival": fitted.predict(times).tolist()}


def main():
    """Write the figures."""
    x, time, event = survival_data.rows(200)
    X, y, _ = survival_data.ragged_sets()
    group = np.digitize(x[:, 0], [-0.5, 0.5])
    test = multivariate_logrank_test(time, group, event)
    found = {
        "lifelines": lifelines.__version__,
        "rows": cox(x, time, event),
        "sums": cox(np.array([[*s.sum(axis=0), len(s)] for s in X]), *y.T),
        "curve": curve(time, event),
        "log_rank": {"statistic": float(test.test_statistic), "p": float(test.p_value)},
    }
    (TESTS / "training" / "lifelines.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
