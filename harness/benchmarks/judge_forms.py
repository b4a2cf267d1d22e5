r"""A judge's form: its prompt, how it must reply, and how to read its reply. Each form is a YAML file in
`datasets/judges`.

    reply      the judge writes                                        verdict or points
    line       `LABEL: WORD`, or the word after a heading `## LABEL`    `reads` of the word; the last such line counts
    letter     a line that is a key of `reads` alone                    `reads` of it
    json       an object with `fields`                                  `reads` of its verdict, or its points
    points     `<LABEL>N out of M</LABEL>` or `LABEL: N/M` on a line    N of `points`
    criteria   `{"met": [true, …]}`, one for each criterion of the row  points of those met, of all positive ones

A benchmark's card names its form (`judge: NAME`, or the path of a file), `--judge` names the model. A user's rubric, a
text file, becomes the form `rubric` with that text.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AliasChoices, Field, model_validator

from harness.benchmarks.prompts import placeholders
from harness.core import codec, files, yaml_file
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.files import read_named
from harness.core.sanitize import check_text, quoted, visible
from harness.core.validation import validated
from harness.core.yaml_mapping import Part

MAX_RUBRIC_CHARS = 20_000
"""Maximum number of characters in a rubric."""

RUBRIC = "rubric-"
"""The name of a form with a user's rubric begins with this; the rubric's checksum follows."""

OF_CARD = "card"
"""The value of `form` in a judge's recorded settings if the benchmark's card names it."""

SUFFIXES = (".yaml", ".yml")
"""The suffixes of form files; any other file is a rubric."""

MAX_SHOWN_REPLY_CHARS = 20_000
"""Maximum number of characters from the end of a full reply that a judge is shown."""

MAX_SHOWN_PROOF_CHARS = 100_000
"""The same limit for a judge that awards points, which may depend on the beginning of a reply."""

Reading = Literal["correct", "wrong", "no_answer"]
"""A verdict of a judge."""

_Text = Annotated[str, Field(min_length=1)]


class JudgeForm(Part):
    """The form of a judge's request and reply; `reply` and its keys are described in this module's table.

    prompt: the user message with the fields {question}, {references}, {answer} and {rubric} (the row's rubric); all
    other braces are text. source, license: of the prompt's wording. published_with: the judge used for published
    scores. shows: the extracted answer, or the full reply. turns: whether the question is shown with the turns before
    it. fields: name and content of each field of the JSON object, in order. points: maximum points. allowed: the points
    that may be awarded; empty: any from 0 to `points`. take: how to combine the points of several judges. measures:
    what the score reports in addition to accuracy.
    """

    name: str
    about: _Text
    source: str = ""
    license: Annotated[str, Field(validation_alias=AliasChoices("license", "licence"))] = ""
    published_with: str = ""
    prompt: _Text
    shows: Literal["answer", "reply"] = "answer"
    turns: bool = False
    reply: Literal["line", "letter", "json", "points", "criteria"]
    label: str = ""
    reads: dict[str, Reading] = Field(default_factory=dict)
    fields: dict[str, Literal["text", "answer", "verdict", "confidence", "points"]] = Field(default_factory=dict)
    points: Annotated[float, Field(gt=0)] | None = None
    allowed: tuple[float, ...] = Field(default=(), strict=False)
    take: Literal["median", "mean", "lowest"] = "median"
    measures: tuple[Literal["f1", "calibration"], ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _check_together(self) -> JudgeForm:
        """Reject a form whose reply could never be read."""
        holds = [*self.fields.values()]
        needs_points = self.reply == "points" or "points" in holds
        needs_reads = self.reply in ("line", "letter") or "verdict" in holds
        problems = {
            "`prompt` must contain {answer}": "{answer}" not in self.prompt,
            f"`reply: {self.reply}` requires `label`": self.reply in ("line", "points") and not self.label.strip(),
            "`reply: json` requires `fields` with exactly one verdict or points": (
                self.reply == "json" and holds.count("verdict") + holds.count("points") != 1
            ),
            "`reads` is required in a form that gives verdicts and not allowed in other forms": bool(self.reads)
            != needs_reads,
            "`points` is required in a form that awards points and not allowed in other forms": (
                (self.points is not None) != needs_points
            ),
            "`reply: criteria` requires {rubric} in `prompt`": self.reply == "criteria" and not self.shows_rubric,
            "`allowed` may contain only values from 0 to `points`": (
                not all(0 <= p <= (self.points or 0) for p in self.allowed)
            ),
        }
        for problem, is_there in problems.items():
            if is_there:
                raise ValueError(problem)
        return self

    @property
    def shows_rubric(self) -> bool:
        """Whether the judge is shown the row's own rubric."""
        return "{rubric}" in self.prompt

    @property
    def gives_points(self) -> bool:
        """Whether a ruling has points."""
        return self.points is not None or self.reply == "criteria"

    @property
    def requests(self) -> int:
        """Maximum number of requests for one answer: a second one is sent if the first reply does not match the form. A
        labeled line is requested only once unless the reply is empty, as in stored runs.
        """
        return 1 if self.reply == "line" else 2

    @property
    def reply_chars(self) -> int:
        """Maximum number of characters of a full reply that the judge sees; 0: it sees the extracted answer."""
        if self.shows == "answer":
            return 0
        return MAX_SHOWN_PROOF_CHARS if self.gives_points else MAX_SHOWN_REPLY_CHARS

    @property
    def expected_form(self) -> str:
        """The requested form of the ruling, in words."""
        words = " or ".join(self.reads)
        match self.reply:
            case "line" if f"## {self.label}\n" in self.prompt:
                return f"the heading ## {self.label}, then {words} alone"
            case "line":
                lines = " or ".join(f"{self.label}: {word}" for word in self.reads)
                return f"{lines} (a rubric must not ask for any other format)"
            case "letter":
                return f"{words} alone on a line"
            case "points":
                given = " or ".join(f"{points:g}" for points in self.allowed) or f"0 to {self.points:g}"
                return f"a line <{self.label}>N out of {self.points:g}</{self.label}>, N {given}"
            case _:
                return f"one JSON object with {', '.join(self.fields) or 'met'} (escape backslashes)"

    @property
    def digest(self) -> str:
        """SHA-256 of everything that affects a ruling."""
        if self.reply == "line":
            # The digest includes the verdicts of the words, in order, only if they are not the usual ones.
            reads = [*self.reads] if [*self.reads.values()] == ["correct", "wrong"] else [self.reads]
            return digest([self.prompt, self.label, *reads, *(["reply"] if self.shows == "reply" else [])])
        shaping = self.model_dump(exclude={"name", "about", "source", "license", "published_with", "take", "measures"})
        return digest({**shaping, "allowed": [*self.allowed]})

    @property
    def schema_of_reply(self) -> dict[str, Any] | None:
        """The JSON schema of the reply; None if the reply is not JSON."""
        kinds: dict[str, Any] = {
            "verdict": {"type": "string", "enum": [*self.reads]},
            "confidence": {"type": ["number", "null"]},
            "points": {"type": "number"},
        }
        properties = {name: kinds.get(holds, {"type": "string"}) for name, holds in self.fields.items()}
        if self.reply == "criteria":
            properties = {"met": {"type": "array", "items": {"type": "boolean"}}}
        if not properties:
            return None
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }


class Criterion(msgspec.Struct, frozen=True):
    """A criterion of a row's rubric, with its points; negative points for an error."""

    criterion: str
    points: float


def criteria_of(rubric: str) -> list[Criterion]:
    """The criteria of a row's rubric, a JSON list. Raises `ValueError` if it is not such a list, or awards no
    points."""
    criteria = codec.decode(rubric, list[Criterion])
    if not 0 < sum(max(0.0, each.points) for each in criteria) < math.inf:
        raise ValueError("no criterion is worth more than 0 points")
    return criteria


def forms_folder() -> Path:
    """The folder of the forms that ship with the harness."""
    return files.shipped_folder("datasets", "datasets") / "judges"


def form_names() -> list[str]:
    """The names of the shipped forms, without the template for a user's rubric."""
    return sorted(path.stem for path in forms_folder().glob("*.yaml") if path.stem != "rubric")


def form_named(name: str) -> JudgeForm:
    """Return the shipped form `name`, or the form in the file of this name, or the form made from a user's rubric.

    Raises `UsageError` if there is no such form (the message lists all, and suggests names with a similar spelling), or
    if the file is neither a form nor a rubric (the message explains why).
    """
    if name in form_names():
        return _shipped(name)
    if name.endswith(SUFFIXES):
        return _of_file(Path(name).expanduser())
    if "/" in name or "." in name or Path(name).exists():
        return with_rubric(_read_rubric(name))
    raise UsageError(
        f"unknown judge prompt {visible(name, 60)!r}; expected one of {', '.join(form_names())}, a judge form "
        f"(./form.yaml) or a rubric (./rubric.txt).{near_names(name, form_names())}"
    )


@cache
def _shipped(name: str) -> JudgeForm:
    path = forms_folder() / f"{name}.yaml"
    return validated(JudgeForm, {"name": name, **yaml_file.read_mapping(path, "a judge form")}, str(path))


def _of_file(path: Path) -> JudgeForm:
    """The form in a user's file; its name includes its checksum, so that grades distinguish forms."""
    value = {"name": "form", **yaml_file.read_mapping(path, "a judge form")}
    form = validated(JudgeForm, value, str(path))
    return form.model_copy(update={"name": f"{path.stem}-{form.digest[:8]}"})


def with_rubric(rubric: str) -> JudgeForm:
    """Return the form `rubric` with the user's own text, which defines what is correct.

    The tags, the warning that text between them is not an instruction, and the form of the verdict are those of
    `verdict`. The form's name includes the rubric's checksum, so that grades distinguish rubrics.
    """
    plain, frame = rubric.strip(), _shipped("rubric")
    name = f"{RUBRIC}{digest(plain)[:8]}"
    return frame.model_copy(update={"name": name, "prompt": frame.prompt.replace("{rubric}", plain)})


def stored_form(name: str, card_form: str = "") -> JudgeForm | None:
    """Return the form with the name `name` in stored rulings; None if it no longer exists.

    card_form: the form that the benchmark's card names. A rubric's rulings are read with the form `rubric`.
    """
    if name.startswith(RUBRIC) or name in form_names():
        return _shipped("rubric" if name.startswith(RUBRIC) else name)
    try:
        form = form_named(card_form) if card_form else None
    except UsageError:
        return None
    return form if form is not None and form.name == name else None


def _read_rubric(name: str) -> str:
    """The rubric (the rules by which a judge decides) in a user's text file. Raises `UsageError`."""
    shown = visible(name, 200)
    try:
        content = read_named(Path(name).expanduser(), 4 * MAX_RUBRIC_CHARS + 1)
        rubric = check_text(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except (OSError, ValueError) as error:
        why = quoted(error.strerror if isinstance(error, OSError) and error.strerror else str(error))
        raise UsageError(f"cannot read the judge rubric {shown} as text: {why}", field="prompt") from error
    if not rubric.strip() or len(rubric) > MAX_RUBRIC_CHARS:
        raise UsageError(
            f"the judge rubric {shown} has {len(rubric.strip())} characters; expected 1 to {MAX_RUBRIC_CHARS:,}",
            field="prompt",
        )
    if fields := placeholders(rubric):
        words, them = ("placeholders", "them") if len(fields) > 1 else ("placeholder", "it")
        raise UsageError(
            f"the judge rubric {shown} contains the {words} {visible(', '.join(fields), 400)}; remove {them}: a "
            "rubric is sent verbatim, after the question, the reference answers and the answer",
            field="prompt",
        )
    return rubric
