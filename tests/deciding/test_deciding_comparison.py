"""Paired comparison of two runs, comparison with published scores, and the published files themselves: how a folder of
them is read, and where the shipped numbers come from.

The tables of five projects: each number that their authors print is shipped, digit by digit and with its settings.
`five_tables.csv` holds the 289 numbers as they are printed, but for the numbers of tries.

For: harness.deciding.published, harness.deciding.simulation, harness.deciding.nightly_history, harness.gates.metrics.
"""

from __future__ import annotations

import csv
import math
import random
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import numpy as np
import pytest

from bench import histories
from harness.benchmarks import catalog
from harness.benchmarks.prompts import SYSTEM_PROMPTS
from harness.core.errors import UsageError
from harness.deciding.gate import boundaries, planned_looks
from harness.deciding.paired_comparison import compare_runs, pairs
from harness.deciding.published import PublishedScore, Source, load_published, matching, published_folder, short_name
from harness.deciding.published_comparison import compare_published
from harness.deciding.published_order import in_order
from harness.deciding.verdicts import RunPair, answer, decide
from harness.reports.comparison_tables import ANSWERED_ONCE, COMPLETE_FIRST, open_points, paired_table
from harness.reports.table import AT_MOST
from harness.scoring.benchmark_score import score_benchmark
from harness.scoring.call_measures import SCHEMA_ACCURACY
from harness.scoring.stats import Estimate, Interval, normal_two_sided, t_two_sided
from harness.scoring.tally import QuestionTally, tally
from harness.scoring.uncertainty import sampling_error
from tests.budget import SEED
from tests.conftest import CHECKOUT
from tests.scoring.graded import graded


@cache
def tallied(**letters: str) -> tuple[QuestionTally, ...]:
    return tally(*graded(**letters), None).questions


def test_an_id_of_another_row_or_a_question_without_samples_is_no_pair() -> None:
    first, second = tallied(q1="cw", q2="cw", q3=""), tallied(q1="ww", q2="ww", q3="c")
    asked = msgspec.structs.replace(second[0].question, row_digest="another")
    assert [a.question.question_id for a, _ in pairs(first, [replace(second[0], question=asked), *second[1:]])] == [
        "q2"
    ]


def test_a_paired_comparison_has_the_hand_worked_numbers() -> None:
    result = compare_runs(tallied(q1="cccc", q2="ccww", q3="wwww"), tallied(q1="ccww", q2="ccww", q3="wwww"))
    assert result.difference.value == pytest.approx(0.5 / 3)
    assert (result.better, result.worse, result.n_questions) == (1, 0, 3)
    # q1: 6 of 8 right in both runs together; dealt at random, variance ¾·¼·8/7·½. q2: 4 of 8, ½·½·8/7·½
    error = math.sqrt((3 / 16 + 4 / 16) * 4 / 7) / 3
    assert result.sampling_error == pytest.approx(error)
    assert result.p_sampling == pytest.approx(normal_two_sided((1 / 6) / error))
    # 14 of 24 right in both; two tosses are mixed into mean and variance; a worse model has more variance itself
    middle, observed = 15 / 26, (3 / 16 / 7 + 4 / 16 / 7) / 9
    share = (24**2 * observed + 2) / (24 * 14 * 10 / 24**2 + 2)
    single = share * middle * (1 - middle)
    square, growth = 2.8016**2, (1 - 2 * single / (14 / 24)) / 12
    found = result.detectable
    assert found**2 == pytest.approx(square * (single / 6 + growth * found), rel=1e-3)
    # sd of (½, 0, 0) is 0.2887, and half a question more
    across = math.sqrt(0.2887**2 / 3 + 0.5 / 9)
    assert result.p_question == pytest.approx(t_two_sided((1 / 6) / across, 2), rel=1e-3)
    assert result.difference.question is not None
    assert result.difference.sampling.low < 0 < result.difference.value < result.difference.sampling.high
    assert not result.difference.at_most


def test_recovery_is_the_accuracy_ratio_with_fiellers_interval() -> None:
    base = tallied(**{f"q{i}": "cccw" for i in range(40)})
    worse = tallied(**{f"q{i}": "ccww" for i in range(40)})
    found, twin = compare_runs(worse, base).recovery, compare_runs(base, worse).recovery
    assert found is not None
    assert twin is not None
    assert found.sampling
    assert twin.sampling
    assert found.question
    assert (found.value, twin.value) == (pytest.approx(2 / 3), pytest.approx(1.5))
    # The ratio of the other way round is the reciprocal, and so are its ends.
    assert [1 / end for end in reversed(twin.sampling)] == pytest.approx(list(found.sampling))
    assert 0.5 < found.sampling.low < 0.62
    assert 0.71 < found.sampling.high < 0.85
    assert found.question.low <= found.sampling.low
    assert found.sampling.high <= found.question.high
    same = compare_runs(base, base).recovery
    assert same is not None
    assert same.sampling is not None
    assert same.sampling.low < 1 < same.sampling.high


@pytest.mark.parametrize("base", ["wwww", "cwww"])
def test_there_is_no_recovery_of_what_may_be_nothing(base: str) -> None:
    assert compare_runs(tallied(q1="cccc", q2="ccww"), tallied(q1=base, q2="wwww")).recovery is None


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize(("n", "n_missing"), [(40, 0), (1, 0), (40, 2)])
def test_what_a_comparison_leaves_open_has_one_advice(n: int, n_missing: int, imported: bool) -> None:
    half = dict.fromkeys((f"q{number}" for number in range(30)), "c" * max(1, n // 2) + "w" * (n // 2))
    paired = compare_runs(tallied(**half), tallied(**half))
    (decision,) = decide([RunPair(run="a", baseline="b", paired=paired, imported=imported, n_missing=n_missing)])
    first, advice = open_points(decision)
    assert first.startswith("this does not mean that they are equal: a true difference of ")
    expected = (
        COMPLETE_FIRST
        if n_missing
        else ANSWERED_ONCE
        if imported
        else "use `harness plan` to find out how many samples"
    )
    assert expected in advice


def test_a_mean_and_its_margin_are_decided_as_a_line_is() -> None:
    ours, theirs = ({f"q{n}": letters for n in range(20)} for letters in ("cccccccw", "ccccwwww"))
    paired = compare_runs(tallied(**ours), tallied(**theirs))
    pairs = [
        RunPair(run="a", baseline="b", paired=msgspec.structs.replace(paired, benchmark=f"b{n}")) for n in range(2)
    ]
    both = decide(pairs, 0.2)
    of_mean = both[0].mean
    assert of_mean
    assert of_mean.verdict == "better"
    assert [each.verdict for each in (of_mean.margin, *(each.margin for each in both)) if each] == ["not worse"] * 3


def test_questions_of_one_run_only_or_with_another_text_are_not_paired() -> None:
    first, second = tallied(q1="cc", q2="cc", q3="cc"), list(tallied(q1="cw", q2="cw", q4="cc"))
    changed = msgspec.structs.replace(second[1].question, row_digest="another row")
    second[1] = replace(second[1], question=changed)
    result = compare_runs(first, second)
    assert result.n_questions == 1
    with pytest.raises(UsageError, match="have no sampled questions in common"):
        compare_runs(tallied(a="c"), tallied(b="c"))


def test_copies_count_as_the_samples_that_are_independent() -> None:
    copied = [
        [replace(item, counted=replace(item.counted, independent=np.full(len(run), 2.0))) for item in run]
        for run in (tallied(q1="cccc", q2="ccww"), tallied(q1="ccww", q2="wwww"))
    ]
    whole = (tallied(q1="cc", q2="cw"), tallied(q1="cw", q2="ww"))
    result, plain = compare_runs(*copied), compare_runs(*whole)
    assert (result.sampling_error, result.p_sampling) == pytest.approx((plain.sampling_error, plain.p_sampling))
    assert (result.difference.at_most, plain.difference.at_most) == (True, False)
    one_copied = copied[0][0], whole[0][1]
    assert compare_runs(one_copied, whole[1]).difference.at_most, "one question with copies is enough"
    assert sampling_error(one_copied).error is None
    pairs = [RunPair(run="run", baseline="base", paired=paired) for paired in (result, plain)]
    noted = [paired_table({"b": "base"}, decide([pair])).notes for pair in pairs]
    assert [AT_MOST in notes for notes in noted] == [True, False], "the footnote names copies as a reason, too"
    assert not any("with one sample of each question the" in note for notes in noted for note in notes)


def published(percent: float, samples: int | None, **changes: Any) -> PublishedScore:
    fields: dict[str, Any] = {
        "model": "org/Model-7B",
        "benchmark": "demo",
        "metric": "pass@1",
        "value": percent / 100,
        "n_questions": 4,
        "samples": samples,
        "run_deviation": None,
        "settings": {"temperature": 0.6},
        "source": Source(title="A paper", url="https://example.org/paper"),
    }
    return PublishedScore(**{**fields, **changes})


HALVES = {f"q{n}": "c" * 32 + "w" * 32 for n in range(4)}  # accuracy ½; variance of one sample 0.254 each


def compared(reference: PublishedScore, letters: dict[str, str] = HALVES, **settings: Any) -> Any:
    questions, grades = graded(**letters)
    score = score_benchmark(questions, grades, None)
    return compare_published(score, tally(questions, grades, None).questions, reference, settings)


def test_the_error_pools_both_runs_and_adds_the_rounding() -> None:
    result = compared(published(60, 16))
    pooled = (128 + 38.4 + 1) / (256 + 64 + 2)
    share = min(1.0, (256**2 * 0.25 / 63 / 4 + 2) / (256 * 0.25 + 2))
    variance = share * pooled * (1 - pooled) * (1 / 256 + 1 / 64) + 0.001**2 / 12
    assert result.error == pytest.approx(math.sqrt(variance))
    assert result.p == pytest.approx(normal_two_sided(0.1 / math.sqrt(variance)))
    assert result.detectable == pytest.approx(2.8016 * math.sqrt(variance), rel=1e-4)
    assert result.verdict == "compatible"


def test_a_score_of_as_many_samples_is_preferred_to_other_counts() -> None:
    more, unknown, same = (compared(published(60, samples)) for samples in (128, None, 64))
    assert in_order([more, unknown, same], samples=64) == [same, more, unknown]


def test_the_smallest_difference_allows_for_repeated_rounding_like_a_plan() -> None:
    """Of a score in whole per cents: the test takes unit²/12, the smallest difference unit²/4."""
    result, exact = compared(published(60, 16, unit=0.01)), compared(published(60, 16, unit=0.0))
    assert result.error**2 - exact.error**2 == pytest.approx(0.01**2 / 12)
    assert result.detectable**2 - exact.detectable**2 == pytest.approx(2.8016**2 * 0.01**2 / 4, rel=1e-4)


def test_a_missing_sample_blocks_no_verdict_unless_it_matters() -> None:
    letters = {f"q{n}": "c" * 75 + "w" * 75 for n in range(4)}
    questions, grades = graded(**letters)
    for percent, verdict in ((50, "compatible"), (90, "not compatible"), (56, "cannot say")):
        score = score_benchmark(questions, grades[:-5], 150)
        tallies = tally(questions, grades[:-5], 150).questions
        result = compare_published(score, tallies, published(percent, 150), {})
        assert (result.verdict, "5 samples are missing" in result.reason) == (verdict, verdict == "cannot say")


@pytest.mark.parametrize(
    ("percent", "samples", "verdict"),
    [
        (52, 64, "compatible"),
        (65, 64, "not compatible"),
        (52, None, "compatible"),  # within our own error already
        (62, None, "cannot say"),  # 1 or 64 samples make the difference
        (90, 1, "compatible"),
        (90, 2, "not compatible"),
        (90, None, "cannot say"),  # 1 or 2 samples make it
    ],
)
def test_an_unknown_sample_count_needs_both_ends_to_agree(percent: float, samples: int | None, verdict: str) -> None:
    result = compared(published(percent, samples))
    assert (result.verdict, bool(result.reason)) == (verdict, verdict == "cannot say")


@pytest.mark.parametrize(("high", "is_told"), [(-0.001, True), (0.02, False)])
def test_an_interval_without_0_and_no_verdict_are_explained(high: float, is_told: bool) -> None:
    """The interval is that of one comparison; the p-value is corrected for all."""
    difference = Estimate(value=-0.08, sampling=Interval(-0.15, high))
    said = answer("a", "b", "sums", difference, "no difference seen", None)
    assert ("; its corrected p-value is above 0.05)" in said) == is_told, said


@pytest.mark.parametrize(
    ("metric", "changes", "letters", "verdict", "said"),
    [
        ("maj@3", {}, ["wwc", "ccw"] * 2, "compatible", ""),
        ("pass@2", {"value": 0.83}, ["ccww"] * 4, "compatible", ""),
        ("pass@2", {"value": 0.01}, ["ccww"] * 4, "not compatible", ""),
        ("maj@127", {}, ["cw"] * 4, "cannot say", "maj@127"),
        ("pass@1", {"n_questions": 30}, ["cw"] * 4, "cannot say", "4 questions, but the published score has 30"),
        ("pass@1", {}, ["cw", "c.", "cw", "cw"], "cannot say", "unfinished"),
    ],
)
def test_a_score_is_tested_against_one_of_its_kind_and_a_whole_run(
    metric: str, changes: dict[str, Any], letters: list[str], verdict: str, said: str
) -> None:
    questions, grades = graded(**{f"q{n}": row for n, row in enumerate(letters)})
    planned = len(letters[0])
    score = score_benchmark(questions, grades, planned, ks=[2] if metric == "pass@2" else ())
    reference = published(50, 200, metric=metric, **changes)
    result = compare_published(score, tally(questions, grades, planned).questions, reference, {})
    assert (result.verdict, said in result.reason) == (verdict, True)


def test_the_shipped_scores_load_and_each_names_its_source() -> None:
    scores = load_published()
    assert len(scores) > 1000
    of_calls = [score for score in scores if score.metric == SCHEMA_ACCURACY]  # of requests that no card has
    assert {score.benchmark.partition("@")[0] for score in scores if score not in of_calls} <= set(catalog.names())
    assert all(score.k > 0 and score.kind in ("pass", "maj", "F1", SCHEMA_ACCURACY) for score in scores)
    assert len(of_calls) == 31
    for score in of_calls:
        fitting = score.value * (score.replies or 0)
        assert fitting == pytest.approx(round(fitting), abs=score.unit / 2 * (score.replies or 0) + 1e-9)


SUPER, QWQ = "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5", "Qwen/QwQ-32B"
THINKING = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 65536}
SILENT = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 65536, "system_prompt": "/no_think"}


@pytest.mark.parametrize(
    ("model", "source", "benchmark", "percents", "unit", "settings"),
    [
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "OpenThoughts", "aime24", [60], 1, None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "OpenThoughts", "math500", [88.2], 0.1, None),
        ("o1-mini", "OpenThoughts", "gpqa_diamond", [60], 1, None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "Evalchemy, reproduced", "gpqa_diamond", [52], 1, None),
        ("Qwen2.5-7B-SimpleRL", "DeepScaleR", "aime24", [26.7], 0.1, None),  # its source names no owner
        ("nvidia/OpenMath-Nemotron-1.5B", "", "aime24", [61.6, 80.0], 0.1, None),  # by the address in its source
        (SUPER, "Super-v1.5", "aime24", [88.54, 16.88], 0.01, [THINKING, SILENT]),  # those of the source's command
        (QWQ, "practice for QwQ", "aime24", None, None, [THINKING | {"max_tokens": 32000, "top_k": 40}]),
    ],
)
def test_a_shipped_score_has_the_digits_model_and_settings_of_its_source(
    model: str, source: str, benchmark: str, percents: list[float] | None, unit: float | None, settings: Any
) -> None:
    rows = [row for row in matching(load_published(models=[model]), model, benchmark) if source in row.source.title]
    rows = [row for row in rows if not row.quoted and (row.k == 1 or not settings)]
    assert percents is None or [100 * row.value for row in rows] == pytest.approx(percents)
    assert unit is None or {round(100 * row.unit, 9) for row in rows} == {unit}
    assert settings is None or [row.settings for row in rows] == settings


def test_a_models_shipped_scores_are_read_once_by_any_spelling() -> None:
    first, again = (load_published(models=[name]) for name in ("Qwen/QwQ-32B", "models/qwq-32b"))
    assert first
    assert {short_name(score.model) for score in first} == {"qwq-32b"}
    assert all(one is other for one, other in zip(first, again, strict=True))
    elsewhere = load_published(published_folder(), ["qwq-32b"])  # a folder of a person's own may change
    assert elsewhere == first
    assert elsewhere[0] is not first[0]
    first.clear()  # a caller's own list
    assert load_published(models=["QwQ-32B"]) == again


def test_a_row_keeps_what_its_source_prints_beside_the_score(tmp_path: Path) -> None:
    row = "{model: a/b, benchmark: demo, metric: pass@8, percent: 55.83, samples: 8, mean_tokens: 410, quoted: true}"
    text = GOOD.replace("{demo: 4}", "{demo: null}").replace(GOOD.splitlines()[-1].strip(), f"- {row}")
    (tmp_path / "one.yaml").write_text(text, encoding="utf-8")
    (score,) = load_published(tmp_path)
    assert (score.unit, score.mean_tokens, score.quoted, score.k) == (pytest.approx(0.0001), 410, True, 8)
    questions, grades = graded(**HALVES)
    result = compare_published(score_benchmark(questions, grades, None, ks=[8]), (), score, {})
    assert (result.verdict, "does not report its number of questions" in result.reason) == ("cannot say", True)


GOOD = """
schema: 1
source: {title: T, url: "https://example.org", by: others}
questions: {demo: 4}
scores:
  - {model: a/b, benchmark: demo, metric: pass@1, percent: 50}
"""

NO_PERCENT = ("500", '"101.0"', '"5,5"', '"-1.0"', "101", '"NaN"')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (GOOD.replace("percent: 50", f"percent: {text}"), "expected a percentage from 0 to 100")
            for text in NO_PERCENT
        ),
        (GOOD.replace("percent: 50", "percent: 50, sample: 4"), "scores.0.sample"),
        (GOOD.replace("https:", "javascript:"), "source.url"),
        (GOOD.replace("{demo: 4}", "{}"), "add its number of questions"),
        (GOOD.replace("schema: 1", "schema: 2"), "schema"),
        ("scores: [", "not plain YAML"),
        ("!!python/object/apply:os.system [true]", "not plain YAML"),
        ("", "the key 'schema' is missing"),
    ],
)
def test_a_bad_published_file_is_refused_naming_file_and_field(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"bad\.yaml") as refused:
        load_published(tmp_path)
    assert message in str(refused.value)


def test_the_example_of_the_documentation_loads(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "deciding.md").read_text("utf-8")
    (tmp_path / "example.yaml").write_text(page.split("```yaml")[1].split("```")[0], "utf-8")
    assert [(s.source.engine, s.samples) for s in load_published(tmp_path)] == [("vllm", 64)]


def test_a_published_name_of_a_prompt_is_the_text_that_a_run_records() -> None:
    named = published(60, 16, settings={"prompt": "limo_letter", "system_prompt": "qwen_boxed"})
    text = SYSTEM_PROMPTS["qwen_boxed"]
    assert compared(named, prompt="limo_letter", system_prompt=text).verdict != "cannot say"
    for other in ({"system_prompt": "Be brief."}, {"system_prompt": None}, {"prompt": "boxed_letter"}):
        assert "different prompt" in compared(named, **{"prompt": "limo_letter", "system_prompt": text, **other}).reason


def test_a_folder_is_read_with_all_below_it_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (published_folder() / "limo.yaml").read_bytes()
    for folder in (tmp_path, tmp_path / "below"):
        folder.mkdir(exist_ok=True)
        (folder / "scores.yaml").write_bytes(content)
    assert len(load_published(tmp_path)) == 2 * len(of_file("limo"))
    monkeypatch.setattr("harness.deciding.published.MAX_FILES", 1)
    with pytest.raises(UsageError, match="contains more than 1 files"):
        load_published(tmp_path)


def test_the_page_counts_shipped_scores_and_those_checked_with_sources() -> None:
    files = [path.read_text("utf-8") for path in sorted((CHECKOUT / "results/published").glob("*.yaml"))]
    scores = [text.count("\n  - {model: ") for text in files]
    assert all("\n  checked: " in text for text in files)
    quoted = sum(text.count(", quoted: true") for text in files)
    page = " ".join((CHECKOUT / "docs/deciding.md").read_text("utf-8").split())
    assert f"There are {sum(scores):,} scores in {len(files)} files. {quoted} of them are quoted" in page
    judged = sum(n for n, text in zip(scores, files, strict=True) if "\n  judge: " in text)
    assert f"all but {judged} scores of judged benchmarks were compared with stored copies of their sources" in page


OWN_MODELS = {
    "agentica-project": "agentica-org/",
    "ChenxinAn-fdu": "POLARIS-Project/",
    "GAIR-NLP": "GAIR/",
    "LG-AI-EXAONE": "LGAI-EXAONE/",
    "MiniMax-AI": "MiniMaxAI/",
    "mlfoundations-dev": "open-thoughts/",
    "openai": r"(o\d|gpt-)",
    "QwenLM": "Qwen/",
    "SkyworkAI": "Skywork/",
    "XiaomiMiMo": "(XiaomiMiMo/|MiMo-)",
}
"""How the names of the models of a source's owner begin, where that is not the owner's own name."""

QUOTES_AUTHORS = {
    *("makers-quoted", "qwen3-235b-quoted", "qwen3-30b-quoted", "qwen3-quoted-image", "gpt-oss-quoted"),
    *("llmeval", "efficient-reasoning", "sglang", "aime26-hub", "kimi-k2-thinking", "simpleqa-verified", "healthbench"),
}
"""Files of sources that say of numbers which they quote that the models' authors stated them, and papers by these."""


def test_a_number_is_its_authors_only_if_they_publish_it_or_are_quoted() -> None:
    seen = 0
    for path in sorted((CHECKOUT / "results/published").glob("*.yaml")):
        for score in load_published(path):
            owner = urlsplit(score.source.url).path.strip("/").removeprefix("datasets/").partition("/")[0]
            own = re.match(OWN_MODELS.get(owner, owner + "/"), score.model, re.IGNORECASE)
            seen += score.by == "authors"
            if score.by == "authors":
                assert own or path.stem in QUOTES_AUTHORS, (path.name, score.model)
            elif not score.quoted:
                assert not own, (path.name, score.model)
    assert seen > 400


def test_shipped_accuracies_are_fractions_of_the_stated_samples() -> None:
    """Of 14 no number of right samples gives what their source prints; a source may round or cut its last digit."""
    impossible = set()
    for score in load_published():
        if score.metric == "pass@1" and score.samples and score.n_questions:
            total = score.samples * score.n_questions
            if abs(round(score.value * total) / total - score.value) > score.unit + 1e-6:
                impossible.add((score.source.repository, score.model, score.benchmark))
    sources = Counter(source for source, _, _ in impossible)
    assert sources == {"LLMEval": 1, "POLARIS": 2, "SeerAttention": 2, "sober-reasoning": 9}


TABLE = CHECKOUT / "tests" / "deciding" / "five_tables.csv"

LONG_COT = "long_thought"
"""The prompt of the row that its table calls `+Long CoT Example`."""

MODELS = {"limo (ours)": "limo", "gair/limo (32b)": "limo", "qwq": "qwq-32b-preview", "s1": "s1-32b"}
"""Models whose names in the tables are not those of the hub."""


class Cell(NamedTuple):
    """One number of a table: the file of results/published that holds it, and what it is.

    field: percent, quoted, standard_error, mean_tokens, training_samples, previous, improvement.
    """

    file: str
    model: str
    benchmark: str
    metric: str
    field: str
    printed: str
    budget: int | None = None
    long_cot: bool = False


def cells() -> list[Cell]:
    """Every number of the five tables."""
    _, *rows = csv.reader(TABLE.read_text("utf-8").splitlines())
    return [
        Cell(*texts, budget=int(budget) if budget else None, long_cot=bool(long_cot))
        for *texts, budget, long_cot in rows
    ]


@cache
def of_file(name: str) -> list[PublishedScore]:
    """The scores of a file in results/published."""
    return load_published(published_folder() / f"{name}.yaml")


def shipped(cell: Cell) -> list[str]:
    """The number as each row prints it that may be the cell's."""
    rows, model = [], MODELS.get(cell.model.lower(), short_name(cell.model))
    for score in of_file(cell.file):
        if (short_name(score.model), score.benchmark, score.metric) != (model, cell.benchmark, cell.metric):
            continue
        budget, long_cot = score.settings.get("attention_budget"), score.settings.get("prompt") == LONG_COT
        quoted = cell.field == "quoted" or cell.model == "Previous SOTA"
        if (score.quoted, budget, long_cot) == (quoted, cell.budget, cell.long_cot):
            rows.append(as_printed(score, cell.field))
    return rows


def as_printed(score: PublishedScore, field: str) -> str:
    match field:
        case "percent" | "quoted":
            return score.printed
        case "standard_error":
            return "" if score.standard_error is None else f"{100 * score.standard_error:.1f}"
        case "mean_tokens":
            return "" if score.mean_tokens is None else f"{score.mean_tokens:.0f}"
        case "previous":
            return score.previous
        case "training_samples":
            return score.training_samples
    return score.improvement


def test_each_of_the_293_numbers_is_shipped_as_it_is_printed() -> None:
    read = cells()
    assert len(read) == 293
    wrong = [(cell, shipped(cell)) for cell in read if shipped(cell) != [cell.printed]]
    assert not wrong


@pytest.mark.parametrize("name", ["seerattention", "sglang", "efficient-reasoning", "llmeval", "limo", "limo-aime25"])
def test_each_address_names_the_page_that_holds_the_numbers(name: str) -> None:
    for score in of_file(name):
        assert re.search(r"/blob/(main|[0-9a-f]{7,})/.*README\.md(#|$)", score.source.url), score.source.url


# -- histories of gates ------------------------------------------------------------------------------------------------


LOUD = {
    "noise twice as stated": 9.0,
    "lasting noise": 9.0,
    "t noise": 9.0,
    "walk, line": 12.0,
    "persistent noise, line": 12.0,
}
"""Kinds whose noise is not what the policy states, or whose level changes slowly: more false alarms than promised are
theirs (docs/ci.md), in percent.
"""


@pytest.mark.slow
def test_histories_of_the_day_keep_the_promise() -> None:
    """`make simulate WHAT=nights` plays many settings of each kind; here three of two kinds. The rate of false alarms
    (percent) is about 1, and its mean over three settings has a standard deviation of about 0.5.
    """
    kinds = random.Random(SEED).sample([*histories.KINDS], 2)
    rows = dict(histories.rows(SEED, 3, 20, kinds))
    table = np.array([*rows.values()])
    highest = [max((most for kind, most in LOUD.items() if name.startswith(kind)), default=3.5) for name in rows]
    assert (np.nan_to_num(table[:, 0]) <= highest).all(), (SEED, rows)
    early, late = table[:, 4:6].T
    assert (np.nan_to_num(late, nan=100.0) >= 0.9 * np.nan_to_num(early) - 5).all(), (SEED, rows)


def test_a_kind_of_history_is_told_from_its_twin() -> None:
    """A fall that is there fails the gate; a rise that goes again does not."""
    rows = dict(histories.rows(1, 1, 8, ("step", "better")))
    assert rows["step, benchmark"][2] > 80 > 5 > rows["better, benchmark"][0]


# -- interim analyses of a gate ----------------------------------------------------------------------------------------


def test_a_run_is_tested_after_every_round_but_at_most_64_times() -> None:
    assert planned_looks(5) == (1, 2, 3, 4, 5)
    assert (len(planned_looks(1000)), planned_looks(1000)[-1]) == (63, 1000)


@pytest.mark.parametrize(("drift", "above"), [(2.0, -NormalDist().inv_cdf(0.1)), (3.5, 3.5 / 2)])
def test_one_look_is_the_usual_test(drift: float, above: float) -> None:
    """A result nearer to the other hypothesis rejects none."""
    once = boundaries((7,), 0.025, 0.1, 2.0, drift)
    assert (*once.below, *once.above) == pytest.approx([-NormalDist().inv_cdf(0.025), above], abs=2e-3)


def test_the_looks_together_spend_each_level_and_no_more() -> None:
    """400,000 paths of each hypothesis, without drift and with it, at three looks."""
    times, drift = np.array([2.0, 5.0, 8.0]) / 8, 3.6
    ends = boundaries((2, 5, 8), 0.05, 0.04, 0.6, drift)
    steps = np.random.default_rng(3).standard_normal((400_000, 3)) * np.sqrt(np.diff(times, prepend=0))
    paths, root = steps.cumsum(axis=1), np.sqrt(times)
    for drifts, level in ((0.0, 0.05), (drift, 0.04)):
        path = paths - drifts * times
        low, high = path < -np.array(ends.below) * root, path > np.array(ends.above) * root - drift * times
        first_low, first_high = (np.where(each.any(axis=1), each.argmax(axis=1), 9) for each in (low, high))
        crossed = (first_low < first_high) if not drifts else (first_high < first_low)
        assert crossed.mean() == pytest.approx(level, abs=4 * math.sqrt(level / len(path)))
