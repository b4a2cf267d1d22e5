"""Another tool's unfinished file as the beginning of a run of ours: its replies become samples of the run.

A reply belongs to the question with the same text, with or without an instruction at its end. It is marked by the
endpoint `file:NAME`, and has no seed and no times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.benchmarks.questions import QuestionSet
from harness.core.errors import UsageError
from harness.core.inert import safe_name, visible
from harness.core.nouns import count_noun
from harness.core.records import FROM_FILE, Sample
from harness.foreign import outputs
from harness.foreign.numbering import SampleNumbers
from harness.foreign.recognising import ByText
from harness.runs.record import n_planned


class Beginning:
    """The replies in a file to the questions of a run. Each iteration reads the file again.

    n_other, n_empty: replies to other questions, or beyond the samples that the run plans; and replies without a text.
    The latest iteration has counted them.
    """

    def __init__(self, path: Path, sets: list[QuestionSet], samples: Mapping[str, float]) -> None:
        """samples: benchmark → samples that the run plans of each question. Raises `UsageError` for an unreadable file,
        and for one without a reply to a question of the run."""
        listed = [question for each in sets for question in each.questions]
        self._path, self._samples, self._by_text = path, samples, ByText(listed)
        self._outputs = outputs.read(path, questions=listed, half_done=True)
        self.n_other = self.n_empty = 0
        self.n_samples = sum(1 for _ in self)
        if not self.n_samples:
            raise UsageError(
                f"{visible(str(path))} is a file, and no reply in it is to a question of this run: name a folder, or "
                "the unfinished file of another tool that asks these questions in the same words",
                field="out",
            )

    def __iter__(self) -> Iterator[Sample]:
        self.n_other = self.n_empty = 0
        numbers = SampleNumbers()
        for row_question, sample in self._outputs:
            if sample is None or not (sample.text or sample.reasoning):  # the other tool's request failed
                self.n_empty += 1
                continue
            question = next(iter(self._by_text.of(row_question)), None)
            index = None if question is None else numbers.give(f"{question.benchmark}\0{question.question_id}", None)
            planned = 0 if question is None else n_planned(question.question_id, self._samples[question.benchmark])
            if question is None or index is None or index >= planned:
                self.n_other += 1
                continue
            yield msgspec.structs.replace(
                sample,
                benchmark=question.benchmark,
                question_id=question.question_id,
                sample_index=index,
                endpoint=FROM_FILE + safe_name(self._path.name),
                # Where the texts differ, the other tool sent another prompt, and its digest is unknown.
                prompt_digest=question.prompt_digest if row_question.last_turn == question.last_turn else "",
            )

    @property
    def sentence(self) -> str:
        """How many replies the run takes, and what becomes of the others."""
        left = ((self.n_empty, "empty or failed, to be asked again"), (self.n_other, "to no question of the plan"))
        others = "".join(f"; {n} {what}" for n, what in left if n)
        return (
            f"{count_noun(self.n_samples, 'sample')} of {visible(self._path.name, 100)} begin this run, marked as made "
            f"by another tool with settings of its own{others}"
        )
