"""How the grader does on labeled pairs, a line a set.

    python -m tests.pins.scoreboard [--write]

accepted: wrong or unproven replies that are called correct. Sets of others are graded where they are at hand
(`HARNESS_SHARED`). --write pins what the grader says now: read the diff of `tests/pins/grading` line by line, and say
in the commit's message why verdicts changed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable

from tests.conftest import SHARED_DATA
from tests.pins import verdicts


def table(counts: dict[str, verdicts.Counts]) -> Iterable[str]:
    """Yield the lines of the table."""
    yield f"{'set':36}{'rows':>7}{'accepted':>10}{'right called wrong':>20}{'undecided':>11}\n"
    for name, (rows, accepted, wrong, undecided) in counts.items():
        yield f"{name:36}{rows:7,}{accepted:10,}{wrong:20,}{undecided:11,}\n"


def main() -> None:
    """Print the table; pin what it shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    own, others = verdicts.pinned(), verdicts.shared(SHARED_DATA)
    said = verdicts.grade(own | others)
    counts = {name: verdicts.counts(rows, said[name]) for name, rows in (own | others).items()}
    sys.stdout.writelines(table(counts))
    changed = verdicts.changes(own, said)
    sys.stdout.writelines(f"{line}\n" for line in changed)
    if write:
        verdicts.write(own, said)
        old = json.loads(verdicts.SHARED.read_text("utf-8")) if verdicts.SHARED.exists() else {}
        new = old | {name: counts[name]._asdict() for name in others}
        verdicts.SHARED.write_text(json.dumps(new, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
