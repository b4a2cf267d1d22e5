"""Measures the grader's speed and agreement with labels, compared with Math-Verify if it is installed.

    python -m bench.grading [--shared FOLDER] [--math-verify PYTHON] [--math-verify-tests FOLDER] [--quick]

Prints the processor time of grading the labeled rows, of `harness.grade` in a loop, and of long responses, each next to
Math-Verify's; the agreement on each set of labeled rows; and the rows on which the two graders disagree.
`--math-verify` (or the environment variable MATH_VERIFY) names an interpreter that has the library; the default is this
interpreter. `--math-verify-tests` (or MATH_VERIFY_TESTS) names the folder of its own tests, which are compared, too
(`bench.math_verify_cases`). `--quick` skips the long responses. The grader's errors by set:
`make bench WHAT=scoreboard`.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import harness
from bench import math_verify_cases
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.records import Question, Sample, Timing
from harness.core.sanitize import visible
from harness.grading.processes.pool import grade_all
from harness.grading.second.second_opinion import second_verdicts
from reasoning_answers.kinds import kind_of
from tests.pins import verdicts

SPEED_ROWS = 4_000
SPEED_CHARS = 100_000
SECOND_ROWS = 100
"""Number of rows in the throughput test that Math-Verify grades; its time is extrapolated to all rows."""

LOOP_CALLS = 2_000
say = sys.stdout.write


def question(reference: str, name: str) -> Question:
    """A question with only a reference."""
    return Question(
        benchmark="pairs",
        question_id=name,
        references=(reference,),
        kind=kind_of(reference),
        row_digest="",
        prompt_digest="",
    )


def sample(text: str, name: str) -> Sample:
    """A sample with only a text."""
    return Sample(
        benchmark="pairs",
        question_id=name,
        sample_index=0,
        text=text,
        reasoning=None,
        finish_reason="stop",
        timing=Timing(started=0.0, total=0.0),
        endpoint="file",
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[2] / "shared"
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("HARNESS_SHARED", default)))
    parser.add_argument("--math-verify", default=os.environ.get("MATH_VERIFY", sys.executable), metavar="PYTHON")
    tests = os.environ.get("MATH_VERIFY_TESTS")
    parser.add_argument("--math-verify-tests", type=Path, default=tests and Path(tests), metavar="FOLDER")
    parser.add_argument("--quick", action="store_true", help="leave out the long responses")
    arguments = parser.parse_args()
    harness.grade("1/2", r"so \boxed{3/7}")
    loop = _seconds(lambda: [harness.grade("1/2", rf"so \boxed{{{n}/{n + 1}}}") for n in range(LOOP_CALLS)])
    say(f"harness.grade in a loop: {1e6 * loop / LOOP_CALLS:.0f} µs a call\n\n")
    python = _agreement(arguments.shared / "data", arguments.math_verify)
    if arguments.math_verify_tests is not None:
        math_verify_cases.compare(arguments.math_verify_tests, python)
    if not arguments.quick:
        _throughput(arguments.shared / "data", python)
        _command(arguments.shared / "data", python)


def _agreement(data: Path, python: str) -> str | None:
    """Print how well both graders agree with the labels; return Math-Verify's interpreter, or None if there is none."""
    sets = verdicts.shared(data)
    named = [(name, row) for name, rows in sets.items() for row in rows]
    questions = {str(n): question(row.reference, str(n)) for n, (_, row) in enumerate(named)}
    samples = [sample(row.reply, str(n)) for n, (_, row) in enumerate(named)]
    ours: list[str] = []
    seconds = _seconds(lambda: ours.extend(grade.verdict for grade in grade_all(questions, samples, workers=1)))
    say(f"{len(named):,} labelled rows: {seconds:.1f} s of processor time")
    theirs: dict[int, bool | None] = {}
    try:
        second = _seconds(
            lambda: theirs.update(
                {
                    int(key.question_id): right
                    for key, right in second_verdicts("math-verify", questions, samples, python=python).items()
                }
            )
        )
        say(f"; Math-Verify {second:.1f} s; ratio {second / seconds:.1f}\n\n")
    except UsageError as error:
        say(f"\n{error}\n\n")
        python = ""
    say(f"{'agreement with the labels':36}{'rows':>7}{'ours':>9}{'Math-Verify':>13}\n")
    for name in sets:
        rows = [(n, row.verdict == "correct") for n, (of, row) in enumerate(named) if of == name]
        agreed = sum((ours[n] == "correct") == right for n, right in rows) / len(rows)
        agreed_too = sum((theirs[n] is True) == right for n, right in rows) / len(rows) if python else 0.0
        say(f"{name:36}{len(rows):7,}{agreed:9.2%}{f'{agreed_too:.2%}' if python else '–':>13}\n")
    labels = [row.verdict == "correct" for _, row in named]
    n_ours = sum((verdict == "correct") == right for verdict, right in zip(ours, labels, strict=True))
    n_theirs = sum((theirs.get(n) is True) == right for n, right in enumerate(labels))
    say(
        f"{'labels that the grader agrees with':36}{len(named):7,}{n_ours:9,}{f'{n_theirs:,}' if python else '–':>13}\n"
    )
    for n, (name, row) in enumerate(named) if python else ():
        if (ours[n] == "correct") != (theirs[n] is True):
            say(f"{name}: {visible(row.reference, 60)} | ours {ours[n]}, theirs {theirs[n]}, right is {row.verdict}\n")
    return python or None


def _throughput(data: Path, python: str | None) -> None:
    """Print the processor time of grading MATH-500 × 8 with long reasoning, read from JSON lines."""
    questions, lines = _long_samples(data)
    path = Path(f"/tmp/bench-grading-{os.getpid()}.jsonl")
    path.write_bytes(b"\n".join(lines))
    try:
        ours = _seconds(lambda: sum(1 for _ in grade_all(questions, _samples(path), workers=1)))
        say(f"{len(lines):,} responses of {SPEED_CHARS // 1000} kB: {ours:.2f} s of processor time")
        if python is not None:
            some = [codec.decode(line, Sample) for line in lines[:: len(lines) // SECOND_ROWS]]
            theirs = _seconds(lambda: second_verdicts("math-verify", questions, some, python=python))
            theirs *= len(lines) / len(some)
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
    """Print the processor time of `harness score FILE` with one worker, and of one process of Math-Verify."""
    compileall.compile_dir(Path(str(harness.__file__)).parent, quiet=2)  # as installers do
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
            ours = _seconds(_run([sys.executable, "-m", "harness", "score", str(path), *columns]))
            say(f"harness score FILE, {len(rows):,} responses {name}, one worker: {ours:.2f} s of processor time")
            if python is not None:
                path.write_text("".join(rows[::every]))
                theirs = _seconds(_run([python, "-c", _THEIRS, str(path)])) * every
                say(f"; Math-Verify on the whole texts {theirs:.1f} s; ratio {theirs / ours:.0f}")
            say("\n")
        finally:
            path.unlink()


def _run(command: list[str]) -> Callable[[], object]:
    """Return a function that runs this command to completion."""
    return lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds that `work` takes in this process and its finished children."""
    before = _processor()
    work()
    return _processor() - before


def _processor() -> float:
    """Processor seconds so far of this process and its finished children."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a file that has one sample per line."""
    with path.open("rb") as file:
        for line in file:
            yield codec.decode(line, Sample)


def _long_samples(data: Path) -> tuple[dict[str, Question], list[bytes]]:
    """The MATH-500 questions by id, and `SPEED_ROWS` mostly correct samples with long reasoning, as JSON lines."""
    rng = random.Random(7)
    words = re.findall(r"\S+", r"the so let x equals number therefore compute is $x^2$ (3,4) $\frac{1}{2}$ hence we")
    filler = " ".join(rng.choice(words) for _ in range(SPEED_CHARS // 4))
    with (data / "math500.jsonl").open("rb") as file:
        references = [json.loads(line)["answer"] for line in file]
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


if __name__ == "__main__":
    main()
