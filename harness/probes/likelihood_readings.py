"""Reads a run's stored replies with the base's server and with a copy's, and stores the readings in the run folder.

The *base* is the model, as served, that generated the run's replies; the *copy* is the server that the probe tests. To
*read* a reply is to return the log-probabilities of its tokens, given its prompt. A reply's *place* is its benchmark,
question and number (`Place`); the token IDs of a prompt and its reply are what is *sent* (`Sent`).

    RUN/likelihood/base-KEY.jsonl    a line for each reply: its token IDs, and the base's reading
    RUN/likelihood/again-KEY.jsonl   the base's second reading
    RUN/likelihood/copy-KEY.jsonl    a copy's reading, until it is complete

KEY is a checksum that identifies the server: its model, its engine, everything that it reports about itself, and its
address. For a server that was started here, whose port changes with each start, its environment variables and its
command (without ports) replace the address. The base reads the replies one by one, then in reverse order with several
in flight, which shows its noise. The copy gets the base's own token IDs. A line is stored as soon as it is read, so a
killed probe can resume after it; but stored lines are used only if the server still reads one of the replies the same
way.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np

from harness.client.facts.tokens import THINK, THINK_END, Tokenizer
from harness.core import codec
from harness.core.errors import ServerError, UsageError
from harness.core.files import write_atomically
from harness.core.records import Key, Question, Sample, SampleRecord
from harness.core.sanitize import quoted, visible
from harness.options.probing import ProbeOptions
from harness.options.server import WhichServer
from harness.preparing import launched_servers, servers
from harness.probes.findings import Check, Observation, Outcome, untested
from harness.probes.likelihood import ComparedReply, Likelihood, MovedToken, Verdict, compare, divergence
from harness.probes.probed_endpoint import ProbedEndpoint, lacks_reading, probed
from harness.probes.requests import Refused
from harness.probes.tested_server import Subject
from harness.progress.events import Watcher
from harness.runs import line_file, questions
from harness.runs.journal import read_samples
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest, changes_of
from harness.scoring.stats import Array
from harness.scoring.uncertainty import cluster_of

NAME = "replies"
"""Name of the check."""

FOLDER = "likelihood"
"""Name of the folder, inside a run folder, for the readings of its replies."""

MIN_SHARE = 256
"""Minimum number of tokens per drawn question; if there are too many questions, fewer are drawn."""

MIN_TOKENS = 8
"""The rest of a question's share is dropped if it has fewer tokens than this."""

CHARS = 3
"""Characters per token, for replies whose tokens no server counted."""

ANOTHER_NATS = 0.1
"""Stored lines are used if a new reading of one of them has at most this mean absolute difference: SmolLM2-135M moves
by 0.02 from float32 to bfloat16, and by 0.15 with 5-bit weights.
"""

ROOM = 8
"""Number of context tokens that stay free: vLLM 0.32 reads a text only if there is room for one more token, SGLang
0.5.23 for 7.
"""

CONTEXT_TOKENS = 12
"""Number of tokens that are shown before a token that moved."""

PROMPTS = 3
"""Number of prompts that are rendered again with the copy's template."""

OUTCOMES: Mapping[Verdict, Outcome] = {"same": "pass", "differs": "fail", "cannot tell": "untested"}
"""Verdict → outcome of the check; a difference within the margin is a warning."""

Place = tuple[str, Key]
"""Benchmark and key of a reply."""

Sent = tuple[list[int], list[int]]
"""The token IDs of a prompt and of its reply, as sent."""


class ReplyReading(SampleRecord, frozen=True, kw_only=True):
    """The log-probabilities that one server assigns to a reply; one line of a file in `likelihood/`."""

    server: str
    """Description of the server that computed the log-probabilities."""
    prompt: list[int]
    """Token IDs of the prompt."""
    ids: list[int]
    """Token IDs of the reply."""
    logprobs: list[float]
    """Log-probabilities of the reply's tokens, in nats."""
    tops: list[dict[str, float]]
    """For each position, the log-probabilities of the most likely tokens, by token ID, in nats."""
    whole: bool = False
    """Whether the log-probabilities cover the whole reply."""


def draw(run: RunFolder, benchmarks: Iterable[str], n_tokens: int) -> dict[Place, int]:
    """Draw replies with at most `n_tokens` tokens in total and the same share for each question; return how many tokens
    of each reply to read.

    Raises `UsageError` if fewer than two questions have replies.
    """
    lengths: dict[tuple[str, str], list[tuple[Key, int]]] = {}
    for name in benchmarks:
        for sample in read_samples(run.benchmark(name)):
            text = (sample.reasoning or "") + (sample.text or "")
            if text and sample.steps is msgspec.UNSET:
                n = sample.usage.completion_tokens or max(1, len(text) // CHARS)
                lengths.setdefault((name, sample.question_id), []).append((sample.key, n))
    if len(lengths) < 2:
        raise UsageError(f"expected replies to at least two questions but found {len(lengths)}", field="replies")
    order = sorted(lengths, key=lambda question: codec.sample_seed(0, "\0".join(question), 0))
    # As many questions as can get MIN_SHARE tokens each, or all of their tokens.
    worth = accumulate(min(MIN_SHARE, sum(n for _, n in lengths[question])) for question in order)
    chosen = order[: max(2, sum(total <= n_tokens for total in worth))]
    drawn: dict[Place, int] = {}
    for question in chosen:
        rest = n_tokens // len(chosen)
        for key, n in sorted(lengths[question]):
            if rest >= MIN_TOKENS:
                drawn[question[0], key] = min(rest, n)
                rest -= n
    return drawn


def read_stored(path: Path) -> dict[Place, ReplyReading]:
    """The longest stored reading of each reply. Raises `StoreError`."""
    lines = line_file.read_appended(path, ReplyReading, "Remove the file and pass `reference` again.", sealed=True)
    return {(each.benchmark, each.key): each for each in sorted(lines, key=lambda each: len(each.ids))}


def server_label(server: ProbedEndpoint) -> str:
    """The server's description in a report: model, address and engine."""
    return visible(f"{server.asker.model} at {server.endpoint.base_url} ({server.engine or 'unknown engine'})")


def file_of(kind: str, server: ProbedEndpoint, *more: str) -> str:
    """The name of the file for this server's readings."""
    where: str | list[str] = server.endpoint.base_url
    for started in launched_servers.servers_at([server.endpoint]):
        ports = "|".join(str(member.port) for member in started.members)
        where = [re.sub(rf"\b({ports})\b", "PORT", command) for command in started.commands] + [started.environment]
    key = codec.digest([where, server.asker.model, server.facts.model, server.facts.host, *more])
    return f"{kind}-{key[:12]}.jsonl"


def read_missing(
    server: ProbedEndpoint,
    path: Path,
    drawn: Mapping[Place, int],
    sent: Mapping[Place, Sent],
    at_once: int,
    watcher: Watcher,
) -> dict[Place, ReplyReading]:
    """The readings of the replies; missing ones are made and stored. Raises `Refused`, `ServerError` or `StoreError`.

    Another probe of the server may use the file at the same time, and may empty or remove it.
    """
    line_file.make_folder(path.parent)
    before = read_stored(path)
    for known in [place for place in before if place in sent][:1]:
        now = server.read(before[known].prompt, before[known].ids).logprobs
        if np.abs(np.subtract(now, before[known].logprobs)).mean() > ANOTHER_NATS:
            if not path.name.startswith("copy-"):  # All copies are compared with these values.
                raise UsageError(
                    f"{server_label(server)} computes different log-probabilities than the base previously did. "
                    "Specify the base's server. If the base was changed on purpose, "
                    f"remove {path.parent} and probe again",
                    field="reference",
                )
            watcher.warn(
                f"{server_label(server)} now computes different log-probabilities than before; the stored values "
                "will be replaced"
            )
            write_atomically(path, b"")
            before = {}
    missing = [place for place, (_, ids) in sent.items() if place not in before or before[place].ids[: len(ids)] != ids]

    def read(place: Place) -> None:
        prompt, ids = sent[place]
        seen = server.read(prompt, ids)
        reading = ReplyReading(
            benchmark=place[0],
            question_id=place[1].question_id,
            sample_index=place[1].sample_index,
            server=server_label(server),
            prompt=prompt,
            ids=ids,
            logprobs=seen.logprobs,
            tops=seen.tops,
            whole=len(ids) < drawn[place],
        )
        file.append(line_file.line(reading, sealed=True))
        before[place] = reading

    pool = ThreadPoolExecutor(at_once, "read")
    with line_file.LineFile(path, durable=False) as file:
        try:
            for n, _ in enumerate(pool.map(read, missing), 1):
                if n % -(-len(missing) // 10) == 0:
                    watcher.checking(f"{server_label(server)}: {n:,} of {len(missing):,} replies read")
        finally:
            # After Ctrl-C, nobody waits for the pending replies.
            pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt), cancel_futures=True)
    return before


@dataclass(frozen=True)
class StoredReplies:
    """The stored replies of a run, for one probe. drawn: number of tokens to read of each reply. base: file of the
    base's readings. reference: the base's server, if it is queried. readings: the base's two readings, if it is not.
    """

    run: RunFolder
    manifest: Manifest
    drawn: dict[Place, int]
    base: Path
    reference: ProbedEndpoint | None = None
    readings: tuple[dict[Place, ReplyReading], ...] = ({}, {})

    @classmethod
    def of(cls, options: ProbeOptions, copy: ProbedEndpoint, watcher: Watcher) -> StoredReplies:
        """Open the run and its base. copy: the server to test. Raises `UsageError`, `StoreError` or `ServerError`."""
        run = RunFolder.open(options.replies or "")
        manifest = Manifest.load(run)
        drawn, folder = draw(run, manifest.benchmarks, options.read_tokens), run.path / FOLDER
        if options.reference is None:
            for path in sorted(folder.glob("again-*.jsonl"), key=lambda path: path.stat().st_mtime)[-1:]:
                base = path.with_name(path.name.replace("again", "base", 1))
                first, again = read_stored(base), read_stored(path)
                if all(
                    place in first
                    and place in again
                    and first[place].ids[:n] == again[place].ids[:n]
                    and (first[place].whole or 2 * len(first[place].ids) >= n)
                    for place, n in drawn.items()
                ):
                    return cls(run, manifest, drawn, base, readings=(first, again))
            raise UsageError(
                f"{run.path} does not contain the base's values for this many tokens. Run once, with the base server's "
                f"address as URL: harness probe URL --replies {run.path} --reference URL",
                field="reference",
            )
        url, _, model = options.reference.partition("#")
        server, who = copy, WhichServer.of(base_url=url, model=model or None, wait=options.wait)
        try:
            named = {each.base_url for each in servers.find(who, shared_key=False).endpoints}
            if named != {copy.endpoint.base_url} or model not in ("", copy.asker.model):
                (server, *_) = probed(who, watcher, options, shared_key=False)
        except (ServerError, UsageError) as error:
            raise type(error)(f"the reference: {error.sentence}") from error
        _refuse_another(server, run)
        return cls(run, manifest, drawn, folder / file_of("base", server), server)

    @cached_property
    def questions(self) -> dict[tuple[str, str], Question]:
        """The questions of the drawn replies, by benchmark and ID."""
        names = {name for name, _ in self.drawn}
        return {
            (name, each.question_id): each for name in names for each in questions.iterate(self.run.benchmark(name))
        }

    def prompt(self, tokenizer: Tokenizer, place: Place) -> tuple[str, list[int]]:
        """A prompt as rendered by a server's template: its text and token IDs. Raises `ServerError`."""
        question = self.questions[place[0], place[1].question_id]
        if question.prompt:
            return question.prompt, tokenizer.tokens_of(question.prompt, special=True)
        arguments = self.manifest.benchmarks[place[0]].identity.get("chat_template_kwargs") or {}
        return tokenizer.render(question.messages, arguments)

    def reply_tokens(self, context: float) -> tuple[dict[Place, Sent], dict[Place, int]]:
        """The token IDs of the drawn replies, from the base's readings or otherwise from its tokenizer, as far as they
        fit into this context (in tokens); and, for each reply that does not fit, the number of tokens left out.
        """
        before = self.readings[0] if self.reference is None else read_stored(self.base)
        sent, left_out = dict[Place, Sent](), dict[Place, int]()
        for name in {name for name, _ in self.drawn}:
            keys = {key for benchmark, key in self.drawn if benchmark == name}
            for sample in read_samples(self.run.benchmark(name), keys=keys):
                place, n = (name, sample.key), self.drawn[name, sample.key]
                if self.reference is None or (place in before and len(before[place].ids) >= n):
                    prompt, ids = before[place].prompt, before[place].ids
                else:
                    tokenizer = tokenizer_of(self.reference)
                    text, prompt = self.prompt(tokenizer, place)
                    ids = tokenizer.tokens_of(_written_text(sample, text))
                room = int(min(n, max(0, context - ROOM - len(prompt))))
                sent[place] = prompt, ids[:room]
                if beyond := len(ids[room:n]):
                    left_out[place] = beyond
        return {place: sent[place] for place in self.drawn if sent[place][1]}, left_out

    def measure(self, server: ProbedEndpoint, margin: float, watcher: Watcher) -> Likelihood:
        """Read the replies with the copy, and compare. Raises `Refused`, `ServerError` or `StoreError`."""
        readers = server, self.reference or server
        for reader in readers:
            if lack := lacks_reading(reader.engine):
                raise Refused(0, lack, reader.endpoint.base_url)
        context = min(reader.context or math.inf for reader in readers)
        sent, left_out = self.reply_tokens(context)
        if not sent:
            raise Refused(0, "its context is too small for any of the replies", server.endpoint.base_url)
        if left_out:
            watcher.warn(
                f"{sum(left_out.values()):,} tokens at the ends of {len(left_out):,} replies are skipped because they "
                f"exceed the context of {context:,} tokens"
            )
        # A reply that is cut here is not read to its end: a copy with a longer context needs more of it.
        drawn = {place: len(sent[place][1]) if place in left_out else self.drawn[place] for place in sent}
        readings = self.readings
        if (base := self.reference) is not None:
            again = self.base.with_name(self.base.name.replace("base", "again", 1))
            readings = (
                read_missing(base, self.base, drawn, sent, 1, watcher),
                read_missing(base, again, drawn, dict(reversed(sent.items())), base.at_once, watcher),
            )
        copy = self.base.with_name(file_of("copy", server, self.base.name))
        own = readings[1] if server is base else read_missing(server, copy, drawn, sent, server.at_once, watcher)
        compared = []
        for place, (_, ids) in sent.items():
            n, (first, second, third) = len(ids), (each[place] for each in (*readings, own))
            question = self.questions[place[0], place[1].question_id]
            compared.append(
                ComparedReply(
                    benchmark=place[0],
                    key=place[1],
                    cluster=f"{place[0]}\0{cluster_of(question)}",
                    base=np.array(first.logprobs[:n]),
                    again=np.array(second.logprobs[:n]),
                    copy=np.array(third.logprobs[:n]),
                    divergences=divergences(first, third, n),
                    noise=divergences(first, second, n),
                )
            )
        likelihood = compare(next(iter(readings[0].values())).server, compared, margin)
        copy.unlink(missing_ok=True)
        with contextlib.suppress(ServerError):  # A server without token endpoints provides no text.
            moved = [_with_texts(each, sent[each.benchmark, each.key][1], server) for each in likelihood.moved]
            likelihood = msgspec.structs.replace(likelihood, moved=moved)
            template = self._other_prompt(server, sent) or likelihood.template
            likelihood = msgspec.structs.replace(likelihood, template=template)
        return likelihood

    def _other_prompt(self, server: ProbedEndpoint, sent: Mapping[Place, Sent]) -> str:
        """How the copy's chat template departs from the base's prompts, in words; empty if it does not.

        server: the copy's server. sent: the token IDs that the base has read, by their places.
        """
        for place, (prompt, _) in [*sent.items()][:PROMPTS]:
            _, own = self.prompt(tokenizer_of(server), place)
            if own != prompt:
                n = next((i for i, pair in enumerate(zip(own, prompt, strict=False)) if pair[0] != pair[1]), 0)
                copy, base = (repr(_text_of(server, ids[n : n + CONTEXT_TOKENS])) for ids in (own, prompt))
                return f"from token {n + 1}, the copy's prompt has {copy}, but the base's prompt has {base}"
        return ""


def _refuse_another(server: ProbedEndpoint, run: RunFolder) -> None:
    """Raise `UsageError` if the reference reports that it is not the server that made a run: its readings would be
    stored under the run's name.
    """
    if changed := changes_of(Manifest.load(run).provenance, {server.endpoint.base_url: server.facts}).model:
        says = f"is not the server that produced {run.path.name}: {changed[0]._replace(where='')}"
        raise UsageError(f"{server.endpoint.base_url} {says}. Specify the server that produced it", field="reference")


def divergences(base: ReplyReading, other: ReplyReading, n: int) -> Array:
    """The divergence of another reading from the base's at each of n tokens; NaN where either lists too few tokens."""
    pairs = zip(base.tops[:n], other.tops[:n], strict=True)
    return np.array([divergence(p, q) if len(p) > 1 < len(q) else np.nan for p, q in pairs])


def tokenizer_of(server: ProbedEndpoint) -> Tokenizer:
    """The tokenizer of a server; if its engine is unknown, vLLM's is assumed."""
    return Tokenizer(server.endpoint, server.engine or "", server.asker.model)


def _written_text(sample: Sample, prompt: str) -> str:
    """The reply as the model wrote it, with its reasoning in the usual tags. prompt: the text before it."""
    if not sample.reasoning:
        return sample.text or ""
    opening = "" if prompt.rstrip().endswith(THINK) else f"{THINK}\n"
    closing = f"{THINK_END}\n\n{sample.text}" if sample.text else ""
    return f"{opening}{sample.reasoning}{closing}"


def _text_of(server: ProbedEndpoint, ids: list[int]) -> str:
    """The text of these token IDs, safe to show. Raises `ServerError`."""
    return quoted(server.redacted(tokenizer_of(server).text_of(ids))) if ids else ""


def _with_texts(token: MovedToken, ids: list[int], server: ProbedEndpoint) -> MovedToken:
    """The token with its text and the text before it. ids: token IDs of its reply. Raises `ServerError`."""
    i = token.position - 1
    texts = (_text_of(server, part) for part in (ids[i : i + 1], ids[max(0, i - CONTEXT_TOKENS) : i]))
    return msgspec.structs.replace(token, **dict(zip(("token", "before"), texts, strict=True)))


def check(options: ProbeOptions, server: ProbedEndpoint, watcher: Watcher) -> Check:
    """The check that reads the run's replies. Raises the same errors as `StoredReplies.of`."""
    replies = StoredReplies.of(options, server, watcher)

    def look(_subject: Subject) -> Observation:
        sent = f"{len(replies.drawn):,} replies from {replies.run.path.name}, to compute their log-probabilities"
        try:
            likelihood = replies.measure(server, options.margin, watcher)
        except Refused as refused:
            return untested(sent, refused.whose)
        outcome = OUTCOMES[likelihood.verdict]
        if (likelihood.verdict == "differs" and likelihood.reach <= options.margin) or (
            outcome == "pass" and likelihood.template
        ):
            outcome = "warn"
        return Observation(outcome=outcome, sent=sent, received=likelihood.sentence, likelihood=likelihood)

    return Check(
        name=NAME,
        group="reference",
        look=look,
        quick=False,
        tokens=sum(replies.drawn.values()),
        why="If a model and its base assign different likelihoods to the same replies, their sampling "
        "distributions differ.",
        fix="A difference does not necessarily mean a loss of accuracy; see `harness compare`. Differences in "
        "precision, cache, attention and weights affect all tokens, those in a template affect the first tokens, and "
        "those in sparse attention and RoPE scaling affect later tokens.",
    )
