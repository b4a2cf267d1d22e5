"""The self-contained HTML page.

Guarantees: no script and no request (the content policy forbids both, and allows only the page's own style sheet, by
its digest); every foreign text is escaped by `markup` and clipped. Not covered: what a browser extension does.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources

from harness.core.about import __version__
from harness.core.inert import visible
from harness.core.records import Question
from harness.reports import charts
from harness.reports.markup import Content, Markup, join, tag
from harness.reports.scored import ScoredBenchmark, ScoredRun
from harness.reports.tables import ABSENT, Table, breakdown_table, endpoint_table, settings_table
from harness.scoring import QuestionTally

MAX_QUESTION_ROWS = 500
"""Questions listed one by one for each run and benchmark."""

MAX_PROMPT_CHARS = 240
MAX_ANSWER_CHARS = 60
"""Longest piece of a prompt, and of a reference or extracted answer, on the page."""

MAX_ANSWERS = 3
"""Most frequent answers listed for a question."""

_KINDS = {
    "correct": "correct",
    "wrong": "wrong",
    "cut": "cut by max_tokens",
    "no_answer": "no answer",
    "undecided": "undecided",
}

_DOCTYPE = Markup("<!DOCTYPE html>\n")


def page(runs: Sequence[ScoredRun], tables: Sequence[Table]) -> str:
    """The page of these runs; `tables` stand first."""
    style = resources.files("harness.reports").joinpath("page.css").read_text("utf-8")
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    title = ", ".join(dict.fromkeys(visible(run.manifest.model, 80) for run in runs))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title} · scores"),
        tag("style", Markup(style)),
    )
    return _DOCTYPE + tag("html", head, tag("body", tag("main", *_body(title, runs, tables))), lang="en") + "\n"


def _body(title: str, runs: Sequence[ScoredRun], tables: Sequence[Table]) -> list[Content]:
    names = list(dict.fromkeys(name for run in runs for name in run.benchmarks))
    scored = [(run, b, b.score) for name in names for run in runs for b in _present(run, name) if b.score is not None]
    versions = sorted({run.manifest.harness_version for run in runs} | {__version__})
    parts: list[Content] = [
        tag("h1", title),
        tag("p", f"{_count(len(runs), 'run')} · {', '.join(visible(name, 40) for name in names)}", class_="soft"),
        tag(
            "p",
            "Two intervals are given, each covering 95 %. The sampling interval is where the accuracy lies when the "
            "same questions are run again without end; the question interval, where it lies over all questions of the "
            "kind; it takes in the first.",
        ),
        *(_table(table, "notes warnings") for table in tables[:1]),
    ]
    if scored:
        parts += [
            tag("h3", "Accuracy"),
            tag("p", "Thick bar: sampling interval. Thin bar: question interval (95 %).", class_="soft"),
            charts.accuracy_chart([(run.label, b.name, score) for run, b, score in scored]),
        ]
    parts += map(_table, tables[1:])
    parts += [_benchmark(name, runs) for name in names]
    parts.append(tag("footer", f"reasoning-harness {', '.join(visible(version, 40) for version in versions)}"))
    return parts


def _benchmark(name: str, runs: Sequence[ScoredRun]) -> Markup:
    present = [(run, b) for run in runs for b in _present(run, name)]
    parts: list[Content] = [tag("h2", visible(name, 80))]
    curves = charts.budget_chart([(run.label, b.score) for run, b in present if b.score is not None])
    if curves:
        parts += [tag("h3", "More samples: pass@k (solid) and maj@k (dashed), in %"), curves]
    for run, benchmark in present:
        if benchmark.questions:
            parts += _run_details(run, benchmark)
    parts.append(tag("details", tag("summary", "Settings"), _table(settings_table([run for run, _ in present], name))))
    return tag("section", *parts)


def _run_details(run: ScoredRun, benchmark: ScoredBenchmark) -> list[Content]:
    score, questions = benchmark.score, benchmark.questions
    parts: list[Content] = [
        tag("h3", visible(run.label, 80)),
        tag("p", "Each cell is a question; the fuller, the more of its samples are correct.", class_="soft"),
        charts.question_strip(questions),
        _legend(correct="correct", wrong="not correct"),
        charts.length_chart(questions),
    ]
    if score is not None and score.breakdowns:
        groups = [_table(breakdown_table(run.label, score, by)) for by in score.breakdowns]
        parts.append(tag("details", tag("summary", f"By {', '.join(score.breakdowns)}"), *groups))
    if score is not None and (by_endpoint := endpoint_table([(run.label, score)])) is not None:
        parts.append(tag("details", tag("summary", "By endpoint"), _table(by_endpoint)))
    shown = questions[:MAX_QUESTION_ROWS]
    some = "" if len(shown) == len(questions) else f" (the first {len(shown)} of {len(questions)})"
    parts.append(tag("details", tag("summary", f"Questions{some}"), _legend(**_KINDS), _questions(shown)))
    return parts


def _questions(questions: Sequence[QuestionTally]) -> Markup:
    heads = ("question", "asked", "reference", "correct", "samples", "frequent answers", "tokens")
    rows = []
    for item in questions:
        tokens = [grade.completion_tokens for grade in item.grades if grade.completion_tokens is not None]
        rows.append(
            tag(
                "tr",
                tag("td", visible(item.question.question_id, MAX_ANSWER_CHARS)),
                tag("td", _clip(_asked(item.question), MAX_PROMPT_CHARS), class_="prompt"),
                tag("td", tag("code", _clip(" or ".join(item.question.references), MAX_ANSWER_CHARS))),
                tag("td", f"{item.correct} / {item.n}", class_="n"),
                tag("td", charts.sample_strip(item)),
                tag("td", _answers(item)),
                tag("td", f"{sum(tokens) / len(tokens):.0f}" if tokens else ABSENT, class_="n"),
            )
        )
    head = tag("tr", *(tag("th", name, class_="n" if name in ("correct", "tokens") else None) for name in heads))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="questions"), class_="scroll")


def _answers(item: QuestionTally) -> Markup:
    counts = Counter(grade.extracted for grade in item.grades if grade.extracted is not None)
    shown = [
        join([f"{number} × ", tag("code", _clip(answer, MAX_ANSWER_CHARS))]) for answer, number in _frequent(counts)
    ]
    return join(part for place, answer in enumerate(shown) for part in ((tag("br"), answer) if place else (answer,)))


def _frequent(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_ANSWERS]


def _asked(question: Question) -> str:
    asked = [message.content for message in question.messages if message.role == "user"]
    return asked[-1] if asked else question.prompt


def _clip(value: str, limit: int) -> str:
    """One line of at most `limit` characters; only the beginning of a long text is looked at."""
    return visible(" ".join(value[: 4 * limit].split()), limit) if value else ABSENT


def _legend(**kinds: str) -> Markup:
    keys = [join([tag("span", class_=f"key {kind}"), label]) for kind, label in kinds.items()]
    return tag("p", *keys, class_="soft legend")


def _table(table: Table, notes_class: str = "notes") -> Markup:
    def cell(name: str, place: int, value: str) -> Markup:
        return tag(name, value, class_="n" if place in table.numeric else None)

    head = tag("tr", *(cell("th", place, value) for place, value in enumerate(table.columns)))
    rows = [tag("tr", *(cell("td", place, value) for place, value in enumerate(row))) for row in table.rows]
    body = tag("table", tag("caption", table.title), tag("thead", head), tag("tbody", *rows))
    notes = [tag("li", f"[{number}] {note}") for number, note in enumerate(table.notes, 1)]
    return join([tag("div", body, class_="scroll"), tag("ol", *notes, class_=notes_class) if notes else None])


def _present(run: ScoredRun, name: str) -> list[ScoredBenchmark]:
    return [run.benchmarks[name]] if name in run.benchmarks else []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
