"""The card: a short YAML file that describes a benchmark, the source of its data, and how its questions are asked.

Every field on which a score depends is defined here and nowhere else. The error for an unknown key suggests the nearest
known key.

Long: a card is one form, so its fields and checks belong together.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import (
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from harness.benchmarks.column_names import ANSWER_COLUMNS, ASKED_COLUMNS, ID_COLUMNS, IMAGE_COLUMNS, TOOLS_COLUMNS
from harness.benchmarks.conversations import TURN_COLUMNS
from harness.benchmarks.judge_forms import SUFFIXES as FORM_SUFFIXES
from harness.benchmarks.judge_forms import form_named
from harness.benchmarks.prompts import PROMPTS, Prompt
from harness.benchmarks.row_forms import RowForm
from harness.core import codec, plugins
from harness.core.errors import UsageError, misspelled, near_names
from harness.core.files import real
from harness.core.option_kinds import TURNS
from harness.core.records import GradeRules
from harness.core.sanitize import quoted
from harness.core.validation import validated
from harness.core.yaml_mapping import Part, TextForm
from harness.presets.sampling import Sampling
from harness.tools.table import TOOL
from reasoning_answers.host import AnswerForm


def _as_tuple(value: Any) -> Any:
    """A string or list as a tuple of strings; any other value unchanged, so that pydantic rejects it."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _as_rules(value: Any) -> Any:
    """The card's `rules` as `GradeRules`. Raises `ValueError`.

    `rules.grader` is "rules", the name of a plug-in's answer kind, or `module:function`; the name of a plug-in's grader
    is replaced with its `module:function`.
    """
    if isinstance(value, GradeRules):
        return value
    if not isinstance(value, dict):
        raise ValueError("expected lines of the form `name: value`")
    for key in value:
        if key == "form":
            raise ValueError("the rule 'form' no longer exists: check how an answer is written in your own verifier")
        if key not in GradeRules.__struct_fields__:
            raise ValueError(f"unknown rule {key!r}.{misspelled(str(key), GradeRules.__struct_fields__)}")
    try:
        rules = msgspec.convert(value, GradeRules)
    except msgspec.ValidationError as error:
        raise ValueError(codec.describe_mistake(error, GradeRules)) from error
    for tolerance in (rules.relative_tolerance, rules.absolute_tolerance):
        if not (math.isfinite(tolerance) and tolerance >= 0):
            raise ValueError("a tolerance must be a finite, nonnegative number")
    if rules.is_built_in or rules.grader in plugins.names("answer"):
        return rules
    if of_plugin := plugins.value_of("grader", rules.grader):
        rules = msgspec.structs.replace(rules, grader=of_plugin)
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", rules.grader):
        known = ", ".join(["rules", "package.module:function", *plugins.names("grader")])
        raise ValueError(f"grader must be one of {known}")
    return rules


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
"""One or more column names; the first column that exists in the data is read, because copies of a data set use
different names."""

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
_Checksum = Annotated[str, TextForm(r"[0-9a-f]{64}", "64 hexadecimal digits (0-9, a-f)")]
_Sentence = Annotated[str, Field(min_length=1)]


class _Part(Part):
    model_config = ConfigDict(strict=True, arbitrary_types_allowed=True)


class HubSource(_Part):
    """A data set on the Hugging Face hub.

    revision: commit of the data set (40 hex digits); null: the newest one, which the run's notes then record. files:
    paths in the data set, including paths inside a zip archive (`rows.zip/test/a.csv`); `{config}` in a path stands for
    each configuration. Without `files` the Parquet or JSONL files of `config` and `split` are looked up. config_column:
    name of a column to add to each row that contains the row's configuration. documents: path of a zip archive with the
    documents that the rows refer to (`harness.benchmarks.sources.hub`).
    """

    kind: Literal["hub"]
    id: Annotated[str, TextForm(r"[\w.-]+/[\w.-]+", "OWNER/NAME")]
    config: Names = ()
    split: str = "test"
    revision: Annotated[str, TextForm(r"[0-9a-f]{40}", "40 hexadecimal digits (0-9, a-f)")] | None = None
    files: Names = ()
    config_column: Annotated[str, Field(min_length=1)] | None = None
    documents: Annotated[str, TextForm(r".+\.zip", "a path that ends in .zip")] | None = None

    @model_validator(mode="after")
    def _check_configuration(self) -> HubSource:
        """Reject configuration fields that are set without the fields they depend on."""
        if any("{config}" in file for file in self.files) and not self.config:
            raise ValueError("`files` contains `{config}`, so `config` is required")
        if self.config_column and not (self.config and all("{config}" in file for file in self.files)):
            raise ValueError("`config_column` requires `config` and `{config}` in every path in `files`")
        return self


class FileSource(_Part):
    """A file (JSONL, JSON, CSV, TSV, Parquet or Arrow, optionally .gz or .zst), or a data set
    `hf://datasets/owner/name/…`.

    path: relative to the card's folder.
    """

    kind: Literal["file"]
    path: Annotated[str, Field(min_length=1)]
    split: str | None = None


class UrlSource(_Part):
    """A file at a URL that includes its version (a commit).

    sha256: checksum of the file's bytes. damaged_rows: number of rows in this CSV file that have more or fewer cells
    than its header; they are skipped, and a file with a different number of them is rejected. split: in a JSON file
    with several lists or mappings of rows, the name of the one to read. further: more files; a row whose `id` matches
    an earlier row adds its columns to that row.
    """

    kind: Literal["url"]
    url: Annotated[str, TextForm(r"https?://\S+", "a URL that begins with https:// or http://")]
    sha256: _Checksum
    damaged_rows: Annotated[int, Field(ge=0)] = 0
    split: str | None = None
    further: Annotated[tuple[UrlSource, ...], Field(strict=False)] = ()


class RandomSource(_Part):
    """Prompts of random words, each with a code that the reply must repeat, to load a server with prompts of equal
    length.

    words: number of words per prompt, about one token each. size: number of prompts. seed: seed of the generator.
    """

    kind: Literal["random"]
    words: Annotated[int, Field(ge=1, le=1_000_000)]
    size: Annotated[int, Field(ge=1, le=100_000)] = 1000
    seed: Annotated[int, Field(ge=0)] = 0


class Columns(_Part):
    """The names of the data columns, by their content.

    question: a text, or a conversation: a list of messages `{role, content}`, also as JSON in a text, whose last
    message is the question; omitted if `images` show it. turns: the turns of a conversation, in one column
    or, with `{n}` in the name, in numbered columns (`harness.benchmarks.conversations`); the answer is then a list by
    turn, numbered columns, or the last turn's. answer: the reference. more_answers: further accepted
    references; empty cells are skipped. context: text to put before the question. multiple: whether a question has
    several answers. tolerance: absolute tolerance for the row's answer. unit: unit of the reference. rubric: what a
    judge awards points for, as text or a list of `criterion` with `points`. tools: the tools that the question offers,
    for `kind: calls`. images: image columns in order, each with one image or a list of images
    (`harness.benchmarks.sources.images`). metadata: columns by which scores can be broken down.
    """

    question: Names = ()
    turns: Names = ()
    answer: Names = ()
    more_answers: Names = ()
    id: Names = ()
    context: Names = ()
    multiple: Names = ()
    tolerance: Names = ()
    unit: Names = ()
    rubric: Names = ()
    tools: Names = ()
    images: Names = ()
    metadata: Names = ()


class Choices(_Part):
    """The options of multiple-choice questions that are in separate columns, in one of two layouts.

    correct, incorrect: columns with the text of one option each; the order is shuffled for each question with
    `shuffle_seed` and recorded. options: one column with a list of options, or several columns with one option each, in
    order; empty options are skipped. The answer column then identifies the correct option by letter, by index from 0,
    or by its text.
    """

    correct: str | None = None
    incorrect: Names = ()
    options: Names = ()
    shuffle_seed: int | None = None

    @model_validator(mode="after")
    def _check_layout(self) -> Choices:
        """Reject choice columns that contradict each other."""
        if bool(self.options) == bool(self.correct and self.incorrect):
            raise ValueError("set either `options`, or both `correct` and `incorrect`")
        if self.correct and self.shuffle_seed is None:
            raise ValueError("`correct` requires `shuffle_seed`: without shuffling, the answer would always be A")
        if self.options and self.shuffle_seed is not None:
            raise ValueError("`options` are never shuffled: remove `shuffle_seed`")
        return self


class Edition(_Part):
    """A known copy of the data. rows: checksum of its rows, in any order. questions: number of questions. of: source of
    the copy."""

    rows: _Checksum
    questions: Annotated[int, Field(ge=1)]
    of: _Sentence


class Variant(_Part):
    """A published way to run the benchmark.

    by: who publishes scores for this setup. samples: number of samples per question. settings: other settings, in
    words.
    """

    by: _Sentence
    prompt: str
    samples: Annotated[int, Field(ge=1)] | None = None
    settings: str = ""


class ProgramTests(_Part):
    """How a row specifies the tests of a program, and the program's limits.

    format: the layout of the tests in a row. seconds: CPU time for each test, or for all tests of a question if these
    are test code. memory_mb: limit on the program's address space.
    """

    format: Literal["tests", "humaneval", "mbpp", "livecodebench"] = "tests"
    seconds: Annotated[float, Field(gt=0, le=600, strict=False)] = 10.0
    memory_mb: Annotated[int, Field(ge=64, le=65_536)] = 4096


CardKind = Literal["integer", "number", "expression", "multiple", "choice", "text", "program", "calls", "auto"]
"""A kind of answer (see `harness.core.records.AnswerKind`), or auto: inferred from the form of each reference."""

IdRule = Literal["column", "checksum", "auto"]
"""The id of a question. column: the id column, which must exist · checksum: the row's checksum · auto: the id column if
it exists, otherwise the checksum."""


class Card(_Part):
    """A benchmark's card.

    With `kind: auto` the kind of each reference is inferred: a single letter is a choice, a list is multiple, words are
    text, and anything else is an expression.

    Wide: it is a form that people fill in, and its keys are the labels of that form.
    """

    name: Annotated[str, TextForm(r"[^\x00-\x1f:,]{1,100}", "1 to 100 characters, without colons or commas")]
    title: _Sentence
    measures: str = ""
    aliases: Names = ()
    license: Annotated[str, Field(validation_alias=AliasChoices("license", "licence"))] = ""
    citation: str = ""
    publish_questions: bool = True
    """Whether the benchmark may be shown in public. False if its authors ask not to: reports and exports then contain
    none of its questions, answers or samples."""
    training: bool = False
    """Whether the benchmark is a training set, so that replies may be exported as training data; otherwise it is a test
    set.
    """
    language: Literal["en", "zh"] = "en"

    source: Annotated[HubSource | FileSource | UrlSource | RandomSource, Field(discriminator="kind")]
    row_form: RowForm | None = None
    """The form of rows that are not a plain question and answer (`harness.benchmarks.row_forms`): the columns
    `question`, `answer`, `id` and `cluster` are derived from them."""
    columns: Columns
    choices: Choices | None = None
    id_rule: IdRule = "auto"
    cluster_key: Names = ()
    """Column that groups questions into clusters, such as those on one passage. Questions with the same value are not
    independent, so the question error counts clusters. A question with null or an empty value is its own cluster."""
    cluster_after: Annotated[str, Field(min_length=1)] | None = None
    """The cluster's name follows the last occurrence of this text: with "-", `low-de-7` and `low-fr-7`, one problem in
    two languages, are in the cluster 7. A value that does not contain this text is itself the cluster's name."""

    cluster_until: Annotated[str, Field(min_length=1)] | None = None
    """The cluster's name ends before the last occurrence of this text: with "_", `2024-I-4_1` and `2024-I-4_2`, one
    problem with different numbers, are in the cluster `2024-I-4`. A value that does not contain this text is itself the
    cluster's name."""

    kind: CardKind = "expression"
    answer_form: AnswerForm = "plain"
    structured_answers: bool = False
    """Whether the answer column may contain a list or mapping, which is a reference with several answers, or JSON true
    or false, which stands for the word. If not, each of them is an error."""
    literal_line_breaks: bool = False
    r"""Whether a backslash and an n in a question stand for a line break, unless they begin a LaTeX command."""
    rules: _Rules = Field(default_factory=GradeRules)
    judge: str = ""
    """The form by which a judge rules on each reply: one of `datasets/judges`, or a file next to the card."""
    right_from: Annotated[float, Field(gt=0, strict=False)] | None = None
    """Minimum points for a sample to count as correct in pass@k; None: a score in points has no pass@k."""
    program: ProgramTests | None = None
    """For `kind: program`: how the rows specify the tests, which run in a sandbox."""

    image_mark: Annotated[str, Field(min_length=1)] = "<image {n}>"
    """The text that is replaced with an image. `{n}` is the image's number, from 1; without `{n}`, images replace marks
    in order. An image without a mark is sent at the end."""
    images: Literal["in_place", "first"] = "in_place"
    """first: all images are sent before the text, whose marks are kept and need no image."""

    prompt: str = "boxed"
    prompts: Annotated[tuple[Prompt, ...], Field(strict=False)] = ()
    examples: HubSource | None = None
    """Rows in the same form as the source's, from which prompts with `drawn` take worked examples."""
    variants: Annotated[tuple[Variant, ...], Field(strict=False)] = ()
    samples: Annotated[int, Field(ge=1)] = 1
    sampling: Sampling = Sampling()
    turns: Annotated[str, BeforeValidator(TURNS.parse)] | None = None
    """How its conversations are carried on, written as in the option `turns`."""
    tool: Annotated[str, BeforeValidator(TOOL.parse)] | None = None
    """The tool that the model is offered, written as in the option `tool`."""

    questions: Annotated[int, Field(ge=1)] | None = None
    checksum: _Checksum | None = None
    answers_checksum: _Checksum | None = None
    editions: Annotated[tuple[Edition, ...], Field(strict=False)] = ()
    unpinned: Literal["unread", "gated"] | None = None
    """Why the card has no commit, row checksum or row count. unread: no row was read when it was written. gated: the
    rows cannot be read without permission. None: nothing is missing, or it is a user's own card."""
    traps: str = ""

    releases: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Release → number of the source's files that belong to it, counted from the first. `NAME@RELEASE` selects a
    release."""
    date_column: Annotated[str, Field(min_length=1)] | None = None
    """Column with each question's date. `NAME@2024-08..2025-01` selects questions by it."""
    dates: tuple[str, str] | None = None
    """First and last day, month or year of the selected questions, in the column's notation; "" for no limit."""
    only: dict[str, list[str | bool | int | None]] = Field(default_factory=dict)
    """Column, or `COLUMN.KEY` of a column that contains JSON → its allowed values, such as `image: [""]`. A row with
    any other value is ignored, as if it were not in the data."""

    _folder: Path | None = PrivateAttr(default=None)
    _file: Path | None = PrivateAttr(default=None)
    _address: str | None = PrivateAttr(default=None)
    _given_data: str | None = PrivateAttr(default=None)
    _is_of_data: bool = PrivateAttr(default=False)

    @model_validator(mode="before")
    @classmethod
    def _take_into_rules(cls, value: Any) -> Any:
        """Record the judge's form and the grader that runs programs in the rules, which are stored with each question
        of a run."""
        if not isinstance(value, dict) or not isinstance(value.get("rules", {}), dict):
            return value
        own = {name: value[name] for name in ("judge", "right_from") if name in value}
        if value.get("kind") == "program":
            own["grader"] = "program"
        return {**value, "rules": {**value.get("rules", {}), **own}} if own else value

    @model_validator(mode="after")
    def _check_fields_together(self) -> Card:
        """Reject card fields that contradict each other or name an unknown prompt."""
        own_names = {prompt.name for prompt in self.prompts}
        if len(own_names) < len(self.prompts):
            raise ValueError("two prompt variants have the same name")
        if self.examples is None and any(prompt.drawn for prompt in self.prompts):
            raise ValueError("a prompt with `drawn` requires `examples`, the rows to draw from")
        names = PROMPTS.keys() | own_names
        for name in (self.prompt, *(variant.prompt for variant in self.variants)):
            if name in names:
                continue
            names |= {*plugins.names("prompt")}  # few cards need them, and the lookup takes time
            if name not in names:
                listed = ", ".join(sorted(names))
                raise ValueError(f"unknown prompt {name!r}; expected one of {listed}.{near_names(name, names)}")
        if (self.kind == "program") != (self.program is not None):
            raise ValueError("`program` is required for `kind: program` and not allowed for any other kind")
        if self.judge or self.right_from is not None:
            self._check_judge()
        if self.kind == "calls" and not self.columns.tools:
            raise ValueError("`kind: calls` requires `columns.tools`")
        for name in ("cluster_after", "cluster_until"):
            if getattr(self, name) is not None and not self.cluster_key:
                raise ValueError(f"`{name}` requires `cluster_key`")
        if not (self.columns.question or self.columns.images or self.columns.turns):
            raise ValueError("`columns` has no `question`: set it to the name of the question column")
        has_answer = self.columns.answer or self.columns.rubric or (self.choices and self.choices.correct)
        if not (has_answer or self.columns.turns) and self.program is None:
            raise ValueError("`columns` has no `answer`: set it to the name of the answer column")
        if self.id_rule == "column" and not self.columns.id:
            raise ValueError("`id_rule: column` requires `columns.id`")
        return self

    @model_validator(mode="before")
    @classmethod
    def _refuse_former_keys(cls, value: Any) -> Any:
        """Raise `ValueError` for a key of earlier versions, with what replaces it."""
        for key in ("twin_of", "original_key", "original_until"):
            if isinstance(value, dict) and key in value:
                raise ValueError(
                    f"cards do not have the key {key!r}: to count the variants of a question as one cluster, use "
                    "`cluster_key` and `cluster_until`, and compare the two benchmarks' accuracies"
                )
        return value

    def _check_judge(self) -> None:
        """Reject a judge's form that does not exist or does not fit the card."""
        try:
            form = form_named(self.judge)
        except UsageError as error:
            raise ValueError(f"judge: {error}") from error
        if form.shows_rubric and not self.columns.rubric:
            raise ValueError(
                f"the judge form {self.judge} requires a rubric: set `columns.rubric` to the name of the rubric column"
            )
        if self.right_from is not None and not (form.gives_points and self.right_from <= (form.points or math.inf)):
            most = "no points" if not form.gives_points else f"at most {form.points:g} points"
            raise ValueError(f"right_from is {self.right_from:g}, but the judge form awards {most}")

    @property
    def folder(self) -> Path | None:
        """The folder of the card's file; the path of a file source is relative to it."""
        return self._folder

    @property
    def file(self) -> Path | None:
        """The card's file if the user wrote it; None for a shipped card and for one that was not read from a file."""
        return self._file

    @property
    def address(self) -> str | None:
        """What a user types for a card that cannot be found by name: the path of a file, or the address of an
        `eval.yaml`; without a release or dates. None for all other cards.
        """
        return self._address or (None if self._file is None else str(self._file))

    @property
    def is_of_data(self) -> bool:
        """Whether the card was created for a file that the user specified in place of a card (`from_file`)."""
        return self._is_of_data

    @property
    def given_data(self) -> str | None:
        """The address of the data if the user supplied them; None for the data that the card names, whose counts and
        checksums must match.
        """
        return self._given_data

    def restrict_to(self, arguments: Sequence[str]) -> Card:
        """The card restricted to the questions of a release, a date range, or both. Raises `UsageError`.

        arguments: the text after each @ in the benchmark's name, such as "2024-08..2025-01".
        """
        changes: dict[str, Any] = {"name": "@".join([self.name, *arguments])}
        # The card's counts and checksums apply to the whole benchmark.
        changes |= {"questions": None, "checksum": None, "answers_checksum": None, "editions": ()}
        for argument in arguments:
            span = _DATES.fullmatch(argument)
            if argument in self.releases and isinstance(self.source, HubSource):
                files = self.source.files[: self.releases[argument]]
                changes["source"] = self.source.model_copy(update={"files": files})
            elif span is not None and self.date_column is not None:
                changes["dates"] = span.groups("")
            else:
                choices = [*self.releases, *(["2024-08..2025-01"] if self.date_column else [])]
                remedy = f"; expected one of {', '.join(choices)}" if choices else ", which has neither"
                raise UsageError(f"{quoted(argument)} is neither a release nor a date range of {self.name}{remedy}")
        return self.model_copy(update=changes)

    def with_data(self, path: str, split: str | None = None) -> Card:
        """The card with its data read from the user's own file or data set."""
        source = FileSource(kind="file", path=_address(path), split=split)
        card = self.model_copy(update={"source": source})
        card._given_data = source.path
        return card


_DATES = re.compile(r"(\d{4}(?:-\d\d){0,2})?\.\.(\d{4}(?:-\d\d){0,2})?")
"""A date range such as `2024-08..2025-01`, in days, months or years; both ends are included, and a missing end is
open."""


def _address(path: str) -> str:
    """An absolute path, so that it does not depend on the working directory; a URL is returned unchanged."""
    return path if "://" in path else str(real(Path(path).expanduser()))


def from_mapping(
    value: dict[str, Any],
    where: str,
    *,
    folder: Path | None = None,
    file: Path | None = None,
    address: str | None = None,
) -> Card:
    """The card in a mapping. where: the mapping's file or name, for messages. folder, file, address: values of the
    properties with these names; the address of a user's file is its path.

    Raises `UsageError` that names `where` and the field.
    """
    named = value.get("judge")
    if isinstance(named, str) and named.endswith(FORM_SUFFIXES) and folder is not None:
        value = {**value, "judge": str(folder / Path(named).expanduser())}
    card = validated(Card, value, where)
    card._folder, card._file, card._address = folder, file, address
    return card


def from_file(
    path: str,
    *,
    question_key: str | None = None,
    answer_key: str | None = None,
    id_key: str | None = None,
    split: str | None = None,
    choices_key: Sequence[str] = (),
) -> Card:
    """A card for any file of questions and answers, for users who specify a file in place of a card.

    question_key, answer_key, id_key: names of columns; without them the usual names are tried. choices_key: the option
    columns of multiple-choice questions, which use the prompt boxed_letter; others use boxed. split: the split of a hub
    data set.
    """
    # A benchmark's name contains neither a comma nor a colon.
    name = Path(path.rstrip("/")).name.split(".")[0].replace(",", "-").replace(":", "-") or "data"
    source: dict[str, Any] = {"kind": "file", "path": _address(path)}
    if split is not None:
        source["split"] = split
    card = from_mapping(
        {
            "name": "".join(c for c in name if c.isprintable())[:100] or "data",
            "title": f"Questions of {Path(path).name}",
            "source": source,
            "columns": {
                "question": question_key or list(ASKED_COLUMNS),
                "turns": [] if question_key else list(TURN_COLUMNS),
                "answer": answer_key or list(ANSWER_COLUMNS),
                "id": [id_key] if id_key else list(ID_COLUMNS),
                "tools": list(TOOLS_COLUMNS),
                "images": list(IMAGE_COLUMNS),
            },
            "id_rule": "column" if id_key else "auto",
            "kind": "choice" if choices_key else "auto",
            "prompt": "boxed_letter" if choices_key else "boxed",
            **({"choices": {"options": list(choices_key)}} if choices_key else {}),
        },
        where=path,
    )
    card._given_data, card._is_of_data = source["path"], True
    return card


def json_schema() -> dict[str, Any]:
    """The JSON schema of a card, which editors use for checks and completion."""
    return Card.model_json_schema() | {
        "title": "Benchmark card",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
