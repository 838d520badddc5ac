"""Run the long attack (`make attack`): print the outcomes; exit with 1 if any is forbidden."""

import argparse
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from attack.kills import Row, fill_disks, kill, kill_at_random_times, run_threads
from attack.outcomes import ALLOWED, FORBIDDEN, attack
from attack.targets import tables, written

COLUMNS = (*ALLOWED, *FORBIDDEN)


def main() -> int:
    """Print the table; return 1 if an outcome is forbidden."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000, help="damaged files in all")
    parser.add_argument("--kills", type=int, default=200, help="killed processes in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("attack".ljust(28), "tried".rjust(7), *(name.rjust(10) for name in COLUMNS))
    totals: dict[str, int] = {}
    reports: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, (name, tried, counts, found) in _attacks(Path(folder), options):
            totals[kind] = totals.get(kind, 0) + tried
            reports += found
            cells = (f"{counts[n]:,}".rjust(10) for n in COLUMNS)
            print(name.ljust(28), f"{tried:,}".rjust(7), *cells, flush=True)
    tried = ", ".join(f"{count:,} {kind}" for kind, count in totals.items())
    print(f"{tried}: {len(reports):,} forbidden outcomes")
    print(*reports[:40], sep="\n")
    return bool(reports)


def _attacks(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Yield the kind and the row of every attack."""
    for made in (tables(folder), written(folder)) if options.inputs else ():
        # Half of the inputs attack the files that users write, half those that capnets writes.
        share = -(-options.inputs // (2 * len(made)))
        for target in made:
            counts, found = attack(target, share, seed=options.seed, log=folder / "log")
            yield "inputs", (target.name, share, counts, found)
    if options.kills:
        random = max(1, options.kills // 10)
        # Some processes end before they are killed; a few more make up for them.
        yield from (("kills", row) for row in kill(folder, options.kills))
        yield from (
            ("kills", row) for row in kill_at_random_times(folder, random, seed=options.seed)
        )
        yield from (("full disks", row) for row in fill_disks(folder))
        yield from (("fits in threads", row) for row in run_threads(40))


if __name__ == "__main__":
    sys.exit(main())
