"""Stores results between calls, outside of the checkout: `$XDG_CACHE_HOME/harness-mutants/ROOM.json`.

A killed mutant stays killed while its module and the test file that killed it are the same bytes. A survivor stays one
while its module and all test files of the room are. Other modules may change: `FRESH=1` forgets everything.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.mutants.session import Measured
from tools.tests_of import CHECKOUT

KILLED, LATE, SURVIVED = "killed", "late", "survived"


@dataclass
class Result:
    """The result for one mutant. status: killed (a test noticed it), late (a test did not end in time), or survived.
    test: the test that killed it. seconds: of the last try. n_tests: how many tests ran it.
    """

    status: str
    test: str
    seconds: float
    n_tests: int
    module_hash: str
    tests_hash: str


@dataclass
class Remembered:
    """The stored results: those of mutants by their names; what each test does, by test file, with the checksum of the
    files that it was measured with. imported: modules that the tests import. sound: checksum of the room's files with
    which all tests passed without a mutant.
    """

    path: Path
    results: dict[str, Result] = field(default_factory=dict)
    measured: dict[str, tuple[str, dict[str, Measured]]] = field(default_factory=dict)
    imported: list[str] = field(default_factory=list)
    sound: str = ""

    @classmethod
    def of(cls, room: str, *, fresh: bool) -> Remembered:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        path = cache / "harness-mutants" / f"{room}.json"
        remembered = cls(path)
        if path.is_file() and not fresh:
            stored = json.loads(path.read_text("utf-8"))
            remembered.results = {name: Result(**result) for name, result in stored["results"].items()}
            remembered.measured = {
                file: (hash_, {test: Measured(**values) for test, values in tests.items()})
                for file, (hash_, tests) in stored["measured"].items()
            }
            remembered.imported, remembered.sound = stored.get("imported", []), stored.get("sound", "")
        return remembered

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        stored = {
            "results": {name: asdict(result) for name, result in self.results.items()},
            "measured": {
                file: (hash_, {test: asdict(values) for test, values in tests.items()})
                for file, (hash_, tests) in self.measured.items()
            },
            "imported": self.imported,
            "sound": self.sound,
        }
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(stored), "utf-8")
        beside.replace(self.path)


def hash_of(files: Sequence[str | Path]) -> str:
    """A checksum of these files. Their paths are absolute, or relative to the checkout."""
    return hashlib.sha256(b"".join(content(CHECKOUT / file) for file in files)).hexdigest()[:16]


@functools.cache
def content(file: Path) -> bytes:
    """The file's bytes when they were first read, so that editing a file while mutants are tried changes nothing."""
    return file.read_bytes()
