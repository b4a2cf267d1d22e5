"""Whether one run repeats the replies of another: the warning in a comparison, and the remark on a training step.
`repeat_warnings` also says whether the files of a run's model have changed since.

A server that derives its draws from the run seed gives both runs the same reply for the same sample number. Equal
replies are counted in the stored texts, because no setting reveals them: a run may repeat another one after a change of
settings that has no effect, and a server that ignores seeds repeats nothing at equal settings. Only long replies count:
independent runs often give the same letter, but never the same page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from harness.core.errors import StoreError
from harness.core.number_text import count_noun
from harness.core.records import Sample
from harness.core.sanitize import visible
from harness.preparing.launched_servers import fingerprints
from harness.reports.series import step_text
from harness.runs import Manifest, sweep_cell
from harness.runs.layout import BenchmarkFolder, RunFolder
from harness.runs.manifest import BenchmarkRecord
from harness.runs.offsets import SampleOffsets, sample_pairs
from harness.scoring.anomalies import MAX_COPIES_SHARE

MAX_REPLIES = 2_000
"""Largest number of pairs of replies that a comparison reads; if there are more, this many are drawn at random."""

ADVICE = (
    ". Perhaps the same model produced both: check that the server loads the weights of each checkpoint, and that the "
    "checkpoints differ. To get new scores, delete the run folder of the incorrect step and run the same command again"
)
"""The end of the sentence on a step that repeats the previous step."""

MAX_STEP_REPLIES = 200
"""Largest number of pairs of replies that are read for a remark on a step. Every training step is checked each time its
tables are written, and a step that repeats another does so in most replies.
"""


MIN_CHARS = 400
"""Replies with fewer characters of reasoning and text are not compared."""


class EqualReplies(NamedTuple):
    """Long replies of two runs, paired by question and sample number: the pairs, and how many are equal."""

    n_pairs: int
    n_equal: int

    @property
    def is_excessive(self) -> bool:
        """Whether there are too many equal pairs for independent runs."""
        return self.n_equal > max(1, MAX_COPIES_SHARE * self.n_pairs)

    @property
    def sentence(self) -> str:
        """A sentence on how many replies are equal."""
        return (
            f"{self.n_equal:,} of the {count_noun(self.n_pairs, 'reply', 'replies')} compared are identical, "
            "word for word, in both runs"
        )


def warnings(
    folders: tuple[BenchmarkFolder, BenchmarkFolder],
    records: tuple[BenchmarkRecord, BenchmarkRecord],
    ids: Sequence[str],
) -> list[str]:
    """A warning if more replies of two runs are equal than independent samples would be; otherwise none.

    folders, records: of the run and the baseline. ids: of the shared questions. Replies that are not stored, like those
    of another tool's outputs, are not compared.
    """
    seeds = [record.identity.get("seed") for record in records]
    replies = _equal_replies(folders, ids, MAX_REPLIES)
    if not replies.is_excessive:
        return []
    if all((record.identity.get("sampling") or {}).get("temperature") == 0 for record in records):
        why = (
            "At temperature 0, replies do not depend on the seed. Where replies are identical, the differing "
            "settings have no effect, and the second run adds no evidence"
        )
    elif seeds[0] is not None and seeds[0] == seeds[1]:
        why = (
            f"Both runs have the run seed {seeds[0]}, so one run duplicates the other wherever their settings "
            f"agree, and adds no evidence: sample one of them again with a different `seed`"
        )
    else:
        why = (
            "The server ignores seeds or answers from a cache, or one run copied the samples of the other: the "
            "second run adds no evidence"
        )
    return [f"{replies.sentence}. {why}"]


def repeat_warnings(folder: RunFolder) -> list[str]:
    """Sentences on a run's model files that have changed since its samples were made, and on a step that repeats the
    previous one; often none.
    """
    return [*changed_model(folder), *_repeated_step(folder)]


def _repeated_step(folder: RunFolder) -> list[str]:
    """A sentence if the run is a training step and repeats most replies of the previous step; otherwise none.

    Different weights rarely give the same replies, even with the same seeds, so the server probably did not load them.
    """
    with contextlib.suppress(StoreError, OSError):
        note = sweep_cell.read_note(folder)
        before = RunFolder(folder.path.parent / Path(note.before).name)
        if note.step is None or not note.before or not before.manifest.is_file():
            return []
        for name in Manifest.load(folder).benchmarks.keys() & Manifest.load(before).benchmarks.keys():
            replies = _equal_replies((folder.benchmark(name), before.benchmark(name)), None, MAX_STEP_REPLIES)
            if replies.is_excessive and 2 * replies.n_equal > replies.n_pairs:
                step, former = step_text(note.step), step_text(sweep_cell.read_note(before).step or 0)
                return [f"step {step} repeats step {former}: {replies.sentence}{ADVICE}"]
    return []


def _equal_replies(
    folders: tuple[BenchmarkFolder, BenchmarkFolder], ids: Sequence[str] | None, most: int
) -> EqualReplies:
    """The equal replies of two runs. ids: the questions' ids; None: all. most: as in `sample_pairs`."""
    sides = SampleOffsets(folders[0]), SampleOffsets(folders[1])
    for side in sides:
        side.refresh()
    pairs = chain.from_iterable(sample_pairs(sides, sides[0].questions() if ids is None else ids, most))
    equal = [is_equal for ours, theirs in pairs if (is_equal := _are_equal(ours, theirs)) is not None]
    return EqualReplies(len(equal), sum(equal))


def _are_equal(ours: Sample, theirs: Sample) -> bool | None:
    """Whether two replies are equal, as far as max_tokens allowed; None if one is short."""
    shorter, longer = sorted((ours, theirs), key=lambda reply: len(_whole_text(reply)))
    text, longer_text = _whole_text(shorter), _whole_text(longer)
    if len(text) < MIN_CHARS:
        return None
    return text == longer_text or (shorter.finish_reason == "length" and longer_text.startswith(text))


def _whole_text(reply: Sample) -> str:
    """Reasoning and text; a zero byte distinguishes reasoning "a" with text "b" from no reasoning with text "ab"."""
    return "\0".join(filter(None, (reply.reasoning, reply.text)))


FACTS = "files."
"""The prefix of a server's facts about its model's files."""


def changed_model(folder: RunFolder) -> list[str]:
    """A sentence if the files of the run's model have changed since its samples, by the checksums that are recorded for
    a server that the harness started; none if the files are gone or elsewhere.

    A restarted training, for example, writes the same folders again.
    """
    with contextlib.suppress(StoreError, OSError):
        provenance = Manifest.load(folder).provenance
        names = {name for session in provenance.sessions[-1:] for name in session.endpoints.values()}
        facts = {key: value for name in names for key, value in provenance.servers[name].model.items()}
        before = {key.removeprefix(FACTS): str(value) for key, value in facts.items() if key.startswith(FACTS)}
        sources = {provenance.servers[name].model.get("source") for name in names} - {None}
        if before and len(sources) == 1 and (path := Path(str(sources.pop()))).exists():
            now = fingerprints(str(path))
            # Runs of earlier versions may record a checksum of the whole weights.
            compared = sorted({*before, *now} - {"weights_sha256"})
            if changed := [visible(name, 80) for name in compared if before.get(name) != now.get(name)]:
                return [
                    f"{visible(str(path), 200)} changed after its samples were generated ({', '.join(changed)}): its "
                    "scores belong to the old files"
                ]
    return []
