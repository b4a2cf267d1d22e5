"""A small finished run with answers that rules cannot decide, and a judge that answers by a rule of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.benchmarks.judge_forms import form_named
from harness.client.address.endpoint import Endpoint
from harness.client.request_builder import Asker
from harness.core.codec import digest
from harness.core.errors import ServerError
from harness.core.records import Grade, Message, Question, Sample, Timing, Usage
from harness.judges.judge import Judged, JudgeServer, JudgeSettings, Serve, score_with_judge
from harness.presets.grading import GradingOptions
from harness.runs import RunFolder, grades
from harness.scoring.pipeline import grade_run
from harness.testing import Answer, FakeServer, Reply, Request, Said, serving
from tests.runs import recorded

VERDICT = form_named("verdict")

SHOWN = re.compile(r"<(reference|answer)-[0-9a-f]{12}>(.*)</\1-[0-9a-f]{12}>")

PROSE = "the process by which green plants turn light into sugar"
"""A reference that no rule can compare with anything but itself."""

GOOD = r"So \boxed{\text{plants making sugar from light}}"
BAD = r"So \boxed{\text{plants burning sugar at night}}"
"""Answers that a judge decides: a paraphrase of `PROSE`, and a wrong one."""

LEFT_OPEN = "harness.grading.verifiers.left_open:to_judge"  # as earlier runs store it


def write_run(
    path: Path, rows: Mapping[str, tuple[str, Sequence[str]]], benchmark: str = "prose", **fields: Any
) -> RunFolder:
    """A run folder with this benchmark, and those that it had before. rows: question id → (reference, its texts).
    fields: further ones of each question.
    """
    asked = [
        Question(
            benchmark=benchmark,
            question_id=name,
            messages=(Message("user", f"Question {name}?"),),
            references=(reference,),
            kind="text" if " " in reference else "integer",
            row_digest=digest(name),
            prompt_digest=digest([name, "asked"]),
            **fields,
        )
        for name, (reference, _) in rows.items()
    ]
    samples = (sample(benchmark, name, i, text) for name, (_, texts) in rows.items() for i, text in enumerate(texts))
    planned = max(len(texts) for _, texts in rows.values())
    return recorded.write_run(path, asked, samples, planned=planned, identity={"model": "tested"}, options={})


def sample(benchmark: str, name: str, index: int, text: str) -> Sample:
    return recorded.sample(
        name,
        index,
        text,
        benchmark=benchmark,
        usage=Usage(prompt_tokens=5, completion_tokens=7),
        timing=Timing(started=0.0, first_token=0.5, last_token=1.0, total=1.0),
        endpoint=f"http://tested{index % 2}",
    )


def shown_to(request: Request) -> tuple[str, str]:
    """(reference, answer) as they stand in a judge's request."""
    fields = dict(SHOWN.findall(request.json["messages"][-1]["content"]))
    return fields["reference"], fields["answer"]


def asked_of(server: FakeServer) -> list[tuple[str, str]]:
    """(reference, answer) of every request for a verdict."""
    return [shown_to(request) for request in server.requests if request.method == "POST"]


def judging(reply: Reply | Callable[[Request], Reply]) -> Answer:
    """A server that lists one model and gives requests for a verdict to `reply`."""
    return serving(reply, "judge")


def ruling_by(right: Mapping[str, bool | None]) -> Answer:
    """A judge that finds an answer right or wrong by the words in it, else states no verdict; it quotes the answer."""

    def reply(request: Request) -> Said:
        _, said = shown_to(request)
        ruling = next((ruling for words, ruling in right.items() if words in said), None)
        word = {True: "CORRECT", False: "INCORRECT", None: "unsure"}[ruling]
        return Said(f"The answer reads:\n{said}\n**VERDICT: {word}**", 11)

    return judging(reply)


def serve(server: FakeServer, engine: str | None = None) -> Serve:
    """The running judge."""
    asker = Asker(model="judge", engine=engine)
    return lambda: JudgeServer(endpoints=(Endpoint.parse(server.base_url),), asker=asker, concurrency=4)


def nowhere() -> JudgeServer:
    """A server that cannot be reached."""
    raise ServerError("the judge cannot be reached")


def nobody() -> JudgeServer:
    """A server that must not be needed."""
    raise AssertionError("a server was asked though nothing is missing")


def judge_run(folder: RunFolder, served: Serve, **settings: Any) -> Judged:
    judge = JudgeSettings(model="judge", prompt=settings.pop("prompt", VERDICT), serve=served, **settings)
    return score_with_judge(folder, grade_run(folder, GradingOptions(workers=1)), judge)


def graded(folder: RunFolder, benchmark: str = "prose") -> dict[tuple[str, int], Grade]:
    """The grades on disk by (question, index)."""
    return {(g.question_id, g.sample_index): g for g in grades.read(folder.benchmark(benchmark))}
