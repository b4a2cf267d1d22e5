"""Checks where the reasoning of a thinking model goes, also when it is cut, and whether its thinking switch works."""

from __future__ import annotations

from harness.client.facts.tokens import THINK, THINK_END
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message
from harness.verbs.probe.asking import Choice, Refused
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import LONG, Subject

QUESTION = "What is 17 + 25?"
SHORT = 16
"""Length of a reply in tokens at which a thinking model is still thinking."""


def _thinks(choice: Choice) -> bool:
    """Whether the reply shows reasoning, in a field of its own or by marks in its text."""
    return bool(choice.thought) or THINK in choice.content or THINK_END in choice.content


def _ends_open(subject: Subject) -> bool:
    """Whether the server's own prompt ends with `THINK`, so that the reply begins within the reasoning."""
    try:
        prompt = subject.server.render([Message(role="user", content=QUESTION)], {})
    except ServerError:
        return False
    return prompt is not None and prompt[0].rstrip().endswith(THINK)


def _reasoning(subject: Subject) -> Seen:
    """Cut a reply within its reasoning: the reasoning must not come as the answer."""
    sent = f"a sum at temperature 0, cut after {SHORT} tokens"
    choice = subject.chat(QUESTION, max_tokens=SHORT).first
    opened = _ends_open(subject)
    if not choice.whole and subject.unread:
        return untested(sent, f"no text came; {subject.unread}")
    if not _thinks(choice) and not opened:
        return untested(sent, "the model does not think, or does not show it")
    if choice.thought:
        answer = "when it is cut, the answer stays empty" if not choice.content else "the answer had begun after it"
        return sound(sent, f"the reasoning has a field of its own; {answer}")
    if choice.finish_reason == "stop":
        return untested(sent, "the reply ended by itself")
    if THINK in choice.content:
        return sound(sent, f"the reasoning stands in the text, after {THINK}")
    shown = quoted(choice.content[:60])
    return spoils(sent, f"the template opened {THINK}, and cut reasoning comes as the answer: {shown!r}")


def _switch(subject: Subject) -> Seen:
    """Check that switching the thinking on and off has an effect: on the prompt, or else on the replies."""
    sent = "the same request with enable_thinking true and false in chat_template_kwargs"
    messages = [Message(role="user", content=QUESTION)]
    try:
        on, off = (subject.server.render(messages, {"enable_thinking": value}) for value in (True, False))
        if on is not None and off is not None:
            if on != off:
                return sound(
                    sent,
                    f"different prompts: with thinking it ends {quoted(on[0][-30:])!r}, without "
                    f"{quoted(off[0][-30:])!r}",
                )
            if not on[0].rstrip().endswith(THINK):
                return untested(sent, "the template has no such switch")
            return warns(sent, f"the same prompt both times; it opens {THINK}")
    except ServerError:
        # The server hides its prompts, so its replies are compared.
        pass
    try:
        first, second = (
            subject.chat(QUESTION, max_tokens=SHORT, chat_template_kwargs={"enable_thinking": value}).first
            for value in (True, False)
        )
    except Refused as refused:
        return untested(sent, f"refused: {quoted(refused.sentence)}")
    if _thinks(first) and not _thinks(second):
        return sound(sent, "reasoning with thinking on, none with thinking off")
    if _thinks(second):
        return warns(sent, "reasoning with thinking off: the switch does not work")
    return untested(sent, "no reasoning in either reply")


EFFORTS = ("low", "high")


def _effort(subject: Subject) -> Seen:
    """Check that the reasoning effort has an effect: on the prompt, or else on the replies."""
    sent = f"the same request with reasoning_effort {' and '.join(EFFORTS)}"
    messages = [Message(role="user", content=QUESTION)]
    try:
        prompts = [subject.server.render(messages, {"reasoning_effort": effort}) for effort in EFFORTS]
    except ServerError:
        prompts = [None]
    if None not in prompts and prompts[0] != prompts[1]:
        return sound(sent, "the template turns different efforts into different prompts, by chat_template_kwargs")
    try:
        low, high = (subject.chat(QUESTION, max_tokens=LONG, reasoning_effort=effort).first for effort in EFFORTS)
        # One effort is asked for twice: if the server samples, any two replies differ, whatever their effort is.
        again = subject.chat(QUESTION, max_tokens=LONG, reasoning_effort=EFFORTS[0]).first
    except Refused as refused:
        return untested(sent, f"refused: {quoted(refused.sentence)}")
    if not any(map(_thinks, (low, high))):
        return untested(sent, "the model does not think, or does not show it")
    if low.whole != again.whole:
        return untested(sent, "the same effort brings different replies, so nothing can be compared")
    if low.whole == high.whole:
        return warns(sent, "the same reply, word by word: the effort changes nothing")
    return sound(sent, "other replies")


CHECKS = (
    Check(
        name="reasoning", group="protocol", look=_reasoning,
        why="The grader looks for the answer after the reasoning; if unclosed reasoning comes as text, a guess inside "
            "it counts.",
        mend="Start the engine with the model's reasoning parser; or without one, and with a template that shows "
            "<think>.",
    ),
    Check(
        name="thinking switch", group="protocol", look=_switch,
        why="Scores with and without thinking are two different scores.",
        mend="Use the switch that the model's template knows (see its chat template).",
    ),
    Check(
        name="effort", group="protocol", look=_effort, by_text=True, tokens=200,
        why="Scores at low and at high effort are two different scores; a server that ignores the effort makes them "
            "equal.",
        mend="Use the field that the model's template or provider knows; state the score without an effort.",
    ),
)  # fmt: skip
