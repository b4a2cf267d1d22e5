"""Cards are short, strict, found by any name people type, and say where everything comes from."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks import card, catalog, questions
from harness.benchmarks.card import Card, HubSource, UrlSource
from harness.commands import card_data
from harness.core.errors import UsageError
from harness.preparing.question_warnings import warnings_without_a_judge
from tests.system.command import harness

SHIPPED = catalog.names()


MINIMAL = """
title: Sums
source: {kind: file, path: sums.jsonl}
columns: {question: q, answer: a}
"""


def write(folder: Path, text: str, name: str = "sums.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_card_is_complete_and_reads_back_equal(name: str) -> None:
    loaded = catalog.load(name)
    assert loaded.name == name
    for text in (loaded.title, loaded.measures, loaded.license, loaded.citation, loaded.traps):
        assert text.strip()
    source, has_checksum = loaded.source, bool(loaded.checksum or loaded.answers_checksum or loaded.editions)
    if isinstance(source, UrlSource):
        assert re.search(r"/[0-9a-f]{40}/", source.url)
        has_checksum = True  # of the file
    is_pinned = not isinstance(source, HubSource) or source.revision is not None
    assert (is_pinned and has_checksum and loaded.questions is not None) == (loaded.unpinned is None)
    shown = loaded.model_dump(mode="json", exclude_defaults=True)
    assert card.from_mapping(json.loads(json.dumps(shown)), where="x").model_dump() == loaded.model_dump()


def test_no_two_cards_answer_to_one_name() -> None:
    every = [folded for c in catalog.cards() for folded in {catalog.fold_name(n) for n in (c.name, *c.aliases)}]
    assert len(every) == len(set(every))


def test_names_that_people_type_find_their_card() -> None:
    for name, typed in TYPED.items():
        assert {catalog.load(one).name for one in typed.split()} == {name}
    with pytest.raises(UsageError, match=r"unknown benchmark 'aime42'. Did you mean .*aime24. Run .harness benchmarks"):
        catalog.load("aime42")


TYPED = {
    "aime24": "math_opensource/aime24 Maxwell-Jia/AIME_2024 aime2024 AIME-2024",
    "aime25": "opencompass/AIME2025",
    "aime25_i": "aime2025-I",
    "aime25_ii": "aime25_2",
    "math500": "math-500 MATH_500 HuggingFaceH4/MATH-500",
    "gpqa_diamond": "gpqa Idavidrein/gpqa",
    "gsm8k": "openai/gsm8k",
    "minerva": "minerva_math",
    "hmmt_feb25": "hmmt_feb_2025",
    "olympiadbench": "olympiad_bench",
    "limo": "GAIR/LIMO",
    "gradeschool": "grade_school_math",
    "chmath": "cn_math_2024",
}


@pytest.mark.parametrize("typed", ["efficient-reasoning", "Efficient-Reasoning"])
def test_the_name_of_a_suite_is_answered_with_the_command_that_runs_it(typed: str, tmp_path: Path) -> None:
    server = ("--model", "m", "--base-url", "http://127.0.0.1:1")
    refused = harness(tmp_path, "run", f"{typed}:8", *server)
    assert refused.code == 2
    assert refused.err.startswith(
        f"harness: {typed} is a benchmark suite: run it with `harness sweep efficient-reasoning`\n"
    )
    # Wrong twins: a benchmark of the same name as a suite, and a name that is only the beginning of a suite's.
    assert catalog.load("demo").name == "demo"
    with pytest.raises(UsageError, match="unknown benchmark 'efficient'"):
        catalog.load("efficient")


def test_the_demo_is_whole_and_needs_none_of_the_optional_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("huggingface_hub", "pyarrow", "zstandard", "reasoning_gym"):
        monkeypatch.setitem(sys.modules, name, None)
    demo = catalog.load("demo")
    assert (demo.sampling.max_tokens, card_data.status(demo), card_data.fetch(demo).questions.n_all) == (64, "here", 40)
    assert card_data.status(catalog.load("aime24")) == "absent"


def test_a_card_of_ones_own_is_read_by_path_and_by_folder_before_a_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, MINIMAL + "licence: MIT\n")  # the former spelling of the key
    write(tmp_path, MINIMAL, "gsm8k.yaml")
    write(tmp_path, '{"q": "1 + 1?", "a": 2}\n', "sums.jsonl")
    monkeypatch.chdir(tmp_path.parent)
    loaded = catalog.load(str(path))
    assert (questions.build(loaded).questions[0].references, loaded.license) == (("2",), "MIT")
    monkeypatch.setenv(catalog.USER_FOLDER_VARIABLE, str(tmp_path))
    assert questions.build(catalog.load("Sums")).questions[0].benchmark == "sums"
    assert catalog.load("gsm8k").title == "Sums"
    assert sorted(catalog.names()) == sorted([*SHIPPED, "sums"])
    monkeypatch.setenv(catalog.USER_FOLDER_VARIABLE, str(tmp_path / "nope"))
    with pytest.raises(UsageError, match=r"nope \(set by HARNESS_DATASETS\) does not exist"):
        catalog.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "sampels: 4\n", r"sums\.yaml: unknown key 'sampels'\. Did you mean samples"),
        (
            MINIMAL.replace("question: q", "qestion: q"),
            r"'columns\.qestion'\. Did you mean question",
        ),
        (MINIMAL.replace("kind: file", "kind: file, config: x"), r"unknown key 'source\.file\.config'\.$"),
        (MINIMAL + "sampling: {temprature: 1}\n", r"'sampling\.temprature'\. Did you mean temperature"),
        (
            MINIMAL + "rules: {relative_tolerence: 0.1}\n",
            r"unknown rule 'relative_tolerence'\. Did you mean rela",
        ),
        (MINIMAL + "rules: {grader: [good]}\n", "rules: grader: expected text, found a list"),
        (MINIMAL + "rules: {form: essay}\n", "rules: form: unknown value 'essay'; expected "),
        (MINIMAL + "rules: {relative_tolerance: -1}\n", "a tolerance must be a finite, nonnegative number"),
        # A kind of answer that a plug-in brings is checked like any other grader.
        (
            MINIMAL + "rules: {grader: program, relative_tolerance: .nan}\n",
            "a tolerance must be a finite, nonnegative number",
        ),
        (
            MINIMAL + "rules: {grader: 'os.system(1)'}\n",
            "grader must be one of rules, package.module:function",
        ),
        (MINIMAL.replace("title: Sums", "name: x"), "the key 'title' is missing"),
        (MINIMAL.replace("kind: file", "kind: ftp"), "source"),
        (MINIMAL.replace(", answer: a", ""), "`columns` has no `answer`"),
        (MINIMAL + "samples: 0\n", r"samples: .*greater than or equal to 1, found 0"),
        (MINIMAL + "samples: many\n", r"samples: .*integer.*, found 'many'"),
        (MINIMAL + "kind: essay\n", "kind: .*found 'essay'"),
        (
            MINIMAL + "prompt: boxd\n",
            r"unknown prompt 'boxd'; expected one of am_thinking, .*few_shot, .*, qwen_boxed\. Did you mean boxed",
        ),
        (MINIMAL + "id_rule: column\n", "`id_rule: column` requires `columns.id`"),
        (MINIMAL + 'prompts: [{name: x, template: "{question} \\b"}]\n', r"control character \\x08"),
        (MINIMAL + 'prompts: [{name: x, template: "{qestion}"}]\n', r"unknown field \{qestion\}; a template"),
        (
            MINIMAL + 'prompts: [{name: x, template: "{question} {qestion} {answer}"}]\n',
            r"unknown fields \{qestion\}, \{answer\}; a template may use \{question\} and \{choices\}",
        ),
        (MINIMAL + "prompts: [{name: x}, {name: x}]\n", "two prompt variants have the same name"),
        (MINIMAL + "choices: {correct: c, incorrect: [d]}\n", "the answer would always be A"),
        (MINIMAL + "choices: {correct: c}\n", "set either `options`, or both `correct` and `incorrect`"),
        ("- a list\n", "must contain `key: value` lines for a card, found a list"),
        ("", "must contain `key: value` lines for a card, found nothing"),
        ("1: x\n", "must contain `key: value` lines for a card, found a non-string key"),
        (MINIMAL + "prompts: {x: {}}\n", "prompts: expected a list in brackets"),
        (
            MINIMAL.replace("title: Sums", "title: yes"),
            r"title: expected a valid string, found True \(YAML reads yes, no, on and off as",
        ),
        (MINIMAL.replace("title: Sums", "title: 5"), "title: expected a valid string, found 5$"),
        (MINIMAL + "sampling: {stop: ['']}\n", r"sampling\.stop\.0: .*at least 1 character"),
        ("title: [unclosed\n", r"sums\.yaml:2 is not plain YAML"),
        (MINIMAL + "title: again\n", r"sums\.yaml:5 is not plain YAML: duplicate key 'title'"),
        ("a: &x [1]\nb: [*x, *x]\n", r"sums\.yaml:2 is not plain YAML: YAML aliases are not allowed"),
        (
            "a: !!python/object/apply:os.system ['touch pwned']\n",
            "is not plain YAML: could not determine a constructor",
        ),
        ("a: " + "[" * 300 + "]" * 300, "nested too deeply"),
        (
            "a: " + "[" * 3000 + "]" * 3000,
            "nested too deeply|nesting depth",
        ),  # newer versions of libyaml refuse it first
        ("a: " + "x" * 300_000, "too large for a card; the limit is 262144 bytes"),
    ],
)
def test_a_wrong_card_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        catalog.load(str(write(tmp_path, text)))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "pwned").exists()


RIGHT: dict[str, Any] = {"name": "sums", **yaml.safe_load(MINIMAL)}
lines = st.text("abc ÄΣ题{}'\"%", min_size=1, max_size=20).filter(str.strip)
right_values = st.fixed_dictionaries(
    {},
    optional={
        "title": lines,
        "measures": lines,
        "license": lines,
        "traps": lines,
        "publish_questions": st.booleans(),
        "training": st.booleans(),
        "language": st.sampled_from(["en", "zh"]),
        "samples": st.integers(1, 10**6),
        "questions": st.none() | st.integers(1, 10**6),
        "kind": st.sampled_from(["auto", "choice", "expression", "text"]),
    },
)
any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(right_values, st.sampled_from(sorted(Card.model_fields)), any_value)
def test_a_mapping_with_one_odd_value_is_read_or_refused_in_a_sentence_that_names_it(
    values: dict[str, Any], key: str, value: object
) -> None:
    try:
        loaded = card.from_mapping(RIGHT | values | {key: value}, where="x")
    except UsageError as error:
        refused = str(error)
    else:
        shown = loaded.model_dump(mode="json", exclude_defaults=True)
        assert card.from_mapping(shown, where="x") == loaded
        return
    assert refused.startswith("x: ")
    assert key.removesuffix("s") in refused


def test_what_is_no_text_or_no_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("title: Prüfung".encode("latin-1"))
    for name, message in (("absent.yaml", "cannot read a card from .*absent"), ("latin.yaml", "is not UTF-8")):
        with pytest.raises(UsageError, match=message):
            catalog.load(str(tmp_path / name))


def test_the_schema_for_editors_knows_every_key_and_refuses_others() -> None:
    schema = card.json_schema()
    assert set(schema["properties"]) == set(Card.model_fields)
    assert schema["additionalProperties"] is False
    assert "relative_tolerance" in schema["properties"]["rules"]["properties"]


def test_a_file_without_a_card_is_named_after_itself(tmp_path: Path) -> None:
    named = card.from_file(str(tmp_path / "my set:1,2.jsonl.gz"))
    assert (named.name, named.samples) == ("my set-1-2", 1)


def test_examples_show_each_turn_under_its_role() -> None:
    first, _, _ = card_data.render_examples(catalog.load("demo"), 3)
    assert first.startswith("[user]\nWhat is 4 + 3?\n\n[assistant]\n")
    assert first.endswith("[user]\nWhat is 7 + 5?")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"judge": "prof"}, "unknown judge prompt 'prof'"),
        ({"judge": "proofbench"}, "requires a rubric: set `columns.rubric`"),
        ({"judge": "simpleqa", "right_from": 1}, "the judge form awards no points"),
        ({"judge": "brokenarxiv", "right_from": 3}, "right_from is 3, but the judge form awards at most 2 points"),
        ({"judge": "./none.yaml"}, "none.yaml"),
    ],
)
def test_a_judge_s_form_that_does_not_fit_its_card_is_refused(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    own = {"title": "t", "source": {"kind": "file", "path": "x"}, "columns": {"question": "q", "answer": "a"}}
    (tmp_path / "own.yaml").write_text(json.dumps(own | changed), "utf-8")
    with pytest.raises(UsageError, match=re.escape(reason)):
        catalog.load_file(tmp_path / "own.yaml")


def test_a_row_without_a_rubric_is_refused_where_the_judge_is_shown_one(tmp_path: Path) -> None:
    own = {
        "title": "t",
        "source": {"kind": "file", "path": "rows.jsonl"},
        "judge": "healthbench",
        "prompt": "none",
        "columns": {"question": "q", "rubric": "r"},
        "kind": "text",
    }
    (tmp_path / "own.yaml").write_text(json.dumps(own), "utf-8")
    for rubric, reason in ((None, "rubric"), ("", "rubric"), ([{"criterion": "c"}], "points"), ("text", "column 'r'")):
        (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "Why?", "r": rubric}), "utf-8")
        with pytest.raises(UsageError, match=reason):
            questions.build(catalog.load_file(tmp_path / "own.yaml"))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q": "Why?", "r": [{"criterion": "c", "points": 2}]}), "utf-8")
    built = questions.build(catalog.load_file(tmp_path / "own.yaml"))
    assert built.questions[0].rubric == '[{"criterion":"c","points":2}]'
    assert [*warnings_without_a_judge([built])] == [
        "own needs a judge, according to its card; specify one when you run or score (`judge`)"
    ]
