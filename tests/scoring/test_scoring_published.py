"""Records of Every Eval Ever as published scores: what is taken, and what is refused in one sentence.

For: harness.scoring.published.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.scoring import load_published
from harness.scoring.published import loading
from tests.budget import examples
from tests.conftest import CHECKOUT

RECORD: dict[str, Any] = {
    "schema_version": "0.3.0",
    "evaluation_id": "AIME-2024/org/model-7b/1767225600",
    "retrieved_timestamp": "1767225600",
    "source_metadata": {
        "source_name": "A leaderboard",
        "source_type": "documentation",
        "source_organization_name": "The boards",
        "source_organization_url": "https://example.org/board",
        "evaluator_relationship": "first_party",
    },
    "eval_library": {"name": "lm_eval", "version": "0.4.13"},
    "model_info": {
        "name": "Model 7B",
        "id": "org/Model-7B",
        "inference_engine": {"name": "vllm", "version": "0.10"},
        "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
    },
    "evaluation_results": [
        {
            "evaluation_name": "AIME-2024",
            "source_data": {"dataset_name": "AIME", "source_type": "hf_dataset", "samples_number": 30},
            "metric_config": {
                "metric_id": "accuracy",
                "metric_unit": "percent",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 100,
            },
            "score_details": {
                "score": 55.5,
                "uncertainty": {"standard_error": {"value": 4.5, "method": "analytic"}, "num_samples": 1920},
            },
            "generation_config": {"generation_args": {"temperature": 0.6, "max_tokens": 32768, "reasoning": True}},
        }
    ],
}
RESULT = ("evaluation_results", 0)
METRIC = (*RESULT, "metric_config")
DETAILS = (*RESULT, "score_details")
ABSENT = object()


def changed(*changes: tuple[tuple[str | int, ...], Any]) -> dict[str, Any]:
    """The record with these values at these places; `ABSENT` takes one away."""
    record = copy.deepcopy(RECORD)
    for place, value in changes:
        at: Any = record
        for step in place[:-1]:
            at = at[step]
        if value is ABSENT:
            del at[place[-1]]
        else:
            at[place[-1]] = value
    return record


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Any], Path]:
    def written(record: Any) -> Path:
        path = tmp_path / "record.json"
        path.write_bytes(record if isinstance(record, bytes) else json.dumps(record).encode())
        return path

    return written


def test_a_record_says_what_a_published_score_needs(write: Callable[[Any], Path]) -> None:
    (score,) = load_published(write(RECORD))
    assert (score.model, score.benchmark, score.metric) == ("org/Model-7B", "aime24", "pass@1")
    assert (score.value, score.unit, score.standard_error) == (0.555, pytest.approx(0.001), 0.045)
    assert (score.n_questions, score.samples) == (30, 64)
    assert score.settings == {"temperature": 0.6, "max_tokens": 32768}
    source = score.source
    assert (source.title, source.url, score.by, source.engine) == (
        *("A leaderboard", "https://example.org/board", "authors", "vllm"),
    )
    assert "lm_eval 0.4.13" in source.note


@pytest.mark.parametrize(
    ("config", "metric"),
    [
        ({"metric_id": "exact-match", "metric_name": "exact_match"}, "pass@1"),
        ({"metric_id": "lm-evaluation-harness.acc", "metric_name": "acc"}, "pass@1"),
        ({"metric_id": "pass_at_k", "metric_parameters": {"k": 8}}, "pass@8"),
        ({"metric_id": "board.x", "metric_name": "pass@16"}, "pass@16"),
        ({"metric_id": "maj_at_k", "metric_parameters": {"k": "64"}}, "maj@64"),
        ({"metric_name": "cons@64"}, "maj@64"),
        ({"metric_id": "pass_at_k"}, None),
        ({"metric_id": "pass_at_k", "metric_parameters": {"k": 0}}, None),
        ({"metric_id": "f1"}, None),
        ({"metric_id": "accuracy", "lower_is_better": True}, None),
        ({}, None),
    ],
)
def test_metrics_are_named_as_ours_or_passed_over(
    write: Callable[[Any], Path], config: dict[str, Any], metric: str | None
) -> None:
    record = changed((METRIC, {"metric_unit": "percent", "lower_is_better": False, **config}))
    record["evaluation_results"].append(copy.deepcopy(RECORD["evaluation_results"][0]))
    assert [one.metric for one in load_published(write(record))] == [*([metric] if metric else []), "pass@1"]
    if metric is None:
        del record["evaluation_results"][1]
        with pytest.raises(UsageError, match=r"has no accuracy, pass@k or maj@k to compare with; it holds "):
            load_published(write(record))


@pytest.mark.parametrize(
    ("unit", "greatest", "score", "value"),
    [
        ("proportion", ABSENT, 0.5, 0.5),
        (ABSENT, 1.0, 0.5, 0.5),
        (ABSENT, 100, 50, 0.5),
        ("points", 100.0, 50, 0.5),
        ("percent", "Infinity", 0.5, 0.005),
    ],
)
def test_fractions_and_percent_are_told_apart(
    write: Callable[[Any], Path], unit: object, greatest: object, score: float, value: float
) -> None:
    record = changed(((*METRIC, "metric_unit"), unit), ((*METRIC, "max_score"), greatest), ((*DETAILS, "score"), score))
    assert [one.value for one in load_published(write(record))] == [value]


def test_a_number_that_was_calculated_is_rounded_nowhere(write: Callable[[Any], Path]) -> None:
    (score,) = load_published(write(changed((("source_metadata", "source_type"), "evaluation_run"))))
    assert score.unit == 0


@pytest.mark.parametrize(
    ("data", "n_samples", "found"),
    [
        ({"samples_number": 15}, 30, (15, 2)),
        ({"samples_number": 30}, 31, (30, None)),
        ({"samples_number": 30}, 0, (30, None)),
        ({"additional_details": {"samples_number": "15"}}, 15, (15, 1)),
        ({"additional_details": {"samples_number": "many"}}, 15, (None, None)),
        ({}, 60, (30, 2)),  # the benchmark has 30
        ({}, 45, (None, None)),
    ],
)
def test_questions_and_samples_of_each(
    write: Callable[[Any], Path], data: dict[str, Any], n_samples: int, found: tuple[int | None, int | None]
) -> None:
    source = {"dataset_name": "AIME", "source_type": "other", **data}
    place = (*DETAILS, "uncertainty", "num_samples")
    (score,) = load_published(write(changed(((*RESULT, "source_data"), source), (place, n_samples))))
    assert (score.n_questions, score.samples) == found


@pytest.mark.parametrize(
    ("names", "benchmark"),
    [
        (("math500/harness", "math500", ""), "math500"),
        (("overall", "set", "HuggingFaceH4/MATH-500"), "math500"),
        (("my own", "set", "org/other"), "my own"),
    ],
)
def test_a_benchmark_is_known_by_any_of_its_names(
    write: Callable[[Any], Path], names: tuple[str, str, str], benchmark: str
) -> None:
    name, dataset, repository = names
    source = {"dataset_name": dataset, "source_type": "hf_dataset", "hf_repo": repository, "samples_number": 30}
    record = changed(((*RESULT, "evaluation_name"), name), ((*RESULT, "source_data"), source))
    assert [one.benchmark for one in load_published(write(record))] == [benchmark]


def test_what_is_optional_may_be_absent(write: Callable[[Any], Path]) -> None:
    record = changed(
        ((*DETAILS, "uncertainty"), ABSENT),
        ((*RESULT, "generation_config"), ABSENT),
        (("source_metadata", "source_name"), ABSENT),
        (("source_metadata", "source_organization_url"), "javascript:alert(1)"),
        (("model_info", "inference_engine"), ABSENT),
    )
    (score,) = load_published(write(record))
    assert (score.samples, score.standard_error, score.settings) == (None, None, {})
    assert (score.source.title, score.source.url, score.source.named) == ("The boards", "", "The boards")


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed((("model_info",), ABSENT)), "missing required field `model_info`"),
        (changed((("model_inf",), {})), "unknown field `model_inf`"),
        (changed((("schema_version",), "1.0")), "schema_version is 1.0, expected 0.x"),
        (
            changed(((*DETAILS, "score"), ABSENT)),
            "evaluation_results[0] is no record of Every Eval Ever: score_details: missing",
        ),
        (changed(((*DETAILS, "score"), "high")), "evaluation_results[0]"),
        (changed(((*DETAILS, "score"), 155)), "score_details.score is 155, expected a number from 0 to 100"),
        (changed(((*DETAILS, "score"), -1)), "score_details.score is -1"),
        (changed(((*DETAILS, "score"), 10**400)), "evaluation_results[0]"),
        (changed(((*METRIC, "max_score"), 1)), "metric_unit 'percent' does not fit max_score 1"),
        (changed(((*METRIC, "metric_unit"), "points"), ((*METRIC, "max_score"), 10)), "accuracy in no known unit"),
        (changed(((*DETAILS, "uncertainty", "num_samples"), -1)), "uncertainty.num_samples"),
        (changed((("source_metadata", "evaluator_relationship"), "friend")), "evaluator_relationship"),
        (changed((("evaluation_results",), [])), "it holds no result"),
        (changed((("evaluation_results",), [0] * 10_001)), "more than 10,000 evaluation_results"),
        ({"results": {"gsm8k": {"exact_match": 0.5}}}, "record.json is no record of Every Eval Ever"),
        ([], "record.json is no record of Every Eval Ever"),
        (b"", "record.json is no record of Every Eval Ever"),
        (
            b'{"schema_version": "0.3.0", "evaluation_results": ' + b"[" * 100_000,
            "record.json is no record of Every Eval Ever",
        ),
        (b" " * (8 * 1024 * 1024 + 1), "longer than a record"),
        (b"\xff\xfe", "record.json is no record of Every Eval Ever"),
    ],
)
def test_another_record_is_refused_in_one_sentence(write: Callable[[Any], Path], record: Any, said: str) -> None:
    with pytest.raises(UsageError, match=r"record\.json") as refused:
        load_published(write(record))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_is_read_with_all_below_it_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("data/a/one.json", "data/b/two.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(RECORD), "utf-8")
    (tmp_path / "data" / "a" / "one_samples.jsonl").write_text("no record\n", "utf-8")
    assert len(load_published(tmp_path)) == 2
    monkeypatch.setattr(loading, "MAX_FILES", 1)
    with pytest.raises(UsageError, match="holds more than 1 files"):
        load_published(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    *[(key,) for key in RECORD],
    *[(*RESULT, key) for key in RECORD["evaluation_results"][0]],
    *[(*METRIC, key) for key in RECORD["evaluation_results"][0]["metric_config"]],
    *[(*DETAILS, key) for key in ("score", "uncertainty")],
    ("model_info", "id"),
    ("source_metadata", "source_name"),
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(200), deadline=None)
@given(place=st.sampled_from(PLACES), value=JSON)
def test_whatever_stands_there_is_read_or_refused(
    write: Callable[[Any], Path], place: tuple[str | int, ...], value: Any
) -> None:
    refused = ""
    scores = []
    try:
        scores = load_published(write(changed((place, value))))
    except UsageError as error:
        refused = str(error)
    assert bool(scores) != bool(refused)
    assert "\n" not in refused
    assert all(0 <= score.value <= 1 and score.k >= 1 for score in scores)


def test_the_page_counts_the_shipped_scores_and_those_that_were_held_against_their_sources() -> None:
    files = [path.read_text("utf-8") for path in sorted((CHECKOUT / "results/published").glob("*.yaml"))]
    scores = [text.count("\n  - {model: ") for text in files]
    assert all("\n  checked: " in text for text in files)
    quoted = sum(text.count(", quoted: true") for text in files)
    page = " ".join((CHECKOUT / "docs/published.md").read_text("utf-8").split())
    assert f"There are {sum(scores):,} scores in {len(files)} files. {quoted} of them are quoted" in page
    assert "all of them were compared with stored copies of their sources, number by number" in page


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
    *("llmeval", "efficient-reasoning", "sglang", "aime26-hub"),
}
"""Files of sources that say of numbers which they quote that the models' authors stated them."""


def test_a_shipped_number_is_its_authors_only_if_they_own_the_source_or_are_quoted() -> None:
    seen = 0
    for path in sorted((CHECKOUT / "results/published").glob("*.yaml")):
        for score in load_published(path):
            owner = urlsplit(score.source.url).path.strip("/").removeprefix("datasets/").partition("/")[0]
            own = re.match(OWN_MODELS.get(owner, owner + "/"), score.model, re.IGNORECASE)
            seen += score.by == "authors"
            if score.by == "authors":
                assert own or path.stem in QUOTES_AUTHORS, (path.name, score.model)
            elif not score.quoted and not path.stem.startswith("nemo-skills"):  # tutorials of a library
                assert not own, (path.name, score.model)
    assert seen > 400


def test_shipped_accuracies_are_shares_of_the_samples_that_their_sources_state() -> None:
    """Of 14 no number of right samples gives what their source prints; a source may round or cut its last digit."""
    impossible = set()
    for score in load_published():
        if score.metric == "pass@1" and score.samples and score.n_questions:
            total = score.samples * score.n_questions
            if abs(round(score.value * total) / total - score.value) > score.unit + 1e-6:
                impossible.add((score.source.repository, score.model, score.benchmark))
    sources = Counter(source for source, _, _ in impossible)
    assert sources == {"LLMEval": 1, "POLARIS": 2, "SeerAttention": 2, "sober-reasoning": 9}
