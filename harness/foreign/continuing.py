"""Continuing another tool's unfinished file as a run of ours: the file's replies become samples of the run.

A reply belongs to the question with the same text, with or without an instruction at its end; if several questions have
that text, the id and the reference answer decide. The samples have `file:NAME` as their endpoint, no seed and no times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from harness.core.errors import UsageError
from harness.core.inert import safe_name, visible
from harness.core.records import FROM_FILE, Question, Sample
from harness.foreign import outputs
from harness.foreign.recognising import ByText, text_of
from harness.runs.record import Plan


class FileReplies:
    """The replies in a file to the questions of a run.

    n_strange: number of replies to other questions. n_empty: number of replies without text. Both are set by a pass
    over `samples`.
    """

    def __init__(self, path: Path, questions: Iterable[Question], plans: Mapping[str, Plan]) -> None:
        """plans: benchmark → its expected samples. Raises `UsageError` if the file cannot be read."""
        listed = list(questions)
        self._outputs = outputs.read(path, questions=listed, half_done=True)
        self._path = path
        self._plans = plans
        self._by_text = ByText(listed)
        self.n_strange = self.n_empty = 0

    def samples(self) -> Iterator[Sample]:
        """The samples in the order of the file. The samples of a question are numbered from 0, and there are at most as
        many as its plan has.

        Raises `UsageError` at the end if no reply belongs to a question of the run.
        """
        self.n_strange = self.n_empty = 0
        taken: Counter[tuple[str, str]] = Counter()
        n = 0
        for row_question, sample in self._outputs:
            n += 1
            if not (sample.text or sample.reasoning):  # the other tool's request failed; the run asks again
                self.n_empty += 1
                continue
            candidates = self._by_text.of(row_question)
            if not candidates:
                self.n_strange += 1
                continue
            unfinished = [
                q for q in candidates if taken[q.benchmark, q.question_id] < self._plans[q.benchmark].of(q.question_id)
            ]
            if unfinished:
                question = unfinished[0]
                key = question.benchmark, question.question_id
                yield self._as_run_sample(sample, row_question, question, taken[key])
                taken[key] += 1
        # Raised only at the end, because a file may begin with questions that this run leaves out.
        if n and n == self.n_strange:
            raise UsageError(
                f"no reply in {visible(str(self._path))} is to a question of this run: check that the file is of this "
                "benchmark and has its questions in the same words"
            )

    def _as_run_sample(self, sample: Sample, row_question: Question, question: Question, index: int) -> Sample:
        """The file's sample as a sample of this run: with the run's question, index `index`, and the endpoint
        `file:NAME`."""
        return msgspec.structs.replace(
            sample,
            benchmark=question.benchmark,
            question_id=question.question_id,
            sample_index=index,
            endpoint=FROM_FILE + safe_name(self._path.name),
            # Where the texts differ, the other tool sent another prompt, and its digest is unknown.
            prompt_digest=question.prompt_digest if text_of(row_question) == text_of(question) else "",
        )
