"""Measures accuracy and speed of the grader on labelled pairs and outputs, and of Math-Verify if it is installed.

    python bench/grading.py [--shared FOLDER] [--math-verify PYTHON] [--quick]

Prints agreement with the labels per set with false accepts (FA) and false refusals (FR), how pairs were decided, the
time of each step, the throughput on long responses, and the rows on which the two graders disagree. `--math-verify`
(or MATH_VERIFY in the environment) names an interpreter that has the library; by default this one is tried.
"""

from __future__ import annotations

import argparse
import base64
import compileall
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import harness
from harness.answers.grammar import parse
from harness.benchmarks.drafts import kind_of
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.inert import visible
from harness.core.records import Grade, GradeRules, Key, Question, Sample, Timing
from harness.grading.compare import equivalence
from harness.grading.find.extract import extract
from harness.grading.processes.pool import grade_all
from harness.grading.second.second_opinion import second_verdicts

SPEED_ROWS = 4_000
SPEED_CHARS = 100_000
SECOND_ROWS = 100
"""Number of rows of the throughput test that Math-Verify grades; its time is scaled up to all rows."""

say = sys.stdout.write


class Row(NamedTuple):
    """A labelled pair: its set, the reference, the response, and whether it is correct."""

    set: str
    id: str
    reference: str
    response: str
    expected: bool


def rows(data: Path) -> list[Row]:
    """Every labelled row of the shared data; the ambiguous ones are left out."""
    labelled: list[Row] = []
    labelled += [
        Row(f"hand-made: {row['kind']}", row["id"], row["gold"], response(row), row["expected"])
        for row in _lines(data / "equivalence_handmade.jsonl")
        if not row["ambiguous"]
    ]
    names = {"huggingface/Math-Verify": "pairs: Math-Verify's", "uw-nsl/TinyV HardVerify-Math": "pairs: TinyV"}
    for row in _lines(data / "equivalence.jsonl"):
        text = row["pred"] if row["kind"] == "text" else f"\\boxed{{{row['pred']}}}"
        labelled.append(Row(names.get(row["source"], "pairs: others"), row["id"], row["gold"], text, row["expected"]))
    second = data / "equivalence_2.jsonl"
    for row in _lines(second) if second.exists() else []:
        if not row["ambiguous"]:
            source = "MathCoder outputs" if row["source"].startswith("MathCoder") else row["source"].partition(":")[0]
            name = f"second: {source if source in ('own', 'MathCoder outputs') else 'public'}"
            labelled.append(Row(name, row["id"], row["gold"], row["response"], row["label"]))
    third = data / "equivalence_3.jsonl"
    labelled += [
        Row("third: own", row["id"], row["gold"], row["response"], row["label"])
        for row in (_lines(third) if third.exists() else [])
        if not row["ambiguous"]
    ]
    for path in sorted((data / "outputs").glob("*.jsonl")):
        labelled += [
            Row(f"outputs: {path.stem}", row["id"], row["gold"], row["response"], row["label"])
            for row in _lines(path)
            if row["label"] is not None
        ]
    return labelled


def response(row: dict[str, Any]) -> str:
    """The response of a hand-made row; long ones are stored compressed."""
    if "response_zlib_b64" in row:
        return zlib.decompress(base64.b64decode(row["response_zlib_b64"])).decode("utf-8", "surrogatepass")
    return str(row["response"])


def question(reference: str, name: str = "pair") -> Question:
    """A question of which only the reference is known."""
    return Question(
        benchmark="pairs", question_id=name, references=(reference,), kind=kind_of(reference), row_digest="",
        prompt_digest="",
    )  # fmt: skip


def sample(text: str, name: str = "pair") -> Sample:
    """A sample of which only the text is known."""
    return Sample(
        benchmark="pairs", question_id=name, sample_index=0, text=text, reasoning=None, finish_reason="stop",
        timing=Timing(started=0.0, total=0.0), endpoint="file",
    )  # fmt: skip


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("HARNESS_SHARED", default)))
    parser.add_argument("--math-verify", default=os.environ.get("MATH_VERIFY", sys.executable), metavar="PYTHON")
    parser.add_argument("--quick", action="store_true", help="leave out the throughput test")
    arguments = parser.parse_args()

    labelled = rows(arguments.shared / "data")
    questions = {row.id: question(row.reference, row.id) for row in labelled}
    samples = [sample(row.response, row.id) for row in labelled]
    ours = list(grade_all(questions, samples, workers=1))
    theirs = _second(arguments.math_verify, questions, samples)
    _accuracy(labelled, ours, theirs)
    _rules(ours)
    _times(labelled)
    if not arguments.quick:
        python = arguments.math_verify if theirs is not None else None
        _throughput(arguments.shared / "data", python)
        _command(arguments.shared / "data", python)
    _list("Our errors", [
            (row, f"{grade.verdict} by {grade.rule}, extracted {visible(str(grade.extracted), 60)}")
            for row, grade in zip(labelled, ours, strict=True) if (grade.verdict == "correct") != row.expected
        ])  # fmt: skip
    if theirs is not None:
        _list("Disagreements with Math-Verify", [
            (row, f"ours {grade.verdict}, theirs {theirs[grade.key]}, extracted {visible(str(grade.extracted), 60)}")
            for row, grade in zip(labelled, ours, strict=True)
            if (grade.verdict == "correct") != (theirs[grade.key] is True)
        ])  # fmt: skip


def _second(python: str, questions: dict[str, Question], samples: list[Sample]) -> dict[Key, bool | None] | None:
    try:
        return second_verdicts("math-verify", questions, samples, python=python)
    except UsageError as error:
        say(f"{error}\n\n")
        return None


def _accuracy(labelled: list[Row], ours: list[Grade], theirs: dict[Key, bool | None] | None) -> None:
    sets: dict[str, list[tuple[bool, bool, bool | None]]] = defaultdict(list)
    for row, grade in zip(labelled, ours, strict=True):
        second = None if theirs is None else theirs[grade.key] is True
        sets[row.set].append((row.expected, grade.verdict == "correct", second))
        if row.set.startswith("outputs"):
            sets["outputs: pooled"].append(sets[row.set][-1])
        if row.set.startswith(("pairs", "second")):
            sets[f"{row.set.partition(':')[0]}: pooled"].append(sets[row.set][-1])
    say("Wrong answers accepted / right answers refused:\n")
    say(f"{'set':32} {'n':>5}   ours                 Math-Verify\n")
    for name, results in sorted(sets.items()):
        say(f"{name:32} {len(results):5}   {_rate(results, 1):20} {_rate(results, 2) if theirs is not None else '–'}\n")


def _rate(results: list[tuple[bool, bool, bool | None]], column: int) -> str:
    accepts = sum(bool(result[column]) and not result[0] for result in results)
    refusals = sum(result[0] and not result[column] for result in results)
    share = 100 * (1 - (accepts + refusals) / len(results))
    return f"{share:6.2f} % ({accepts}/{refusals})"


def _rules(ours: list[Grade]) -> None:
    rules = Counter(grade.rule for grade in ours)
    say("\nAnswers that each rule decided: ")
    say(", ".join(f"{rule} {count}" for rule, count in rules.most_common()) + "\n")


def _times(labelled: list[Row]) -> None:
    """Print the times of single steps; each pair is compared with empty caches."""
    rules = GradeRules()
    pairs = [
        (row.reference, extraction.answer)
        for row in labelled
        if not row.set.startswith("hand-made: hostile") and (extraction := extract(row.response)) is not None
    ]
    times = []
    for reference, answer in pairs:
        equivalence._read.cache_clear()
        parse._parse.cache_clear()
        kind = kind_of(reference)
        equivalence._read.cache_clear()
        parse._parse.cache_clear()
        times.append(_seconds(lambda r=reference, a=answer, k=kind: equivalence.equal(r, a, k, rules)))  # type: ignore[misc]
    numbers = [(a, b) for a, b in pairs if _plain(a) and _plain(b)]
    number = statistics.median(_seconds(lambda p=p: equivalence.equal(p[0], p[1], "number", rules)) for p in numbers)  # type: ignore[misc]
    tail = "x" * 10 + " we think that $x < 5$ so " * (SPEED_CHARS // 26)
    long = f"<think>{tail}</think> The answer is $\\boxed{{42}}$."
    longer = f"<think>{tail * 100}</think> The answer is $\\boxed{{42}}$."
    bare = tail * 100
    say(
        f"\nPair, cold caches: median {1e6 * statistics.median(times):.0f} µs, "
        f"99 % {1e6 * sorted(times)[int(0.99 * len(times))]:.0f} µs; numbers: median {1e6 * number:.1f} µs\n"
        f"Extraction, 100 kB: {1e6 * _best(lambda: extract(long)):.1f} µs; 10 MB: "
        f"{1e6 * _best(lambda: extract(longer)):.1f} µs; 10 MB without a box or a closed block: "
        f"{1e3 * _best(lambda: extract(bare)):.2f} ms\n"
    )


def _plain(text: str) -> bool:
    return text.lstrip("-").replace(".", "", 1).isdigit()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _best(work: Callable[[], object]) -> float:
    return min(_seconds(work) for _ in range(50))


def _throughput(data: Path, python: str | None) -> None:
    """Print the CPU time, workers included, of grading MATH-500 × 8 with long reasoning, read from JSON lines."""
    questions, lines = _long_samples(data)
    path = Path(f"/tmp/bench-grading-{os.getpid()}.jsonl")
    path.write_bytes(b"\n".join(lines))
    try:
        before = _processor()
        count = sum(1 for _ in grade_all(questions, _samples(path), workers=1))
        ours = _processor() - before
        say(f"\n{count:,} responses of {SPEED_CHARS // 1000} kB: {ours:.2f} s of processor time")
        if python is not None:
            some = [codec.decode(line, Sample) for line in lines[:: len(lines) // SECOND_ROWS]]
            before = _processor()
            second_verdicts("math-verify", questions, some, python=python)
            theirs = (_processor() - before) * count / len(some)
            say(f"; Math-Verify {theirs:.0f} s (from {len(some)} of them); ratio {theirs / ours:.0f}")
        say("\n")
    finally:
        path.unlink()


_THEIRS = """
import json, sys, logging
logging.disable(logging.CRITICAL)
from math_verify import parse, verify
for line in open(sys.argv[1]):
    row = json.loads(line)
    verify(parse("$" + row["answer"] + "$"), parse(row["gen"]))
"""


def _command(data: Path, python: str | None) -> None:
    """Print the CPU time of `harness score FILE` with one worker, start included, and of one process of Math-Verify on
    the same responses.
    """
    compileall.compile_dir(Path(harness.__file__).parent, quiet=2)  # as an installer does
    questions, lines = _long_samples(data)
    for name, every in (("of 100 kB", 10), ("short", 1)):
        path = Path(f"/tmp/bench-command-{os.getpid()}.jsonl")
        rows = []
        for line in lines:
            stored = codec.decode(line, Sample)
            text = str(stored.text) if name != "short" else str(stored.text).rpartition("</think>")[2]
            reference = questions[stored.question_id].references[0]
            rows.append(json.dumps({"question": stored.question_id, "answer": reference, "gen": text}) + "\n")
        try:
            path.write_text("".join(rows))
            columns = ["--response-key", "gen", "--answer-key", "answer", "--workers", "1"]
            command = [sys.executable, "-m", "harness", "score", str(path), *columns]
            ours = _child(command)
            say(f"harness score FILE, {len(rows):,} responses {name}, one worker: {ours:.2f} s of processor time")
            if python is not None:
                path.write_text("".join(rows[::every]))
                theirs = _child([python, "-c", _THEIRS, str(path)]) * every
                say(f"; Math-Verify on the whole texts {theirs:.1f} s; ratio {theirs / ours:.0f}")
            say("\n")
        finally:
            path.unlink()


def _child(command: list[str]) -> float:
    """Run a command; return the CPU seconds of its process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _samples(path: Path) -> Iterator[Sample]:
    with path.open("rb") as file:
        for line in file:
            yield codec.decode(line, Sample)


def _processor() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _long_samples(data: Path) -> tuple[dict[str, Question], list[bytes]]:
    rng = random.Random(7)
    words = re.findall(r"\S+", r"the so let x equals number therefore compute is $x^2$ (3,4) $\frac{1}{2}$ hence we")
    filler = " ".join(rng.choice(words) for _ in range(SPEED_CHARS // 4))
    references = [row["answer"] for row in _lines(data / "math500.jsonl")]
    questions = {str(index): question(reference, str(index)) for index, reference in enumerate(references)}
    lines = []
    for row in range(SPEED_ROWS):
        index = row % len(references)
        answer = references[index] if rng.random() < 0.7 else rng.choice(references)
        start = rng.randrange(4_000)
        text = f"<think>\n{filler[start : start + SPEED_CHARS]}\n</think>\n\nSo we have\n\\[\n\\boxed{{{answer}}}\n\\]"
        stored = sample(text, str(index))
        lines.append(codec.encode(stored).replace(b'"sample_index":0', b'"sample_index":%d' % (row // len(references))))
    return questions, lines


def _list(title: str, entries: list[tuple[Row, str]]) -> None:
    say(f"\n{title} ({len(entries)})\n")
    for row, remark in entries:
        say(f"  {row.id} expected {row.expected}: reference {visible(row.reference, 60)} | {remark}\n")


if __name__ == "__main__":
    main()
