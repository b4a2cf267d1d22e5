"""Records of Every Eval Ever as published scores: what is taken, and what is refused in one sentence.

The tables of five projects: each number that their authors print is shipped, digit by digit and with its settings.
`five_tables.csv` holds the 289 numbers as they are printed, but for the numbers of tries.

For: harness.extensions.published_records, harness.deciding.published.
"""

from __future__ import annotations

import copy
import csv
import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.deciding.published import PublishedScore, load_published, published_folder, short_name
from harness.extensions import published_records
from tests.budget import examples
from tests.conftest import CHECKOUT

RECORD: dict[str, Any] = json.loads("""{
    "schema_version": "0.3.0", "evaluation_id": "AIME-2024/org/model-7b/1767225600",
    "retrieved_timestamp": "1767225600",
    "source_metadata": {
        "source_name": "A leaderboard", "source_type": "documentation", "source_organization_name": "The boards",
        "source_organization_url": "https://example.org/board", "evaluator_relationship": "first_party"
    },
    "eval_library": {"name": "lm_eval", "version": "0.4.13"},
    "model_info": {
        "name": "Model 7B", "id": "org/Model-7B", "inference_engine": {"name": "vllm", "version": "0.10"},
        "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"}
    },
    "evaluation_results": [{
        "evaluation_name": "AIME-2024",
        "source_data": {"dataset_name": "AIME", "source_type": "hf_dataset", "samples_number": 30},
        "metric_config": {
            "metric_id": "accuracy", "metric_unit": "percent", "lower_is_better": false, "score_type": "continuous",
            "min_score": 0, "max_score": 100
        },
        "score_details": {
            "score": 55.5,
            "uncertainty": {"standard_error": {"value": 4.5, "method": "analytic"}, "num_samples": 1920}
        },
        "generation_config": {"generation_args": {"temperature": 0.6, "max_tokens": 32768, "reasoning": true}}
    }]
}""")
RESULT = ("evaluation_results", 0)
METRIC = (*RESULT, "metric_config")
DETAILS = (*RESULT, "score_details")
UNIT = {"metric_unit": "percent", "lower_is_better": False}
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


def published(folder: Path, record: Any) -> list[PublishedScore]:
    """The scores of a record, by way of the file that it becomes."""
    (folder / "record.json").write_bytes(record if isinstance(record, bytes) else json.dumps(record).encode())
    content = published_records.scores_of(folder / "record.json", "https://example.org/given")
    (folder / "scores.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return load_published(folder / "scores.yaml")


def test_a_record_becomes_a_file_of_published_scores(tmp_path: Path) -> None:
    (score,) = published(tmp_path, RECORD)
    assert (score.model, score.benchmark, score.metric) == ("org/Model-7B", "aime24", "pass@1")
    assert (score.value, score.unit, score.standard_error) == (0.555, pytest.approx(0.001), 0.045)
    assert (score.n_questions, score.samples) == (30, 64)
    assert score.settings == {"temperature": 0.6, "max_tokens": 32768}
    source = score.source
    assert (source.title, source.url, score.by, source.engine) == (
        *("A leaderboard", "https://example.org/given", "authors", "vllm"),
    )
    assert "lm_eval 0.4.13" in source.note
    words = [sys.executable, "-m", "harness.extensions.published_records", tmp_path / "record.json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert yaml.safe_load(done.stdout)["source"]["url"] == "https://example.org/board", "the record's own address"


UNCERTAINTY, DATA = (*DETAILS, "uncertainty"), (*RESULT, "source_data")
IN, MOST, SCORE = (*METRIC, "metric_unit"), (*METRIC, "max_score"), (*DETAILS, "score")
NAME, N_SAMPLES = (*RESULT, "evaluation_name"), (*UNCERTAINTY, "num_samples")
AIME = {"dataset_name": "AIME"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({METRIC: {"metric_id": "exact-match"} | UNIT}, {"metric": "pass@1"}),
        ({METRIC: {"metric_id": "pass_at_k", "metric_parameters": {"k": 8}} | UNIT}, {"metric": "pass@8"}),
        ({METRIC: {"metric_id": "board.x", "metric_name": "pass@16"} | UNIT}, {"metric": "pass@16"}),
        ({METRIC: {"metric_name": "cons@64"} | UNIT}, {"metric": "maj@64"}),
        ({IN: "proportion", MOST: 1, SCORE: 0.5, UNCERTAINTY: ABSENT}, {"value": 0.5}),
        ({IN: ABSENT, MOST: 100, SCORE: 50}, {"value": 0.5}),
        ({DATA: AIME | {"samples_number": 15}, N_SAMPLES: 30}, {"n_questions": 15, "samples": 2}),
        ({N_SAMPLES: 31}, {"n_questions": 30, "samples": None}),
        ({DATA: AIME, N_SAMPLES: 60}, {"n_questions": 30, "samples": 2}),
        ({DATA: AIME, N_SAMPLES: 45}, {"n_questions": None, "samples": None}),
        ({NAME: "math500/overall", DATA: {"dataset_name": "set"}}, {"benchmark": "math500"}),
        ({NAME: "own", DATA: {"dataset_name": "s", "hf_repo": "HuggingFaceH4/MATH-500"}}, {"benchmark": "math500"}),
        ({NAME: "own", DATA: {"dataset_name": "s", "samples_number": 3}}, {"benchmark": "own"}),
        (
            {UNCERTAINTY: ABSENT, (*RESULT, "generation_config"): ABSENT},
            {"samples": None, "standard_error": None, "settings": {}},
        ),
    ],
)
def test_what_a_record_states_is_named_as_ours(
    tmp_path: Path, changes: dict[tuple[str | int, ...], Any], expected: dict[str, Any]
) -> None:
    (score,) = published(tmp_path, changed(*changes.items()))
    assert {name: getattr(score, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed((("model_info",), ABSENT)), "'model_info'"),
        (changed((("schema_version",), "1.0")), "schema_version is 1.0; expected 0.x"),
        (changed(((*DETAILS, "score"), ABSENT)), "'score'"),
        (changed(((*DETAILS, "score"), 155)), "the score 155 is not between 0 and 100"),
        (changed(((*METRIC, "metric_unit"), "points"), ((*METRIC, "max_score"), 10)), "in a known unit"),
        (changed(((*METRIC, "max_score"), 1)), "in a known unit"),
        (changed(((*METRIC, "metric_id"), "f1")), "it contains no benchmark-level accuracy, pass@k or maj@k"),
        (changed((("evaluation_results",), [])), "it contains no benchmark-level accuracy, pass@k or maj@k"),
        ([], "is not an Every Eval Ever record"),
        (b"[" * 100_000, "is not an Every Eval Ever record"),
        (b"\xff\xfe", "is not an Every Eval Ever record"),
    ],
)
def test_another_record_is_refused_in_one_sentence(tmp_path: Path, record: Any, said: str) -> None:
    with pytest.raises(UsageError, match=r"record\.json") as refused:
        published(tmp_path, record)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_is_read_with_all_below_it_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path, RECORD)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "again.yaml").write_bytes((tmp_path / "scores.yaml").read_bytes())
    assert len(load_published(tmp_path)) == 2
    monkeypatch.setattr("harness.deciding.published.MAX_FILES", 1)
    with pytest.raises(UsageError, match="contains more than 1 files"):
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
def test_whatever_stands_there_is_read_or_refused(tmp_path: Path, place: tuple[str | int, ...], value: Any) -> None:
    refused = ""
    scores = []
    try:
        scores = published(tmp_path, changed((place, value)))
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


def test_a_shipped_number_is_its_authors_only_if_they_own_the_source_or_are_quoted() -> None:
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
