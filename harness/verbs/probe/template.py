"""Checks that the prompt that reaches the model is what the model's own chat template makes.

The server shows its prompt (llama.cpp: /apply-template; vLLM, SGLang: /tokenize with messages). The expected prompt
comes from the template in the model's own files, rendered here in a sandbox.
"""

from __future__ import annotations

import difflib
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.client.facts.tokens import THINK
from harness.core import codec
from harness.core.errors import ServerError, UsageError
from harness.core.files import read_named
from harness.core.inert import quoted
from harness.core.records import Message
from harness.verbs.probe.asking import ProbedServer
from harness.verbs.probe.findings import Check, Seen, sound, spoils, untested, warns
from harness.verbs.probe.subject import Subject
from server_launchers import isolated

SECONDS = 10.0
"""Longest time that the child process may take to render all conversations."""

MAX_BYTES = 32 * 1024 * 1024
"""Largest file that may hold a template, in bytes."""

SHOWN = 6
"""Largest number of differences between two prompts that a report shows."""

SHOWN_TOKENS = 24
"""Largest number of tokens that a report shows on each side of a difference."""

_PIECES = re.compile(r"<[^<>\s]{1,40}>|\w+|\s|.", re.DOTALL)
"""Cuts a text into special tokens (`<…>`), words and single characters, for servers that do not show their tokens."""

SYSTEM, QUESTION, ANSWER = "You answer in verse.", "How many sides has a cube?", "Six."

CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    "a question": (Message("user", QUESTION),),
    "a system prompt and a question": (Message("system", SYSTEM), Message("user", QUESTION)),
    "a second question": (Message("user", QUESTION), Message("assistant", ANSWER), Message("user", "And a pyramid?")),
}


@dataclass(frozen=True)
class ServerTemplate:
    """A model's own chat template. names: name of a special token in templates, such as `bos_token` → its text."""

    text: str
    names: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, path: Path) -> ServerTemplate:
        """The template of a model's folder, its tokenizer_config.json, or a Jinja file. Raises `UsageError`."""
        names: dict[str, str] = {}
        text: Any = None
        try:
            config = path / "tokenizer_config.json" if path.is_dir() else path
            if config.suffix == ".json" and config.exists():
                config_fields = codec.decode(read_bounded(config), dict[str, Any])
                text = config_fields.get("chat_template")
                if isinstance(text, list):  # The file may hold several templates by name.
                    named = {entry.get("name"): entry.get("template") for entry in text}
                    text = named.get("default")
                for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
                    token = config_fields.get(name)
                    token = token.get("content") if isinstance(token, dict) else token
                    if isinstance(token, str):
                        names[name] = token
            # transformers prefers this file to the entry in tokenizer_config.json.
            beside = path / "chat_template.jinja" if path.is_dir() else path
            if beside.suffix != ".json" and beside.exists():
                text = read_bounded(beside).decode()
        # AttributeError: a damaged file may hold anything where an object should be.
        except (OSError, UnicodeDecodeError, codec.DecodeError, AttributeError) as error:
            raise UsageError(f"the chat template cannot be read: {error}", field="reference", value=path) from error
        if not isinstance(text, str) or not text:
            raise UsageError(
                "it holds no chat template: expected a model's folder, its tokenizer_config.json or a Jinja file",
                field="reference",
                value=path,
            )
        return cls(text, names)

    def render(self, conversations: Sequence[Sequence[Message]]) -> list[str | None]:
        """The prompts; None for a conversation that the template refuses.

        Raises `UsageError` where rendering does not end.
        """
        request = {
            "template": self.text,
            "names": self.names,
            "conversations": [list(turns) for turns in conversations],
        }
        try:
            done = subprocess.run(
                isolated.command(str(Path(__file__).with_name("template_child.py"))),
                input=codec.encode(request),
                capture_output=True,
                timeout=SECONDS,
                env=isolated.environment(),
                check=True,
            )
            return [result.get("text") for result in json.loads(done.stdout)]
        except (subprocess.SubprocessError, ValueError) as error:
            raise UsageError(
                f"the chat template does not end within {SECONDS:g} s and 1 GB", field="reference"
            ) from error


def read_bounded(path: Path, most: int = MAX_BYTES) -> bytes:
    """The file's content. Raises `OSError`, also for a file larger than `most` bytes."""
    content = read_named(path, most)
    if len(content) > most:
        raise OSError(f"{path} is larger than {most} bytes")
    return content


def _prompt_check(subject: Subject) -> Seen:
    """Render two conversations: beginning, question and system prompt must be there once, and nothing added."""
    sent = "a question with a system prompt and one without, rendered by the server"
    try:
        plain = subject.server.render(CONVERSATIONS["a question"], {})
        if plain is None:
            return untested(sent, "the server does not show its prompts")
        with_system = subject.server.render(CONVERSATIONS["a system prompt and a question"], {})
    except ServerError as error:
        return untested(sent, f"the server does not show its prompts: {quoted(error.sentence)}")
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


def against(template: ServerTemplate) -> Check:
    """The check that the server's prompts equal those of `template`."""

    def look(subject: Subject) -> Seen:
        """Check that the server makes the same prompts of conversations as the model's own chat template does."""
        sent = f"{len(CONVERSATIONS)} conversations, rendered by the server and by the model's own template"
        local = template.render(list(CONVERSATIONS.values()))
        odd: list[str] = []
        n = 0
        for (name, messages), ours in zip(CONVERSATIONS.items(), local, strict=True):
            if ours is None:
                continue
            try:
                prompt = subject.server.render(messages, {})
            except ServerError as error:
                return untested(sent, f"the server does not show its prompts: {quoted(error.sentence)}")
            if prompt is None:
                return untested(sent, "the server does not show its prompts")
            n += 1
            text, ids = prompt
            bos = template.names.get("bos_token", "")
            odd += [f"{name}: {difference}" for difference in _differences(subject.server, ours, text, ids, bos)]
        if n == 0:
            return untested(sent, "the template refuses all conversations")
        if odd:
            return spoils(sent, "\n".join(odd))
        return sound(sent, f"{n} prompts, equal to the last character")

    return Check(
        name="chat template", group="template", look=look,
        why="The same weights under another template act as another model: scores differ by up to 20 points.",
        mend="Start the engine with the model's own template, not with one from the launcher.",
    )  # fmt: skip


def _differences(server: ProbedServer, ours: str, theirs: str, ids: list[int], bos: str) -> list[str]:
    """What is wrong with the server's prompt, and where, as one text for each difference; empty if nothing is.

    ours: the prompt by the model's own template. theirs, ids: the server's prompt as text and as token ids. bos: the
    text of the BOS token; it is not compared, since llama.cpp shows a prompt without it.
    """
    differences = []
    if len(ids) > 1 and ids[0] == ids[1]:
        differences.append(f"the first token comes twice ({ids[0]}): a doubled BOS")
    ours, theirs = (text.removeprefix(bos) if bos else text for text in (ours, theirs))
    if ours == theirs:
        return differences
    if SYSTEM in ours and SYSTEM not in theirs:
        differences.append("the system prompt is lost")
    if SYSTEM not in ours and "system" in theirs.lower() and "system" not in ours.lower():
        differences.append("the server adds a default system prompt")
    if ours.count(THINK) != theirs.count(THINK):
        differences.append(f"the prompt contains {THINK} {theirs.count(THINK)} times instead of {ours.count(THINK)}")
    return [*differences, *_by_token(server, ours, theirs)]


def _by_token(server: ProbedServer, ours: str, theirs: str) -> list[str]:
    """The places where two prompts differ, in tokens of the server's tokenizer; in words and marks if it shows none."""
    a: Sequence[int | str]
    b: Sequence[int | str]
    try:
        a, b, unit = server.tokens(ours) or [], server.tokens(theirs) or [], "token"
    except ServerError:
        a, b = [], []
    if not a or not b or a == b:  # Different texts have equal tokens if the tokenizer normalises its input.
        a, b, unit = _PIECES.findall(ours), _PIECES.findall(theirs), "word"
    differences = []
    # With autojunk, difflib ignores frequent items of sequences of 200 and more, and many tokens of a prompt are
    # frequent.
    for kind, i, k, j, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        left, right = (_spelt(server, side) for side in (a[i:k], b[j:m]))
        before = _spelt(server, a[max(0, i - 2) : i]) if i else ""
        where = f"after {before}" if before else "at the beginning"
        sides = f"the model's template has {left or 'nothing'}, the server {right or 'nothing'}"
        differences.append(f"{unit} {i + 1}, {where}: {sides}")
    more = [f"and {len(differences) - SHOWN} further places"] if len(differences) > SHOWN else []
    return [*differences[:SHOWN], *more]


def _spelt(server: ProbedServer, side: Sequence[int | str]) -> str:
    """Tokens one by one, written as JSON strings so that line ends and spaces show."""
    texts = [token if isinstance(token, str) else server.text_of([token]) for token in side[:SHOWN_TOKENS]]
    shown = [quoted(json.dumps(shown_token, ensure_ascii=False)) for shown_token in texts]
    return " ".join(shown) + (" …" if len(side) > SHOWN_TOKENS else "")


CHECKS = (
    Check(
        name="prompt", group="template", look=_prompt_check,
        why="A doubled BOS, a lost or added system prompt or a doubled <think> makes the same weights act as another "
            "model.",
        mend="Start the engine with the model's own template; if the server adds a system prompt, send your own.",
    ),
)  # fmt: skip
