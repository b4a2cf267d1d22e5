"""Run folders that a former version stored, for the scenes that read runs: `stored/NAME`.

They were written once, by the code of 2026-11-21 (`python -m tests.pins.stored --code CHECKOUT`), and are not written
anew: their timings are what makes the pinned scores exact to the last digit.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).with_name("stored")
N_QUESTIONS = 6

RUNS: dict[str, tuple[int, tuple[str, ...]]] = {
    "first": (55, ()),
    "second": (75, ("--temperature", "1.0")),
    "shard-1": (55, ("--shard", "1/2")),
    "shard-2": (55, ("--shard", "2/2")),
}
"""Name → the percentage of sums that its model solves, and what is its own of the words."""


SCORED = ("grades.jsonl", "scores.json")
"""Files that scoring wrote."""


def copy(name: str, folder: Path, *, scored: bool = False) -> str:
    """Copy a stored run into the folder, with its grades and scores or without; its name."""
    left_out = shutil.ignore_patterns(*(() if scored else SCORED))
    shutil.copytree(FOLDER / name, folder / name, ignore=left_out)
    return name


def main() -> None:
    """Sample each run again."""
    if sys.argv[1:2] == ["--code"]:
        sys.path.insert(0, str(Path(sys.argv[2]).resolve()))
    from tests.faults.server import FaultServer
    from tests.pins.server import solving
    from tests.pins.stage import alone, run_command, write_sums

    for name, (percent, words) in RUNS.items():
        with (
            tempfile.TemporaryDirectory() as place,
            alone(Path(place)),
            FaultServer(solving(percent, kinds=True)) as one,
        ):
            write_sums(Path(place), N_QUESTIONS)
            printed = run_command(
                (
                    *("run", "--data", "sums.jsonl", "--id-key", "id", "--samples", "4", "--out", name),
                    *("--base-url", one.base_url, "--concurrency", "3", "--max-tokens", "64", *words),
                )
            )
            assert printed.code == 0, printed.err
            assert run_command(("score", name, "--workers", "1")).code == 0
            (FOLDER / name).mkdir(parents=True)
            files = ("questions.jsonl", "samples.jsonl", *SCORED)
            for file in ("manifest.json", "log.jsonl", *(f"sums/{file}" for file in files)):
                (FOLDER / name / file).parent.mkdir(exist_ok=True)
                shutil.copy(Path(place) / name / file, FOLDER / name / file)


if __name__ == "__main__":
    main()
