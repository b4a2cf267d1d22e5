"""The file `scores.json`: one benchmark's score, written by `harness score`."""

from __future__ import annotations

from harness.core import codec
from harness.core.errors import StoreError
from harness.core.files import open_untrusted, write_atomically
from harness.core.inert import quoted
from harness.core.records import SCHEMA_VERSION
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import refuse_link
from harness.scoring.score import Score

MAX_SCORES_BYTES = 16 * 1024 * 1024
"""Largest scores.json that is read, in bytes."""


def read(folder: BenchmarkFolder) -> Score | None:
    """The benchmark's score, None before `harness score`. Raises `StoreError` for a damaged or newer file."""
    path = folder.scores
    try:
        with open_untrusted(path) as file:
            data = file.read(MAX_SCORES_BYTES + 1)
        if len(data) > MAX_SCORES_BYTES:
            raise StoreError(
                f"{path} is larger than {MAX_SCORES_BYTES} bytes: too large for a scores file of the harness."
            )
        score = codec.decode(data, Score)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}.") from error
    except codec.DecodeError as error:
        raise StoreError(f"{path} is no scores file ({quoted(str(error))}). Run `harness score` again.") from error
    if score.schema > SCHEMA_VERSION:
        raise StoreError(f"{path} has schema {score.schema}, from a newer harness. Run `harness score` again.")
    return score


def write(folder: BenchmarkFolder, score: Score) -> None:
    """Store the benchmark's score in place of a former one. Raises `StoreError`."""
    # In a stranger's folder a link could lead the writing elsewhere.
    refuse_link(folder.scores)
    write_atomically(folder.scores, codec.pretty(score))
