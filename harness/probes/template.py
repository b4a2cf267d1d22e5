"""Checks of the prompt that the server shows (llama.cpp: /apply-template; vLLM, SGLang: /tokenize with messages), and
of where the reasoning of a thinking model goes when it is cut.
"""

from __future__ import annotations

from harness.client.facts.tokens import THINK, THINK_END
from harness.core.errors import ServerError
from harness.core.inert import quoted
from harness.core.records import Message
from harness.probes.findings import Check, Seen, sound, spoils, untested, warns
from harness.probes.subject import Subject

SYSTEM, QUESTION = "You answer in verse.", "How many sides has a cube?"

SUM = "What is 17 + 25?"
SHORT = 16
"""Length of a reply in tokens at which a thinking model is still thinking."""

UNSHOWN = "the server does not show its prompts"


def _prompt(subject: Subject) -> Seen:
    """Render two conversations: beginning, question and system prompt must be there once, and nothing added."""
    sent = "a question with a system prompt and one without, rendered by the server"
    question = Message("user", QUESTION)
    try:
        plain = subject.server.render([question])
        with_system = subject.server.render([Message("system", SYSTEM), question])
    except ServerError as error:
        return untested(sent, f"{UNSHOWN}: {quoted(error.sentence)}")
    if plain is None:
        return untested(sent, UNSHOWN)
    text, ids = plain
    if len(ids) > 1 and ids[0] == ids[1]:
        return spoils(sent, f"the prompt begins with the same token twice ({ids[0]}): a doubled BOS")
    if QUESTION not in text:
        return spoils(sent, f"the prompt lacks the question: {quoted(text)!r}")
    if with_system is not None and SYSTEM not in with_system[0]:
        return spoils(sent, f"the prompt lacks the system prompt: {quoted(with_system[0])!r}")
    if text.count(THINK) > 1:
        return spoils(sent, f"the prompt contains {THINK} {text.count(THINK)} times: {quoted(text[-80:])!r}")
    before = text[: text.index(QUESTION)]
    # Templates write the name of a role before its text, so the name shows a system prompt whatever its words are.
    if "system" in before.lower():
        return warns(sent, f"a system prompt that nobody asked for: {quoted(before)!r}")
    return sound(sent, f"{quoted(text)!r}, {len(ids)} tokens")


def _ends_open(subject: Subject) -> bool:
    """Whether the server's own prompt ends with `THINK`, so that the reply begins within the reasoning."""
    try:
        prompt = subject.server.render([Message(role="user", content=SUM)])
    except ServerError:
        return False
    return prompt is not None and prompt[0].rstrip().endswith(THINK)


def _reasoning(subject: Subject) -> Seen:
    """Cut a reply within its reasoning: the reasoning must not come as the answer."""
    sent = f"a sum at temperature 0, cut after {SHORT} tokens"
    reply = subject.chat(SUM, max_tokens=SHORT)
    if not reply.whole and subject.server.unread:
        return untested(sent, f"no text came; {subject.server.unread}")
    if reply.reasoning:
        answer = "when it is cut, the answer stays empty" if not reply.text else "the answer had begun after it"
        return sound(sent, f"the reasoning has a field of its own; {answer}")
    marked = THINK in reply.text or THINK_END in reply.text
    if not marked and not _ends_open(subject):
        return untested(sent, "the model does not think, or does not show it")
    if reply.finish_reason == "stop":
        return untested(sent, "the reply ended by itself")
    if THINK in reply.text:
        return sound(sent, f"the reasoning stands in the text, after {THINK}")
    shown = quoted(reply.text[:60])
    return spoils(sent, f"the template opened {THINK}, and cut reasoning comes as the answer: {shown!r}")


CHECKS = (
    Check(
        name="reasoning", group="protocol", look=_reasoning,
        why="The grader looks for the answer after the reasoning; if unclosed reasoning comes as text, a guess inside "
            "it counts.",
        mend="Start the engine with the model's reasoning parser; or without one, and with a template that shows "
            "<think>.",
    ),
    Check(
        name="prompt", group="template", look=_prompt,
        why="A doubled BOS, a lost or added system prompt or a doubled <think> makes the same weights act as another "
            "model.",
        mend="Start the engine with the model's own template; if the server adds a system prompt, send your own.",
    ),
)  # fmt: skip
