"""The file `opinions.jsonl`: what second graders think of the samples.

Opinions change no verdict; they show on which samples two graders differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from harness.core.records import SCHEMA_VERSION, Key, SampleRecord
from harness.runs.layout import BenchmarkFolder
from harness.runs.line_file import iterate_lines, write_lines

_REMEDY = "Remove the file; the second grader can be asked again."


class Opinion(SampleRecord, frozen=True, kw_only=True, gc=False):
    """One grader's opinion on one sample. correct: None = the grader could not tell."""

    grader: str
    correct: bool | None
    schema: int = SCHEMA_VERSION


def replace(folder: BenchmarkFolder, grader: str, verdicts: Mapping[Key, bool | None]) -> None:
    """Replace the stored opinions of `grader`; other graders' opinions stay. Raises `StoreError`.

    A judge's opinions of former versions, whose grader begins with the version of the rules and a plus, are replaced
    too. verdicts: by sample, whether that grader calls it right; None: it cannot tell.
    """
    former = f"+{grader}"
    others = [o for o in read(folder) if o.grader != grader and not o.grader.endswith(former)]
    name = folder.name
    new = [
        Opinion(
            benchmark=name, question_id=key.question_id, sample_index=key.sample_index, grader=grader, correct=correct
        )
        for key, correct in verdicts.items()
    ]
    if others or new or folder.opinions.exists():
        write_lines(folder.opinions, [*others, *new])


def read(folder: BenchmarkFolder) -> list[Opinion]:
    """All opinions; empty without a file. Raises `StoreError` for a damaged or newer file."""
    return [*iterate_lines(folder.opinions, Opinion, _REMEDY)] if folder.opinions.exists() else []


def by_key(opinions: Iterable[Opinion]) -> dict[Key, list[Opinion]]:
    """The opinions on each sample."""
    opinions_of = defaultdict(list)
    for opinion in opinions:
        opinions_of[opinion.key].append(opinion)
    return dict(opinions_of)
