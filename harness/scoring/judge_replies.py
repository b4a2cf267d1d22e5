"""The judges that a run has had, `<run>/judge/<model>-<prompt>-<digest>/`: their stored replies, and their rubric."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.benchmarks.judge_forms import MAX_SHOWN_PROOF_CHARS, MAX_SHOWN_REPLY_CHARS, RUBRIC, stored_form
from harness.core.errors import StoreError
from harness.core.records import Grade, Key, Question, Sample
from harness.grading.second.judge_messages import prompt_of, text_for_judge, vote
from harness.grading.second.judge_prompts import is_about, rule_in, shown_answer
from harness.grading.second.judge_rulings import JudgeRuling
from harness.grading.verdict import JUDGE_RULE
from harness.runs import Manifest, RunFolder, read_samples
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder
from harness.runs.record import n_planned


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A judge's reply about the answer of one sample. ruling: None without one. judge: model@prompt, as in
    the grades. folder, key: where it lies.
    """

    judge: str
    ruling: JudgeRuling | None
    text: str
    folder: RunFolder
    key: Key


def judges_of(folder: BenchmarkFolder) -> Iterator[tuple[RunFolder, Manifest]]:
    """Yield each judge that was asked about a benchmark: the folder of its replies, and its manifest.

    folder: the benchmark's in the run. A damaged judge's folder is left out: `harness score` reports the damage.
    """
    for path in sorted((folder.path.parent / "judge").glob("*/manifest.json")):
        judge = RunFolder(path.parent)
        try:
            manifest = Manifest.load(judge)
        except StoreError:
            continue
        if folder.name in manifest.benchmarks:
            yield judge, manifest


def replies_about(folder: BenchmarkFolder, question: Question, sample: Sample, grade: Grade) -> list[JudgeReply]:
    """The stored replies of every judge about the answer of a sample; those of the judge that decided it come last.

    folder: the benchmark's in the run. Raises `StoreError`.
    """
    # The end of a reply is shown to a judge only if the answer cannot be; the whole reply, only by some prompts.
    sizes, is_apart = (0, MAX_SHOWN_REPLY_CHARS, MAX_SHOWN_PROOF_CHARS), bool(sample.reasoning)
    texts = [text_for_judge(sample.text, is_apart=is_apart, whole=most) for most in sizes]
    shown = list(filter(None, (grade.extracted and shown_answer(grade.extracted), *texts)))
    by_judge: list[tuple[tuple[bool, str], list[JudgeReply]]] = []
    for judge, manifest in judges_of(folder):
        record, asked_in = manifest.benchmarks[folder.name], judge.benchmark(folder.name)
        ids = _requests_about(asked_in, question, shown)
        prompt = str(record.identity.get("prompt"))
        name = f"{manifest.model}@{prompt}"
        keys = {Key(id_, index) for id_ in ids for index in range(n_planned(id_, record.plan.samples))}
        form = stored_form(prompt, question.rules.judge)
        replies = [
            JudgeReply(
                judge=name,
                ruling=None if form is None else vote(reply, form, question),
                text=reply.text or "",
                folder=judge,
                key=reply.key,
            )
            for reply in (read_samples(asked_in, keys=keys) if keys else ())
        ]
        # A judge with other sampling has another folder under the same name: the later one comes last.
        by_judge.append(((f"+judge:{name}" in grade.grader, manifest.created), replies))
    by_judge.sort(key=lambda item: item[0])
    return [reply for _, replies in by_judge for reply in replies]


def _requests_about(asked_in: BenchmarkFolder, question: Question, shown: Sequence[str]) -> list[str]:
    """The ids of a judge's requests about one answer to a question.

    asked_in: the benchmark in the folder of the judge. shown: the texts by which a request may show the answer (itself,
    or the reply); the first that any request holds counts.
    """
    requests = {
        case.question_id: case.messages[-1].content
        for case in question_file.iterate(asked_in)
        if case.metadata.get("question_id") == question.question_id and case.messages
    }
    for answer in shown:
        if ids := [request_id for request_id, text in requests.items() if is_about(text, answer)]:
            return ids
    return []


def rubric_of(folder: BenchmarkFolder, grades: Iterable[Grade]) -> str:
    """The rubric by which a judge decided some of `grades`, as the judge got it; empty without one, with several, or if
    its replies are gone.

    folder: the benchmark's in the run. The rubric is part of each prompt of the judge; that of the first is read.
    """
    graders = {grade.grader for grade in grades if grade.rule == JUDGE_RULE}
    prompts = set(map(prompt_of, graders))
    prompt = prompts.pop() if len(prompts) == 1 else ""
    if not prompt.startswith(RUBRIC):
        return ""
    for judge, manifest in judges_of(folder):
        if manifest.benchmarks[folder.name].identity.get("prompt") == prompt:
            with contextlib.suppress(StoreError):  # `harness score` reports the damage.
                first = next(iter(question_file.read(judge.benchmark(folder.name))), None)
                if first is not None and first.messages:
                    return rule_in(first.messages[-1].content)
    return ""
