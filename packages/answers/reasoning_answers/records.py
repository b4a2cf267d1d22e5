"""The values that the grader reads and returns: kinds of answers, rules, tools, calls; a question and a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

VerdictName = Literal["correct", "wrong", "no_answer", "undecided"]
"""no_answer: the text contains no answer. undecided: the rules could not tell whether the answer equals the reference.
"""

AnswerKind = Literal["integer", "number", "expression", "multiple", "choice", "text", "program", "calls"]
"""integer: compared as an integer · number: one numeric value · expression: any single mathematical object ·
multiple: several answers, in any order unless the rules say otherwise · choice: a letter · text: words · program: a
program, correct if it passes the tests in its reference · calls: function calls (`reasoning_answers.calls`)."""

NearMiss = Literal["another box", "form", "rounded", "unit"]
"""Why an answer that was graded wrong is nearly correct. another box: a box that was not used as the answer contains
the correct one · rounded: the exact value, where the reference is rounded · unit: correct number, different unit ·
form: correct value in the wrong form, in grades from earlier versions only."""

CallSign = Literal[
    "call", "fits", "no_json", "unknown_name", "schema", "unreadable_schema", "unread_call", "cut_call", "same_id",
    "ends_in_calls", "valid_for_kimi", "unstated",
]  # fmt: skip
"""A property of the calls in a reply. call: there is one · fits: the arguments of all calls fit their schemas ·
no_json, unknown_name, schema, unreadable_schema: why a call does not fit · unread_call: the text contains a call that
the server did not parse · cut_call: max_tokens ended the reply after a call had begun · same_id: two calls have the
same id · ends_in_calls: the finish reason is `tool_calls` · valid_for_kimi: Moonshot's K2-Vendor-Verifier accepts the
calls · unstated: the data does not state the right answer (`auto`)."""


class GradeRules(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The card's rules for comparing an answer with its reference. They are stored with each question because grading
    never reads the card.
    """

    grader: str = "rules"
    """Name of the grader: "rules" (the built-in rules), "package.module:function" (the benchmark's own verifier),
    "program" (an extension runs the answer) or "given" (the verdicts come from another tool's file).
    """
    relative_tolerance: float = 0.0
    """Maximum allowed relative difference between a number and the reference; 0 means an exact match."""
    absolute_tolerance: float = 0.0
    """Maximum allowed absolute difference between a number and the reference; 0 means an exact match."""
    round_to_reference: bool = False
    """Whether a decimal is accepted if it matches the reference when rounded to the same number of digits."""
    several_boxes: bool = False
    """Whether the answer consists of every boxed expression in the last sentence."""
    ordered: bool | None = None
    """Whether the parts of an answer must be in the same order as in the reference. If None, order does not matter,
    except that an answer in a different order is undecided if the reference separates its values with semicolons.
    """
    whole_reply: bool = False
    """Whether the verifier receives the whole reply (without its reasoning) instead of the extracted answer."""
    conventions: dict[str, bool] = {}
    """Whether each convention described in `docs/grading.md` is on or off for this benchmark."""
    judge: str = ""
    """Name or file path of the judge form; if empty, the form specified on the command line is used."""
    right_from: float | None = None
    """Minimum points for a sample to count as correct; None requires all points."""

    @property
    def is_built_in(self) -> bool:
        """Whether the built-in rules compare the answer with its reference, rather than another grader."""
        return self.grader == "rules"


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a question offers to the model."""

    name: str
    """Name of the tool."""
    description: str = ""
    """Description of the tool, for the model."""
    parameters: dict[str, Any] = {}
    """JSON schema of the arguments."""
    strict: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the server must enforce the schema; absent if the request does not say."""


class SentCall(msgspec.Struct, frozen=True, kw_only=True):
    """A function call that is (part of) an answer and is never run; its texts are as sent."""

    id: str = ""
    """Id of the call; empty if none was sent."""
    name: str
    """Name of the function."""
    arguments: str
    """Arguments, as text."""


class MessageLike(Protocol):
    """A message of a prompt."""

    @property
    def content(self) -> str:
        """Message text."""
        ...


class QuestionLike(Protocol):
    """What the grader reads of a question, which must be a `msgspec.Struct`."""

    @property
    def references(self) -> tuple[str, ...]:
        """All reference answers. An answer that matches any of them is correct."""
        ...

    @property
    def kind(self) -> AnswerKind:
        """Kind of answer, which determines how it is compared."""
        ...

    @property
    def rules(self) -> GradeRules:
        """Rules for comparing an answer with its reference."""
        ...

    @property
    def choices(self) -> tuple[str, ...]:
        """Option texts in the order shown, starting with A; empty unless the question is multiple choice."""
        ...

    @property
    def messages(self) -> Sequence[MessageLike]:
        """The messages of the prompt; empty if it is one text."""
        ...

    @property
    def prompt(self) -> str:
        """The prompt text; empty if it consists of messages."""
        ...

    @property
    def tools(self) -> tuple[OfferedTool, ...] | msgspec.UnsetType:
        """Tools offered with the question; absent if the answer is not a function call."""
        ...


class ReplyLike(Protocol):
    """What the grader reads of a reply."""

    @property
    def text(self) -> str | None:
        """Text; None if there is none."""
        ...

    @property
    def reasoning(self) -> str | None:
        """Reasoning that is apart from the text; None if there is none."""
        ...

    @property
    def finish_reason(self) -> str:
        """Why the reply ended, as the server says."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether max_tokens ended the reply."""
        ...

    @property
    def calls(self) -> tuple[SentCall, ...] | msgspec.UnsetType:
        """Function calls that make up the answer; absent if no tools were offered with the question."""
        ...


class BareQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question of which only the answer is known."""

    references: tuple[str, ...]
    """All reference answers."""
    kind: AnswerKind
    """Kind of answer."""
    rules: GradeRules = GradeRules()
    """Rules for comparing an answer with its reference."""
    choices: tuple[str, ...] = ()
    """Option texts in the order shown, starting with A."""
    messages: tuple[MessageLike, ...] = ()
    """The messages of the prompt."""
    prompt: str = ""
    """The prompt text."""
    tools: tuple[OfferedTool, ...] | msgspec.UnsetType = msgspec.UNSET
    """Tools offered with the question."""
