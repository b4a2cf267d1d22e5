"""`harness compare`, `harness verify` and `harness plan`: verdicts, warnings, exit codes and required samples.

For: harness.cli.compare, harness.cli.judge, harness.cli.verify, harness.deciding.paired_comparison,
harness.viewer.run_comparison, harness.commands.comparison_warnings, harness.reports.comparison_tables,
harness.cli.plan.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import harness as reasoning_harness
from harness.commands.compare import compare
from harness.core.records import Grade, ServerFacts
from harness.deciding.difference_stats import (
    SampleSpread,
    holm,
    margin_reach,
    min_samples,
    planned_variance,
    question_difference,
    ratio_limits,
    scaled_difference,
    score_variance,
)
from harness.deciding.published import load_published
from harness.options.decisions import CompareOptions
from harness.reports.inputs import read_without_grades
from harness.reports.settings import given_table
from harness.runs import Manifest, RunFolder, grades, questions, record
from harness.runs.manifest import OUTPUTS, Provenance
from harness.runs.recorded_settings import describe_difference, describe_setting
from harness.scoring.score import Score
from harness.scoring.stats import Interval, normal_two_sided, t_two_sided
from tests.commands import judged_runs
from tests.reports.run_folders import write_run
from tests.system.command import harness

R1 = "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"


def two_runs(folder: Path, second: float = 0.2) -> tuple[RunFolder, RunFolder]:
    base = write_run(folder / "base", benchmarks=[("demo", 30, 16)], strength=0.5)
    return base, write_run(folder / "tuned", benchmarks=[("demo", 30, 16)], strength=second, seed=2)


def test_a_report_of_two_runs_gives_the_warnings_of_their_comparison(tmp_path: Path) -> None:
    """Of runs with other questions and of one that another tool made; of two alike neither warns."""
    for number, (asked, warned) in enumerate(
        (({}, 0), ({"identity": {"dataset_digest": "other"}}, 1), ({"settings": {OUTPUTS: {}}}, 1))
    ):
        base, _ = two_runs(folder := tmp_path / str(number))
        tuned = write_run(folder / "other", benchmarks=[("demo", 30, 16)], strength=0.5, seed=2, **asked)
        warnings = compare([base.path, tuned.path], CompareOptions())[0].decision.warnings
        said = " ".join(note for table in reasoning_harness.report([base, tuned]).tables for note in table.notes)
        assert (len(warnings) >= warned, [each for each in warnings if each[:80] not in said]) == (True, [])


def test_an_outdated_score_is_refused_and_one_of_an_unfinished_run_is_not(tmp_path: Path) -> None:
    _, run = two_runs(tmp_path)
    demo = run.benchmark("demo")
    lines = demo.grades.read_text("utf-8").splitlines(keepends=True)
    demo.grades.write_text("".join(lines[:-7]), encoding="utf-8")
    assert harness(tmp_path, "compare", "base", "tuned").code == 0, "the seven samples are missing"
    later = [msgspec.json.decode(line, type=Grade) for line in lines[-7:]]
    stored = (judged_runs.sample("demo", grade.question_id, grade.sample_index, "5") for grade in later)
    demo.samples.write_bytes(b"".join(record.encode(sample) for sample in stored))
    words = "demo of tuned was scored before its last 7 samples were stored; run `harness score` again first."
    for command in ("compare base tuned", "verify tuned", "plan tuned --detect 2"):
        done = harness(tmp_path, *command.split())
        assert (done.code, words in done.err) == (3, True), (command, done.err)
    gone = "7 grades of this score are missing from grades.jsonl: score the run again"
    assert gone in harness(tmp_path, "report", "tuned").out
    doctor = harness(tmp_path, "doctor", "base", "tuned")
    assert (doctor.code, "7 grades of the score are missing" in doctor.out) == (3, True), doctor.out


def test_a_margin_is_decided_by_the_interval_of_the_same_questions(tmp_path: Path) -> None:
    two_runs(tmp_path)
    (without,) = json.loads(harness(tmp_path, "compare", "base", "tuned", "--json").out)
    low, high = (100 * end for end in without["paired"]["difference"]["sampling"])
    assert without["margin"] is None
    ends = (-low + 0.01, "not worse"), (-low - 0.01, "open"), (-high + 0.01, "open"), (-high - 0.01, "worse")
    for points, verdict in ends:
        (decision,) = compare([tmp_path / "base", tmp_path / "tuned"], CompareOptions(margin=points))
        assert decision.decision.margin.verdict == verdict, points
        assert decision.decision.p_sampling == without["p_sampling"], "a margin leaves the other verdicts alone"


def test_the_margins_of_several_runs_are_corrected_together(tmp_path: Path) -> None:
    two_runs(tmp_path)
    shutil.copytree(tmp_path / "tuned", tmp_path / "twin")
    alone = reasoning_harness.compare([tmp_path / "base", tmp_path / "tuned"])[0].decision.paired
    margin = f"{100 * (-alone.difference.sampling.low + 0.0001):.6f}"
    by_itself, together = (
        harness(tmp_path, "compare", *runs, "--margin", margin).out for runs in (["base", "tuned"], RUNS)
    )
    assert by_itself.startswith("tuned is not worse than base on demo by ")
    assert "corrected" not in by_itself
    assert len(re.findall(CORRECTED, together)) == 2
    clear = harness(tmp_path, "compare", *RUNS, "--margin", "49").out
    assert clear.count(" than base on demo by 49 points or more: ") == 2
    assert clear.count("  not worse (p corrected for 2 margins)\n") == 2


RUNS = ["base", "tuned", "twin"]

CORRECTED = r"  open \(p corrected for 2 margins; the uncorrected interval is above -[\d.]+\)\n"
"""The verdict on a margin that the interval alone would decide."""


def test_questions_missing_from_a_run_are_counted_and_can_be_left_out(tmp_path: Path) -> None:
    base, again = (write_run(tmp_path / name, benchmarks=[("demo", 12, 4)]) for name in ("base", "again"))
    few = write_run(tmp_path / "few", benchmarks=[("demo", 12, 4)], only=6)
    (same,) = compare([base, again], CompareOptions())
    assert (same.settings, any("left out" in text for text in same.decision.warnings)) == ([], False)
    folder = few.benchmark("demo")
    first, *others = questions.read(folder)
    folder.questions.unlink()
    questions.write(folder, [msgspec.structs.replace(first, row_digest="new", references=("844",)), *others])
    (beside,) = compare([base, few], CompareOptions())
    same_id, alone = (text for text in beside.decision.warnings if "left out" in text)
    assert same_id == (
        "1 question has the same ID in both runs but a different text or answer, and is left out: q000; both "
        "accuracies are computed over the 5 shared questions"
    )
    assert alone.startswith("6 questions in only one run are left out: q006, q007, q008, q009, q010 and 1 more")
    assert [describe_difference(one) for one in beside.settings] == ["questions: all → 6 chosen"]


def test_a_single_run_or_one_without_scores_or_samples_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "base")
    write_run(tmp_path / "elsewhere", benchmarks=[("other", 4, 2)])
    write_run(tmp_path / "fresh", scored=False)
    write_run(tmp_path / "empty", missing=1.0)
    for runs, words in {
        "base": "specify at least two runs",
        "base elsewhere": "has no benchmarks in common",
        "base fresh": "demo of fresh has not been scored",
        "base empty": "demo of empty has no samples: complete the run",
        "empty base": "demo of empty has no samples: complete the run",
    }.items():
        refused = harness(tmp_path, "compare", *runs.split())
        assert (refused.code != 0, words in refused.err) == (True, True), refused.err


@pytest.mark.parametrize("same", [True, False])
def test_the_same_questions_are_compared_under_two_names(tmp_path: Path, same: bool) -> None:
    for name, digest in (("demo", "d1"), ("my_demo", "d1" if same else "d2")):
        path = write_run(tmp_path / name, benchmarks=[(name, 30, 16)]).manifest
        record = json.loads(path.read_bytes())
        record["benchmarks"][name]["identity"]["dataset_digest"] = digest
        path.write_text(json.dumps(record), "utf-8")
    done = harness(tmp_path, "compare", "demo", "my_demo")
    assert (done.code, " on my_demo" in done.out) == ((0, True) if same else (2, False)), done.err
    assert "run again" not in done.err


def test_a_warning_names_its_runs_if_there_are_several(tmp_path: Path) -> None:
    write_run(tmp_path / "base")
    write_run(tmp_path / "half", missing=0.5)
    write_run(tmp_path / "whole")
    three = harness(tmp_path, "compare", "base", "whole", "half").err
    assert "warning: demo, half against base: the run half is unfinished" in three
    assert "the run whole is unfinished" not in three
    assert "warning: the run half is unfinished" in harness(tmp_path, "compare", "base", "half").err
    for name, is_told in (("half", True), ("whole", False)):
        answer = harness(tmp_path, "report", name).out.split("\n\n")[0]
        assert ("(unfinished: " in answer) is is_told, answer


def test_what_must_be_equal_and_is_not_is_named(tmp_path: Path) -> None:
    base = write_run(tmp_path / "base", identity={"dataset_digest": "aaa", "seed": 0}, strength=0.5)
    other = write_run(tmp_path / "other", identity={"dataset_digest": "bbb", "seed": 0}, missing=0.5)
    twin = write_run(tmp_path / "twin", identity={"dataset_digest": "aaa", "seed": 0})
    score = Score.load(twin.benchmark("demo"))
    msgspec.structs.replace(score, graders=("rules/older",)).save(twin.benchmark("demo"))
    first, second = compare([base, other, twin], CompareOptions())
    assert any("the runs' data differ: " in warning for warning in first.decision.warnings)
    (unfinished,) = [warning for warning in first.decision.warnings if "the run other is unfinished" in warning]
    assert "To complete the run, repeat the `harness run` command" in unfinished
    assert not any("unfinished" in warning for warning in second.decision.warnings)
    manifest = Manifest.load(other)
    record = msgspec.structs.replace(manifest.benchmarks["demo"], settings={OUTPUTS: {}})
    msgspec.structs.replace(manifest, benchmarks={"demo": record}).save(other)
    imported = " ".join(compare([base, other], CompareOptions())[0].decision.warnings)
    assert "was created from a file with no row for" in imported
    assert "harness run" not in imported
    (graded_by,) = [warning for warning in second.decision.warnings if "graded by different graders" in warning]
    assert "the run by rules/older, the baseline by rules/1. Score both again" in graded_by
    assert [one.field for one in first.settings] == ["dataset_digest"]


def with_replies(run: RunFolder, text_of: Callable[[str, int], str], finish_reason: str = "stop") -> RunFolder:
    """The run, with a stored reply for each of its grades. text_of: of a question's id and a sample's number."""
    folder = run.benchmark("demo")
    samples = [
        msgspec.structs.replace(
            judged_runs.sample("demo", one.question_id, one.sample_index, text_of(one.question_id, one.sample_index)),
            finish_reason=finish_reason,
        )
        for one in grades.read(folder)
    ]
    folder.samples.write_bytes(b"".join(record.encode(sample) for sample in samples))
    return run


def long_reply(question_id: str, index: int) -> str:
    return f"{question_id} sample {index}: " + "we add and divide, " * 30


COLD = {"sampling": {"temperature": 0.0}}


@pytest.mark.parametrize(
    ("identities", "text", "finish", "why"),
    [
        (({}, {}), long_reply, "stop", "sample one of them again"),
        (({}, {"sampling": {"temperature": 0.6, "max_tokens": 99}}), long_reply, "stop", "sample one of them again"),
        (({}, {}), lambda *of: long_reply(*of)[:450], "length", "sample one of them again"),
        (({}, {"seed": 7}), long_reply, "stop", "answers from a cache"),
        ((COLD, COLD | {"seed": 7}), long_reply, "stop", "At temperature 0, replies do not depend on the seed"),
        # The twins: the same settings with other replies, parts of replies that no limit cut, and short replies.
        (({}, {}), lambda *of: f"Else: {long_reply(*of)}", "stop", ""),
        (({}, {}), lambda *of: long_reply(*of)[:450], "stop", ""),
        (({}, {}), lambda *_: "B", "stop", ""),
    ],
    ids=["same", "other max_tokens", "cut", "other seed", "cold", "other replies", "not cut", "short"],
)
def test_a_run_that_repeats_another_runs_replies_is_named(
    identities: tuple[dict[str, Any], dict[str, Any]],
    text: Callable[[str, int], str],
    finish: str,
    why: str,
    tmp_path: Path,
) -> None:
    base = write_run(tmp_path / "base", benchmarks=[("demo", 6, 8)], identity={"seed": 0, **identities[0]})
    other = write_run(tmp_path / "other", benchmarks=[("demo", 6, 4)], identity={"seed": 0, **identities[1]})
    with_replies(base, text if text("q", 0) == "B" else long_reply)
    with_replies(other, text, finish)
    (compared,) = compare([base, other], CompareOptions())
    repeated = [warning for warning in compared.decision.warnings if "word for word" in warning]
    assert len(repeated) == bool(why)
    for warning in repeated:
        assert warning.startswith("24 of the 24 replies compared are identical, word for word, in both runs")
        assert why in warning
    assert "samples: 8 → 4" in [describe_difference(one) for one in compared.settings]


@pytest.mark.parametrize(
    ("effort", "longer", "told"),
    [("high", 1.0, True), ("high", 3.0, False), ("low", 1.0, False)],
    ids=["no effect", "longer replies", "the same effort"],
)
def test_a_reasoning_effort_that_had_no_effect_is_told(tmp_path: Path, effort: str, longer: float, told: bool) -> None:
    base, other = (
        write_run(tmp_path / name, benchmarks=[("demo", 20, 4)], seed=seed, identity={"extra_body": {"effort": level}})
        for seed, (name, level) in enumerate((("base", "low"), ("other", effort)))
    )
    place = other.benchmark("demo")
    score = Score.load(place)
    mean = score.tokens.completion.mean
    scaled = msgspec.structs.replace(
        mean, value=longer * mean.value, sampling=Interval(*(longer * end for end in mean.sampling))
    )
    counts = msgspec.structs.replace(score.tokens.completion, mean=scaled)
    msgspec.structs.replace(score, tokens=msgspec.structs.replace(score.tokens, completion=counts)).save(place)
    (compared,) = compare([base, other], CompareOptions())
    assert any("do not differ significantly" in one for one in compared.decision.warnings) == told


@pytest.mark.parametrize(
    ("field", "listed"), [("prices", False), ("publish_questions", False), ("budget_usd", False), ("stream", True)]
)
def test_a_setting_that_can_change_no_score_is_no_difference(tmp_path: Path, field: str, listed: bool) -> None:
    runs = [write_run(tmp_path / name, benchmarks=[("demo", 6, 4)]) for name in ("base", "other")]
    for run, value in zip(runs, (None, {"prompt": 1.0, "completion": 4.0}), strict=True):
        record = json.loads(run.manifest.read_bytes())
        record["benchmarks"]["demo"]["settings"] |= {field: value}
        run.manifest.write_text(json.dumps(record))
    (compared,) = compare(runs, CompareOptions())
    assert any(one.field.startswith(field) for one in compared.settings) == listed


def test_a_digest_is_left_out_where_words_say_the_same(tmp_path: Path) -> None:
    for name, identity in (
        ("base", {"prompt": "boxed", "prompt_digest": "5e30" * 16}),
        ("none", {"prompt": "none", "prompt_digest": "025a" * 16}),
        ("edited", {"prompt": "boxed", "prompt_digest": "77aa" * 16}),
    ):
        write_run(tmp_path / name, benchmarks=[("demo", 12, 4)], identity=identity)
    done = harness(tmp_path, "compare", "base", "none")
    assert "differs: prompt: " in done.out
    assert "the settings of the runs differ: prompt: " in done.err
    assert "prompt_digest" not in done.out + done.err
    edited = harness(tmp_path, "compare", "base", "edited")
    assert "the settings of the runs differ: the text of the prompt boxed is different" in edited.err
    assert "digest" not in edited.out + edited.err


def test_undecided_answers_widen_what_a_difference_may_be(tmp_path: Path) -> None:
    texts = {"plain": ["The answer is 7."] * 10}
    texts["wordy"] = ["The answer is 7."] * 7 + ["There are 7 left to check."] * 3
    texts["part"] = texts["wordy"][:8]  # questions that only one run has count in no line of the comparison
    for name, replies in texts.items():
        rows = [{"question": f"Which is {n}?", "answer": "7", "text": text} for n, text in enumerate(replies)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = ("--response-key", "text", "--answer-key", "answer", "--question-key", "question")
        assert harness(tmp_path, "score", f"{name}.jsonl", *words).code == 0
    for runs, counts, told in (
        (("plain", "wordy"), ("0 of 10", "3 of 10"), "may be anywhere from -30.0 to +0.0 points"),
        (("wordy", "plain"), ("3 of 10", "0 of 10"), "may be anywhere from +0.0 to +30.0 points"),
        (("wordy", "part"), ("1 of 8", "1 of 8"), "may be anywhere from"),
    ):
        done = harness(tmp_path, "compare", *(f"{name}.jsonl" for name in runs))
        assert f"  baseline → run: undecided {' → '.join(counts)}\n" in done.out
        assert f"{counts[1]} in the run, {counts[0]} in the baseline" in " ".join(done.err.split())
        assert told in " ".join(done.err.split())


@pytest.mark.parametrize(("given", "differs"), [(7680, False), (32768, True), (7000, True)])
def test_a_lowered_max_tokens_is_compared_as_it_was_sent(given: int, differs: bool, tmp_path: Path) -> None:
    chosen = {"settings": {"sampling_from": {"max_tokens": "options"}}}
    write_run(tmp_path / "base", benchmarks=[("demo", 6, 4)], identity={"fitted_max_tokens": 7680}, **chosen)
    sampling = {"sampling": {"temperature": 0.6, "top_p": 0.95, "max_tokens": given}}
    write_run(tmp_path / "tuned", benchmarks=[("demo", 6, 4)], identity=sampling)
    assert ("max_tokens" in harness(tmp_path, "compare", "base", "tuned").out) == differs
    before = "max_tokens_before_fit"
    rows = {name: cells for name, *cells in given_table(read_without_grades(RunFolder(tmp_path / "base")), "demo").rows}
    assert (rows["max_tokens"], rows[before]) == (["7,680", "server"], ["32,768", "options"])


SAMPLED = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 4096}
NEUTRAL = {"top_k": -1, "min_p": 0.0}


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ({"top_k": -1, "min_p": 0}, []),
        ({"top_k": 20, "min_p": 0}, ["top_k: 20 → not set", f"{describe_setting('neutral')}: not set → top_k -1"]),
        ({}, [f"{describe_setting('neutral')}: not set → top_k -1, min_p 0"]),
    ],
)
def test_a_sampling_value_both_servers_got_is_equal(given: dict[str, float], listed: list[str], tmp_path: Path) -> None:
    theirs = write_run(tmp_path / "theirs", benchmarks=[("demo", 6, 4)], identity={"sampling": {**SAMPLED, **given}})
    mine = write_run(tmp_path / "mine", benchmarks=[("demo", 6, 4)], identity={"sampling": SAMPLED, "neutral": NEUTRAL})
    (compared,) = compare([theirs, mine], CompareOptions())
    assert [describe_difference(one) for one in compared.settings] == listed


def with_server(run: RunFolder, **facts: str) -> RunFolder:
    """The run, with one server that stated these facts of its model."""
    manifest = Manifest.load(run)
    provenance = Provenance().after("t", {"http://h/v1": ServerFacts(model=facts, host={"version": "1"})}, [])
    msgspec.structs.replace(manifest, provenance=provenance).save(run)
    return run


def test_servers_that_served_other_weights_are_named(tmp_path: Path) -> None:
    base, tuned = two_runs(tmp_path)
    with_server(base, model_path="a.gguf", root="m")
    with_server(tuned, model_path="b.gguf", root="m")
    done = harness(tmp_path, "compare", "base", "tuned")
    assert "  differs: server's model_path: a.gguf → b.gguf\n" in done.out
    assert "root" not in done.out
    with_server(tuned, model_path="a.gguf", root="m")
    assert "server's" not in harness(tmp_path, "compare", "base", "tuned").out


def test_the_mean_of_several_benchmarks_has_its_own_line_and_p_value(tmp_path: Path) -> None:
    both = [("demo", 30, 16), ("sums", 20, 16)]
    base = write_run(tmp_path / "base", benchmarks=both, strength=0.5)
    tuned = write_run(tmp_path / "tuned", benchmarks=both, strength=0.44, seed=2)
    first, second = (pair.decision for pair in compare([base, tuned], CompareOptions()))
    assert first.mean == second.mean
    mean = first.mean.compared
    assert mean.benchmarks == ("demo", "sums")
    assert mean.difference.value == pytest.approx((first.paired.difference.value + second.paired.difference.value) / 2)
    error = math.hypot(first.paired.sampling_error, second.paired.sampling_error) / 2
    assert mean.p_sampling == pytest.approx(normal_two_sided(mean.difference.value / error))
    raw = [first.paired.p_sampling, first.paired.p_question, second.paired.p_sampling, second.paired.p_question]
    adjusted = holm([*(p for p in raw if p is not None), mean.p_sampling])
    assert (first.p_sampling, first.mean.p_sampling) == (adjusted[0], adjusted[-1])
    assert mean.difference.sampling.low < mean.difference.value < mean.difference.sampling.high
    done = harness(tmp_path, "compare", "base", "tuned")
    tail = done.out.splitlines()[-4:]
    assert first.mean.verdict == "no difference seen"
    assert tail[0].startswith("no difference seen between tuned and base on the mean of 2 benchmarks: ")
    assert f"(p {first.mean.p_sampling:.3f})" in tail[1]
    assert tail[2] == "  all benchmarks have equal weight, whether they have 20 or 30 questions"
    # Missing samples leave no mean.
    grades_file = tuned.benchmark("sums").grades
    grades_file.write_text("".join(grades_file.read_text("utf-8").splitlines(keepends=True)[:-2]), encoding="utf-8")
    done = harness(tmp_path, "compare", "base", "tuned")
    assert "mean of 2 benchmarks: not compared, because samples are missing" in done.out


def test_the_cells_of_two_steps_have_a_line_for_their_mean(tmp_path: Path) -> None:
    names = [f"ck-step_{step}+{name}" for step in (10, 20) for name in ("demo", "sums")]
    for name in names:
        benchmark = name.rpartition("+")[2]
        write_run(tmp_path / name, benchmarks=[(benchmark, 30, 16)], strength=0.5 if "10" in name else 0.44)
    assert "mean of" not in harness(tmp_path, "compare", *names).out, "no sweep has made these runs"
    (tmp_path / "cells").mkdir()
    for name in names:
        (tmp_path / f"cells/{name}.json").touch()
    done = harness(tmp_path, "compare", *names)
    assert len(re.findall(r"ck-step_20 .* on the mean of 2 benchmarks", done.out, re.MULTILINE)) == 1
    assert "have equal weight" not in done.out, "both have 30 questions"
    # Wrong twin: one benchmark of the later step is left out.
    assert "mean of" not in harness(tmp_path, "compare", *names[:3]).out


def test_a_comparison_promises_no_difference_that_is_impossible(tmp_path: Path) -> None:
    for name, seed in {"base": 1, "tuned": 2}.items():
        write_run(tmp_path / name, benchmarks=[("demo", 8, 1)], seed=seed)
    write_run(tmp_path / "same", benchmarks=[("demo", 8, 1)])
    out = harness(tmp_path, "compare", "base", "same").out
    assert "the same-questions interval is wider than the new-questions interval" in out
    out = harness(tmp_path, "compare", "base", "tuned").out
    assert "minimum detectable difference (80% power): none possible\n" in out
    # The wrong twin: with more samples there is one.
    two_runs(tmp_path / "many", second=0.5)
    assert "none possible" not in harness(tmp_path / "many", "compare", "base", "tuned").out


@pytest.mark.parametrize(
    ("model", "strength", "code", "said"),
    [
        (R1, 0.31, 0, ("aime24: compatible", "would detect", "temperature: 0.6 here, 0.8 there")),
        (R1, 0.02, 1, ("lower by", " ± ")),
        # One source has a single sample, beside which a run eight points too low is compatible: it acquits no run.
        ("Qwen/QwQ-32B", 0.72, 1, ("aime24: not compatible", ": compatible")),
    ],
)
def test_a_run_is_held_against_what_is_published_of_its_model(
    tmp_path: Path, model: str, strength: float, code: int, said: tuple[str, ...]
) -> None:
    write_run(tmp_path / "run", model=model, benchmarks=[("aime24", 30, 16)], strength=strength)
    done = harness(tmp_path, "verify", "run")
    assert (done.code, [text for text in said if text not in done.out]) == (code, []), done.out


OWN = """
schema: 1
source: {{title: Our wiki, url: "https://example.org/wiki", by: others}}
settings: {{temperature: 0.6, top_p: 0.9, max_tokens: 4096, seed: 3}}
questions: {{demo: 30}}
scores:
  - {{model: org/model-7b, benchmark: demo, metric: pass@1, percent: {percent}, samples: 64}}
"""


def test_a_place_without_published_scores_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "mine", benchmarks=[("demo", 30, 2)])
    (tmp_path / "empty").mkdir()
    own = OWN.format(percent=50)
    (tmp_path / "model.yaml").write_text(own.replace("model-7b", "other"), encoding="utf-8")
    (tmp_path / "name.yaml").write_text(own.replace("demo", "dem0"), encoding="utf-8")
    for place, said in {
        "empty": "empty contains none",
        "nowhere.yaml": "nowhere.yaml does not exist",
        "model.yaml": "model.yaml has no score for org/model-7b on demo: if the model was",
        "name.yaml": "name.yaml has no score for org/model-7b on demo: if the model was",
    }.items():
        refused = harness(tmp_path, "verify", "mine", "--published", place)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    shipped = harness(tmp_path, "verify", "mine").err
    assert "the table of published scores has no score for" in shipped


@pytest.mark.parametrize(
    ("row", "code", "standing", "said"),
    [
        ("", 4, "cannot say", "the settings are not reported by the source, so the difference may be due to them"),
        (
            ", stated: false, settings: {temperature: 0.6}",
            4,
            "cannot say",
            "the settings are guessed by the source, so the difference may be due to them",
        ),
        (", quoted: true, settings: {temperature: 0.6}", 4, "cannot say", ""),
        # The twins: stated settings, equal to ours or not, and a source without settings that agrees.
        (", settings: {temperature: 0.6}", 1, "not compatible", ""),
        (", settings: {temperature: 0.9, top_p: 0.9, max_tokens: 9, seed: 3}", 1, "not compatible", ""),
        # A number of another prompt decides nothing, nor one that another judge gave.
        (", settings: {temperature: 0.6, prompt: other}", 4, "cannot say", ""),
        (", settings: {temperature: 0.6, judge: gpt-4.1}", 4, "cannot say", ""),
        ("near", 0, "compatible", ""),
    ],
    ids=["none", "guess", "quoted", "equal", "other", "prompt", "judge", "agrees"],
)
def test_sources_without_settings_refute_no_run(row: str, code: int, standing: str, said: str, tmp_path: Path) -> None:
    write_run(tmp_path / "run", benchmarks=[("demo", 30, 64)], strength=0.5)
    percent, row = (50.0, "") if row == "near" else (80.0, row)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "wiki.yaml").write_text(
        'schema: 1\nsource: {title: Wiki, url: "https://example.org", by: others}\nquestions: {demo: 30}\nscores:\n'
        f"  - {{model: org/model-7b, benchmark: demo, metric: pass@1, percent: {percent}, samples: 64{row}}}\n"
    )
    for place in ("own/wiki.yaml", "own"):
        done = harness(tmp_path, "verify", "run", "--published", place)
        by = "" if standing == "cannot say" else f" with {percent}% by Wiki"
        assert (done.code, done.out.splitlines()[0]) == (code, f"demo: {standing}{by}"), done.err
        assert done.out.count("; this decides") == bool(by)
    assert re.findall(r"^ +(the settings are .* by the source, .*)$", done.out, re.MULTILINE) == [said] * bool(said)
    if "seed" in row:  # what moves a score most comes first; a seed moves none
        differing = re.findall(r"^ +(\w+): .* here, .* there$", done.out, re.MULTILINE)
        assert differing == ["max_tokens", "temperature", "top_p"]


def test_the_headline_names_deciding_scores_the_authors_number_first(tmp_path: Path) -> None:
    """A number of other settings by the model's authors stands above one of the run's own, which decides."""
    write_run(tmp_path / "run", benchmarks=[("demo", 30, 64)], strength=0.5)
    rows = [(50.0, "0.6"), (49.9, "0.6"), (50.1, "0.6"), (80.0, "0.9")]
    (tmp_path / "own").mkdir()
    for number, (percent, temperature) in enumerate(rows):
        by = "authors" if percent == 80 else "others"
        (tmp_path / "own" / f"{number}.yaml").write_text(
            f'schema: 1\nsource: {{title: S{number}, url: "https://example.org/{number}", by: {by}}}\n'
            f"questions: {{demo: 30}}\nscores:\n  - {{model: org/model-7b, benchmark: demo, metric: pass@1, "
            f"percent: {percent}, samples: 64, settings: {{temperature: {temperature}}}}}\n"
        )
    done = harness(tmp_path, "verify", "run", "--published", "own")
    headline, first, *_ = done.out.splitlines()
    named = "demo: compatible with 50.0% by S0, 49.9% by S1 and 1 more"
    assert (done.code, headline) == (0, f"{named} (of the 4 published scores, 3 compatible, 1 not compatible)")
    assert re.match(r"  pass@1 80.0% by the model's authors, S3 .*: lower by [^;]*$", first), done.out
    assert done.out.count("; this decides") == 3
    (verified,) = json.loads(harness(tmp_path, "verify", "run", "--published", "own", "--json").out)
    titles = [verified["comparisons"][number]["published"]["source"]["title"] for number in verified["decided_by"]]
    assert titles == ["S0", "S1", "S2"]
    # The authors' own number decides as soon as no other states the run's settings, and comes first among several.
    (tmp_path / "own" / "0.yaml").write_text(
        (tmp_path / "own" / "3.yaml").read_text().replace("80.0", "50.2").replace("authors", "others")
    )
    for name in ("1.yaml", "2.yaml"):
        (tmp_path / "own" / name).unlink()
    done = harness(tmp_path, "verify", "run", "--published", "own")
    assert done.out.startswith("demo: compatible with 50.2% by "), done.out


def cells_of_a_sweep(folder: Path, last_of_sums: float = 0.1) -> None:
    """The first and the last step of a training, each with a run folder for each of two benchmarks."""
    write_run(folder / "first+demo", benchmarks=[("demo", 30, 16)], strength=0.2)
    write_run(folder / "last+demo", benchmarks=[("demo", 30, 16)], strength=0.5, seed=2)
    write_run(folder / "first+sums", benchmarks=[("sums", 30, 16)], strength=0.5, seed=3)
    write_run(folder / "last+sums", benchmarks=[("sums", 30, 16)], strength=last_of_sums, seed=4)


CELLS = ("first+demo", "last+demo", "first+sums", "last+sums")


@pytest.mark.parametrize("order", [CELLS, ("first+demo", "first+sums", "last+demo", "last+sums")])
def test_in_each_benchmark_the_first_run_that_has_it_is_the_baseline(order: tuple[str, ...], tmp_path: Path) -> None:
    cells_of_a_sweep(tmp_path)
    done = harness(tmp_path, "compare", *order, "--margin", "1")
    assert done.code == 1, "the first benchmark rose, and the second fell"
    assert "not compared" not in done.err
    decisions = json.loads(harness(tmp_path, "compare", *order, "--json").out)
    named = [(one["run"], one["baseline"], one["verdict"]) for one in decisions]
    assert named == [("last+demo", "first+demo", "better"), ("last+sums", "first+sums", "worse")]
    raw = [one["paired"][name] for one in decisions for name in ("p_sampling", "p_question")]
    shown = [one[name] for one in decisions for name in ("p_sampling", "p_question")]
    assert shown == pytest.approx(holm(raw)), "p values of both benchmarks are corrected together"


def test_a_score_that_is_compared_with_none_is_named_and_no_margin_holds(tmp_path: Path) -> None:
    cells_of_a_sweep(tmp_path)
    alone, gate = ("first+demo", "last+demo", "last+sums"), ("--margin", "1")
    done = harness(tmp_path, "compare", *alone)
    assert done.code == 0
    assert "the score of last+sums in sums is not compared: no other run includes it" in done.err
    assert harness(tmp_path, "compare", *alone, *gate).code == 4
    assert harness(tmp_path, "compare", *alone[:2], *gate).code == 0, "its wrong twin: all are compared"
    # A named baseline is the only one, and what it lacks is named.
    done = harness(tmp_path, "compare", *CELLS, "--baseline", "first+demo", *gate)
    words = "the scores of first+sums, last+sums in sums are not compared: the baseline first+demo does not include it"
    assert (done.code, words in " ".join(done.err.split()), "sums: " in done.out) == (4, True, False)


def test_a_mean_is_over_the_benchmarks_with_one_baseline(tmp_path: Path) -> None:
    write_run(tmp_path / "a", benchmarks=[("demo", 30, 16)])
    write_run(tmp_path / "b", benchmarks=[("sums", 30, 16)])
    write_run(tmp_path / "c", benchmarks=[("demo", 30, 16), ("sums", 30, 16)], seed=2)
    done = harness(tmp_path, "compare", "a", "b", "c")
    assert re.findall(r"\bc (?:and|is) .* on (\w+)", done.out) == ["demo", "sums"]
    assert "mean of" not in done.out, "the two differences are from different runs"


# -- `harness plan`: the samples that it names find the difference four times in five, and it says what they  ----------


def test_a_planned_margin_has_80_percent_power_and_few_false_passes() -> None:
    rng = np.random.default_rng(5)
    chances = rng.beta(0.9, 0.9, size=60)
    spread = SampleSpread(60, float(chances.mean()), float((chances * (1 - chances)).mean()))
    margin = 0.05
    n = min_samples(lambda samples: margin_reach(spread, samples), margin)
    counts = np.full(60, float(n))

    def passed(other: np.ndarray[Any, Any]) -> float:
        ours, theirs = (rng.binomial(n, p, size=(4000, 60)).astype(float) for p in (other, chances))
        return float((scaled_difference(ours, counts, theirs, counts)(1.0).low > -margin).mean())

    assert passed(chances) == pytest.approx(0.8, abs=0.025)
    assert passed(chances * (1 - margin / chances.mean())) < 0.025 + 0.01
    # Wrong twin: a loss of half the margin passes far more often.
    assert passed(chances * (1 - margin / 2 / chances.mean())) > 0.15

    # A recovery is such a margin. Its interval ends above it a little more often: only a part of the baseline is taken.
    ours, theirs = rng.binomial(n, chances, size=(2, 1000, 60)).astype(float)
    low = ratio_limits(scaled_difference(ours, counts, theirs, counts), (1000,)).low
    assert 0.78 < (low > 1 - margin / chances.mean()).mean() < 0.9


@pytest.mark.parametrize(("n_tests", "least", "most"), [(2, 0.77, 0.9), (1, 0.6, 0.75)])
def test_the_power_holds_for_the_verdict_that_is_printed(n_tests: int, least: float, most: float) -> None:
    """Two p values are corrected together; planned for one test alone, the verdict comes in less than 80%."""
    rng = np.random.default_rng(4)
    chances = rng.beta(2, 2, size=30)
    gap = 0.06
    other = chances + gap * (1 - chances) / (1 - chances).mean()
    spread = SampleSpread(30, float(chances.mean()), float((chances * (1 - chances)).mean()))
    n = min_samples(lambda samples: planned_variance(spread, samples), gap, n_tests)
    counts = np.full(30, float(n))
    ours, theirs = (rng.binomial(n, p, size=(1000, 30)).astype(float) for p in (other, chances))
    gaps = (ours - theirs) / n
    z = gaps.mean(axis=-1) / np.sqrt(score_variance(ours, counts, theirs, counts))
    t = gaps.mean(axis=-1) / np.sqrt(question_difference(gaps).variance)
    found = [holm([normal_two_sided(a), t_two_sided(b, 29)])[0] < 0.05 for a, b in zip(z, t, strict=True)]
    assert least < float(np.mean(found)) < most


def published(benchmark: str, accuracy: float | None = None) -> SampleSpread:
    """The published spread of a benchmark, of a model of this accuracy in per cent."""
    (needed,) = reasoning_harness.plan(f"{benchmark}:64", accuracy=accuracy)
    return SampleSpread(needed.n_questions, needed.accuracy, needed.deviation**2)


def write_questions(path: Path, n: int) -> None:
    """Write a file of n questions of one's own."""
    path.write_text("".join(f'{{"problem": "{i} + 1?", "answer": "{i + 1}"}}\n' for i in range(n)))


def test_the_published_spread_is_the_median_scaled_to_a_stated_accuracy() -> None:
    variances = [
        score.run_deviation**2 * 30
        for score in load_published()
        if (score.benchmark, score.metric) == ("aime24", "pass@1") and score.run_deviation
    ]
    assert published("aime24").variance == pytest.approx(float(np.median(variances)))
    half, high = (published("aime24", accuracy).variance for accuracy in (50, 95))
    assert high / half == pytest.approx(0.95 * 0.05 / 0.25)
    # Near 100% the questions themselves must differ.
    assert published("aime24", 98).variance == pytest.approx(0.4 * 0.6 / 30)


def test_a_plan_before_any_run_takes_a_published_spread_or_an_accuracy(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "mine", benchmarks=[("aime24", 30, 4)])  # a run is taken only where it is named
    done = harness(tmp_path, "plan", "aime24:64", "--detect", "2")
    assert done.code == 0, done.err
    assert done.out.startswith(
        "aime24: 64 samples per question in each of two runs detect a difference of 2.8 points on the same 30 "
        "questions (80% power)\naime24: 114 samples per question in each of two runs detect a difference of 2 points on"
    )
    assert "the median of 65 published scores of models on this benchmark" in done.out
    write_questions(tmp_path / "my50.jsonl", 50)
    for name in ("gsm8k", "my50.jsonl"):
        refused = harness(tmp_path, "plan", name, "--detect", "2")
        assert (refused.code, "no published spread is known" in refused.err) == (2, True)
        assert "--accuracy, or a scored run instead of the name" in refused.err
        given = harness(tmp_path, "plan", name, "--detect", "2", "--accuracy", "91")
        assert (given.code, "accuracy 91.0%, as specified; spread from" in given.out) == (0, True), given.err
    assert " on the same 50 questions " in harness(tmp_path, "plan", "my50.jsonl:16", "--accuracy", "80").out
    card = "title: Own\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: question, answer: answer}\n"
    (tmp_path / "own.yaml").write_text(card)
    assert "add `questions: N`" in harness(tmp_path, "plan", "./own.yaml:64", "--accuracy", "80").err
    (tmp_path / "own.yaml").write_text(f"{card}questions: 3\n")
    assert "on the same 3 questions" in harness(tmp_path, "plan", "./own.yaml:64", "--accuracy", "80").out


def test_what_no_number_of_samples_finds_is_said_and_the_least_is_possible(tmp_path: Path) -> None:
    write_questions(tmp_path / "own.jsonl", 4)
    words = ("plan", "own.jsonl", "--accuracy", "50", "--detect")
    capped = harness(tmp_path, *words, "0.11").out
    found = re.search(
        r"no number of samples up to 100,000 can detect a difference of 0.11 .*; the smallest possible .* is (\S+) po",
        capped,
    )
    assert "no number" not in harness(tmp_path, *words, found[1]).out
    one = harness(tmp_path, "plan", "aime24:1", "--accuracy", "3", "--margin", "1").out
    assert one.startswith(
        "aime24: 1 sample per question in each of two runs cannot show even the largest possible margin"
    )


def test_a_run_without_a_spread_or_a_score_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "pilot", benchmarks=[("demo", 6, 1)])
    refused = harness(tmp_path, "plan", "pilot/", "--detect", "2")
    assert (
        "one sample per question, which is not enough to estimate the spread: sample a quarter of the questions twice"
        in (refused.err)
    )
    write_run(tmp_path / "results" / "mine", benchmarks=[("demo", 30, 2)])
    unknown = harness(tmp_path, "plan", "mine", "--detect", "2")
    assert "mine is not a benchmark. Did you mean the run results/mine?" in unknown.err
    assert "there is no run" in harness(tmp_path, "plan", "results/mine2", "--detect", "2").err
    given = harness(tmp_path, "plan", "results/mine", "--detect", "5", "--accuracy", "50")
    assert (given.code, "omit this option" in given.err) == (2, True)
    (tmp_path / "results" / "mine" / "demo" / "scores.json").unlink()
    assert "run `harness score` first" in harness(tmp_path, "plan", "results/mine", "--detect", "2").err


def test_a_printed_difference_is_one_that_the_samples_find(tmp_path: Path) -> None:
    """It is rounded up: the plan for the printed difference never asks for more samples."""
    for samples in (1, 7, 50, 199):
        printed = harness(tmp_path, "plan", f"aime24:{samples}").out.split("difference of ")[1].split()[0]
        (needed,) = reasoning_harness.plan("aime24", float(printed))
        assert needed.samples <= samples


def test_several_benchmarks_are_planned_in_their_order(tmp_path: Path) -> None:
    spaces, commas = (
        harness(tmp_path, "plan", *words) for words in (["aime25:16", "aime24:64"], ["aime25:16,aime24:64"])
    )
    assert spaces.out == commas.out
    assert spaces.out.index("aime25: 16 samples") < spaces.out.index("aime24: 64 samples")
    by_python = reasoning_harness.plan(["aime25:16", Path("aime24:64")])
    assert [one.benchmark for one in by_python] == ["aime25", "aime24"]
    both = json.loads(harness(tmp_path, "plan", "aime25", "aime24", "--detect", "2", "--json").out)
    assert [plan["benchmark"] for plan in both] == ["aime25", "aime24"]


def test_benchmarks_compared_together_need_samples_for_corrected_tests(tmp_path: Path) -> None:
    """Two p values of each benchmark, and one of their mean."""
    for words, n_tests in ((["aime24"], 2), (["aime24", "aime25"], 5), (["aime24", "aime25", "math500"], 7)):
        planned = json.loads(harness(tmp_path, "plan", *words, "--detect", "2", "--json").out)[0]
        assert planned["samples"] == min_samples(
            lambda samples: planned_variance(published("aime24"), samples), 0.02, n_tests
        )


def test_a_margin_is_planned_in_both_directions_and_for_several_benchmarks(tmp_path: Path) -> None:
    (needed,) = json.loads(harness(tmp_path, "plan", "aime24", "--margin", "1", "--json").out)
    size = needed["samples"]
    (back,) = json.loads(harness(tmp_path, "plan", f"aime24:{size}", "--margin", "1", "--json").out)
    (fewer,) = json.loads(harness(tmp_path, "plan", f"aime24:{size - 1}", "--margin", "1", "--json").out)
    assert back["smallest_difference"] <= 0.01 < fewer["smallest_difference"]
    # A margin is one test, and equally good models vary alike: fewer samples than a difference needs.
    (other,) = reasoning_harness.plan("aime24", 1)
    assert size < other.samples
    assert size == reasoning_harness.plan("aime24", margin=1)[0].samples
    done = harness(tmp_path, "plan", "aime24:64,math500:4", "--margin", "1")
    assert 'show "not worse by 1 point or more" on the same 30 questions (80% power, if both' in done.out
    assert "other questions" not in done.out
    share = harness(tmp_path, "plan", "aime24", "--accuracy", "40", "--recovery", "95")
    assert " show a recovery of more than 95% on the same 30 questions" in share.out
    (points,) = json.loads(harness(tmp_path, "plan", "aime24", "--accuracy", "40", "--margin", "2", "--json").out)
    assert share.out.startswith(f"aime24: {points['samples']} samples ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("aime24", "or a number of samples after the name (such as aime24:64)"),
        ("aime24:64 aime25", "or a number of samples after the name (such as aime25:64)"),
        ("aime24:64:2", "one number of samples"),
        ("aime24:0", "one number of samples"),
        ("aime24:many", "aime24:many: expected a benchmark or a run, optionally with one number of samples"),
        ("aime24:", "one number of samples"),
        ("aime24 16 --detect 2", "unknown benchmark '16'"),
        ("nothing:4", "unknown benchmark 'nothing'"),
        ("results/nothing:4", "there is no run at"),
        ("aime24 --json", "the loss to rule out (such as --margin 2 or --recovery 95), or a number of samples"),
        ("aime24:64 --accuracy 0.02", "enter 2 for 2 points"),
        ("aime24:64,aime-2024:16", "aime24 is listed twice: each benchmark can appear only once in a plan"),
        ("aime24:64 --prices=1,0.1,2", "expected IN,OUT,CACHED with a price of cached prompt tokens of at most IN"),
        ("aime24:64 --prices=-1,2", "expected two or three prices, each 0 or more"),
        ("aime24 --detect 0", "--detect 0"),
        ("aime24 --detect 70 --accuracy 59", "cannot differ by 70 points from the assumed 59.0%: use at most 59"),
        ("aime24:64 --margin 1 --detect 1", "specify only one of them"),
        ("aime24:64 --margin 1 --recovery 95", "specify only one of them"),
        ("aime24:64 --recovery 0.95", "greater than or equal to 50"),
        ("aime24:64 --margin 0", "greater than 0"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, words: str, expected: str) -> None:
    done = harness(tmp_path, "plan", *words.split())
    assert done.code != 0
    assert done.out == ""
    assert expected in done.err
