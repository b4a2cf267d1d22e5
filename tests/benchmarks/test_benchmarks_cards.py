"""Cards are short, strict, found by any name people type, and say where everything comes from. The shipped ones read
their real files, or made-up rows of their form on a local hub, and their references grade as right.

What the questions hold is pinned, of made-up rows and of the real files (`tests.pins.test_pinned_cards`).

For: harness.benchmarks.card, harness.benchmarks.drafts, harness.benchmarks.sources.tables,
harness.benchmarks.sources.hub, harness.benchmarks.row_forms, harness.benchmarks.sources.readers.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.benchmarks import card, catalog, questions
from harness.benchmarks.card import Card, HubSource, RandomSource, UrlSource
from harness.benchmarks.prompts import BOXED, Example, Prompt
from harness.benchmarks.sources import tables, web
from harness.benchmarks.sources.hub import DOCUMENT_COLUMNS, with_documents
from harness.benchmarks.sources.readers import random_prompts
from harness.benchmarks.sources.tables import Row
from harness.commands import card_data
from harness.core.errors import UsageError
from harness.core.records import GradeRules, Question
from harness.grading import grade
from harness.preparing.question_warnings import warnings_without_a_judge
from harness.testing import FakeServer, Request, Said, serving
from tests.benchmarks.hub_server import Dataset, Hub, archive, jsonl, parquet
from tests.budget import thinned
from tests.grading import given as graded_by
from tests.pins.held import read_pins
from tests.pins.test_pinned_cards import CARDS, FILES
from tests.runs import recorded
from tests.system.command import harness as command

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
    refused = command(tmp_path, "run", f"{typed}:8", *server)
    assert refused.code == 2
    assert refused.err.startswith(
        f"harness: {typed} is a benchmark suite: run it with `harness sweep efficient-reasoning`\n"
    )
    # Wrong twins: a benchmark of the same name as a suite, and a name that is only the beginning of a suite's.
    assert catalog.load("demo").name == "demo"
    with pytest.raises(UsageError, match="unknown benchmark 'efficient'"):
        catalog.load("efficient")


def test_the_demo_is_whole_and_needs_none_of_the_optional_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("huggingface_hub", "pyarrow", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    demo = catalog.load("demo")
    assert (demo.sampling.max_tokens, card_data.status(demo), card_data.fetch(demo).questions.n_all) == (64, "here", 40)
    assert card_data.status(catalog.load("aime24")) == "absent"


def test_a_users_card_takes_precedence_over_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        (MINIMAL.replace("question: q", "qestion: q"), r"'columns\.qestion'\. Did you mean question"),
        (MINIMAL.replace("kind: file", "kind: file, config: x"), r"unknown key 'source\.config'\.$"),
        (MINIMAL + "temperature: 1\n", r"unknown key 'temperature'\. It belongs at `sampling\.temperature`\.$"),
        (MINIMAL + "sampling: {samples: 1}\n", r"unknown key 'sampling\.samples'\. It belongs at the top level\.$"),
        (MINIMAL.replace("answer: a", "answer: a, seed: 1"), "It belongs at `source.seed`"),
        (MINIMAL + "sampling: {temprature: 1}\n", r"'sampling\.temprature'\. Did you mean temperature"),
        (MINIMAL + "rules: {relative_tolerence: 0.1}\n", r"unknown rule 'relative_tolerence'\. Did you mean rela"),
        (MINIMAL + "rules: {grader: [good]}\n", "rules: grader: expected text, found a list"),
        (MINIMAL + "rules: {form: essay}\n", "rules: the rule 'form' no longer exists.*your own verifier"),
        (MINIMAL + "rules: {relative_tolerance: -1}\n", "a tolerance must be a finite, nonnegative number"),
        # A kind of answer that a plug-in brings is checked like any other grader.
        (
            MINIMAL + "rules: {grader: program, relative_tolerance: .nan}\n",
            "a tolerance must be a finite, nonnegative number",
        ),
        (MINIMAL + "rules: {grader: 'os.system(1)'}\n", "grader must be one of rules, package.module:function"),
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
def test_an_odd_value_in_a_mapping_is_read_or_refused_clearly(values: dict[str, Any], key: str, value: object) -> None:
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
def test_a_judge_form_unlike_its_card_is_refused(tmp_path: Path, changed: dict[str, object], reason: str) -> None:
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


Rows = list[dict[str, Any]]


def stored(name: str, rows: Rows) -> bytes:
    return (
        parquet(rows)
        if name.endswith(".parquet")
        else json.dumps(rows).encode()
        if name.endswith(".json")
        else jsonl(rows)
    )


PINNED = read_pins(CARDS)
ON_HUB = [
    name
    for name in PINNED
    if isinstance(source := catalog.load(name).source, HubSource)
    and not source.documents
    and not any(ending in str(source.files) for ending in (".zip", ".csv"))
]


@pytest.mark.parametrize("name", thinned(ON_HUB))
def test_a_card_reads_its_rows_from_the_hub_as_from_a_file(hub: Hub, tmp_path: Path, name: str) -> None:
    """The pinned rows, each in the file of its configuration; of the files that a card names, as many as have rows."""
    shipped, rows = catalog.load(name), PINNED[name]["rows"]
    source = shipped.source
    assert isinstance(source, HubSource)
    configs = source.config[:1]
    if column := source.config_column:
        configs = tuple(dict.fromkeys(row[column] for row in rows))
    source = source.model_copy(update={"config": configs, "files": source.files[: len(rows)]})
    paths = source.files or (f"{'{config}' if configs else 'data'}/{source.split}-00000-of-00001.parquet",)
    files: dict[str, Rows] = {}
    for number, row in enumerate(rows):
        config = str(row[column]) if column else "".join(configs)
        path = paths[number % len(paths)].replace("{config}", config)
        files.setdefault(path, []).append({key: value for key, value in row.items() if key != column})
    described = [
        {"config_name": config, "data_files": [{"split": source.split, "path": [f for f in files if config in f]}]}
        for config in configs or ("data",)
    ]
    hub.datasets[source.id] = Dataset(
        {source.revision or "c" * 40: {file: stored(file, held) for file, held in files.items()}},
        configs=[] if source.files else described,
    )
    of_hub = shipped.model_copy(update={"source": source})
    if shipped.questions is not None:
        with pytest.raises(UsageError, match=f"the card '{name}' specifies {shipped.questions}"):
            questions.build(of_hub)
    built = questions.build(of_hub.model_copy(update={"questions": None, "checksum": None, "answers_checksum": None}))
    assert sorted(map(content, built.questions)) == sorted(map(content, made_up(name, rows, tmp_path)))


def content(question: Question) -> tuple[str, ...]:
    """What the rows decide of a question, in texts."""
    return question.question_id, question.kind, *question.references, *question.choices, question.last_turn


def made_up(name: str, rows: Rows, tmp_path: Path) -> list[Question]:
    (tmp_path / "rows.jsonl").write_bytes(stored("rows.jsonl", rows))
    return [*questions.build(catalog.load(name).with_data(str(tmp_path / "rows.jsonl"))).questions]


PAIR: dict[str, Any] = {"input": [[1, 0]], "output": [[0], [1]]}
IFEVAL: dict[str, Any] = {"key": 7, "prompt": "Write 300 words.", "instruction_id_list": ["a:b", "c:d"]}
SOLUTION = {"header": ["House", "Name"], "rows": [["1"]]}


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        *(
            (
                "arc_agi_1",
                {"id": "a", "train": [], "test": [PAIR | {"input": grid}]},
                "does not have the row form arc: Expected",
            )
            for grid in ([[1, 10]], [[]], [1], [["1"]])
        ),
        (
            "ifeval",
            IFEVAL | {"kwargs": [{}]},
            "does not have the row form instructions: .*2 instructions but arguments for 1",
        ),
        ("ruler_4k", {"question": "Which?", "answer": []}, "must have a question"),
        ("zebralogic", {"id": "z", "puzzle": "p", "solution": SOLUTION}, "rows differ in length from the header"),
    ],
)
def test_a_row_of_another_form_is_refused(name: str, row: dict[str, Any], message: str, tmp_path: Path) -> None:
    """What becomes of rows in their form is pinned (`tests.pins.test_pinned_cards`)."""
    with pytest.raises(UsageError, match=message):
        made_up(name, [row], tmp_path)


def test_a_task_of_grids_is_a_question_for_each_of_its_tests(tmp_path: Path) -> None:
    pinned = tmp_path / "tasks.json"
    pinned.write_text(json.dumps({"train": {}, "eval": {"00a": {"train": [PAIR, PAIR], "test": [PAIR, PAIR]}}}))
    built = questions.build(catalog.load("arc_agi_1").with_data(str(pinned), "eval"))
    assert {q.question_id: q.references for q in built.questions} == dict.fromkeys(("00a_0", "00a_1"), ("[[0], [1]]",))


def test_instructions_leave_empty_arguments_out(tmp_path: Path) -> None:
    (question,) = made_up("ifbench", [IFEVAL | {"kwargs": [{"n": 300, "m": None}, None]}], tmp_path)
    assert json.loads(question.references[0]) == [["a:b", {"n": 300}], ["c:d", {}]]


def test_needles_of_questions_are_known_by_their_prompt(tmp_path: Path) -> None:
    """RULER's program writes no task into its rows."""
    for prompt, how in (
        ("Text.", "all"),
        ("Answer the question based on the given documents. Question: Which?", "any"),
    ):
        (question,) = made_up("ruler_4k", [{"index": 0, "input": prompt, "outputs": ["17", "seventeen"]}], tmp_path)
        assert json.loads(question.references[0]) == {how: ["17", "seventeen"]}


TURNS = [{"role": "user", "content": "A poem."}, {"role": "assistant", "content": "Roses."}]
LAST = {"role": "user", "content": "Prepend x7Q to the 1st poem."}


def test_a_text_that_begins_as_a_conversation_is_a_text(tmp_path: Path) -> None:
    text = '[{"role": "user"}]\nHow many messages are in this JSON?'
    (question,) = made_up("graphwalks", [{"prompt": text, "answer_nodes": [], "problem_type": "bfs"}], tmp_path)
    assert (question.messages[-1].content, question.references) == (text, ("[]",))


@pytest.mark.parametrize(
    ("messages", "how", "expected"),
    [
        ([*TURNS, LAST], {}, [*TURNS, LAST | {"content": "Prepend x7Q to the 1st poem.\n" + BOXED}]),
        ([*TURNS, LAST], {"prompt": "qwen_boxed"}, [{"role": "system", "content": BOXED}, *TURNS, LAST]),
        ([*TURNS, LAST], {"templated": False}, "rows.jsonl:1 is a conversation, which needs an API with a chat"),
        (
            [{"role": "system", "content": "Be short."}, *TURNS, LAST],
            {"prompt": Prompt(name="one", examples=(Example(question="Q", answer="A"),))},
            [
                {"role": "system", "content": "Be short."},
                LAST | {"content": "Q"},
                TURNS[1] | {"content": "A"},
                *TURNS,
                LAST,
            ],
        ),
        (
            [{"role": "system", "content": "Be short."}, LAST],
            {"prompt": "qwen_boxed"},
            "begins with a system message, but",
        ),
        (TURNS, {}, "must end with a user message that contains the question; remove the beginning of a reply, which"),
        ([LAST, {"role": "system", "content": "A"}], {}, "the question; put it first"),
        ([LAST | {"content": " "}], {}, "must end with a user message that contains the question"),
        ([{"role": "developer", "content": "A"}, LAST], {}, "write `system` for the role `developer`"),
        ([LAST | {"name": "bob"}], {}, "message 1 of the column 'messages' must have a role"),
        ([LAST | {"name": "bob"}], {}, "and a name into the content"),
        ([LAST | {"name": None}], {}, [LAST | {"content": f"{LAST['content']}\n{BOXED}"}]),
        (
            [LAST | {"role": "tool"}],
            {},
            "message 1 of the column 'messages' must have a role (system, user, assistant, tool)",
        ),
        ([LAST | {"content": [{"type": "text"}]}], {}, "and content that is a string"),
        ([], {}, "must be a question or a list of messages, found []"),
    ],
)
def test_a_file_may_have_a_column_of_messages(
    messages: list[Any], how: dict[str, Any], expected: list[Any] | str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"messages": messages, "answer": "4"}))
    if isinstance(expected, str):
        with pytest.raises(UsageError, match=re.escape(expected)):
            questions.build(card.from_file(str(path)), **how)
        return
    (asked,) = questions.build(card.from_file(str(path)), **how).questions
    assert [{"role": m.role, "content": m.content} for m in asked.messages] == expected


@pytest.mark.parametrize("prompt", ["boxed", "boxed_prefix", "none", "qwen_boxed", "open_r1", "long_thought"])
def test_text_parts_are_sent_as_parts_around_which_the_prompt_writes(prompt: str, tmp_path: Path) -> None:
    parts = [{"type": "text", "text": text} for text in ("What is 6 ", "times", " 7?")]
    (path := tmp_path / "rows.jsonl").write_text(json.dumps({"messages": [LAST | {"content": parts}], "answer": "42"}))
    (asked,) = questions.build(card.from_file(str(path)), prompt=prompt).questions
    texts = asked.messages[-1].texts
    assert len(texts) == 3
    assert (texts[0].endswith("What is 6 "), texts[1], texts[2].startswith(" 7?")) == (True, "times", True)


NODES = "Some nodes.\n\nFinal Answer: [{}]"


@pytest.mark.parametrize(
    ("reference", "verifier", "reply", "parts"),
    [
        ("x7Qone two", "repeated", "x7Qone two", 10_000),
        ("x7Qone two", "repeated", "one two", 0),
        ("x7Qone two", "repeated", "x7Qone", 6_000),
        ("x7Qone two", "repeated", "", 0),
        (["ab", "cd"], "listed", NODES.format("cd, ab"), 10_000),
        (["ab", "cd"], "listed", NODES.format("cd"), 6_666),
        (["ab", "cd"], "listed", NODES.format("ef"), 0),
        (["ab", "cd"], "listed", "Final Answer: [ab, cd]\nThat is all.", 0),
        ([], "listed", NODES.format(""), 10_000),
        ([], "listed", "None.", 0),
    ],
)
def test_repeated_texts_and_node_lists_are_fractions(reference: Any, verifier: str, reply: str, parts: int) -> None:
    rules = GradeRules(grader=f"harness.grading.verifiers.needles:{verifier}", whole_reply=True)
    text = reference if isinstance(reference, str) else json.dumps(reference)
    asking = graded_by.question(text, kind="text", rules=rules)
    asking.metadata["random_string_to_prepend"] = "x7Q"
    judged = grade(asking, graded_by.sample(reply))
    right = "correct" if parts == 10_000 else "wrong" if reply else "no_answer"
    assert (judged.verdict, judged.parts) == (right, (parts, 10_000))


def test_the_documents_of_a_row_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "texts.zip"
    packed.write_bytes(archive({"c/s/a.txt": "x" * 60, "c/s/b.txt": "y" * 40}))

    def documents_of(names: str) -> Any:
        row = Row("row 1", dict(zip(DOCUMENT_COLUMNS, ("c", "s", names), strict=True)))
        return next(with_documents([row], packed, "texts.zip")).value["documents"]

    monkeypatch.setattr(tables, "MAX_FIELD_CHARS", 100)
    assert documents_of("a.txt;b.txt") == ["x" * 60, "y" * 40]
    packed.write_bytes(archive({"c/s/a.txt": "x", "old/c/s/a.txt": "y"}))
    with pytest.raises(UsageError, match=r"row 1: texts.zip has 2 documents 'c/s/a.txt' in different folders"):
        documents_of("a.txt")
    packed.write_bytes(archive({"c/s/a.txt": "x" * 60}))
    with pytest.raises(UsageError, match="row 1: its documents have more than 100 characters in total"):
        documents_of("a.txt;a.txt")


def test_a_rows_documents_precede_its_question_in_their_order(hub: Hub) -> None:
    shipped = catalog.load("aa_lcr").model_copy(update={"questions": None})
    assert isinstance(shipped.source, HubSource)
    assert shipped.source.revision
    table = (
        "document_category,document_set_id,question_id,question,answer,data_source_filenames\n"
        'Legal,set1,1,Which?,"One, 2",b.txt;Café.txt\n'
    )
    decomposed = unicodedata.normalize("NFD", "lcr/Legal/set1/Café.txt")

    def publish(members: dict[str, str]) -> None:
        files = {"AA-LCR_Dataset.csv": table.encode(), "extracted_text/AA-LCR_extracted-text.zip": archive(members)}
        hub.datasets[shipped.source.id] = Dataset({shipped.source.revision: files})  # type: ignore[union-attr, dict-item]

    publish({"lcr/Legal/set1/b.txt": "second"})
    with pytest.raises(UsageError, match=r"has no document 'Legal/set1/Café.txt'"):
        questions.build(shipped)
    publish({decomposed: "first", "lcr/Legal/set1/b.txt": "second"})
    shutil.rmtree(os.environ["HF_HUB_CACHE"])
    (built_question,) = questions.build(shipped).questions
    assert built_question.references == ("One, 2",)
    assert built_question.messages[-1].content.startswith(
        "BEGIN INPUT DOCUMENTS\n\nBEGIN DOCUMENT 1:\nsecond\nEND DOCUMENT 1\n\nBEGIN DOCUMENT 2:\nfirst\nEND DOCUMENT 2"
    )
    assert built_question.messages[-1].content.endswith("START QUESTION\n\nWhich?\n\nEND QUESTION")


def test_the_languages_of_one_problem_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "a": n, "id": f"low-{language}-{n}"} for language in ("de", "zh") for n in (0, 7)]
    clustered = own(tmp_path, rows, cluster_key="id", cluster_after="-")
    assert [question.metadata["cluster"] for question in questions.build(clustered).questions] == ["0", "7", "0", "7"]
    alone = own(tmp_path, rows, cluster_key="id")
    assert len({question.metadata["cluster"] for question in questions.build(alone).questions}) == 4
    assert catalog.load("polymath_top").cluster_after == "-"
    for key in ("cluster_after", "cluster_until"):
        with pytest.raises(UsageError, match=f"`{key}` requires `cluster_key`"):
            own(tmp_path, rows, **{key: "-"})


def test_the_variants_of_one_problem_are_one_cluster(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "a": 1, "id": name} for n, name in enumerate(("2024_I_4_1", "2024_I_4_2", "alone"))]
    varied = own(tmp_path, rows, cluster_key="id", cluster_until="_")
    assert [question.metadata["cluster"] for question in questions.build(varied).questions] == [
        *("2024_I_4", "2024_I_4", "alone")
    ]
    for key in ("twin_of", "original_key", "original_until"):
        with pytest.raises(UsageError, match=f"cards do not have the key '{key}': .*`cluster_key`"):
            own(tmp_path, rows, **{key: "id"})


def test_the_text_of_a_long_context_may_be_long(tmp_path: Path) -> None:
    row = PINNED["longbench_v2"]["rows"][0]
    (question,) = made_up("longbench_v2", [row | {"context": "word " * 600_000}], tmp_path)
    assert len(question.last_turn) > 3_000_000
    with pytest.raises(UsageError, match="'context' has 32000001 characters; the limit is 32000000"):
        made_up("longbench_v2", [row | {"context": "x" * 32_000_001}], tmp_path)


def own(tmp_path: Path, rows: Rows, **keys: Any) -> card.Card:
    (tmp_path / "rows.jsonl").write_bytes(stored("rows.jsonl", rows))
    source = {"kind": "file", "path": str(tmp_path / "rows.jsonl")}
    return card.from_mapping(
        {"name": "own", "title": "Own", "source": source, "columns": {"question": "q", "answer": "a"}} | keys,
        where="own",
    )


def test_only_rows_with_the_stated_values_are_questions(tmp_path: Path) -> None:
    plain: Rows = [{"q": f"{n}?", "a": n, "picture": value} for n, value in enumerate([None, "p.png", "", 0])]
    inside: Rows = [{"q": row["q"], "a": row["a"], "more": json.dumps({"picture": row["picture"]})} for row in plain]
    for rows, column in ((plain, "picture"), (inside, "more.picture")):
        built = questions.build(own(tmp_path, rows, only={column: [None, ""]}))
        assert [question.references for question in built.questions] == [("0",), ("2",)]
    for rows, only, message in (
        (plain, {"pictures": [None]}, "has no column 'pictures' for the selection"),
        (plain, {"picture": ["none"]}, "own has no rows"),
        (inside, {"most.picture": [None]}, "has no column 'most.picture' for the selection"),
        *(
            (
                [inside[0], inside[1] | {"more": cell}],
                {"more.picture": [None]},
                "rows.jsonl:2.* has no column 'more.picture'",
            )
            for cell in ("{}", "[1]", "{")
        ),
    ):
        with pytest.raises(UsageError, match=message):
            questions.build(own(tmp_path, rows, only=only))


def test_a_truth_value_is_an_answer_only_for_structured_answers(tmp_path: Path) -> None:
    rows = [{"q": "Is it?", "a": True}]
    built = questions.build(own(tmp_path, rows, structured_answers=True, kind="auto"))
    assert built.questions[0].references == ("True",)
    with pytest.raises(UsageError, match="must be an answer, found true"):
        questions.build(own(tmp_path, rows, kind="auto"))


DAMAGED = 'id,q,a\n1,"one?",1\n2,"two?\n,"2"\n3,"three?",3\n4,four,4\n'
"""The second question's quotation mark is not closed, so that its row runs into the third."""


def test_damaged_rows_of_a_pinned_table_are_omitted_if_counted_in_the_card(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(DAMAGED)
    assert [row.value["id"] for row in tables.stream(path, damaged_rows=1)] == ["1", "3", "4"]
    for counted, message in ((0, "is not valid CSV"), (2, "has 1 damaged rows, but the card specifies 2")):
        with pytest.raises(UsageError, match=message):
            [*tables.stream(path, damaged_rows=counted)]


def web_card(hub: Hub, payload: bytes = jsonl([{"q": "1 + 1?", "a": 2}]), **changes: str) -> Card:
    hub.datasets["web/set"] = Dataset({"e" * 40: {"set.jsonl": payload}})
    url = f"{hub.url}/cdn/web/set/{'e' * 40}/set.jsonl"
    source = {"kind": "url", "url": url, "sha256": hashlib.sha256(payload).hexdigest()} | changes
    columns = {"question": "q", "answer": "a"}
    return card.from_mapping({"name": "web", "title": "Web", "source": source, "columns": columns}, where="test")


def test_a_file_at_a_fixed_address_is_downloaded_once_and_checked(hub: Hub) -> None:
    loaded = web_card(hub)
    assert card_data.status(loaded) == "absent"
    assert questions.build(loaded).questions[0].references == ("2",)
    assert card_data.status(loaded) == "here"
    hub.log.clear()
    questions.build(loaded)
    assert hub.log == []


def test_a_file_that_is_wrong_long_or_not_there_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    other = web_card(hub, sha256="0" * 64)
    with pytest.raises(UsageError, match=r"has the checksum [0-9a-f]{64}, but the card specifies 0{64}"):
        questions.build(other)
    assert card_data.status(other) == "absent"
    with pytest.raises(UsageError, match=r"is not in the cache and cannot be reached .* local file as `data`"):
        questions.build(web_card(hub, url="http://127.0.0.1:9/set.jsonl"))
    monkeypatch.setattr(web, "MAX_DOWNLOAD_BYTES", 10)
    with pytest.raises(UsageError, match="exceeds the limit of 10 bytes"):
        questions.build(web_card(hub))
    hub.broken = 404
    with pytest.raises(UsageError, match=r"returned HTTP 404 for .*; check that the file still exists"):
        questions.build(web_card(hub))


def test_the_chinese_sets_name_the_checksums_of_their_real_files(shared_data: Path) -> None:
    files = {"gaokao": "gaokao", "kaoyan": "kaoyan", "gradeschool": "grade_school_math", "chmath": "cn_math_2024"}
    for name, file in files.items():
        content = (shared_data / f"{file}.jsonl").read_bytes()
        assert getattr(catalog.load(name).source, "sha256", None) == hashlib.sha256(content).hexdigest()


EDITIONS = {file: (pinned["card"], pinned["asked"]["n"]) for file, pinned in read_pins(FILES).items()}
WITH_INSTRUCTION = ("aime24.jsonl", "aime25.jsonl", "aime26.jsonl", "hmmt_feb_2025.jsonl", "math500.jsonl")


def verdict(question: Question, answer: str) -> str:
    reply = f"Therefore the answer is $\\boxed{{{answer}}}$."
    sample = recorded.sample(question.question_id, 0, reply, benchmark=question.benchmark)
    return grade(question, sample).verdict


@pytest.mark.parametrize("file", EDITIONS)
def test_the_file_is_a_known_edition_and_asks_its_instruction_once(shared_data: Path, file: str) -> None:
    name, count = EDITIONS[file]
    card = catalog.load(name)
    path = shared_data / file
    built = questions.build(card.with_data(str(path)), prompt="boxed")
    assert built.n_all == len(set(built.ids)) == count
    assert built.rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}
    assert not any("does not know" in note for note in built.notes)
    texts = [question.last_turn for question in built.questions]
    assert all(text.count(r"\boxed{}") == 1 and text.endswith("\n" + BOXED) for text in texts)
    assert any("contain the prompt's instruction" in note for note in built.notes) == (file in WITH_INSTRUCTION)
    if file in WITH_INSTRUCTION:
        as_they_are = questions.build(card.with_data(str(path)), prompt="none").questions
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        assert [question.last_turn for question in as_they_are] == [row["prompt"] for row in rows]


def graded(name: str, rows: Path) -> None:
    """Each reference is right; a number that no row has is not; where answers are numbers, nor is the next one."""
    for question in questions.build(catalog.load(name).with_data(str(rows))).questions:
        for reference in question.references:
            assert verdict(question, reference) == "correct", question.question_id
        assert verdict(question, "987654321") != "correct", question.question_id
        if name in BY_NUMBER:
            neighbor = str(float(question.references[0]) + 1).removesuffix(".0")
            assert verdict(question, neighbor) == "wrong", question.question_id


BY_NUMBER = ("aime24", "aime25", "aime26", "amc23", "gsm8k")


@pytest.mark.parametrize("file", EDITIONS)
def test_every_reference_of_a_file_is_right_against_itself_alone(shared_data: Path, file: str) -> None:
    graded(EDITIONS[file][0], shared_data / file)


@pytest.mark.parametrize("name", ["demo", *sorted({name for name, _ in EDITIONS.values()})])
def test_every_reference_of_pinned_rows_is_right_against_itself_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.jsonl").write_bytes(jsonl(read_pins(CARDS)[name]["rows"]))
    graded(name, tmp_path / "rows.jsonl")


def test_what_stands_beside_a_question_reaches_its_rules(tmp_path: Path) -> None:
    """Rules are in no pin: a tolerance of a row, and one of a card."""
    for name, place, tolerance in (("olympiadbench", 2, (0.1, 0.0)), ("minerva", 0, (0.0, 0.01))):
        (tmp_path / name).write_bytes(jsonl(read_pins(CARDS)[name]["rows"]))
        rules = questions.build(catalog.load(name).with_data(str(tmp_path / name))).questions[place].rules
        assert (rules.absolute_tolerance, rules.relative_tolerance) == tolerance


def test_a_task_of_reasoning_gym_is_answered_with_a_way_on() -> None:
    with pytest.raises(UsageError, match="no longer exists: write the questions of reasoning-gym to a file"):
        catalog.load("gym:basic_arithmetic")


# -- generated questions -----------------------------------------------------------------------------------------------


def test_prompts_are_seeded_and_share_no_beginning() -> None:
    rows = [
        [row.value for row in random_prompts(RandomSource(kind="random", words=100, size=n, seed=1)).rows]
        for n in (20, 50)
    ]
    assert rows[0] == rows[1][:20], "a larger size changes no prompt"
    assert len({" ".join(row["question"].split()[:10]) for row in rows[1]}) == 50
    for row in rows[1]:
        assert re.findall(r"\(the code is (\d{7})\)", row["question"]) == row["answer"]
        assert 90 <= len(row["question"].split()) <= 110
    other = next(iter(random_prompts(RandomSource(kind="random", words=100, size=1, seed=2)).rows)).value
    assert other["question"] != rows[0][0]["question"]
    assert random_prompts(RandomSource(kind="random", words=1, size=1)).rows, "the shortest has its code, too"


def test_a_reply_of_a_fixed_length_is_right_if_it_names_the_code(tmp_path: Path) -> None:
    def reply(request: Request) -> Said:
        prompt = request.json["messages"][-1]["content"]
        code = re.findall(r"code is (\d+)", prompt)[0]
        return Said(f"{code} is the code." if len(seen) % 2 else "time year", 12, finish="length")

    seen = list[int]()
    with FakeServer(serving(lambda request: (seen.append(1), reply(request))[1])) as server:
        made = harness.run(
            "random_1k", limit=4, base_url=server.base_url, out=tmp_path / "r", canary=False, concurrency=1
        )
    assert made.complete
    scored = harness.score(tmp_path / "r")["random_1k"]
    assert scored.accuracy is not None
    assert scored.accuracy.value == 0.5
