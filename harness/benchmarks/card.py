"""The card: one short file that says what a benchmark is, where its data come from and how it is asked.

Unknown keys are refused with the near name; every field that shapes a score stands here and nowhere else.

Long: it is one form, whose fields and checks are read together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from harness.benchmarks.prompts import PROMPTS, Prompt
from harness.benchmarks.usual_columns import ANSWER_COLUMNS, QUESTION_COLUMNS
from harness.core import plugins
from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted
from harness.core.part import Part
from harness.core.records import GradeRules
from harness.core.validation import first_problem
from harness.presets.sampling import Sampling, sampling_fields


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _graders(name: str) -> str:
    graders = plugins.names("grader")
    return f" ({', '.join(graders)}).{near_names(name, graders)}" if graders else ""


def _as_rules(value: Any) -> Any:
    if isinstance(value, GradeRules):
        return value
    if not isinstance(value, dict):
        raise ValueError("must be `name: value` lines")
    for key in value:
        if key not in GradeRules.__struct_fields__:
            raise ValueError(f"unknown rule {key!r}.{near_names(str(key), GradeRules.__struct_fields__)}")
    try:
        rules = msgspec.convert(value, GradeRules)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    if rules.grader in plugins.extensions("answer"):
        return rules
    if rules.grader != "rules" and (of_plugin := plugins.value_of("grader", rules.grader)):
        rules = msgspec.structs.replace(rules, grader=of_plugin)
    if rules.grader != "rules" and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", rules.grader):
        raise ValueError(
            f'grader must be "rules", "package.module:function" or a plug-in\'s name{_graders(rules.grader)}'
        )
    for tolerance in (rules.relative_tolerance, rules.absolute_tolerance):
        if not (math.isfinite(tolerance) and tolerance >= 0):
            raise ValueError("a tolerance must be a finite number of at least 0")
    return rules


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""A column name, or several of which the first that the data have is read (copies of a set differ in names)."""

_Rules = Annotated[
    GradeRules,
    BeforeValidator(_as_rules),
    PlainSerializer(msgspec.to_builtins),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": msgspec.json.schema(GradeRules)["$defs"]["GradeRules"]["properties"],
        }
    ),
]
_Checksum = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Sentence = Annotated[str, Field(min_length=1)]


class _Part(Part):
    model_config = ConfigDict(strict=True, arbitrary_types_allowed=True)


class HubSource(_Part):
    """A data set on the Hugging Face hub.

    revision: commit of the data set (40 hex digits); null = the newest, which the notes of a run then say.
    files: paths inside the data set, also inside a .zip of it (`rows.zip/test/a.csv`); `{config}` in a path stands for
    each configuration. Without them the Parquet or JSONL files of config and split are looked up.
    config_column: name of a column that every row gets, with the configuration that it is of.
    """

    kind: Literal["hub"]
    id: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    config: Names = ()
    split: str = "test"
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    files: Names = ()
    config_column: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _rows_have_a_configuration(self) -> HubSource:
        if any("{config}" in file for file in self.files) and not self.config:
            raise ValueError("`{config}` in `files` needs a `config`")
        if self.config_column and not (self.config and all("{config}" in file for file in self.files)):
            raise ValueError("`config_column` needs a `config`, and `{config}` in each of `files`")
        return self


class FileSource(_Part):
    """A file, relative to the card: JSONL, JSON, CSV, Parquet, also .gz and .zst; or `hf://datasets/owner/name/…`.

    config: of a data set of the hub that has several.
    """

    kind: Literal["file"]
    path: Annotated[str, Field(min_length=1)]
    split: str | None = None
    config: str | None = None


class UrlSource(_Part):
    """A file at an address that names its version (a commit), and the checksum of its bytes."""

    kind: Literal["url"]
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class GymSource(_Part):
    """Questions made by a task of the `reasoning-gym` package: nobody can have trained on them.

    size: number of questions; seed: of the generator; options: the task's own settings.
    """

    kind: Literal["reasoning_gym"]
    task: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]
    size: Annotated[int, Field(ge=1, le=100_000)] = 50
    seed: Annotated[int, Field(ge=0)] = 0
    options: dict[str, Any] = Field(default_factory=dict)


class Columns(_Part):
    """Which column holds what.

    answer: the reference; more_answers: further accepted references (empty cells are skipped); context: text put
    before the question; multiple: a true/false column, true = several answers; tolerance: absolute tolerance of the
    row; unit: unit of the reference; metadata: columns by which scores can be broken down.
    """

    question: Names
    answer: Names = ()
    more_answers: Names = ()
    id: Names = ()
    context: Names = ()
    multiple: Names = ()
    tolerance: Names = ()
    unit: Names = ()
    metadata: Names = ()


class Choices(_Part):
    """Options of a multiple-choice question that stand in columns of their own.

    Either `correct` and `incorrect` (columns with one option text each; the order is shuffled per question by
    `shuffle_seed` and recorded), or `options` (a column with the list, or several columns with an option each, in
    order; empty ones are left out), of which the answer column names one by letter, by index from 0, or by its text.

    orders: in how many shuffled orders each question is asked; those beyond the first are questions of their own (id
    and `~1`, `~2` …; the metadata `same_as` names the first), so that a sample can be told which order it saw.
    """

    correct: str | None = None
    incorrect: Names = ()
    options: Names = ()
    shuffle_seed: int | None = None
    orders: Annotated[int, Field(ge=1, le=24)] = 1

    @model_validator(mode="after")
    def _one_layout(self) -> Choices:
        if bool(self.options) == bool(self.correct and self.incorrect):
            raise ValueError("give either `options`, or `correct` with `incorrect`")
        if self.correct and self.shuffle_seed is None:
            raise ValueError("`correct` needs a `shuffle_seed`: unshuffled, every answer would be A")
        if self.options and (self.orders > 1 or self.shuffle_seed is not None):
            raise ValueError("`options` are asked in their own order: leave out `shuffle_seed` and `orders`")
        return self


class Edition(_Part):
    """A known copy of the data: `rows` = checksum of its rows, in any order."""

    rows: _Checksum
    questions: Annotated[int, Field(ge=1)]
    of: _Sentence


class Variant(_Part):
    """A published way to run the set: `by` whom, with which prompt, how many samples, which settings."""

    by: _Sentence
    prompt: str
    samples: Annotated[int, Field(ge=1)] | None = None
    settings: str = ""


class ProgramTests(_Part):
    """How the tests of a program stand in a row, and what a program may use.

    format: of the row: tests, humaneval, mbpp, livecodebench. seconds: CPU time of a test, of all tests of a question
    where they are test code. memory_mb: address space of the program.
    """

    format: Literal["tests", "humaneval", "mbpp", "livecodebench"] = "tests"
    language: Literal["python"] = "python"
    seconds: Annotated[float, Field(gt=0, le=600, strict=False)] = 10.0
    memory_mb: Annotated[int, Field(ge=64, le=65_536)] = 4096


AnswerForm = Literal["plain", "after_hashes", "last_box", "box_or_plain", "single_item"]
"""plain: the cell is the reference · after_hashes: what follows the last "####" (GSM8K) · last_box: the last \\boxed{}
of the cell (a solution) · box_or_plain: that box where there is one, else the cell · single_item: a list of exactly
one text (OlympiadBench)."""

CardKind = Literal["integer", "number", "expression", "multiple", "choice", "text", "program", "auto"]
"""A kind of answer (see `harness.core.records`), or auto: each reference decides."""

IdRule = Literal["column", "checksum", "auto"]
"""column: the id column must be there · checksum: of the row · auto: the column where there is one."""


class Card(_Part):
    """A benchmark. `kind: auto` decides by each reference: a bare letter is a choice, a list is multiple, words are
    text, anything else an expression.

    Wide: it is the form that a person fills in, and its keys are the words of that form.
    """

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f:,]+$")]
    title: _Sentence
    measures: str = ""
    aliases: Names = ()
    licence: str = ""
    citation: str = ""
    publish_questions: bool = True
    """False: its authors ask that no question be shown in public, so reports and exports show no question, no answer
    and no sample of it."""
    training: bool = False
    """True: a training set, whose replies may be exported to learn from; the others are tests."""
    language: Literal["en", "zh"] = "en"

    source: Annotated[HubSource | FileSource | UrlSource | GymSource, Field(discriminator="kind")]
    columns: Columns
    choices: Choices | None = None
    id_rule: IdRule = "auto"
    cluster_key: Names = ()
    """Column whose equal values make questions a cluster (a template, a passage): they are not independent draws, and
    the question error counts clusters. Null or empty: a question of its own."""

    kind: CardKind = "expression"
    answer_form: AnswerForm = "plain"
    structured_answers: bool = False
    """Lists and mappings of several answers are references too, not mistakes in the file."""
    literal_line_breaks: bool = False
    r"""A backslash and an n in a question stand for a line break, except where they begin a LaTeX command."""
    rules: _Rules = Field(default_factory=GradeRules)
    program: ProgramTests | None = None
    """The tests of `kind: program`, whose answers are run in a sandbox."""

    prompt: str = "boxed"
    prompts: Annotated[tuple[Prompt, ...], Field(strict=False)] = ()
    variants: Annotated[tuple[Variant, ...], Field(strict=False)] = ()
    samples: Annotated[int, Field(ge=1)] = 1
    sampling: Sampling = Sampling()

    questions: Annotated[int, Field(ge=1)] | None = None
    checksum: _Checksum | None = None
    answers_checksum: _Checksum | None = None
    editions: Annotated[tuple[Edition, ...], Field(strict=False)] = ()
    traps: str = ""

    releases: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Release → how many of the source's files it has, from the first; `NAME@RELEASE` asks for one."""
    date_column: Annotated[str, Field(min_length=1)] | None = None
    """Column with the date of a question, by which `NAME@2024-08..2025-01` chooses."""
    dates: tuple[str, str] | None = None
    """First and last day, month or year of the questions, as in the column; "" for no bound."""

    _folder: Path | None = PrivateAttr(default=None)
    _file: Path | None = PrivateAttr(default=None)
    _own_data: bool = PrivateAttr(default=True)

    @model_validator(mode="before")
    @classmethod
    def _decided_by_programs(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("kind") == "program" and isinstance(value.get("rules", {}), dict):
            return {**value, "rules": {**value.get("rules", {}), "grader": "program"}}
        return value

    @field_validator("prompts", mode="after")
    @classmethod
    def _distinct(cls, prompts: tuple[Prompt, ...]) -> tuple[Prompt, ...]:
        names = [prompt.name for prompt in prompts]
        if len(set(names)) < len(names):
            raise ValueError("two prompt variants have the same name")
        return prompts

    @model_validator(mode="after")
    def _consistent(self) -> Card:
        names = {*PROMPTS, *(prompt.name for prompt in self.prompts)}
        for name in (self.prompt, *(variant.prompt for variant in self.variants)):
            if name not in names and name not in plugins.names("prompt"):
                raise ValueError(f"prompt {name!r} is not known.{near_names(name, names)}")
        if (self.kind == "program") != (self.program is not None):
            raise ValueError("`kind: program` and `program` go together")
        if not isinstance(self.source, GymSource):
            if not self.columns.answer and not (self.choices and self.choices.correct) and self.program is None:
                raise ValueError("`columns` names no answer")
            if self.id_rule == "column" and not self.columns.id:
                raise ValueError("`id_rule: column` needs `columns.id`")
        return self

    @property
    def folder(self) -> Path | None:
        """Folder of the card's file, against which a file source is relative."""
        return self._folder

    @property
    def file(self) -> Path | None:
        """The card's file where it is the user's; None for one that ships or was made otherwise."""
        return self._file

    @property
    def own_data(self) -> bool:
        """The data are the card's own, so its counts and checksums bind; false after `with_data`."""
        return self._own_data

    @property
    def ingredients(self) -> dict[str, Any]:
        """What questions are made from. Fields that few cards have are left out of the others, whose checksums stay."""
        rare = ("program", "releases", "date_column", "dates")
        return self.model_dump(mode="json", exclude={name for name in rare if not getattr(self, name)})

    def narrowed(self, arguments: Sequence[str]) -> Card:
        """The benchmark with the questions of a release, or of a span of dates, or both. Raises `UsageError`."""
        changes: dict[str, Any] = {"name": "@".join([self.name, *arguments]), "questions": None, "checksum": None}
        for argument in arguments:
            span = _DATES.fullmatch(argument)
            if argument in self.releases and isinstance(self.source, HubSource):
                files = self.source.files[: self.releases[argument]]
                changes["source"] = self.source.model_copy(update={"files": files})
            elif span is not None and self.date_column is not None:
                changes["dates"] = span.groups("")
            else:
                choices = [*self.releases, *(["2024-08..2025-01"] if self.date_column else [])]
                raise UsageError(
                    f"{quoted(argument)} is no release and no span of dates of {self.name}"
                    f"{': there are ' + ', '.join(choices) if choices else ', which has none'}"
                )
        card = self.model_copy(update=changes)
        card._own_data = False  # its counts and checksums are of the whole
        return card

    def with_data(self, path: str, split: str | None = None, config: str | None = None) -> Card:
        """The same benchmark read from a file of the user's."""
        source = FileSource(kind="file", path=_address(path), split=split, config=config)
        card = self.model_copy(update={"source": source})
        card._own_data = False
        return card


_DATES = re.compile(r"(\d{4}(?:-\d\d){0,2})?\.\.(\d{4}(?:-\d\d){0,2})?")
"""A span of dates, both ends in it: days, months or years; an end that is left out is open."""


def _address(path: str) -> str:
    """A path independent of the working directory; an `hf://` address as it is."""
    return path if "://" in path else str(Path(path).expanduser().resolve())


def from_mapping(value: dict[str, Any], where: str, folder: Path | None = None) -> Card:
    """The card in a mapping. Raises `UsageError`: one sentence with `where` and the field."""
    if "grader" in value:
        raise UsageError(f"{where}: grader is a rule; write it as `rules: {{grader: {quoted(str(value['grader']))}}}`")
    try:
        card = Card.model_validate(value)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, _FIELD_NAMES).sentence}") from error
    card._folder = folder
    return card


def from_file(
    path: str,
    *,
    question_key: str | None = None,
    answer_key: str | None = None,
    id_key: str | None = None,
    split: str | None = None,
    config: str | None = None,
    choices_key: Sequence[str] = (),
    prompt: str | None = None,
) -> Card:
    """A card for any file of questions and answers; without keys the usual column names are tried.

    choices_key: the columns of the options, where it is multiple choice. prompt: none: boxed, or boxed_letter.
    """
    name = Path(path.rstrip("/")).name.split(".")[0].replace(",", "-").replace(":", "-") or "data"
    source: dict[str, Any] = {"kind": "file", "path": _address(path)}
    if split is not None:
        source["split"] = split
    if config is not None:
        source["config"] = config
    return from_mapping(
        {
            "name": "".join(c for c in name if c.isprintable())[:100] or "data",
            "title": f"Questions of {Path(path).name}",
            "source": source,
            "columns": {
                "question": question_key or list(QUESTION_COLUMNS),
                "answer": answer_key or list(ANSWER_COLUMNS),
                "id": [id_key] if id_key else [],
            },
            "id_rule": "column" if id_key else "checksum",
            "kind": "choice" if choices_key else "auto",
            "prompt": prompt or ("boxed_letter" if choices_key else "boxed"),
            **({"choices": {"options": list(choices_key)}} if choices_key else {}),
        },
        where=path,
    )


def json_schema() -> dict[str, Any]:
    """JSON schema of a card, for editors."""
    return Card.model_json_schema() | {
        "title": "Benchmark card",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }


_MODELS = (Card, ProgramTests, Columns, Choices, Edition, Variant, HubSource, FileSource, UrlSource, GymSource, Prompt)
_FIELD_NAMES = {name for model in _MODELS for name in model.model_fields} | sampling_fields().keys()
