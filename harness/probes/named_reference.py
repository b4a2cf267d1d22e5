"""The references that a server is compared with: another server or a file with the answers of one; their answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.client.wires.completions import COMPLETIONS
from harness.core import codec
from harness.core.about import __version__
from harness.core.errors import ServerError, UsageError
from harness.core.files import read_named
from harness.core.inert import quoted, visible
from harness.generation import fingerprint
from harness.options.probing import ProbeOptions
from harness.options.whom import WhichServer
from harness.preparing.watching import Watcher
from harness.probes.asking import Inquiry, ProbedServer, ProbeReply, Refused, first_top
from harness.probes.passages import VERSION, texts
from harness.probes.probed_endpoint import ProbedEndpoint, probed
from harness.probes.subject import TOP

MAX_BYTES = 64 * 1024 * 1024
"""Largest file of a saved reference, in bytes; usual ones have about 100 KB."""

ITSELF = "it is the probed server itself, with the same model; name another server"


NO_SUCH_PAGE = (404, 405, 501)
"""Statuses of a server that has no page for raw text."""

NEEDS_RAW_TEXT = (
    "this check sends raw text to POST /v1/completions and reads log-probabilities, which a server for chats only "
    "lacks; `greedy replies` needs only chat"
)

Likely = Mapping[str, float]
"""The likeliest tokens at a place → natural logarithms of their probabilities; empty where the server hides them."""


@dataclass
class ServerReference:
    """A reference that is a server. named: its name in a report."""

    server: ProbedServer
    named: str

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`."""
        with self._named():
            seeds = range(len(texts()))
            return [first_top(answer) for answer in next_tokens(self.server, seeds, first_token(self.server, seeds))]

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        with self._named():
            return beginnings_of(self.server)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turn each failure of the reference server into a `Refused` that names the reference, since the probed server
        may be sound.
        """
        by = f"the reference {self.named}"
        try:
            yield
        except Refused as refused:
            raise Refused(refused.status, refused.words, by) from refused
        except ServerError as error:
            raise Refused(0, error.sentence, by) from error


class SavedReference(msgspec.Struct, frozen=True, kw_only=True):
    """A reference whose answers an earlier probe saved in a file.

    version: of the texts. address: the reference's name when it was saved. likeliest: the likeliest tokens at each
    place of `texts`. begun: the beginnings of the greedy replies.
    """

    kind: Literal["reference of a probe"] = "reference of a probe"
    version: str
    model: str
    engine: str | None
    address: str
    harness: str
    # The file's field keeps the name under which older versions saved it.
    likeliest: list[dict[str, float]] = msgspec.field(name="told")
    begun: list[str]

    @classmethod
    def of(cls, true: ServerReference) -> SavedReference:
        """Ask a reference for everything that its file is to hold. Raises `Refused`."""
        return cls(
            version=VERSION,
            model=true.server.asker.model,
            engine=true.server.engine,
            address=true.named,
            harness=__version__,
            likeliest=[dict(likely) for likely in true.likely()],
            begun=list(true.beginnings()),
        )

    @classmethod
    def read(cls, path: Path) -> SavedReference:
        """Read a saved reference. Raises `UsageError`."""
        try:
            saved = codec.decode(read_named(path, MAX_BYTES), cls)
        except (OSError, codec.DecodeError) as error:
            raise UsageError(
                f"this file is no saved reference ({error}); save_reference writes one",
                field="reference",
                value=path,
            ) from error
        if saved.version != VERSION or len(saved.likeliest) != len(texts()):
            raise UsageError(
                f"harness {visible(saved.harness, 40)} saved it with other texts than this version uses: save the "
                f"reference again",
                field="reference",
                value=path,
            )
        return saved

    @property
    def named(self) -> str:
        """The reference's name in a report."""
        return f"{quoted(self.model)} as kept"

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`."""
        return self.likeliest

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        return self.begun


Reference = ServerReference | SavedReference


def named_by(options: ProbeOptions, watcher: Watcher) -> Reference | None:
    """The reference that the options name: a saved file, the address of a server with or without #MODEL, or the name of
    a running server; None without one.

    A server that is the reference never gets the probed server's key or headers: its key is its provider's usual one.
    Raises `UsageError`, `ServerError`.
    """
    named = options.reference
    if named is None:
        return None
    if Path(named).exists() or Path(named).suffix == ".json":
        if options.extra_body:
            raise UsageError(
                "extra_body is sent to servers only, and a saved reference has the replies to "
                "plain requests: name a server, or leave the fields out",
                field="reference",
                value=named,
            )
        return SavedReference.read(Path(named))
    url, _, model = named.partition("#")
    who = WhichServer.of(base_url=url, model=model or None)
    try:
        (server, *_) = probed(who, watcher, options, shared_key=False)
    except (ServerError, UsageError) as error:
        raise type(error)(f"the reference: {error.sentence}") from error
    return ServerReference(server, server.endpoint.base_url)


def is_same_server(ours: ProbedEndpoint, theirs: ProbedServer) -> bool:
    """Whether both are the same model at the same address."""
    same_model = ours.asker.model == theirs.asker.model
    return same_model and isinstance(theirs, ProbedEndpoint) and ours.endpoint.base_url == theirs.endpoint.base_url


# ---- what a server answers


def first_token(server: ProbedServer, seeds: Sequence[int]) -> ProbeReply | Refused:
    """The server's answer for the first of the fixed texts. Raises `Refused` if the server takes no raw text, so that
    it would refuse all further requests, too. seeds: of the requests for all texts.
    """
    (answer,) = server.many(_next_token_bodies(server, seeds)[:1], COMPLETIONS)
    if isinstance(answer, Refused) and answer.status in NO_SUCH_PAGE:
        raise Refused(answer.status, f"{answer.words or 'no explanation'}; {NEEDS_RAW_TEXT}")
    return answer


def next_tokens(server: ProbedServer, seeds: Sequence[int], first: ProbeReply | Refused) -> list[ProbeReply | Refused]:
    """Return the server's answers for one next token after each of the fixed texts. first: its answer for the first.

    Raises `Refused` if no reply has log-probabilities.
    """
    answers = [first, *server.many(_next_token_bodies(server, seeds)[1:], COMPLETIONS)]
    if not any(map(first_top, answers)):
        raise next((answer for answer in answers if isinstance(answer, Refused)), None) or Refused(
            0, "no log-probabilities came"
        )
    return answers


def _next_token_bodies(server: ProbedServer, seeds: Sequence[int]) -> list[Mapping[str, Any]]:
    """The requests for one next token after each of the fixed texts, each with its seed."""
    common = {"max_tokens": 1, "temperature": 1.0, "top_p": 1.0, **COMPLETIONS.likeliest(TOP)}
    return [
        Inquiry(text, {"seed": seed, **common}, COMPLETIONS).body(server.asker)
        for seed, (_, text) in zip(seeds, texts(), strict=True)
    ]


def beginnings_of(server: ProbedServer) -> list[str]:
    """The beginnings of a server's greedy replies to the prompts of a run's fingerprint, as a fingerprint stores them.

    Raises `Refused` where a request fails.
    """
    template = fingerprint.template(server.asker, fingerprint.neutral_values(server.asker))
    template = replace(template, spelling=replace(template.spelling, stream=False, token_ids=False))
    replies = server.every([codec.decode(content) for content in fingerprint.bodies(template)], template.spelling.wire)
    return [reply.whole[: fingerprint.MAX_CHARS] for reply in replies]
