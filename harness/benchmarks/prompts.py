"""Prompt templates, and the named prompts that papers and tools use (`prompts.yaml`).

A template has the fields `{question}` and `{choices}`. LaTeX braces are text; any other placeholder is rejected as a
misspelled field. The text of a question cannot act as a template, because substituted text is never searched for
fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from harness.core import plugins, yaml_file
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.records import Message, Question
from harness.core.sanitize import check_text
from harness.core.yaml_mapping import Part

# Matched first, so that its groups are skipped; several consecutive groups belong to one command (`\frac{a}{b}`).
_LATEX = r"(?:\\[A-Za-z]+\*?\s*(?:\[[^\[\]{}]*\]\s*)?|[\\_^}])(?:\{[^{}]*\})+"
# The class contains the space, so no `\s*` follows it: two overlapping patterns would take quadratic time in the
# spaces.
_NAME = r"[^\W\d][\w .\-]*(?:[!:\[][^{}\s]*)?"
_BRACED = re.compile(rf"{_LATEX}|(?P<placeholder>\{{\{{\s*[^\W\d][^{{}}]*\}}\}}|\{{\s*{_NAME}\}})")


def placeholders(text: str) -> list[str]:
    r"""The distinct placeholders of a text, as written and in order.

    A placeholder is a name in braces: `{answer}`, `{ reference answer }`, `{doc.answer}`, `{answer:>10}`, and anything
    that begins with a letter in double braces, `{{ item.answer | trim }}`. Braces are LaTeX, not a placeholder, after a
    command (`\frac{a}{b}`, `\sqrt[n]{ab}`), after `\`, `_`, `^`, and after the closing brace of another group.
    """
    return list(dict.fromkeys(match["placeholder"] for match in _BRACED.finditer(text) if match["placeholder"]))


_SUBSTITUTED = re.compile(r"\{(?:question|choices)\}")
"""The fields of a template."""


def check_template(text: str) -> str:
    """Return a prompt's template unchanged.

    Raises `ValueError` for an unknown field or a control character other than newline and tab.
    """
    check_text(text)
    if unknown := [field for field in placeholders(text) if not _SUBSTITUTED.fullmatch(field)]:
        fields = "fields" if len(unknown) > 1 else "field"
        raise ValueError(f"unknown {fields} {', '.join(unknown)}; a template may use {{question}} and {{choices}}")
    return text


_Text = Annotated[str, AfterValidator(check_text)]
_Template = Annotated[str, AfterValidator(check_template)]


class Example(Part):
    """A worked example in a few-shot prompt."""

    model_config = ConfigDict(strict=True)

    question: _Text
    answer: _Text


class Prompt(Part):
    """How a question is asked.

    template: template of the user message. system: the system message; None: none is sent. examples: worked examples,
    as earlier messages or, for an API without a chat template, as text before the question; their questions go
    through the same template. drawn: number of additional examples, which are drawn for each question from the rows in
    the card's `examples`, with Python's `random.Random(seed)`. mark: follows the letter of a choice; "()" surrounds it.
    used_by: who publishes scores with this prompt.
    """

    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(min_length=1)]
    template: _Template = "{question}"
    system: _Text | None = None
    examples: Annotated[tuple[Example, ...], Field(strict=False)] = ()
    drawn: Annotated[int, Field(ge=0, le=100)] = 0
    seed: int = 0
    mark: Literal[")", ".", "()"] = ")"
    used_by: str = ""

    @property
    def template_digest(self) -> str:
        """SHA-256 of everything that the prompt adds to a question."""
        mark = [] if self.mark == ")" else [self.mark]  # stored runs have no other
        drawn = [{"drawn": self.drawn, "seed": self.seed}] if self.drawn else []
        return digest([self.template, self.system, [[e.question, e.answer] for e in self.examples], *mark, *drawn])

    @property
    def n_examples(self) -> int:
        """Number of worked examples before each question."""
        return len(self.examples) + self.drawn

    @property
    def instructs(self) -> bool:
        """Whether the prompt adds anything to the bare question."""
        return bool(self.system or self.n_examples or self.template.strip() != "{question}")


def substitute(template: str, question: str, choices: str = "") -> str:
    """The template with its fields replaced. Without `{choices}`, the choices follow the question."""
    if choices and "{choices}" not in template:
        question = f"{question}\n\n{choices}"
    return _SUBSTITUTED.sub(lambda match: question if match[0] == "{question}" else choices, template)


def render(
    prompt: Prompt,
    question: str,
    choices: str,
    templated: bool,
    system: str | None = None,
    turns: tuple[Message, ...] = (),
) -> tuple[tuple[Message, ...], str]:
    """A question as it is sent: (messages, "") for an API with a chat template, ((), text) for one without.

    The text contains the system message, the examples and the question, separated by blank lines. choices: the options
    as one text; empty if there are none. templated: whether the API has a chat template. system: the system message to
    use instead of the prompt's; "": none; None: the prompt's own. turns: the messages of a conversation before the
    question. Raises `ValueError` with the end of a sentence.
    """
    system = prompt.system if system is None else (system or None)
    if turns and not templated:
        raise ValueError("is a conversation, which needs an API with a chat template: use the chat API")
    if system and turns and turns[0].role == "system":
        raise ValueError("begins with a system message, but so does the prompt: use a prompt without one")
    examples = [(substitute(prompt.template, e.question), e.answer) for e in prompt.examples]
    turn = substitute(prompt.template, question, choices)
    if not templated:
        head = [system] if system else []
        return (), "\n\n".join([*head, *(f"{q}\n{a}" for q, a in examples), f"{turn}\n"])
    # A system message precedes everything else, and a conversation's system message also precedes worked examples.
    n_system = int(bool(turns) and turns[0].role == "system")
    messages = [*([Message("system", system)] if system else []), *turns[:n_system]]
    for q, a in examples:
        messages += [Message("user", q), Message("assistant", a)]
    # If a conversation ends with a tool's result, the question has no text of its own.
    return (*messages, *turns[n_system:], *([Message("user", turn)] if turn or not turns else [])), ""


BOXED = r"Please reason step by step, and put your final answer within \boxed{}."
"""The usual instruction to box the answer."""
BOXED_ZH = r"请逐步推理，并将最终答案放在 \boxed{} 中。"
"""The same instruction in Chinese."""


def _shipped() -> tuple[dict[str, str | None], dict[str, Prompt]]:
    """The system prompts and the prompts of `prompts.yaml`, by name. A system prompt that is None sends none."""
    content = yaml_file.read_mapping(Path(__file__).with_suffix(".yaml"), "prompts")
    systems: dict[str, str | None] = content["systems"]
    shipped = [Prompt(**{**fields, "system": systems.get(fields.get("system", ""))}) for fields in content["prompts"]]
    return systems, {prompt.name: prompt for prompt in shipped}


SYSTEM_PROMPTS, PROMPTS = _shipped()
"""The shipped system prompts and prompts by name; a card may add its own prompts."""

MIN_INSTRUCTION_CHARS = 20
"""Minimum length of text around a question that counts as an instruction; shorter text ("Problem:") is layout."""

INSTRUCTIONS: tuple[str, ...] = (
    BOXED,
    BOXED_ZH,
    r"Please reason step by step, and put your final answer within \boxed{}",
    r"Let's think step by step and output the final answer within \boxed{}.",
    r"Let's think step by step and put the final answer within \boxed{}.",
    *(
        _SUBSTITUTED.split(PROMPTS[name].template)[-1].strip()
        for name in ("boxed_letter", "limo_letter", "boxed_letter_zh")
    ),
)
"""Instructions at the end of questions in some data sets and in the usual prompts."""


def without_instruction(question: str, prompt: Prompt | None = None) -> tuple[str, bool]:
    """Remove the instruction at the end or start of a question; return the rest, and whether there was one.

    It recognizes `INSTRUCTIONS` and the instructions that `prompt` itself adds.
    """
    text = question.rstrip()
    own = [part.strip() for part in (_SUBSTITUTED.split(prompt.template) if prompt else ())]
    own += [prompt.system.strip()] if prompt and prompt.system else []
    for instruction in (*INSTRUCTIONS, *(part for part in own if len(part) >= MIN_INSTRUCTION_CHARS)):
        # A question that consists only of the instruction keeps it.
        if text.endswith(instruction) and len(text) > len(instruction):
            return text[: -len(instruction)].rstrip(), True
        if text.startswith(instruction) and len(text) > len(instruction):
            return text[len(instruction) :].lstrip(), True
    return question, False


def bare_text(question: Question, prompt: Prompt | None = None) -> str:
    """The question as it is in the data: its last message (or the raw prompt) without the instructions that
    `without_instruction` recognizes.
    """
    text = question.last_turn
    while True:  # a prompt may add text before and after the question
        shorter, is_shorter = without_instruction(text, prompt)
        if not is_shorter or not any(map(str.isalnum, shorter)):
            return text.strip()
        text = shorter


def list_choices(choices: Sequence[str], mark: str = ")") -> str:
    """The options of a question as a prompt shows them, one per line, with their letters and its `mark`."""
    # A question has at most 26 options; drafts rejects more.
    before, behind = ("(", ")") if mark == "()" else ("", mark)
    named = zip(ascii_uppercase, choices, strict=False)
    return "\n".join(f"{before}{letter}{behind} {option}" for letter, option in named)


def stem(question: Question, prompt: Prompt | None = None) -> str:
    """The question's bare text without the list of choices after it."""
    text = bare_text(question, prompt)
    listed = list_choices(question.choices, prompt.mark if prompt else ")").strip()
    return text.removesuffix(listed).strip() or text


def find_prompt(name: str, variants: tuple[Prompt, ...] = ()) -> Prompt:
    """The prompt with this name: one of the card's own (`variants`), a shipped prompt, or a plug-in's.

    Raises a `UsageError` that lists the names and suggests similar ones.
    """
    available = PROMPTS | {variant.name: variant for variant in variants}
    if name not in available and (offered := plugins.load("prompt", name)) is not None:
        return plugins.record("prompt", name, offered, Prompt)
    if name not in available:
        # A misspelled prompt never means that no prompt should be sent.
        near = near_names(name, available.keys() - {"none"})
        raise UsageError(
            f"unknown prompt {name!r}; expected one of {', '.join(available)}. To add a template, define it under "
            f"`prompts:` in the benchmark card.{near}"
        )
    return available[name]


def system_prompt(name_or_text: str) -> str:
    """The system prompt that a user names or writes out; "" for the name `none`. Raises `UsageError`."""
    if name_or_text in SYSTEM_PROMPTS:
        return SYSTEM_PROMPTS[name_or_text] or ""
    try:
        return check_text(name_or_text)
    except ValueError as error:
        raise UsageError(f"the system prompt contains a {error}") from error
