"""Run the long attack (`make attack`): print the outcomes; exit with 1 if any is forbidden."""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack.outcomes import ALLOWED, FORBIDDEN, attack
from attack.targets import runs, saved_sets, tables

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--inputs", type=int, default=20_000, help="damaged files in all")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
warnings.simplefilter("ignore")
columns = (*ALLOWED, *FORBIDDEN)
print("file".ljust(28), "inputs".rjust(7), *(name.rjust(10) for name in columns))
reports, total = [], 0
with tempfile.TemporaryDirectory() as folder:
    place = Path(folder)
    targets = [*tables(place), *saved_sets(place), *runs(place)]
    many = len(tables(place))
    for k, target in enumerate(targets):
        # Half of the inputs attack the files that users write, half those that capnets writes.
        share = -(-options.inputs // (2 * (many if k < many else len(targets) - many)))
        counts, found = attack(target, share, seed=options.seed, log=place / "log")
        reports, total = reports + found, total + share
        print(
            target.name.ljust(28),
            f"{share:,}".rjust(7),
            *(f"{counts[n]:,}".rjust(10) for n in columns),
            flush=True,
        )
print(f"{total:,} inputs, {len(reports):,} forbidden outcomes")
for report in reports[:40]:
    print(report)
sys.exit(bool(reports))
