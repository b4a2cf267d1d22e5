"""Every shipped card reads its real file: counts, checksums, and the traps that those files hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks import catalogue, questions
from harness.benchmarks.prompts import BOXED
from harness.benchmarks.questions import QuestionSet
from harness.core.records import Question

FILES = {
    "aime24.jsonl": ("aime24", 30),
    "aime24_with_solutions.jsonl": ("aime24", 30),
    "aime25.jsonl": ("aime25", 30),
    "aime25_expected_answer.jsonl": ("aime25", 30),
    "aime26.jsonl": ("aime26", 30),
    "hmmt_feb_2025.jsonl": ("hmmt_feb25", 30),
    "amc23.jsonl": ("amc23", 40),
    "math500.jsonl": ("math500", 500),
    "math500_with_solutions.jsonl": ("math500", 500),
    "gsm8k.jsonl": ("gsm8k", 1319),
    "olympiadbench.jsonl": ("olympiadbench", 675),
    "minerva_math.jsonl": ("minerva", 272),
    "minerva_limo.jsonl": ("minerva", 272),
    "cn_math_2024.jsonl": ("chmath", 30),
    "gaokao.jsonl": ("gaokao", 79),
    "kaoyan.jsonl": ("kaoyan", 199),
    "grade_school_math.jsonl": ("gradeschool", 210),
    "varmath_aime24.jsonl": ("varmath_aime24", 30),
    "varmath_aime24_twins.jsonl": ("varmath_aime24_twins", 126),
    "varmath_amc23.jsonl": ("varmath_amc23", 40),
    "varmath_amc23_twins.jsonl": ("varmath_amc23_twins", 183),
}
WITH_INSTRUCTION = ("aime24.jsonl", "aime25.jsonl", "aime26.jsonl", "hmmt_feb_2025.jsonl", "math500.jsonl")


@pytest.fixture(scope="module")
def load(shared_data: Path) -> Any:
    """Reads a real file by its card; each file once."""
    cache: dict[str, QuestionSet] = {}

    def read(file: str, **options: Any) -> QuestionSet:
        if options or file not in cache:
            card = catalogue.load(FILES[file][0]).with_data(str(shared_data / file))
            built = questions.build(card, **options)
            if options:
                return built
            cache[file] = built
        return cache[file]

    return read


def rows(shared_data: Path, file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared_data / file).read_text("utf-8").split("\n") if line]


def asked(question: Question) -> str:
    return question.messages[-1].content


def references(built: QuestionSet) -> list[str]:
    return [question.references[0] for question in built.questions]


@pytest.mark.parametrize("file", FILES)
def test_the_file_is_a_known_edition_with_its_count_and_checksum(load: Any, file: str) -> None:
    built = load(file)
    name, count = FILES[file]
    card = catalogue.load(name)
    assert built.n_all == len(built.questions) == count
    assert built.rows_digest in {card.checksum, *(edition.rows for edition in card.editions)}
    assert not any("does not know" in note for note in built.notes)
    assert len({question.question_id for question in built.questions}) == count
    assert all(text.strip() for question in built.questions for text in question.references)


@pytest.mark.parametrize("file", FILES)
def test_the_instruction_is_asked_exactly_once(load: Any, file: str) -> None:
    built = load(file, prompt="boxed")
    assert all(asked(question).count(r"\boxed{}") == 1 for question in built.questions)
    assert all(asked(question).endswith("\n" + BOXED) for question in built.questions)
    carried = any("carry the instruction" in note for note in built.notes)
    assert carried == (file in WITH_INSTRUCTION)


@pytest.mark.parametrize("file", WITH_INSTRUCTION)
def test_without_a_prompt_the_data_are_asked_as_they_are(load: Any, shared_data: Path, file: str) -> None:
    built = load(file, prompt="none")
    assert [asked(question) for question in built.questions] == [row["prompt"] for row in rows(shared_data, file)]


@pytest.mark.parametrize(
    ("one", "second", "differ"),
    [
        ("aime24.jsonl", "aime24_with_solutions.jsonl", 0),
        ("aime25.jsonl", "aime25_expected_answer.jsonl", 0),
        ("math500.jsonl", "math500_with_solutions.jsonl", 0),
        ("minerva_math.jsonl", "minerva_limo.jsonl", 0),
    ],
)
def test_two_layouts_of_a_set_give_the_same_references(load: Any, one: str, second: str, differ: int) -> None:
    left, right = Counter(references(load(one))), Counter(references(load(second)))
    assert sum((left - right).values()) == differ
    assert questions.answers_digest(q.references for q in load(one).questions) == questions.answers_digest(
        q.references for q in load(second).questions
    )


@pytest.mark.parametrize("file", ["gsm8k.jsonl", "math500.jsonl", "minerva_limo.jsonl", "grade_school_math.jsonl"])
def test_rows_without_ids_keep_their_identity_in_any_order(
    load: Any, tmp_path: Path, shared_data: Path, file: str
) -> None:
    turned = tmp_path / file
    turned.write_text("\n".join(reversed((shared_data / file).read_text("utf-8").strip("\n").split("\n"))), "utf-8")
    turned_set = questions.build(catalogue.load(FILES[file][0]).with_data(str(turned)))
    built = load(file)
    assert {q.question_id: q.row_digest for q in turned_set.questions} == {
        q.question_id: q.row_digest for q in built.questions
    }
    assert (turned_set.rows_digest, turned_set.dataset_digest) == (built.rows_digest, built.dataset_digest)


def test_aime_answers_with_leading_zeros_are_integers(load: Any, shared_data: Path) -> None:
    assert sum(row["answer"].startswith("0") for row in rows(shared_data, "aime24_with_solutions.jsonl")) == 7
    built = load("aime24_with_solutions.jsonl")
    assert {question.kind for question in built.questions} == {"integer"}
    assert all(str(int(text)) == text for text in references(built))
    assert "25" in references(built)
    assert "025" not in references(built)


def test_figures_stay_in_the_question(load: Any) -> None:
    figures = {
        "aime24_with_solutions.jsonl": 2,
        "aime25.jsonl": 2,
        "aime25_expected_answer.jsonl": 4,
        "aime26.jsonl": 1,
    }
    for file, number in figures.items():
        assert sum("[asy]" in asked(question) for question in load(file).questions) == number
    assert sum("[asy]" in asked(question) for question in load("math500.jsonl").questions) == 42


def test_amc_floats_become_numbers_without_a_decimal_part(load: Any) -> None:
    built = load("amc23.jsonl")
    assert {question.kind for question in built.questions} == {"number"}
    assert {"27", "-1"} <= set(references(built))
    assert not any("." in text for text in references(built))


def test_ids_are_the_sets_own_and_no_row_numbers(load: Any) -> None:
    assert [q.question_id for q in load("aime24_with_solutions.jsonl").questions][:2] == ["60", "61"]
    assert load("aime25_expected_answer.jsonl").questions[0].question_id == "aime25-0"
    assert load("cn_math_2024.jsonl").questions[0].question_id == "1"
    assert load("math500_with_solutions.jsonl").questions[1].question_id == "test/intermediate_algebra/1994.json"
    assert max(int(q.question_id) for q in load("amc23.jsonl").questions) == 49
    assert max(int(q.question_id) for q in load("olympiadbench.jsonl").questions) == 3102


def test_hmmt_answers_stay_as_they_are_written(load: Any) -> None:
    answers = references(load("hmmt_feb_2025.jsonl"))
    assert r"\frac{-1+\sqrt{17}}{2}, \frac{-1-\sqrt{17}}{2}" in answers
    assert r"2^{25} \cdot 26!" in answers


def test_math500_keeps_commas_of_thousands_and_of_lists(load: Any) -> None:
    answers = set(references(load("math500.jsonl")))
    assert {r"10,\!080", r"11,\! 111,\! 111,\! 100", r"\$32,\!348", "58,500", "1,-2", "3, 5, 7", "52_8"} <= answers


def test_math500_breaks_down_by_level_and_subject(load: Any) -> None:
    built = load("math500_with_solutions.jsonl", filters=["level=5", "subject=Geometry"])
    assert 0 < len(built.questions) < 134
    assert {(q.metadata["level"], q.metadata["subject"]) for q in built.questions} == {(5, "Geometry")}
    assert built.n_all == 500
    assert built.dataset_digest == load("math500_with_solutions.jsonl").dataset_digest


def test_gsm8k_references_follow_the_hashes(load: Any) -> None:
    built = load("gsm8k.jsonl")
    assert all(str(int(text)) == text for text in references(built))
    assert {"-10", "-3"} <= set(references(built))
    assert not any("," in text for text in references(built))
    assert not any("<<" in asked(question) for question in built.questions)


def test_olympiadbench_takes_the_text_out_of_its_list(load: Any, shared_data: Path) -> None:
    built = load("olympiadbench.jsonl")
    assert not any(text.startswith("['") for text in references(built))
    assert Counter(q.kind for q in built.questions) == {"multiple": 94, "expression": 581}
    by_id = {question.question_id: question for question in built.questions}
    source = {str(row["id"]): row for row in rows(shared_data, "olympiadbench.jsonl")}
    units = {key: row["unit"] for key, row in source.items() if row["unit"]}
    assert len(units) == 8
    assert all(by_id[key].metadata["unit"] == unit for key, unit in units.items())
    tolerant = [q for q in built.questions if q.rules.absolute_tolerance]
    assert [(q.question_id, q.rules.absolute_tolerance) for q in tolerant] == [("2592", 0.1)]
    assert Counter(q.metadata["answer_type"] for q in built.questions)["Numerical"] == 572


def test_minerva_references_come_from_the_solutions_box_with_a_stated_tolerance(load: Any) -> None:
    built = load("minerva_math.jsonl")
    assert {"4.5e33", "np.arcsin(10/13)", "-1./3"} <= set(references(built))
    assert all(question.rules.relative_tolerance == 0.01 for question in built.questions)


def test_gaokao_accepts_value_and_letter_and_keeps_its_last_line(load: Any, shared_data: Path) -> None:
    assert not (shared_data / "gaokao.jsonl").read_bytes().endswith(b"\n")
    by_id = {question.question_id: question for question in load("gaokao.jsonl").questions}
    assert by_id["1"].references[:2] == (r"1-\mathrm{i}", "C")
    assert by_id["2"].references == (r"3 \sqrt{2}", "D")
    assert by_id["60"].references == ("24112",)
    assert "88" in by_id
    assert sum(len(question.references) > 1 for question in by_id.values()) == 53
    assert all("请逐步推理" in asked(question) for question in by_id.values())


@pytest.mark.parametrize(
    ("file", "pairs"),
    [
        ("gaokao.jsonl", [("22", "80"), ("28", "86"), ("29", "87")]),
        ("kaoyan.jsonl", [("21", "88"), ("141", "174"), ("151", "165"), ("156", "178")]),
    ],
)
def test_questions_that_stand_there_twice_stay_two(load: Any, file: str, pairs: list[tuple[str, str]]) -> None:
    by_id = {question.question_id: question for question in load(file).questions}
    for first, second in pairs:
        assert asked(by_id[first]) == asked(by_id[second])
        assert by_id[first].row_digest != by_id[second].row_digest
    assert len({asked(question) for question in by_id.values()}) <= len(by_id) - len(pairs)


def test_kaoyan_mixes_letters_values_and_several_answers(load: Any) -> None:
    built = load("kaoyan.jsonl")
    by_id = {question.question_id: question for question in built.questions}
    assert (by_id["58"].kind, by_id["58"].references) == ("choice", ("B",))
    assert (by_id["169"].kind, by_id["169"].references) == ("choice", ("C",))
    assert by_id["77"].references[:2] == (r"$\frac{\sqrt{\pi}}{2}$", "A")
    multiple = [q for q in built.questions if q.kind == "multiple"]
    assert len(multiple) == 9
    assert by_id["18"].kind == "expression"  # one equation 或 another: alternatives are no list of answers
    assert by_id["99"].references == (r"\frac{1}{4}, \frac{1}{3}",)


def test_kaoyan_line_breaks_written_as_two_characters_become_line_breaks(load: Any, shared_data: Path) -> None:
    source = [row["problem"] for row in rows(shared_data, "kaoyan.jsonl")]
    texts = [asked(question) for question in load("kaoyan.jsonl").questions]
    breaks, commands = re.compile(r"\\n(?!eq|u)"), re.compile(r"\\n(?:eq|u)")
    assert sum(bool(breaks.search(text)) for text in source) == 74
    assert not any(breaks.search(text) for text in texts)
    n_commands = sum(len(commands.findall(text)) for text in source)
    assert sum(len(commands.findall(text)) for text in texts) == n_commands > 0


def test_grade_school_answers_of_every_type_are_references(load: Any) -> None:
    built = load("grade_school_math.jsonl")
    answers = references(built)
    assert {"42, 84", "3568, 5880, 6512, 864", "1.8782106", "不存在"} <= set(answers)
    assert sum(question.kind == "multiple" for question in built.questions) == 41


def test_grade_school_rows_with_one_question_and_two_references_stay_two(load: Any) -> None:
    twice = [text for text, n in Counter(asked(q) for q in load("grade_school_math.jsonl").questions).items() if n > 1]
    assert len(twice) == 1
    pair = [q for q in load("grade_school_math.jsonl").questions if asked(q) == twice[0]]
    assert sorted(q.references[0] for q in pair) == ["15", "27"]
    assert pair[0].question_id != pair[1].question_id
