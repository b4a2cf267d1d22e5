"""Signs that a run is not worth going on with, read off its replies. Pure.

- the first samples are all truncated, all empty, all the same text, or all without an answer;
- a reply comes from another model than the run's first one;
- a server names another build than before (`system_fingerprint`): said, never stopped;
- replies repeat word by word under different seeds (a cache, or a server that ignores seeds): counted, never stopped;
- replies end in a loop of the same words: counted, never stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping

from harness.client.protocol.reply import Reply
from harness.core.inert import quoted
from harness.core.wording import option
from harness.generation.plan import Task

FIRST_SAMPLES = 16
"""Samples that must all be bad before a run is stopped."""

MIN_QUESTIONS = 3
"""Different questions that identical replies must answer to mean anything."""

MIN_DUPLICATE_CHARS = 80
"""Characters; shorter replies repeat by chance."""

MAX_BUILDS = 16
"""Builds of a run's servers that are told apart; a service of many machines may have more."""

LOOP_CHARS = 200
LOOP_TIMES = 4
LOOP_TAIL_CHARS = 4000
"""A reply ends in a loop if its last `LOOP_CHARS` or more are one passage, said at least `LOOP_TIMES`; a passage of
over a quarter of the tail is not looked for."""

Answered = Callable[[Task, str | None, str | None], bool]
"""(task, text, reasoning) → whether the reply gives an answer; `cli` hands in the grader's extractor."""


class Canary:
    """Watches the first `FIRST_SAMPLES` samples of a session."""

    def __init__(self, answered: Answered | None = None, *, on: bool = True) -> None:
        self._answered = answered
        self._watching = on
        self._n = 0
        self._truncated = 0
        self._empty = 0
        self._unanswered = 0
        self._texts: set[bytes] = set()
        self._questions: set[tuple[str, str]] = set()

    def observe(self, task: Task, reply: Reply, max_tokens: int | None) -> str | None:
        """Why the run should stop, or None. Call once per finished sample, in order of arrival."""
        if not self._watching:
            return None
        self._n += 1
        truncated = reply.finish_reason == "length"
        self._truncated += truncated
        self._empty += not (reply.text or "").strip() and not (reply.reasoning or "").strip()
        if self._answered is not None:
            self._unanswered += not self._answered(task, reply.text, reply.reasoning)
        self._texts.add(_fingerprint(reply))
        self._questions.add((task.benchmark, task.question_id))
        if self._n < FIRST_SAMPLES:
            return None
        self._watching = False
        self._texts, texts = set(), self._texts
        return self._verdict(len(texts), reply, max_tokens)

    def _verdict(self, n_texts: int, last: Reply, max_tokens: int | None) -> str | None:
        first = f"the first {self._n} samples"
        on = f"To go on all the same, give {option('canary', False)}; what is stored stays."
        if self._empty == self._n:
            return f"{first} are all empty. Look at the server's chat template and reasoning parser. {on}"
        if self._truncated == self._n:
            budget = "" if max_tokens is None else f" at {max_tokens} tokens"
            return f"{first} are all truncated{budget} (finish_reason length). Raise {option('max_tokens')}. {on}"
        if n_texts == 1 and len(self._questions) >= MIN_QUESTIONS:
            text = quoted(last.text or last.reasoning or "")
            return f"{first} of {len(self._questions)} questions are all the same: {text!r}. {on}"
        if self._answered is not None and self._unanswered == self._n:
            text = quoted((last.text or "")[-200:])
            return f"{first} give no answer that the grader finds; the last one ends in {text!r}. {on}"
        return None


class ModelName:
    """The model name that servers answer under. Routers rename, so it is compared with the run's own first reply."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        """As first answered; kept with the run, so that a resume compares, too."""

    def observe(self, base_url: str, name: str | None) -> str | None:
        """Why the run must stop, or None."""
        if not name:
            return None
        self.name = self.name or name
        if self.name == name:
            return None
        return (
            f"{base_url} answers as model '{quoted(name)}', this run's first reply came from '{quoted(self.name)}': "
            "samples of two models are never mixed. Start the first model again, or use another run folder."
        )


class Builds:
    """The `system_fingerprint` by which servers name their build and configuration, compared with those of the run."""

    def __init__(self, builds: Collection[str] = ()) -> None:
        self.seen: Mapping[str, tuple[str, ...]] = {}
        """By base URL, in this session. Replaced, never changed: another thread reads it."""
        self._known = set(builds)

    def observe(self, base_url: str, build: str | None) -> str | None:
        """What is worth knowing of it, once a value; a service of many machines has several."""
        if not build or build in self.seen.get(base_url, ()) or len(self._known) >= MAX_BUILDS:
            return None
        self.seen = {**self.seen, base_url: (*self.seen.get(base_url, ()), build)}
        before = sorted(self._known - {build})
        new = build not in self._known
        self._known.add(build)
        if not new or not before:
            return None
        return (
            f"{base_url} answers with system_fingerprint '{quoted(build)}', and this run has samples from "
            f"'{quoted(before[-1])}': another build or configuration of the server."
        )


class Duplicates:
    """Counts replies that repeat, word by word, an earlier reply to the same question under another seed."""

    def __init__(self) -> None:
        self.n = 0
        self._seen: set[bytes] = set()

    def observe(self, task: Task, reply: Reply) -> None:
        """Count `reply` if it repeats; short ones are left out."""
        if len(reply.text or "") + len(reply.reasoning or "") < MIN_DUPLICATE_CHARS:
            return
        question = f"{task.benchmark}\0{task.question_id}\0".encode("utf-8", "surrogatepass")
        mark = hashlib.blake2b(question + _fingerprint(reply), digest_size=8).digest()
        self.n += mark in self._seen
        self._seen.add(mark)


def ends_in_loop(reply: Reply) -> bool:
    """Whether the last thing said repeats itself to the end, as models do that no longer get to a conclusion."""
    tail = (reply.text or reply.reasoning or "")[-LOOP_TAIL_CHARS:]
    if len(tail) < LOOP_CHARS:
        return False
    last = tail[-40:]
    period = len(tail) - len(last) - tail.rfind(last, 0, len(tail) - 1)
    times = max(LOOP_TIMES, -(-LOOP_CHARS // period))
    return period * times <= len(tail) and tail[-period * times :] == tail[-period:] * times


def _fingerprint(reply: Reply) -> bytes:
    text = f"{reply.reasoning or ''}\0{reply.text or ''}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
