"""Write the golden files anew: `python -m tests.pins.write [SCENE…]`.

Legitimate only where an issue names the change that a user is to see: write, read the diff of `tests/pins/golden`, and
name the issue and the change in the commit's message. A refactoring never writes. A golden file that changes though
nothing was meant to change is a defect that has been found.

--code FOLDER takes the product from another checkout: so were the first golden files written, by the code as it stood
before the refactoring that they guard.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def scenes(names: list[str]) -> list[tuple[str, Any]]:
    """(name, scene) of all pins, or of those whose name begins with one of `names`."""
    from tests.pins.stage import name_of

    modules = [importlib.import_module(f"tests.pins.{path.stem}") for path in sorted(HERE.glob("test_pinned_*.py"))]
    every = [(name_of(scene), scene) for module in modules for scene in module.SCENES]
    return [(name, scene) for name, scene in every if not names or name.startswith(tuple(names))]


def main() -> None:
    """Play the scenes, write what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="SCENE", help="beginnings of names, such as score or score.a_run")
    parser.add_argument("--code", type=Path, help="a checkout of the product; default: this one")
    options = parser.parse_args()
    if options.code is not None:
        code = str(options.code.resolve())
        sys.path.insert(0, code)
        os.environ["PYTHONPATH"] = code
    import harness

    print(f"by {Path(str(harness.__file__)).parent}")  # noqa: T201
    from harness.asking import prepare
    from tests.pins import golden
    from tests.pins.stage import play

    prepare.FINGERPRINTED_SAMPLES = 10**9  # as `tests/conftest.py` has it, or some goldens would hold a fingerprint
    for name, scene in scenes(options.names):
        with tempfile.TemporaryDirectory() as folder:
            changed = golden.write(name, play(scene, Path(folder).resolve()))
        print(f"{'written' if changed else 'the same'}: {name}")  # noqa: T201


if __name__ == "__main__":
    main()
