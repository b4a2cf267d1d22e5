"""Questions: identity, references, choices (also of a file of one's own, asked by flags alone), prompts and their
placeholders, selection, and parts of a set: disjoint, complete, even, and the same whatever the order of the rows.

For: harness.benchmarks.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks import catalog, prompts, questions
from harness.benchmarks.card import Card, from_mapping
from harness.benchmarks.drafts import form_of, read_reference
from harness.benchmarks.prompts import BOXED, Prompt, placeholders
from harness.benchmarks.shards import Shard, assign_parts
from harness.client.apis.table import api_of
from harness.client.request_fields import Spelling
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.literals import ApiName
from harness.core.records import OWN_METADATA, Grade, Question
from harness.options.run import RunOptions
from harness.preparing.run_questions import questions_of
from harness.progress.events import Watcher
from harness.scoring.benchmark_score import score_benchmark
from tests.budget import examples
from tests.system.command import harness

Write = Callable[..., Path]


def card(path: Path, **changes: Any) -> Card:
    base: dict[str, Any] = {
        "name": "set",
        "title": "Set",
        "source": {"kind": "file", "path": str(path)},
        "columns": {"question": "q", "answer": "a"} | changes.pop("columns", {}),
    }
    return from_mapping(base | changes, "test")


def ask(question: Question) -> str:
    return question.messages[-1].content


# Identity


def test_equal_rows_are_questions_of_their_own_with_an_ordinal(write_rows: Write) -> None:
    rows = [{"q": "same", "a": 1}, {"q": "other", "a": 2}, {"q": "same", "a": 1}, {"q": "same", "a": 27}]
    built = questions.build(card(write_rows(rows)))
    first, _, third, fourth = (question.question_id for question in built.questions)
    assert third == f"{first}-2"
    assert fourth[:16] != first
    assert "-" not in fourth
    assert any(".jsonl:4 has the same question as " in note for note in built.notes)
    rows[-1]["a"] = 28
    assert questions.build(card(write_rows(rows))).dataset_digest != built.dataset_digest


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
@given(st.lists(st.tuples(st.sampled_from(["p", "q", "r"]), st.integers(0, 2)), min_size=1, max_size=8), st.randoms())
def test_row_order_changes_nothing(write_rows: Write, pairs: list[tuple[str, int]], shuffler: random.Random) -> None:
    rows = [{"q": q, "a": a} for q, a in pairs]
    built = questions.build(card(write_rows(rows)))
    shuffler.shuffle(rows)
    again = questions.build(card(write_rows(rows)))
    assert {q.question_id: q for q in again.questions} == {q.question_id: q for q in built.questions}
    assert (again.dataset_digest, again.rows_digest) == (built.dataset_digest, built.rows_digest)


def test_the_prompt_is_no_part_of_a_questions_identity(write_rows: Write) -> None:
    path = write_rows([{"q": "p", "a": 1}])
    with_prompt, without_prompt = (questions.build(card(path), prompt=name) for name in ("boxed", "none"))
    assert with_prompt.questions[0].question_id == without_prompt.questions[0].question_id
    assert with_prompt.dataset_digest == without_prompt.dataset_digest
    assert with_prompt.template_digest != without_prompt.template_digest
    assert with_prompt.questions[0].prompt_digest != without_prompt.questions[0].prompt_digest


def test_the_id_column_of_a_card_is_used_where_it_is_there(write_rows: Write) -> None:
    changes: dict[str, Any] = {"columns": {"id": ["id", "ID"]}}
    assert questions.build(card(write_rows([{"q": "p", "a": 1, "ID": 7}]), **changes)).questions[0].question_id == "7"
    assert len(questions.build(card(write_rows([{"q": "p", "a": 1}]), **changes)).questions[0].question_id) == 16
    with pytest.raises(UsageError, match="has no column 'id' or 'ID' for the id"):
        questions.build(card(write_rows([{"q": "p", "a": 1}]), id_rule="column", **changes))


# References


@pytest.mark.parametrize(
    ("value", "form", "kind", "expected"),
    [
        ("025", "plain", "integer", "25"),
        (33.0, "plain", "integer", "33"),
        (" 1,234 ", "plain", "integer", "1234"),
        (r"336^\circ", "plain", "integer", "336"),
        ("-10", "plain", "integer", "-10"),
        (27.0, "plain", "number", "27"),
        (0.5, "plain", "number", "0.5"),
        ("work\n#### 1,000", "after_hashes", "integer", "1000"),
        (r"so \boxed{\frac{1}{2}}", "last_box", "expression", r"\frac{1}{2}"),
        (r"first \boxed{1} then \boxed {2^{3}}.", "last_box", "expression", "2^{3}"),
        (r"\boxed{1} and \boxed{never closed", "last_box", "expression", "1"),
        (r"\boxed{a \} b}", "last_box", "expression", r"a \} b"),
        ("4.5e33", "box_or_plain", "expression", "4.5e33"),
        (["$5$"], "single_item", "expression", "$5$"),
        ([3, 5.0, "7"], "plain", "auto", "3, 5, 7"),
        ({"1": "a", "2": "b"}, "plain", "auto", "a, b"),
    ],
)
def test_a_reference_is_read_from_its_cell(value: Any, form: Any, kind: str, expected: str) -> None:
    assert read_reference(value, kind, form, structured=True).accepted == (expected,)


@pytest.mark.parametrize(
    ("value", "form", "kind", "message"),
    [
        (25.5, "plain", "integer", "must be an integer, found 25.5"),
        ("twelve", "plain", "integer", "must be an integer"),
        ("9" * 2000, "plain", "integer", "must be an integer"),
        ("no mark", "after_hashes", "integer", 'has no "####"'),
        ("####  ", "after_hashes", "integer", "is empty"),
        ("no box", "last_box", "expression", r"has no closed \\boxed"),
        (r"\boxed{" * 20_000, "last_box", "expression", r"has no closed \\boxed"),
        ("5", "single_item", "expression", "must be a list with exactly one string"),
        (["5", "6"], "single_item", "expression", "must be a list with exactly one string"),
        ([], "plain", "auto", "contains no answer"),
        ([[1]], "plain", "auto", "must be a string or a number"),
        ([None], "plain", "auto", "is null"),
    ],
)
def test_a_cell_without_a_reference_is_refused(value: Any, form: Any, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_reference(value, kind, form, structured=True)


@pytest.mark.parametrize(
    ("texts", "kind", "form"),
    [
        ("B （B） C． D)", "choice", "choice"),
        ("Paris 不存在", "text", "text"),
        ("p-q pi xy sin(x)", "expression", "text"),
        (r"x 3/4 \pi x=5 52_8", "expression", "expression"),
        ("-1 42", "integer", "expression"),
        ("0.5 1,234", "number", "expression"),
        ("3,4", "multiple", "expression"),
    ],
)
def test_the_kind_follows_the_reference_and_the_identity_form_is_frozen(texts: str, kind: str, form: str) -> None:
    assert {(read_reference(text).kind, form_of(text, text)) for text in texts.split()} == {(kind, form)}


def test_a_value_under_its_letter_is_right_as_either() -> None:
    assert read_reference(r"C. 1-\mathrm{i}").accepted[:2] == (r"1-\mathrm{i}", "C")
    assert read_reference(r"（A）$\sqrt{2}$").accepted[:2] == (r"$\sqrt{2}$", "A")


@given(st.text(alphabet="\\boxed{}f 1", max_size=60))
def test_a_box_that_is_found_is_balanced(text: str) -> None:
    try:
        (box,) = read_reference(text, "expression", "last_box").accepted
    except ValueError:
        return
    plain = box.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    assert plain.count("{") == plain.count("}")


# Choices: made-up rows in GPQA's layout

GPQA_ROWS = [
    {
        "Question": f"Which is number {n}?",
        "Correct Answer": f"right {n}\n",
        "Incorrect Answer 1": f"wrong {n}a",
        "Incorrect Answer 2": f"wrong {n}b",
        "Incorrect Answer 3": f"wrong {n}c",
        "Record ID": f"rec{n}",
    }
    for n in range(60)
]


def gpqa(path: Path, **choices: Any) -> Card:
    spec = {"correct": "Correct Answer", "incorrect": [f"Incorrect Answer {i}" for i in (1, 2, 3)], "shuffle_seed": 0}
    return card(
        path,
        columns={"question": "Question", "answer": [], "id": "Record ID"},
        choices=spec | choices,
        prompt="boxed_letter",
    )


def test_choices_are_shuffled_per_question_and_the_letter_follows(write_rows: Write) -> None:
    built = questions.build(gpqa(write_rows(GPQA_ROWS)))
    for n, question in enumerate(built.questions):
        place = "ABCD".index(question.references[0])
        assert (question.choices[place], question.metadata["choice_order"][place]) == (f"right {n}", 0)
        assert f"\n{question.references[0]}) right {n}\n" in ask(question)
    spread = Counter(question.references[0] for question in built.questions)
    dotted = questions.build(gpqa(write_rows(GPQA_ROWS)), prompt="limo_letter")
    for one, other in zip(dotted.questions, built.questions, strict=True):
        listed = re.findall(r"^[A-D]\. .*", ask(one), flags=re.MULTILINE)
        assert listed == [
            f"{line[0]}.{line[2:]}" for line in re.findall(r"^[A-D]\) .*", ask(other), flags=re.MULTILINE)
        ]
        assert len(listed) == 4
        assert prompts.stem(one, prompts.PROMPTS["limo_letter"]) == prompts.stem(other, prompts.PROMPTS["boxed_letter"])
    assert set(spread) == set("ABCD")
    assert max(spread.values()) < 30


def test_the_order_of_choices_depends_on_seed_and_id_only(write_rows: Write) -> None:
    built, turned, other = (
        questions.build(gpqa(write_rows(rows), shuffle_seed=seed))
        for rows, seed in ((GPQA_ROWS, 0), (GPQA_ROWS[::-1], 0), (GPQA_ROWS, 1))
    )
    one, two, three = ({q.question_id: q.choices for q in of.questions} for of in (built, turned, other))
    assert (one == two, one == three) == (True, False)
    assert (other.dataset_digest != built.dataset_digest, other.rows_digest) == (True, built.rows_digest)


def test_the_cluster_key_names_shared_content_and_changes_no_identity(write_rows: Write) -> None:
    rows = [{"q": f"{n}?", "a": n, "passage": passage} for n, passage in enumerate(["x", "x", 7, None, ""])]
    path = write_rows(rows)
    built = questions.build(card(path, cluster_key="passage"))
    assert [q.metadata.get("cluster") for q in built.questions] == ["x", "x", 7, None, None]
    assert built.dataset_digest == questions.build(card(path)).dataset_digest


def test_a_column_with_a_reserved_name_does_not_group_questions(write_rows: Write) -> None:
    """Metadata of 60 questions in two values each, and the score of one right and one wrong sample in turn."""
    names = sorted(OWN_METADATA)
    path = write_rows([{"q": f"{n}?", "a": n} | {name: f"{name} {n % 2}" for name in names} for n in range(60)])
    built = questions.build(card(path, columns={"metadata": names}))
    grades = [
        Grade(
            benchmark="set",
            question_id=one.question_id,
            sample_index=0,
            verdict="correct" if n % 3 else "wrong",
            extracted=None,
            rule="integer",
            grader="rules",
        )
        for n, one in enumerate(built.questions)
    ]
    plain = questions.build(card(path)).questions
    score, alone = (score_benchmark(of, grades, 1) for of in (built.questions, plain))
    assert (score.n_clusters, score.accuracy.question) == (None, alone.accuracy.question)
    assert set(score.breakdowns) == {f"{name} (column)" for name in names}
    grouped = questions.build(card(path, columns={"metadata": names}, cluster_key="cluster")).questions
    assert score_benchmark(grouped, grades, 1).n_clusters == 2


def test_a_cluster_that_is_no_name_is_refused(write_rows: Write) -> None:
    path = write_rows([{"q": "1?", "a": 1, "passage": [1]}])
    for key, message in (
        ("passage", r"jsonl:1: the cluster column 'passage' must be a string or an integer, found \[1"),
        ("page", "has no column 'page' for the cluster"),
    ):
        with pytest.raises(UsageError, match=message):
            questions.build(card(path, cluster_key=key))


COLORS = ["red", "blue", "green"]


def labeled(*labels: Any) -> dict[str, Any]:
    """Options as ARC has them."""
    return {"label": labels, "text": COLORS}


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        *(
            (options, ["B", "B)", 1, "blue", "(B)", [1], ["B"], " blue "])
            for options in (COLORS, dict(zip("ABC", COLORS, strict=True)), json.dumps(COLORS))
        ),
        (labeled("1", "2", "3"), ["2"]),
        (labeled(1, 2, 3), [2]),
        (labeled("A", "B", "C"), ["B"]),
    ],
)
def test_options_in_a_column_are_named_by_letter_or_text(write_rows: Write, options: Any, answers: list[Any]) -> None:
    rows = [{"q": f"Sky {n}?", "options": options, "a": answer} for n, answer in enumerate(answers)]
    rows.append({"q": "Sun?", "options": options, "a": 0})  # without it numbers might count from 1
    for question in questions.build(card(write_rows(rows), choices={"options": "options"})).questions[:-1]:
        assert (question.references, question.choices, question.kind) == (("B",), tuple(COLORS), "choice")


def test_arcs_labels_need_a_text_each(write_rows: Write) -> None:
    rows = [{"q": "Sky?", "options": {"label": ["A", "B"], "text": COLORS}, "a": "B"}]
    with pytest.raises(UsageError, match="must have exactly one label for each text"):
        questions.build(card(write_rows(rows), choices={"options": "options"}))


def test_an_answer_that_names_no_option_is_refused(write_rows: Write) -> None:
    for answer in ("D", 3, -1, True, "purple", None, 1.0, [0, 1], []):
        rows = [{"q": "Sky?", "options": COLORS, "a": answer}]
        with pytest.raises(UsageError, match=r"one of the 3 options by its letter, index \(starting at 0\) or text"):
            questions.build(card(write_rows(rows), choices={"options": "options"}))


# Prompts


@pytest.mark.parametrize("prompt", ["boxed", "boxed_prefix", "qwen_boxed", "deepseek_r1", "few_shot", "boxed_zh"])
@pytest.mark.parametrize("text", [f"1 + 1?\n{BOXED}", f"1 + 1? {BOXED}\n", f"{BOXED}\n1 + 1?"])
def test_data_that_carry_the_instruction_do_not_get_it_twice(write_rows: Write, prompt: str, text: str) -> None:
    built = questions.build(card(write_rows([{"q": text, "a": 2}])), prompt=prompt)
    sent = "\n".join(message.content for message in built.questions[0].messages)
    assert sent.count(BOXED) <= 1
    assert ask(built.questions[0]).count("1 + 1?") == 1


def test_an_instruction_of_ones_own_is_not_doubled_either(write_rows: Write) -> None:
    own = Prompt(name="own", template="{question}\n\nAnswer with one number and nothing else.")
    path = write_rows([{"q": "1 + 1?\nAnswer with one number and nothing else.", "a": 2}, {"q": "2 + 2?", "a": 4}])
    built = questions.build(card(path), prompt=own)
    assert [ask(q).count("Answer with one number") for q in built.questions] == [1, 1]
    assert any("1 of 2 questions already contain the prompt's instruction" in note for note in built.notes)


def test_a_system_prompt_of_ones_own_alone_leaves_a_bare_question_bare(write_rows: Write) -> None:
    for prompt, system, messages in (
        ("none", "Be brief.", [("system", "Be brief."), ("user", "1 + 1?")]),
        ("none", "open_r1", [("system", prompts.SYSTEM_PROMPTS["open_r1"]), ("user", "1 + 1?")]),
        ("qwen_boxed", "none", [("user", "1 + 1?")]),
    ):
        built = questions.build(card(write_rows([{"q": "1 + 1?", "a": 2}])), prompt=prompt, system_prompt=system)
        assert [(m.role, m.content) for m in built.questions[0].messages] == messages


@given(st.text(max_size=40))
def test_nothing_in_a_question_acts_as_a_template(text: str) -> None:
    for evil in (text, "{question}", "{choices}", "{0.__class__}", "%s", "${x}", "{question!r:>100}"):
        assert prompts.substitute(r"Q: {question} \boxed{answer} {}", evil) == rf"Q: {evil} \boxed{{answer}} {{}}"


@pytest.mark.parametrize("template", ["{question.__class__}", "{0}x {q}", "{Question}", "{question!r}", "{choices[0]}"])
def test_a_template_with_an_unknown_field_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="unknown field"):
        Prompt(name="x", template="{question} " + template)


@pytest.mark.parametrize("char", ["\b", "\x00", "\x1b", "\r", "\x7f", "\x9b"])
def test_a_control_character_in_a_template_is_refused(char: str) -> None:
    for part in ("template", "system"):
        with pytest.raises(ValueError, match="control character"):
            Prompt.model_validate({"name": "x", "template": "{question}"} | {part: f"{{question}} {char}oxed"})
    with pytest.raises(UsageError, match="control character"):
        prompts.system_prompt(f"x{char}")


def test_an_unknown_prompt_is_answered_with_the_near_ones(write_rows: Write) -> None:
    with pytest.raises(UsageError, match=r"unknown prompt 'boxd'; expected one of .* Did you mean boxed"):
        questions.build(card(write_rows([{"q": "p", "a": 1}])), prompt="boxd")


def test_few_shot_turns_are_chat_messages_or_one_text(write_rows: Write) -> None:
    path = write_rows([{"q": "1 + 1?", "a": 2}])
    chat = questions.build(card(path), prompt="few_shot").questions[0]
    assert [message.role for message in chat.messages] == ["user", "assistant"] * 4 + ["user"]
    assert chat.prompt == ""
    raw = questions.build(card(path), prompt="few_shot", templated=False).questions[0]
    assert raw.messages == ()
    assert raw.prompt.count("Problem:\n") == 5
    assert raw.prompt.endswith("Problem:\n1 + 1?\n\nSolution:\n")
    assert raw.prompt_digest != chat.prompt_digest


def test_the_letter_of_an_option_has_the_prompts_mark() -> None:
    listed = {mark: prompts.list_choices(["x", "y"], mark) for mark in (")", ".", "()")}
    assert listed == {")": "A) x\nB) y", ".": "A. x\nB. y", "()": "(A) x\n(B) y"}


def test_each_api_knows_its_questions_and_another_word_is_named(write_rows: Write) -> None:
    path = write_rows([{"q": "1 + 1?", "a": 2}])
    for api in get_args(ApiName):
        (question,) = questions.build(card(path), templated=api_of(api).templated).questions
        (prompt,) = api_of(api).prompt(question.messages, question.prompt).values()
        asked = [{"role": each.role, "content": each.content} for each in question.messages] or question.prompt
        assert json.loads(codec.encode(prompt)) == asked != ""
    with pytest.raises(UsageError, match="expected chat or completions or responses or messages"):
        Spelling(api_name="later")  # type: ignore[arg-type]  # as a run of a later version recorded it


def test_a_column_that_no_row_has_is_refused_in_a_card_of_ones_own(write_rows: Write, tmp_path: Path) -> None:
    path, mine = write_rows([{"q": "p", "a": 1}, {"q": "r", "a": 2, "century": "20", "Era": "2"}]), tmp_path / "my.yaml"

    def built(**columns: Any) -> list[Question]:
        content = {"title": "T", "source": {"kind": "file", "path": str(path)}}
        mine.write_text(json.dumps(content | {"columns": {"question": "q", "answer": "a", **columns}}), "utf-8")
        return list(questions.build(catalog.load_file(mine)).questions)

    for field in "metadata", "more_answers", "context", "multiple", "tolerance", "unit":
        with pytest.raises(
            UsageError,
            match=r":1 has no column 'centurry' for any question \(no other row has it either\); available columns",
        ):
            built(**{field: ["centurry"]})
        assert len(built(**{field: ["century"]})) == len(built(**{field: ["CENTURY"]})) == 2
    with pytest.raises(UsageError, match=r"'qq'.* Did you mean q"):
        built(metadata=["century", "qq"])
    assert len(built(unit=["centurry", "century"])) == 2  # The first that exists is read.
    first, second = built(metadata=["century", "era"], more_answers=["ERA"])
    assert (first.metadata, second.metadata, second.references) == ({}, {"century": "20", "era": "2"}, ("2",))
    # Other data for a shipped card may lack what only breaks its score down.
    given = catalog.load("math500").with_data(str(write_rows([{"problem": "p", "answer": "1"}])))
    assert questions.build(given).questions[0].metadata == {}


# Selection

LEVELS = [{"q": f"p{n}", "a": n, "id": f"q{n}", "level": n % 3} for n in range(12)]


def levels(path: Path) -> Card:
    return card(path, columns={"id": "id", "metadata": "level"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "the limit must be at least 1 question, found 0"),
        ({"ids": ["q55"]}, r"has no question 'q55'\. Did you mean q5"),
        ({"ids": []}, "no question in set matches both the ids"),
        ({"filters": ["level"]}, "must be of the form column=value"),
        ({"filters": ["levl=1"]}, r"no column 'levl' to filter by; available columns: a, id, level, q\. Did you mean"),
        ({"filters": ["level=7"]}, "matches no questions in set; the values are 0, 1, 2"),
        ({"filters": ["a=77"]}, "values are 0, 1, 10, 11, 2, 3, 4, 5, 6, 7$"),
        ({"filters": ["level=1"], "ids": ["q0"]}, "no question in set matches both the ids and the filter"),
    ],
)
def test_an_empty_selection_is_one_sentence(write_rows: Write, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        questions.build(levels(write_rows(LEVELS)), **options)


# Row-wise rules


def test_tolerance_unit_context_and_several_answers_come_from_the_row(write_rows: Write) -> None:
    columns = {"context": "c", "tolerance": "error", "unit": "unit", "multiple": "many"}
    rows = [
        {"q": "How far?", "a": "5", "c": "A car drives.", "error": "1e-1", "unit": "km", "many": False},
        {"q": "Which?", "a": "1,2", "c": None, "error": None, "unit": None, "many": True},
    ]
    first, two = questions.build(card(write_rows(rows), columns=columns), prompt="none").questions
    assert ask(first) == "A car drives.\n\nHow far?"
    assert (first.rules.absolute_tolerance, first.metadata, first.kind) == (0.1, {"unit": "km"}, "expression")
    assert (two.rules.absolute_tolerance, two.metadata, two.kind) == (0.0, {}, "multiple")
    with pytest.raises(UsageError, match="the tolerance must be a finite, nonnegative number, found 'wide'"):
        questions.build(card(write_rows([rows[0] | {"error": "wide"}]), columns=columns))


def test_other_data_than_the_cards_own_are_read_with_a_note(write_rows: Write) -> None:
    strict = card(write_rows([{"q": "p", "a": 1}]), questions=2)
    with pytest.raises(UsageError, match="has 1 question, but the card 'set' specifies 2"):
        questions.build(strict)
    mine = str(write_rows([{"q": "p", "a": 1}], "mine.jsonl"))
    built = questions.build(strict.with_data(mine))
    assert built.data_file == mine
    assert any("cannot be compared with published scores" in note for note in built.notes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.csv", "file none.csv does not exist"),
        ("./none.jsonl.gz", "file ./none.jsonl.gz does not exist"),
        ("none.xlsx", "file none.xlsx does not exist"),
        ("sub/none", "sub/none is neither a file nor a benchmark name"),
        ("math50", "unknown benchmark 'math50'. Did you mean math500?"),
        ("HuggingFaceH4/aime_2025", "unknown benchmark 'HuggingFaceH4/aime_2025'. Did you mean"),
        ("none", "unknown benchmark 'none'"),
    ],
)
def test_a_name_that_is_a_files_is_told_that_there_is_no_such_file(tmp_path: Path, name: str, message: str) -> None:
    gone = harness(tmp_path, "doctor", "--benchmark", name)
    assert gone.code == 2
    assert message in gone.err
    assert "olympiadbench" not in gone.err, "the list of all benchmarks stands in the place of the mistake"
    assert gone.out == ""


def asked(path: Path, *columns: str, **more: Any) -> list[Question]:
    options = RunOptions.of(data=str(path), choices_key=columns, **more)
    return list(questions_of(options).sets[0].questions)


SHADES = ["red", "green", "blue"]


def test_options_in_columns_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "quiz.csv"
    path.write_text("question,A,B,C,D,answer\nGrass?,red,green,blue,,B\nSky?,red,green,blue,grey,C\n")
    three, four = asked(path, "A", "B", "C", "D")
    assert three.choices == ("red", "green", "blue")
    assert four.choices == ("red", "green", "blue", "grey")
    assert (three.references, four.references) == (("B",), ("C",))


@pytest.mark.parametrize(
    ("row", "columns", "sentence"),
    [
        ({"options": ["one"], "answer": "A"}, "options", "expected 2 to 26 options, found 1$"),
        ({"A": "", "B": "", "answer": "7"}, "A B", "found 0; move the questions without options to a separate file"),
        ({"options": "red, green", "answer": "A"}, "options", "must be a list of 2 to 26 options"),
        ({"options": SHADES, "answer": "D"}, "options", "must identify one of the 3 options"),
        ({"options": SHADES, "answer": "A"}, "choices", "has no column 'choices' for the options"),
        ({"A": "red", "B": "green", "answer": "A"}, "A B C", "has no column 'C' for the options"),
        ({"A": "red", "B": ["x"], "answer": "A"}, "A B", "must contain an option's text"),
        ({"options": "[1, 2", "answer": "A"}, "options", "quiz.jsonl:1, the column 'options'"),
    ],
)
def test_what_is_no_choice_is_one_sentence(write_rows: Write, row: dict[str, Any], columns: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        asked(write_rows([{"question": "Grass?", **row}], "quiz.jsonl"), *columns.split())


NUMERALS = ["red", "green", "blue", "0", "1", "2", "3"]


def meant(index: int, options: list[str]) -> dict[str, int | None]:
    """The option that a number means, in each way to read it; None: it cannot be read so."""
    as_text = options.index(str(index)) if str(index) in options else None
    counted = {first: index - first if first <= index < len(options) + first else None for first in (0, 1)}
    return {"from 0": counted[0], "from 1": counted[1], "own text": as_text}


def test_numbered_answers_are_read_only_where_the_rows_are_unambiguous(write_rows: Write) -> None:
    n_refused = 0
    for number in range(examples(300)):
        chance = random.Random(seed := random.getrandbits(32))
        rows = [
            (chance.sample(NUMERALS, 4), chance.randrange(4) + chance.choice([0, 0, 1]))
            for _ in range(chance.randint(1, 4))
        ]
        path = write_rows(
            [{"question": f"{n}?", "options": o, "answer": i} for n, (o, i) in enumerate(rows)], f"{number}.jsonl"
        )
        read = [meant(index, options) for options, index in rows]
        fitting = [[row[way] for row in read] for way in read[0] if all(row[way] is not None for row in read)]
        from_0 = [row["from 0"] for row in read]
        if None not in from_0 and all(letters == from_0 for letters in fitting):
            assert [question.references[0] for question in asked(path, "options")] == ["ABCD"[at] for at in from_0], (
                seed
            )
        else:
            n_refused += 1
            with pytest.raises(UsageError, match=r"an index from 0 or|must identify one of the 4 options"):
                asked(path, "options")
    assert n_refused


def test_the_flag_goes_with_data_and_without_a_card(write_rows: Write) -> None:
    path = write_rows([{"question": "Grass?", "options": SHADES, "answer": "A"}])
    with pytest.raises(UsageError, match="are only for data without a card"):
        asked(path, "options", benchmarks="demo")


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"A": "x", "B": "y", "option_c": "z"}, ["A, B, option_c"]),
        ({"choices": ["x", "y"]}, ["choices"]),
        ({"a": "x", "level": "3"}, []),  # one letter alone is no set of options
        ({"subject": "algebra", "year": 2024}, []),
    ],
)
def test_omitted_option_columns_are_named(write_rows: Write, columns: dict[str, object], named: list[str]) -> None:
    warnings: list[str] = []
    heard = Watcher()
    heard.warn = lambda sentence: warnings.append(str(sentence))  # type: ignore[method-assign]
    path = write_rows([{"question": "q?", "answer": "A", **columns}])
    questions_of(RunOptions.of(data=str(path)), heard)
    assert [warning.partition("columns ")[2].partition(" are not shown")[0] for warning in warnings] == named


IDS = st.lists(st.integers(0, 999).map(str) | st.text(max_size=3), unique=True, max_size=30)


@given(IDS, st.integers(1, 40), st.sampled_from(["aime24", "x", ""]), st.randoms(use_true_random=False))
def test_parts_are_disjoint_complete_even_and_stable(ids: list[str], of: int, name: str, chance: random.Random) -> None:
    held = assign_parts(name, ids, of)
    assert held.keys() == set(ids), "each question is held, and by one part only"
    assert set(held.values()) <= set(range(1, of + 1))
    sizes = [Counter(held.values()).get(number, 0) for number in range(1, of + 1)]
    assert max(sizes) - min(sizes) <= 1
    assert assign_parts(name, chance.sample(ids, len(ids)), of) == held


def test_parts_are_those_of_earlier_versions() -> None:
    assert assign_parts("aime24", "abc", 8) == {"c": 6, "a": 7, "b": 8}, "clients of two versions share a run"


def test_small_benchmarks_do_not_all_fall_to_the_same_parts() -> None:
    assert len({assign_parts(f"benchmark {n}", ["q"], 8)["q"] for n in range(40)}) == 8


def test_a_shard_reads_as_it_is_written() -> None:
    assert Shard.parse("02/8") == Shard(2, 8)
    assert str(Shard.parse("2/8")) == "2/8"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *[(text, "expected I/N") for text in ("", "3", "a/b", "1/2/3", "-1/2", "1.0/2", " 1/2", "1/²")],
        ("0/4", "numbered from 1: expected 1/4 to 4/4"),
        ("5/4", "expected 1/4 to 4/4"),
        ("1/0", "expected 1 to 10000 shards"),
        ("1/10001", "expected 1 to 10000 shards"),
    ],
)
def test_what_is_no_shard_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Shard.parse(text)


@pytest.mark.parametrize(
    "template",
    [
        "[Task]: «{question}»\n[Submission]: «{answer}»\n«{criterion}» «{instructions}»",
        "«{question}»\n«{ref_answer_1}»\n«{answer_a}»«{answer_b}»: «{predicted_answer}», target «{target}»",
        "«{input}»«{completion}», {input} again",
        "Is «{{output}}» like «{{ expected }}»?",
        "«{{ doc.answer | trim }}» and «{{item['gold']}}»",
        "«{doc.answer}» «{answer!r}» «{answer:>10}» «{row[answer]}»",
        "«{ answer }» «{Answer}» «{reference answer}»",
        "Compare «{参考答案}» with «{回答}»",
        "$«{answer}» of \\boxed{x} and «{gold}»",
    ],
)
def test_a_template_of_another_tool_has_placeholders(template: str) -> None:
    assert placeholders(re.sub("[«»]", "", template)) == re.findall("«(.*?)»", template)


def test_a_long_text_without_placeholders_is_searched_in_a_moment() -> None:
    parts = ("{a ", "{", "\\frac {", "{{a", "\\a [", "{a" + " " * 20_000, "\\" + "a" * 20_000 + " " * 20_000)
    for part in parts:
        assert placeholders(part * (100_000 // len(part))) == []


@pytest.mark.parametrize(
    "text",
    [
        r"\frac{1}{2} equals 0.5, \frac{a}{b} does not; \dfrac{\sqrt{ab}}{cd} may",
        r"The reply must end in \boxed{answer}, \boxed {answer} or \text{the answer}.",
        r"$x_{max}$, $x^{two}$, $a_{ij}^{kl}$, \sqrt[n]{ab}, \operatorname*{argmax}_{theta}",
        r"the set \{red\}, \left\{green\right\}, \begin{aligned} a \end{aligned}, {n \choose k}",
        r"{1, 2, 3}, {}, {red, green}, {x > 0}, {n | n > 3}, {n : n even}, {0}",
        '{"verdict": "correct"} is no form of a reply',
        "[[5]], [[letter]], <answer>, $answer, %s: nothing that a prompt could not say",
        r"\mathrm{kg}\,\mathrm{m}/\mathrm{s}^{-2}; ^{14}C; \ce{H2O}; {\rm kg}",
    ],
)
def test_latex_and_other_braces_are_text(text: str) -> None:
    assert placeholders(text) == []
