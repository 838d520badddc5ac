"""Predict how long heads of government stay in office: `SetSurvival` beside lifelines' Cox.

The data are the regimes of 200 countries, 1946 to 2008 (Cheibub, Gandhi and Vreeland, 2010), as
`dd.csv` in lifelines (MIT). A set is a spell in office and the (at most ten) spells before it in
that country; nothing in it is known later than the first day of the spell. The label is the length
of the spell, censored where it had not ended. Five folds divide countries.

Cox's regression gets the current spell and pooled features of the earlier ones. lifelines needs an
environment of its own (see reference.py); only that step imports it:

    /tmp/lifelines/bin/python benchmarks/survival/dd.py cox --data .../lifelines/datasets/dd.csv
    python benchmarks/survival/dd.py capnets --data .../lifelines/datasets/dd.csv
    python benchmarks/survival/dd.py table

Records are appended to dd.jsonl.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

RECORDS = Path(__file__).with_suffix(".jsonl")
FOLDS, EARLIER = 5, 10


def spells(file):
    """Return one row per spell of a set, the current one last."""
    frame = pd.read_csv(file).sort_values(["ctryname", "start_year"], kind="stable")
    regimes = sorted(frame.regime.unique())
    rows = []
    for country, own in frame.groupby("ctryname"):
        own = own.reset_index(drop=True)
        for k in range(1, len(own)):
            now = own.loc[k]
            for j in range(max(0, k - EARLIER), k + 1):
                one = own.loc[j]
                rows.append(
                    {
                        "spell": f"{country} {k}",
                        "country": country,
                        "years": float(now.duration),
                        "ended": int(now.observed),
                        "current": int(j == k),
                        "before": float(now.start_year - one.start_year),
                        "lasted": 0.0 if j == k else float(one.duration),
                        **{f"is {r}": int(one.regime == r) for r in regimes},
                    }
                )
    return pd.DataFrame(rows)


def folds(frame):
    """Yield training and test rows; no country is in both."""
    countries = np.random.default_rng(0).permutation(np.sort(frame.country.unique()))
    number = dict(zip(countries, np.arange(len(countries)) % FOLDS, strict=True))
    fold = frame.country.map(number)
    for k in range(FOLDS):
        yield k, frame[fold != k], frame[fold == k]


def pooled(frame):
    """Return one row per set: the current spell, and statistics of the earlier ones."""
    features = [c for c in frame if c not in ("spell", "country", "years", "ended", "current")]
    now = frame[frame.current == 1].set_index("spell")
    before = frame[frame.current == 0].groupby("spell")[features]
    regimes = [f for f in features if f.startswith("is ")]
    found = now[regimes[1:]].assign(number=before.size())
    for how in ("mean", "min", "max"):
        found = found.join(getattr(before, how)().add_prefix(f"{how} "))
    return found.assign(years=now.years, ended=now.ended)


def cox(frame):
    """Measure a penalized Cox regression of lifelines on pooled features."""
    from lifelines import CoxPHFitter

    for k, train, test in folds(frame):
        began = time.perf_counter()
        known, new = pooled(train), pooled(test)
        varies = [c for c in known if known[c].nunique() > 1]
        fitted = CoxPHFitter(penalizer=0.1).fit(known[varies], "years", "ended")
        yield k, fitted.score(new[varies], "concordance_index"), len(new), began


def capnets(frame):
    """Measure `SetSurvival` with its defaults."""
    from capnets import Columns
    from capnets.estimators import SetSurvival

    columns = Columns(set="spell", target=("years", "ended"), group="country")
    for k, train, test in folds(frame):
        began = time.perf_counter()
        model = SetSurvival(columns=columns, random_state=0).fit(train)
        yield k, model.score(test), test.spell.nunique(), began


def table():
    """Print the mean concordance over folds."""
    found = pd.read_json(RECORDS, lines=True).drop_duplicates(["method", "fold"], keep="last")
    shown = found.groupby("method").concordance.agg(["mean", "std", "count"])
    print(shown.round(4).to_markdown() if hasattr(shown, "to_markdown") else shown)


def main():
    """Run one method over all folds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["cox", "capnets", "table"])
    parser.add_argument("--data", type=Path, help="dd.csv of lifelines")
    asked = parser.parse_args()
    if asked.what == "table":
        return table()
    frame = spells(asked.data)
    for fold, score, sets, began in {"cox": cox, "capnets": capnets}[asked.what](frame):
        record = {
            "method": asked.what, "fold": fold, "concordance": round(score, 4), "sets": sets,
            "seconds": round(time.perf_counter() - began, 1),
        }  # fmt: skip
        print(record, flush=True)
        with RECORDS.open("a") as file:
            file.write(json.dumps(record) + "\n")
    return None


if __name__ == "__main__":
    main()
