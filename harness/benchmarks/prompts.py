"""Prompt templates, and the prompts that papers and tools use, by name.

A template has the fields `{question}` and `{choices}`. Braces of LaTeX are text; any other placeholder is refused as a
misspelt field. The text of a question cannot act as a template, since substituted text is never searched for fields
again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from harness.benchmarks.placeholders import placeholders
from harness.core import plugins
from harness.core.choices import Api
from harness.core.codec import digest
from harness.core.errors import UsageError, near_names
from harness.core.inert import check_text
from harness.core.part import Part
from harness.core.records import Message, Question

FIELDS = ("question", "choices")
"""The fields of a template."""

_SUBSTITUTED = re.compile(r"\{(?:question|choices)\}")
"""The fields of a template."""


def check_template(text: str) -> str:
    """Return a prompt's template unchanged.

    Raises `ValueError` for an unknown field, and for a control character other than newline and tab.
    """
    check_text(text)
    written = {f"{{{name}}}" for name in FIELDS}
    if unknown := [field for field in placeholders(text) if field not in written]:
        fields = "fields" if len(unknown) > 1 else "field"
        raise ValueError(f"unknown {fields} {', '.join(unknown)}; a template has {{question}} and {{choices}}")
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

    template: of the user's message. system: the system message; None: none is sent. examples: worked examples, as
    earlier messages (chat) or as text before the question (completions); their questions go through the same template.
    used_by: who publishes scores with this prompt.
    """

    model_config = ConfigDict(strict=True)

    name: Annotated[str, Field(min_length=1)]
    template: _Template = "{question}"
    system: _Text | None = None
    examples: Annotated[tuple[Example, ...], Field(strict=False)] = ()
    used_by: str = ""

    @property
    def template_digest(self) -> str:
        """SHA-256 of everything that the prompt adds to a question."""
        return digest([self.template, self.system, [[e.question, e.answer] for e in self.examples]])

    @property
    def instructs(self) -> bool:
        """Whether the prompt adds anything to the bare question."""
        return bool(self.system or self.examples or self.template.strip() != "{question}")


def substitute(template: str, question: str, choices: str = "") -> str:
    """The template with its fields replaced. If it lacks `{choices}`, the choices follow the question."""
    if choices and "{choices}" not in template:
        question = f"{question}\n\n{choices}"
    return _SUBSTITUTED.sub(lambda match: question if match[0] == "{question}" else choices, template)


def render(
    prompt: Prompt, question: str, choices: str, api: Api, system: str | None = None, turns: tuple[Message, ...] = ()
) -> tuple[tuple[Message, ...], str]:
    """A question as it is sent: (messages, "") for the chat API, ((), text) for the completions API.

    The text has the system message, the examples and the question, with blank lines between. choices: the options as
    one text; empty if there are none. system: the system message in place of the prompt's; "": none; None: the prompt's
    own. turns: the messages before the question, of a conversation. Raises `ValueError` with the end of a sentence.
    """
    system = prompt.system if system is None else (system or None)
    if turns and api == "completions":
        raise ValueError("holds a conversation, which the completions API cannot send: leave out `api: completions`")
    if system and turns and turns[0].role == "system":
        raise ValueError("begins with a system message, and so does the prompt: give the system prompt none")
    examples = [(substitute(prompt.template, e.question), e.answer) for e in prompt.examples]
    turn = substitute(prompt.template, question, choices)
    if api == "completions":
        head = [system] if system else []
        return (), "\n\n".join([*head, *(f"{q}\n{a}" for q, a in examples), f"{turn}\n"])
    # A system message stands before everything else, also that of a conversation before worked examples.
    n_system = int(bool(turns) and turns[0].role == "system")
    messages = [*([Message("system", system)] if system else []), *turns[:n_system]]
    for q, a in examples:
        messages += [Message("user", q), Message("assistant", a)]
    return (*messages, *turns[n_system:], Message("user", turn)), ""


BOXED = r"Please reason step by step, and put your final answer within \boxed{}."
"""The usual instruction to box the answer."""
BOXED_ZH = r"请逐步推理，并将最终答案放在 \boxed{} 中。"
"""The same in Chinese."""

SYSTEM_PROMPTS: dict[str, str | None] = {
    "none": None,
    "default": "You are a helpful assistant.",
    "qwen_boxed": BOXED,
    "deepseek_r1": (
        "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. The "
        "Assistant first thinks about the reasoning process in the mind and then provides the User with the answer. "
        "The reasoning process is enclosed within <think> </think> and the answer is enclosed within "
        "<answer> </answer>."
    ),
    "open_r1": (
        "You are a helpful AI Assistant that provides well-reasoned and detailed responses. You first think about "
        "the reasoning process as an internal monologue and then provide the user with the answer. Respond in the "
        "following format: <think>\n...\n</think>\n<answer>\n...\n</answer>"
    ),
    "am_thinking": (
        "You are a helpful assistant. To answer the user's question, you first think about the reasoning process and "
        "then provide the user with the answer. The reasoning process and answer are enclosed within "
        "<think> </think> and <answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> "
        "<answer> answer here </answer>."
    ),
}
"""System prompts by name; None sends none. deepseek_r1, open_r1, am_thinking: as LLMEval sends them. qwen_boxed: of
Qwen2.5-Math and LIMO.
"""

_GPQA = (
    "Answer the following multiple choice question. The last line of your response should be of the following "
    "format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think step by step before answering.\n\n"
    "{question}\n\n{choices}"
)
"""The template for GPQA."""

PROMPTS: dict[str, Prompt] = {
    prompt.name: prompt
    for prompt in (
        Prompt(
            name="boxed",
            template="{question}\n" + BOXED,
            used_by="DeepSeek-R1, Qwen3, SGLang's reasoning benchmark, LLMEval, SeerAttention",
        ),
        Prompt(name="boxed_prefix", template=BOXED + " Question: {question}", used_by="efficient-reasoning"),
        Prompt(name="none", used_by="data that carry their own instruction"),
        Prompt(name="qwen_boxed", system=BOXED, used_by="Qwen2.5-Math, LIMO"),
        Prompt(name="deepseek_r1", system=SYSTEM_PROMPTS["deepseek_r1"], used_by="DeepSeek-R1-Zero, LLMEval"),
        Prompt(name="open_r1", system=SYSTEM_PROMPTS["open_r1"], used_by="Open-R1, LLMEval"),
        Prompt(name="am_thinking", system=SYSTEM_PROMPTS["am_thinking"], used_by="AM-Thinking, LLMEval"),
        Prompt(
            name="boxed_letter",
            template="{question}\n\n{choices}\n\nPlease reason step by step, and put the letter of the right choice, "
            r"and nothing else, within \boxed{}.",
            used_by="multiple choice with a boxed letter",
        ),
        Prompt(
            name="boxed_letter_zh",
            template="{question}\n\n{choices}\n\n" + r"请逐步推理，并将正确选项的字母（只写字母）放在 \boxed{} 中。",
            used_by="Chinese multiple choice with a boxed letter",
        ),
        Prompt(name="gpqa", template=_GPQA, used_by="OpenAI simple-evals"),
        Prompt(name="boxed_zh", template="{question}\n" + BOXED_ZH, used_by="Chinese sets"),
        Prompt(
            name="answer_line",
            template="Solve the following math problem step by step. The last line of your response should be of the "
            "form Answer: $ANSWER (without quotes) where $ANSWER is the answer to the problem.\n\n{question}\n\n"
            'Remember to put your answer on its own line after "Answer:".',
            used_by="OpenAI simple-evals, DAPO",
        ),
        Prompt(
            name="few_shot",
            template="Problem:\n{question}\n\nSolution:",
            examples=(
                Example(
                    question="A shop sells pens at 3 dollars each. How much do 14 pens cost?",
                    answer=r"Each pen costs 3 dollars, so 14 pens cost $14 \cdot 3 = 42$ dollars. The final answer is "
                    r"$\boxed{42}$.",
                ),
                Example(
                    question=r"Simplify $\frac{18}{24}$.",
                    answer=r"The greatest common divisor of 18 and 24 is 6, so $\frac{18}{24} = \frac{3}{4}$. "
                    r"The final answer is $\boxed{\frac{3}{4}}$.",
                ),
                Example(
                    question="Solve $2x + 7 = 31$ for $x$.",
                    answer=r"Subtracting 7 gives $2x = 24$, and halving gives $x = 12$. The final answer is "
                    r"$\boxed{12}$.",
                ),
                Example(
                    question=r"Which integers $n$ satisfy $n^2 = 49$?",
                    answer=r"$n^2 = 49$ holds for $n = 7$ and $n = -7$. The final answer is $\boxed{-7, 7}$.",
                ),
            ),
            used_by="base models, in the layout of Minerva's four examples",
        ),
        Prompt(
            name="long_thought",
            template="{question}\n" + BOXED,
            examples=(
                Example(
                    question="How many positive divisors does 360 have?",
                    answer="<think>\nI need the number of positive divisors of 360. Let me factor it: 360 = 36 * 10, "
                    "and 36 = 2^2 * 3^2, 10 = 2 * 5, so 360 = 2^3 * 3^2 * 5. Every divisor picks an exponent of 2 "
                    "from 0 to 3, of 3 from 0 to 2, of 5 from 0 to 1. That gives 4 * 3 * 2 = 24.\n\nWait, let me "
                    "check the factorization: 8 * 9 = 72 and 72 * 5 = 360. Yes. And a smaller case as a check of the "
                    "rule: 12 = 2^2 * 3 should have 3 * 2 = 6 divisors: 1, 2, 3, 4, 6, 12. Right.\n\nSo 24.\n"
                    "</think>\n\nSince $360 = 2^3 \\cdot 3^2 \\cdot 5$, a divisor is given by exponents "
                    r"$0$ to $3$, $0$ to $2$ and $0$ to $1$: $4 \cdot 3 \cdot 2 = 24$ divisors. $\boxed{24}$",
                ),
            ),
            used_by="one-shot long chain of thought, for base models",
        ),
    )
}
"""The shipped prompts by name; a card may add its own."""

MIN_INSTRUCTION_CHARS = 20
"""Shortest text around a question that counts as an instruction; a shorter one ("Problem:") is layout."""

INSTRUCTIONS: tuple[str, ...] = (
    BOXED,
    BOXED_ZH,
    r"Please reason step by step, and put your final answer within \boxed{}",
    r"Let's think step by step and output the final answer within \boxed{}.",
    r"Let's think step by step and put the final answer within \boxed{}.",
    *(_SUBSTITUTED.split(PROMPTS[name].template)[-1].strip() for name in ("boxed_letter", "boxed_letter_zh")),
)
"""Instructions that some data sets, and the usual prompts, have at the end of their questions."""


def without_instruction(question: str, prompt: Prompt | None = None) -> tuple[str, bool]:
    """Remove the instruction at the end or start of a question; return the rest, and whether there was one.

    Recognised are `INSTRUCTIONS` and those that `prompt` itself adds.
    """
    text = question.rstrip()
    own = [part.strip() for part in (_SUBSTITUTED.split(prompt.template) if prompt else ())]
    own += [prompt.system.strip()] if prompt and prompt.system else []
    for instruction in (*INSTRUCTIONS, *(part for part in own if len(part) >= MIN_INSTRUCTION_CHARS)):
        # A question that is nothing but the instruction keeps it.
        if text.endswith(instruction) and len(text) > len(instruction):
            return text[: -len(instruction)].rstrip(), True
        if text.startswith(instruction) and len(text) > len(instruction):
            return text[len(instruction) :].lstrip(), True
    return question, False


def bare_text(question: Question, prompt: Prompt | None = None) -> str:
    """The question as its data have it: its last message (or the raw prompt) without instructions.

    Instructions are those that `without_instruction` recognises.
    """
    text = question.last_turn
    while True:  # a prompt may add text before the question and behind it
        shorter, is_shorter = without_instruction(text, prompt)
        if not is_shorter or not any(map(str.isalnum, shorter)):
            return text.strip()
        text = shorter


def list_choices(choices: Sequence[str]) -> str:
    """The options of a question as a prompt shows them, one a line, with their letters."""
    # A question has at most 26 options; drafts refuses more.
    return "\n".join(f"{letter}) {option}" for letter, option in zip(ascii_uppercase, choices, strict=False))


def stem(question: Question, prompt: Prompt | None = None) -> str:
    """The question's bare text without the list of its choices behind it."""
    text = bare_text(question, prompt)
    listed = list_choices(question.choices).strip()
    return text.removesuffix(listed).strip() or text


_FORMER = ("boxed_integer", "boxed_mixed", "boxed_mixed_zh")
"""Names of prompts that shipped once."""


def find_prompt(name: str, variants: tuple[Prompt, ...] = ()) -> Prompt:
    """The prompt of that name: one of the card's own (`variants`), a shipped one, or a plug-in's.

    Raises `UsageError` that lists the names and suggests near ones.
    """
    available = PROMPTS | {variant.name: variant for variant in variants}
    if name not in available and (offered := plugins.load("prompt", name)) is not None:
        return plugins.record("prompt", name, offered, Prompt)
    if name not in available:
        hint = " It ships no more: questions.jsonl of its run shows the text." if name in _FORMER else None
        # Nobody who misspells a prompt means to send none.
        near = near_names(name, available.keys() - {"none"})
        raise UsageError(
            f"unknown prompt {name!r}; there are {', '.join(available)}. A template of your own gets a name under "
            f"`prompts:` in the benchmark's card.{hint or near}"
        )
    return available[name]


def system_prompt(name_or_text: str) -> str:
    """The system prompt that a user names or writes out; "" for the name `none`. Raises `UsageError`."""
    if name_or_text in SYSTEM_PROMPTS:
        return SYSTEM_PROMPTS[name_or_text] or ""
    try:
        return check_text(name_or_text)
    except ValueError as error:
        raise UsageError(f"the system prompt holds a {error}") from error
