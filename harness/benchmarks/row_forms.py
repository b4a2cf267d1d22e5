"""Turn rows in special forms (grids, puzzles, lists of instructions …) into rows with a question and an answer.

A card selects the form with `row_form`. Each form is one struct, which defines what a row must contain; its `rows`
creates the columns `question`, `answer`, `id` and `cluster`, and the row's own columns are kept.

    form           a row contains                                       result
    arc            train and test: pairs of input and output grid       a row for each test grid, which is the answer
    zebra_grid     puzzle; solution: header and rows                    the puzzle and an empty table; answer: the table
    instructions   prompt, instruction_id_list, kwargs                  the prompt; answer: [name, arguments] of each
    instruction_turns   the same by turn, in turn_1_… to turn_3_…       the turns; answer: a list by turn
    versions       problem_v1 to problem_v3, answer_v1 …, answer types  a row for each version; answer: a list
    needles        question (or input), answer (or outputs): a list     the question; answer: {"all": the list}
    nodes          prompt; answer_nodes: a list                         the prompt; answer: the list
    documents      question; documents (or context)                     the question after its documents
    bfcl           question: a turn; function; ground_truth             the turn; answer: the accepted calls; category
    mixed          question; options (or choices), perhaps none; answer the question with its options; answer: a letter
    readings       dataset, question, answer: a list                    the question; answer: {"any": the list}

Long: it is one closed list of forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import zip_longest
from string import ascii_uppercase
from typing import Annotated, Any, Literal

import msgspec

from harness.core.sanitize import quoted

RowForm = Literal[
    "arc",
    "zebra_grid",
    "instructions",
    "instruction_turns",
    "versions",
    "needles",
    "nodes",
    "documents",
    "bfcl",
    "mixed",
    "readings",
]
"""The name of a form."""

Grid = Annotated[
    list[Annotated[list[Annotated[int, msgspec.Meta(ge=0, le=9)]], msgspec.Meta(min_length=1, max_length=30)]],
    msgspec.Meta(min_length=1, max_length=30),
]
"""A grid of ARC: its rows, each a list of cells."""

Columns = dict[str, Any]
"""A row: column → cell."""


class FormedRow(msgspec.Struct):
    """A row in one form."""

    def rows(self) -> Iterator[Columns]:
        """The rows that replace it, each with only the new columns. Raises `ValueError`."""
        raise NotImplementedError


class GridPair(msgspec.Struct):
    """An input and its output."""

    input: Grid
    output: Grid


class ArcTask(FormedRow):
    """A task of ARC-AGI. id: the name of its file."""

    id: str
    train: list[GridPair]
    test: list[GridPair]

    def rows(self) -> Iterator[Columns]:
        """A row for each test input, with the wording of the ARC Prize's own program."""
        shown = "\n\n".join(
            f"--Example {number}--\n\nINPUT:\n\n{json.dumps(pair.input)}\n\nOUTPUT:\n\n{json.dumps(pair.output)}"
            for number, pair in enumerate(self.train)
        )
        for number, pair in enumerate(self.test):
            text = (
                f"--Training Examples--\n{shown}\n--End of Training Examples--\n\n"
                f"--Test Input--\n{json.dumps(pair.input)}\n--End of Test Input--"
            )
            yield {
                "question": text,
                "answer": json.dumps(pair.output),
                "id": f"{self.id}_{number}",
                "cluster": self.id,
            }


class PuzzleTable(msgspec.Struct):
    """The solution of a puzzle. header: "House", then the attributes. rows: a row of cells for each house."""

    header: list[str]
    rows: list[list[str]]


class ZebraGrid(FormedRow):
    """A puzzle of ZebraLogic."""

    puzzle: str
    solution: PuzzleTable

    def rows(self) -> Iterator[Columns]:
        """The puzzle with the table to fill in, with its authors' wording."""
        _, *attributes = self.solution.header
        if any(len(row) != len(self.solution.header) for row in self.solution.rows):
            raise ValueError("has a solution whose rows differ in length from the header")
        # The first cell of a row is the number of its house, which the table's keys already contain.
        table = {
            f"House {number}": dict(zip(attributes, cells, strict=True))
            for number, (_, *cells) in enumerate(self.solution.rows, 1)
        }
        empty = {house: dict.fromkeys(row, "___") for house, row in table.items()}
        template = json.dumps({"reasoning": "___", "solution": empty}, indent=4, ensure_ascii=False)
        yield {
            "question": f"{self.puzzle.strip()}\n\n# Instruction\n\nNow please solve the above puzzle. Present your "
            f"reasoning and solution in the following json format:\n\n{template}",
            "answer": json.dumps(table, ensure_ascii=False),
        }


class Instructions(FormedRow):
    """A prompt of IFEval or IFBench. kwargs: the arguments of each instruction; null means none."""

    key: int | str
    prompt: str
    instruction_id_list: list[str]
    kwargs: list[dict[str, Any] | None]

    def rows(self) -> Iterator[Columns]:
        """Yield the row as a question: its prompt unchanged, with its instructions as the reference."""
        if len(self.instruction_id_list) != len(self.kwargs):
            raise ValueError(f"has {len(self.instruction_id_list)} instructions but arguments for {len(self.kwargs)}")
        # The hub's rows list all arguments of all instructions; null means that the instruction does not have the
        # argument.
        stated = [
            (name, {key: value for key, value in (arguments or {}).items() if value is not None})
            for name, arguments in zip(self.instruction_id_list, self.kwargs, strict=True)
        ]
        yield {"question": self.prompt, "answer": json.dumps(stated, ensure_ascii=False), "id": self.key}


class InstructionTurns(FormedRow):
    """A conversation of Multi-IF, whose cells contain JSON: the message of each turn, and its instructions so far."""

    key: str
    turn_1_prompt: str
    turn_1_instruction_id_list: list[str] | str
    turn_1_kwargs: list[str | dict[str, Any]] | str
    turn_2_prompt: str | None = None
    turn_2_instruction_id_list: list[str] | str | None = None
    turn_2_kwargs: list[str | dict[str, Any]] | str | None = None
    turn_3_prompt: str | None = None
    turn_3_instruction_id_list: list[str] | str | None = None
    turn_3_kwargs: list[str | dict[str, Any]] | str | None = None

    def rows(self) -> Iterator[Columns]:
        """The messages of the turns, and the instructions of each turn as its reference."""
        turns, answers = [], []
        for prompt, names, arguments in (
            (self.turn_1_prompt, self.turn_1_instruction_id_list, self.turn_1_kwargs),
            (self.turn_2_prompt, self.turn_2_instruction_id_list, self.turn_2_kwargs),
            (self.turn_3_prompt, self.turn_3_instruction_id_list, self.turn_3_kwargs),
        ):
            if not prompt:
                break
            asked, given = _parsed(names) or [], [_parsed(each) for each in _parsed(arguments) or []]
            message = _parsed(prompt)
            text = message["content"] if isinstance(message, dict) and "content" in message else prompt
            stated = Instructions(key=self.key, prompt=text, instruction_id_list=asked, kwargs=given)
            (row,) = stated.rows()
            turns.append(row["question"])
            answers.append(row["answer"])
        yield {"turns": turns, "answer": answers}


def _parsed(cell: Any) -> Any:
    """The JSON in a text; any other value is unchanged."""
    try:
        return json.loads(cell) if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "[") else cell
    except ValueError:
        return cell


ANSWER_TYPES = {
    "NV": "a numerical value without units",
    "EX": "an expression",
    "EQ": "an equation",
    "INT": "a range interval",
    "TF": "either True or False",
    "MCS": "one option of a multiple choice question",
    "MCM": "more than one option concatenated without space or commas of a multiple choice question, for example: BD",
    "OE": "a word, phrase, term or string that satisfies the requirements of the problem",
    "OL": "an ordered list of answers surrounded by parentheses with any answer types, for example, (1, x^2, True), "
    'where "ordered list" means changing the order of elements results in different answers',
    "UOL": "an unordered list of answers surrounded by parentheses with any answer types, for example, (1, x^2, True), "
    'where "unordered list" means changing the order of elements results in the same answer',
}
"""Answer types of UGMathBench, with the names used by its authors' program."""

_OF_CHOICE = "of a multiple choice question"


class Versions(FormedRow):
    """A problem of UGMathBench in three versions with different numbers. options_v…: the options of each answer."""

    id: str
    problem_v1: str
    problem_v2: str
    problem_v3: str
    answer_v1: list[str]
    answer_v2: list[str]
    answer_v3: list[str]
    answer_type_v1: list[str]
    answer_type_v2: list[str]
    answer_type_v3: list[str]
    options_v1: list[list[str]] = []
    options_v2: list[list[str]] = []
    options_v3: list[list[str]] = []

    def rows(self) -> Iterator[Columns]:
        """A row for each version with an answer (two versions have an error message instead of a problem, and no
        answer).

        The question begins with the number and types of the answers.
        """
        versions = (
            (self.problem_v1, self.answer_v1, self.answer_type_v1, self.options_v1),
            (self.problem_v2, self.answer_v2, self.answer_type_v2, self.options_v2),
            (self.problem_v3, self.answer_v3, self.answer_type_v3, self.options_v3),
        )
        for number, (problem, answers, types, options) in enumerate(versions, 1):
            if not answers:
                continue
            names = [_answer_type(*of_answer) for of_answer in zip_longest(types, options[: len(types)])]
            holes, types_are = f"{len(names)} placeholders", "Their answer types are, in order,"
            if len(names) == 1:
                holes, types_are = "only one placeholder", "The answer type is"
            request = f"This problem involves {holes} [ANS] to be completed. {types_are} {', '.join(names)}."
            yield {
                "question": f"{request}\n\nProblem:\n{problem.strip()}",
                # Several answers form one list, whose elements are compared in order.
                "answer": answers[0] if len(answers) == 1 else answers,
                "id": f"{self.id}_v{number}",
                "cluster": self.id,
                "version": number,
            }


def _answer_type(name: str, options: list[str] | None) -> str:
    """The wording for an answer type; for a choice it also lists the options, if the row has them."""
    words = ANSWER_TYPES.get(name, name)
    return words.replace(_OF_CHOICE, f"{_OF_CHOICE} with options {options}") if options else words


QA_SENTENCE = "Answer the question based on the given documents."
"""A sentence that RULER's program writes into each prompt of its question-answering tasks, and into no other."""


class Needles(FormedRow):
    """A row of RULER, with the hub's columns (`question`, `answer`) or its authors' columns (`input`, `outputs`).

    task: for example `niah_multikey_1`; the authors' program writes one file per task and no task name in the rows.
    """

    question: str = ""
    input: str = ""
    answer: list[str] = []
    outputs: list[str] = []
    task: str = ""

    def rows(self) -> Iterator[Columns]:
        """The question, and the texts that a reply must contain: all of them, or any of them in question-answering
        tasks (`qa_…`)."""
        # Either pair of columns, never a mixture, because a row has one source.
        texts = self.answer or self.outputs
        text = (self.question or self.input).strip()
        if not (texts and text):
            raise ValueError("must have a question (`question` or `input`) and answers (`answer` or `outputs`)")
        of_questions = self.task.startswith("qa") if self.task else QA_SENTENCE in text
        how = "any" if of_questions else "all"
        yield {"question": text, "answer": json.dumps({how: texts}, ensure_ascii=False)}


class Nodes(FormedRow):
    """A row of GraphWalks. answer_nodes: the nodes that the operation returns; may be empty."""

    prompt: str
    answer_nodes: list[str]

    def rows(self) -> Iterator[Columns]:
        """The prompt unchanged, with the list of nodes as the reference."""
        yield {"question": self.prompt, "answer": json.dumps(self.answer_nodes)}


class WithDocuments(FormedRow):
    """A question of AA-LCR.

    documents: the texts of the documents. context: all documents as one text, which some copies of the data have
    instead.
    """

    question: str
    documents: list[str] = []
    context: str = ""

    def rows(self) -> Iterator[Columns]:
        """The question after its documents, with its authors' wording."""
        texts = (f"BEGIN DOCUMENT {n}:\n{text}\nEND DOCUMENT {n}" for n, text in enumerate(self.documents, 1))
        text = "\n\n".join(texts) or self.context.strip()
        if not text:
            raise ValueError("has no documents")
        yield {
            "question": f"BEGIN INPUT DOCUMENTS\n\n{text}\n\nEND INPUT DOCUMENTS\n\nAnswer the following question "
            f"using the input documents provided above.\n\nSTART QUESTION\n\n{self.question.strip()}\n\nEND QUESTION",
            # Their number replaces the texts, so that the row does not contain them twice.
            "documents": len(self.documents),
        }


CALL_CATEGORIES = frozenset(
    {
        "simple_python",
        "multiple",
        "parallel",
        "parallel_multiple",
        "irrelevance",
        "live_simple",
        "live_multiple",
        "live_parallel",
        "live_parallel_multiple",
        "live_irrelevance",
        "live_relevance",
    }
)
"""Categories of the Berkeley leaderboard that ask for Python calls in one turn."""


class AcceptedPythonCalls(FormedRow):
    """A row of the Berkeley Function-Calling Leaderboard. id: its category and a number. question: a list of messages
    for each turn.
    """

    id: str
    question: list[list[Any]]
    ground_truth: list[Any] | None = None

    def rows(self) -> Iterator[Columns]:
        """The messages of the single turn, with the accepted calls; in some categories no call is accepted, or any
        call."""
        category = self.id.rpartition("_")[0]
        if category not in CALL_CATEGORIES or len(self.question) != 1:
            raise ValueError(f"expected one turn and an id that begins with {', '.join(sorted(CALL_CATEGORIES))}")
        accepted: Any = {"calls": self.ground_truth, "any_order": "parallel" in category}
        if category.endswith("relevance"):
            accepted = "none" if category.endswith("irrelevance") else "some"
        elif not self.ground_truth:
            raise ValueError("has no ground_truth; it is usually in the file of the same name in possible_answer/")
        yield {"question": self.question[0], "answer": accepted, "category": category}


_TEXT = r"""'(?>(?:[^'\\]|\\.)*)'|"(?>(?:[^"\\]|\\.)*)\""""
_TEXTS = re.compile(rf"\s*\[\s*(?:(?:{_TEXT})\s*(?>(?:,\s*(?:{_TEXT})\s*)*),?\s*)?\]\s*", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|([\\'\"ntr]))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


def text_list(text: str) -> list[str]:
    """The texts in a list in Python notation, such as `['a', "b's"]`. Raises `ValueError` for anything else."""
    if _TEXTS.fullmatch(text) is None:
        raise ValueError(f"is not a list of strings: {quoted(text)}")

    def plain(escape: re.Match[str]) -> str:
        number, sign = escape[1] or escape[2] or escape[3], escape[4]
        return chr(int(number, 16)) if number else _ESCAPED.get(sign, sign)

    return [_ESCAPE.sub(plain, each[0][1:-1]) for each in re.finditer(_TEXT, text, re.DOTALL)]


class MixedChoices(FormedRow):
    """A question of a data set in which only some have options. options: a list, or one in Python notation (MMMU).
    answer: the letter of an option, or its text (MathVista); for a question without options, the value, or a list of
    values in Python notation.
    """

    question: str
    answer: str
    options: list[str] | str = []
    choices: list[str] | None = None

    def rows(self) -> Iterator[Columns]:
        """The question followed by its options, unless these are only letters that a picture explains."""
        options = self.choices or (text_list(self.options) if isinstance(self.options, str) else self.options)
        letters = ascii_uppercase[: len(options)]
        if not options:
            first, *more = text_list(self.answer) if self.answer.startswith(("['", '["')) else [self.answer]
            further = {f"answer_{number}": value for number, value in enumerate(more, 2)}
            yield {"question": self.question, "answer": first, **further}
            return
        answer = letters[options.index(self.answer)] if self.answer in options else self.answer
        if answer not in [*letters]:
            raise ValueError(f"the answer is not one of the {len(options)} options: {quoted(self.answer)}")
        listed = "\n".join(f"{letter}) {option}" for letter, option in zip(letters, options, strict=False))
        shown = self.question if options == [*letters] else f"{self.question}\n\n{listed}"
        yield {"question": shown, "answer": answer}


class Readings(FormedRow):
    """A row of OCRBench. dataset: its source; formulas from HME100k are compared without blanks."""

    dataset: str
    question: str
    answer: list[str]

    def rows(self) -> Iterator[Columns]:
        """The question, and the texts; a reply must contain one of them."""
        how = "formulas" if self.dataset == "HME100k" else "any"
        yield {"question": self.question, "answer": json.dumps({how: self.answer}, ensure_ascii=False)}


FORMS: dict[RowForm, type[FormedRow]] = {
    "arc": ArcTask,
    "zebra_grid": ZebraGrid,
    "instructions": Instructions,
    "instruction_turns": InstructionTurns,
    "versions": Versions,
    "needles": Needles,
    "nodes": Nodes,
    "documents": WithDocuments,
    "bfcl": AcceptedPythonCalls,
    "mixed": MixedChoices,
    "readings": Readings,
}
"""Form → the struct that reads its rows."""


def rows_of(name: RowForm, row: Columns) -> Iterator[Columns]:
    """The rows that are read in place of a row of this form. Raises `ValueError` for a row of another form."""
    try:
        for columns in msgspec.convert(row, FORMS[name]).rows():
            yield {**row, **columns}
    except (msgspec.ValidationError, ValueError) as error:
        raise ValueError(f"does not have the row form {name}: {quoted(str(error))}") from error
