"""Checks how often the beginning-of-text token (BOS) opens a prompt, on servers that do not show their prompts.

The same question is sent as a chat and as raw text with the marks of known chat templates, once with the BOS's text in
front and once without. A raw text is the chat's prompt if both have the same number of tokens and the next token has
the same log-probabilities after both (see `effect`). Most servers put a BOS before any raw text, which shows in their
counts: a text of one letter then has two tokens.

    the chat is the raw text      the server puts a BOS before raw text    the chat's prompt opens with
    without the BOS's text        yes                                      one BOS
    with the BOS's text           yes                                      two: a doubled BOS
    with the BOS's text           no                                       one BOS
    without the BOS's text        no                                       none: a lost BOS
"""

from __future__ import annotations

from harness.client.wires.chat import CHAT
from harness.client.wires.completions import COMPLETIONS
from harness.client.wires.wire import Wire
from harness.core.inert import quoted
from harness.probes.asking import Inquiry, Refused, first_top
from harness.probes.effect import MIN_EFFECT, MIN_REPEATS, Top, effect
from harness.probes.findings import Check, Seen, sound, spoils, untested
from harness.probes.subject import TOP, Subject, listed

QUESTION = "Name a colour."

LETTERS = ("a", "I")
"""Texts of one token in any known vocabulary; a server that counts two for each puts a BOS before raw text."""


TEMPLATES = {
    "Llama 3.1 to 3.3": (
        "<|begin_of_text|>",
        "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024"
        "\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    "Gemma": ("<bos>", "<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"),
    "Mistral": ("<s>", "[INST] ", "[/INST]"),
    "DeepSeek": ("<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
}
"""Families of models whose templates open with a BOS: the BOS's text, and the marks before and after a question, by
their tokenizer_config.json.
"""

HIDDEN = "no usage or no log-probabilities came"


def _counted(subject: Subject, text: str, wire: Wire = COMPLETIONS) -> tuple[int, Top]:
    """Send a prompt; return its number of tokens, as the server counts, and the next token's log-probabilities.

    Raises `Refused` if the server refuses the request or does not state both.
    """
    fields = {"max_tokens": 1, "temperature": 0, **wire.likeliest(TOP)}
    answer = subject.whole(Inquiry(text, fields, wire))
    n = answer.usage.prompt_tokens
    top = listed(first_top(answer))
    if n is None or not top:
        raise Refused(0, HIDDEN)
    return n, top


def _opening(subject: Subject) -> Seen:
    """Check that a chat's prompt begins with exactly one BOS token: find the raw text that has the same effect."""
    sent = "a question as a chat, and as raw text in the marks of known templates with a BOS and without"
    try:
        chats = [_counted(subject, QUESTION, CHAT) for _ in range(MIN_REPEATS)]
        n_chat, tops = chats[0][0], [top for _, top in chats]
        # Two letters are tried, because a tokenizer may split off a space before one of them and so count two tokens
        # without a BOS.
        n_added, n_added_to_other = (_counted(subject, letter)[0] - 1 for letter in LETTERS)
        if n_added != n_added_to_other or n_added not in (0, 1):
            return untested(
                sent, "the server counts neither one nor two tokens for one letter, so nothing shows what it adds"
            )
        for family, (bos, before, after) in TEMPLATES.items():
            for with_bos in (False, True):
                n, top = _counted(subject, f"{bos if with_bos else ''}{before}{QUESTION}{after}")
                # The texts with and without BOS differ by one token, so a count that is further off shows another
                # template.
                if abs(n - n_chat) > 1:
                    break
                # Equal counts alone prove nothing: another family's marks may have as many tokens.
                if n == n_chat and effect(tops, [top]) < MIN_EFFECT:
                    came = f"the prompt has the template of {family}, and the token of its beginning (BOS, {bos!r})"
                    n_bos = n_added + with_bos
                    if n_bos == 1:
                        return sound(sent, f"{came} comes once")
                    fault = "twice: a doubled BOS" if n_bos else "never: the BOS is lost"
                    return spoils(sent, f"{came} comes {fault}")
    except Refused as refused:
        return untested(sent, quoted(refused.sentence))
    return untested(sent, "the chat's prompt is none of the known templates")


CHECKS = (
    Check(
        name="opening", group="template", look=_opening, quick=False, tokens=500,
        why="A doubled or a lost BOS makes the same weights act as another model.",
        mend="Take the BOS out of the template or keep the tokenizer from adding one, not both.",
    ),
)  # fmt: skip
