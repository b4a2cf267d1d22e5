"""Reads stored replies of a run by the base's server and by a copy's, and keeps what was read beside the run.

The *base* is the model, as it was served, that made the run's replies; the *copy* is the server that the probe
examines. To *read* a reply is to state the log-probabilities of its tokens behind its prompt. A reply's *place* is its
benchmark, question and number (`Place`); what is *sent* are the token ids of a prompt and its reply (`Sent`).

    RUN/likelihood/base-KEY.jsonl    a line for each reply: its token ids, and what the base makes of them
    RUN/likelihood/again-KEY.jsonl   the base's second reading
    RUN/likelihood/copy-KEY.jsonl    a copy's reading, until it is complete
    RUN/likelihood/pairs.jsonl       copies whose difference and samples are known (`points`)

KEY is a checksum of what the server is: its model, engine and all that it states of itself; and its address, or in its
place the command without ports, and the variables, of a server that was started here, whose port is another at each
start. The base reads the replies one by one, then in the opposite order with several in flight, which shows its noise.
The copy gets the base's own token ids. A line is stored as soon as it is read, so a probe that was killed goes on
behind it; but stored lines count only if the server still reads one of the replies alike.

Long: its records, files and readers are one protocol, and each needs the others' names.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import msgspec
import numpy as np

from harness.client.facts.tokens import THINK, THINK_END, Tokenizer
from harness.commands.imported_runs import open_scored
from harness.core import codec
from harness.core.errors import ServerError, UsageError
from harness.core.files import write_atomically
from harness.core.inert import quoted, visible
from harness.core.records import Key, Question, Sample, SampleRecord
from harness.deciding.comparison import PairedComparison
from harness.options.probing import ProbeOptions
from harness.options.whom import WhichServer
from harness.preparing import own_servers, servers
from harness.probes import points
from harness.probes.findings import Check, Observation, Outcome, untested
from harness.probes.inquiries import Refused
from harness.probes.likelihood import ComparedReply, Likelihood, MovedToken, Verdict, compare, divergence
from harness.probes.probed_endpoint import ProbedEndpoint, lacks_reading, probed
from harness.probes.subject import Subject
from harness.progress.watching import Watcher
from harness.runs import line_file, questions
from harness.runs.journal import read_samples
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest, changes_of
from harness.scoring.stats import Array
from harness.scoring.tally import cluster_of

NAME = "replies"
"""Name of the check."""

MIN_SHARE = 256
"""Smallest number of tokens that a question is drawn for; where there are too many questions, fewer are drawn."""

MIN_TOKENS = 8
"""The rest of a question's share, if it has fewer tokens, is left out."""

CHARS = 3
"""Characters of a token, for replies whose tokens no server counted."""

ANOTHER_NATS = 0.1
"""Stored lines count if a new reading of one differs by at most this, in the mean absolute difference: SmolLM2-135M
moves by 0.02 from float32 to bfloat16, by 0.15 to 5 bits.
"""

ROOM = 8
"""Tokens of a context that stay free: vLLM 0.32 reads a text only with room for one more token, SGLang 0.5.23 for 7."""

CONTEXT_TOKENS = 12
"""Number of tokens that are shown before a token that moved."""

PROMPTS = 3
"""Number of prompts that are made anew by the copy's template."""

OUTCOMES: Mapping[Verdict, Outcome] = {"same": "pass", "differs": "fail", "cannot tell": "untested"}
"""The result of the check by its verdict; a difference within the margin is a warning."""

Place = tuple[str, Key]
"""Benchmark and key of a reply."""

Sent = tuple[list[int], list[int]]
"""The token ids of a prompt and of the reply, as they are sent."""


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
    """Draw replies with at most `n_tokens` tokens, the same share of each question: how many tokens of each are read.

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
    # As many questions as get MIN_SHARE tokens each, or all that they have.
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


def stored(path: Path) -> dict[Place, ReplyReading]:
    """The longest stored reading of each reply. Raises `StoreError`."""
    lines = line_file.read_appended(path, ReplyReading, "Remove the file and pass `reference` again.", sealed=True)
    return {(each.benchmark, each.key): each for each in sorted(lines, key=lambda each: len(each.ids))}


def in_words(server: ProbedEndpoint) -> str:
    """The server in a report: model, address and engine."""
    return visible(f"{server.asker.model} at {server.endpoint.base_url} ({server.engine or 'unknown engine'})")


def file_of(kind: str, server: ProbedEndpoint, *more: str) -> str:
    """The name of the file for what this server reads."""
    where: str | list[str] = server.endpoint.base_url
    for started in own_servers.servers_at([server.endpoint]):
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
    """The readings of the replies; those that the file lacks are made and stored. Raises `Refused`, `ServerError`,
    `StoreError`.

    Another probe of the server may use the file at the same time, and empty it or remove it.
    """
    line_file.make_folder(path.parent)
    before = stored(path)
    for known in [place for place in before if place in sent][:1]:
        now = server.read(before[known].prompt, before[known].ids).logprobs
        if np.abs(np.subtract(now, before[known].logprobs)).mean() > ANOTHER_NATS:
            if not path.name.startswith("copy-"):  # All copies are compared with these values.
                raise UsageError(
                    f"{in_words(server)} computes different log-probabilities than the base did before. Specify the "
                    f"base's server. If the base was changed on purpose, remove {path.parent} and probe again",
                    field="reference",
                )
            watcher.warn(
                f"{in_words(server)} now computes different log-probabilities than before; the stored values will be "
                "replaced"
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
            server=in_words(server),
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
                    watcher.checking(f"{in_words(server)}: {n:,} of {len(missing):,} replies read")
        finally:
            # After Ctrl-C nobody waits for the replies under way.
            pool.shutdown(wait=not isinstance(sys.exception(), KeyboardInterrupt), cancel_futures=True)
    return before


@dataclass(frozen=True)
class StoredReplies:
    """The stored replies of a run, for one probe. drawn: tokens to read of each. base: the file of its readings.
    reference: the base's server, if it is asked. readings: the base's two, if it is not. copy: a run of the copy
    (as `points.Pair` has it). samples: benchmark → what that run is less this one; empty without it.
    """

    run: RunFolder
    manifest: Manifest
    drawn: dict[Place, int]
    base: Path
    reference: ProbedEndpoint | None = None
    readings: tuple[dict[Place, ReplyReading], ...] = ({}, {})
    copy: str = ""
    samples: Mapping[str, PairedComparison] = field(default_factory=dict)

    @classmethod
    def of(cls, options: ProbeOptions, copy: ProbedEndpoint, watcher: Watcher) -> StoredReplies:
        """Open the run and its base. copy: the server to examine. Raises `UsageError`, `StoreError`, `ServerError`."""
        run = RunFolder.open(options.replies or "")
        manifest = Manifest.load(run)
        drawn, folder = draw(run, manifest.benchmarks, options.read_tokens), run.path / points.FOLDER
        if options.reference is None:
            for path in sorted(folder.glob("again-*.jsonl"), key=lambda path: path.stat().st_mtime)[-1:]:
                base = path.with_name(path.name.replace("again", "base", 1))
                first, again = stored(base), stored(path)
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
        server, who = copy, WhichServer.of(base_url=url, model=model or None)
        try:
            named = {each.base_url for each in servers.find(who, shared_key=False).endpoints}
            if named != {copy.endpoint.base_url} or model not in ("", copy.asker.model):
                (server, *_) = probed(who, watcher, options, shared_key=False)
        except (ServerError, UsageError) as error:
            raise type(error)(f"the reference: {error.sentence}") from error
        _refuse_another(server, run, "reference")
        return cls(run, manifest, drawn, folder / file_of("base", server), server)

    def paired_with(self, sampled: Path, copy: ProbedEndpoint, watcher: Watcher) -> StoredReplies:
        """The same with a run that the copy has made. Raises `StoreError`, and `UsageError` for other questions."""
        run = open_scored(sampled)
        path, base = run.path.resolve(), self.run.path.resolve()
        if path == base:
            raise UsageError("this is the base's run; specify a run of the probed server", field="sampled")
        _refuse_another(copy, run, "sampled")
        samples = points.differences(self.run, run, watcher)
        return replace(self, copy=os.path.relpath(path, base.parent), samples=samples)

    @cached_property
    def questions(self) -> dict[tuple[str, str], Question]:
        """The questions of the drawn replies, by benchmark and id."""
        names = {name for name, _ in self.drawn}
        return {
            (name, each.question_id): each for name in names for each in questions.iterate(self.run.benchmark(name))
        }

    def prompt(self, tokenizer: Tokenizer, place: Place) -> tuple[str, list[int]]:
        """A prompt as a server's template makes it: its text and token ids. Raises `ServerError`."""
        question = self.questions[place[0], place[1].question_id]
        if question.prompt:
            return question.prompt, tokenizer.tokens_of(question.prompt, special=True)
        arguments = self.manifest.benchmarks[place[0]].identity.get("chat_template_kwargs") or {}
        return tokenizer.render(question.messages, arguments)

    def sent(self, context: float) -> tuple[dict[Place, Sent], dict[Place, int]]:
        """The token ids of the drawn replies: as the base has read them, else made by its tokenizer; as far as this
        context, in tokens, has room for them. And the number of tokens left out of each for which it has none.
        """
        before = self.readings[0] if self.reference is None else stored(self.base)
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
                    ids = tokenizer.tokens_of(_written(sample, text))
                room = int(min(n, max(0, context - ROOM - len(prompt))))
                sent[place] = prompt, ids[:room]
                if beyond := len(ids[room:n]):
                    left_out[place] = beyond
        return {place: sent[place] for place in self.drawn if sent[place][1]}, left_out

    def look(self, server: ProbedEndpoint, margin: float, watcher: Watcher) -> Likelihood:
        """Read the replies with the copy, and compare. Raises `Refused`, `ServerError`, `StoreError`."""
        readers = server, self.reference or server
        for reader in readers:
            if lack := lacks_reading(reader.engine):
                raise Refused(0, lack, reader.endpoint.base_url)
        context = min(reader.context or math.inf for reader in readers)
        sent, left_out = self.sent(context)
        if not sent:
            raise Refused(0, "its context is too small for any of the replies", server.endpoint.base_url)
        if left_out:
            watcher.warn(
                f"{sum(left_out.values()):,} tokens at the ends of {len(left_out):,} replies are skipped because they "
                f"exceed the context of {context:,} tokens"
            )
        # A reply that is cut here is not read to its end: a copy with more room asks for more of it.
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
        differences = {difference.of: difference.mean for difference in likelihood.benchmarks}
        shared = [name for name in differences if name in self.samples]
        points.note(
            self.run, [points.pair_of(self.copy, name, differences[name], self.samples[name]) for name in shared]
        )
        pairs = [pair for pair in points.stored(self.run) if pair.copy != self.copy]
        copy.unlink(missing_ok=True)
        expected = [
            each for name, difference in differences.items() if (each := points.expected(name, pairs, difference))
        ]
        likelihood = msgspec.structs.replace(likelihood, points=expected)
        with contextlib.suppress(ServerError):  # A server without pages of tokens shows no texts.
            moved = [_with_texts(each, sent[each.benchmark, each.key][1], server) for each in likelihood.moved]
            likelihood = msgspec.structs.replace(likelihood, moved=moved)
            template = self._other_prompt(server, sent) or likelihood.template
            likelihood = msgspec.structs.replace(likelihood, template=template)
        return likelihood

    def _other_prompt(self, server: ProbedEndpoint, sent: Mapping[Place, Sent]) -> str:
        """Where the copy's chat template departs from the base's prompts, in words; empty where it does not.

        server: the copy's. sent: as the base has read them, by their places.
        """
        for place, (prompt, _) in [*sent.items()][:PROMPTS]:
            _, own = self.prompt(tokenizer_of(server), place)
            if own != prompt:
                n = next((i for i, pair in enumerate(zip(own, prompt, strict=False)) if pair[0] != pair[1]), 0)
                copy, base = (repr(_text_of(server, ids[n : n + CONTEXT_TOKENS])) for ids in (own, prompt))
                return f"from token {n + 1}, the copy's prompt has {copy}, but the base's prompt has {base}"
        return ""


def _refuse_another(server: ProbedEndpoint, run: RunFolder, field: str) -> None:
    """Raise `UsageError` if a server states that it is not the one that made a run: what it reads would be stored under
    the run's name.
    """
    if changed := changes_of(Manifest.load(run).provenance, {server.endpoint.base_url: server.facts}).model:
        says = f"is not the server that produced {run.path.name}: {changed[0]._replace(where='')}"
        raise UsageError(f"{server.endpoint.base_url} {says}. Specify the server that produced it", field=field)


def divergences(base: ReplyReading, other: ReplyReading, n: int) -> Array:
    """The divergence of another reading from the base's at each of n tokens, NaN where either lists too few."""
    pairs = zip(base.tops[:n], other.tops[:n], strict=True)
    return np.array([divergence(p, q) if len(p) > 1 < len(q) else np.nan for p, q in pairs])


def tokenizer_of(server: ProbedEndpoint) -> Tokenizer:
    """The tokenizer of a server; one of an unknown engine is taken for vLLM's."""
    return Tokenizer(server.endpoint, server.engine or "", server.asker.model)


def _written(sample: Sample, prompt: str) -> str:
    """The reply as the model wrote it, its reasoning in the usual tags. prompt: the text before it."""
    if not sample.reasoning:
        return sample.text or ""
    opening = "" if prompt.rstrip().endswith(THINK) else f"{THINK}\n"
    closing = f"{THINK_END}\n\n{sample.text}" if sample.text else ""
    return f"{opening}{sample.reasoning}{closing}"


def _text_of(server: ProbedEndpoint, ids: list[int]) -> str:
    """The text of token ids, safe to show. Raises `ServerError`."""
    return quoted(server.shown(tokenizer_of(server).text_of(ids))) if ids else ""


def _with_texts(token: MovedToken, ids: list[int], server: ProbedEndpoint) -> MovedToken:
    """The token with its text and the text before it. ids: of its reply. Raises `ServerError`."""
    i = token.position - 1
    texts = (_text_of(server, part) for part in (ids[i : i + 1], ids[max(0, i - CONTEXT_TOKENS) : i]))
    return msgspec.structs.replace(token, **dict(zip(("token", "before"), texts, strict=True)))


def check(options: ProbeOptions, server: ProbedEndpoint, watcher: Watcher) -> Check:
    """The check that reads the run's replies. Raises as `StoredReplies.of`."""
    replies = StoredReplies.of(options, server, watcher)
    if options.sampled is not None:
        replies = replies.paired_with(options.sampled, server, watcher)

    def look(_subject: Subject) -> Observation:
        sent = f"{len(replies.drawn):,} replies from {replies.run.path.name}, to compute their log-probabilities"
        try:
            likelihood = replies.look(server, options.margin, watcher)
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
        fix="A difference is not a loss of accuracy; see `harness compare`. Precision, cache, attention and weights "
        "affect all "
        "tokens, a template affects the first tokens, and sparse attention and RoPE scaling affect later tokens.",
    )
