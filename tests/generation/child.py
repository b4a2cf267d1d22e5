"""A run in a process of its own, to be killed: `python -m tests.generation.child FOLDER QUESTIONS SAMPLES URL...`

Exit code: 0 complete, 1 owed, else that of the harness's exception, as the command line has it.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

from harness.core.errors import HarnessError
from tests.generation.small_runs import question_set, run, run_settings


def main() -> int:
    # A signal inside `Popen` leaves a file to the garbage collector. A user's Python says nothing of that; the tests'
    # -W error would.
    warnings.simplefilter("ignore", ResourceWarning)
    folder, n, samples, grace, *urls = sys.argv[1:]
    settings = run_settings(Path(folder) / "run", *urls, samples=int(samples))
    settings = replace(settings, patience=replace(settings.patience, grace=float(grace), term_grace=float(grace)))
    try:
        outcome = run(settings, question_set(Path(folder), int(n)), resume_command="harness run again")
    except HarnessError as error:
        sys.stderr.write(str(error))
        return error.exit_code
    return 0 if outcome.complete else 1


if __name__ == "__main__":
    sys.exit(main())
