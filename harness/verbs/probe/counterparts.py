"""Finds the reference that a probed server is compared with: another server, a saved reference, a run's fingerprint
(the first words of eight greedy replies), or a model on this machine.

A model's folder supplies its chat template and, where it holds weights, what transformers computes from them. A GGUF
file is served by llama.cpp for the length of the probe.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from harness.asking import servers
from harness.asking.options import ProbeOptions, WhichServer
from harness.asking.options.request import HowWritten
from harness.asking.watching import Watcher
from harness.core import codec
from harness.core.about import __version__
from harness.core.errors import Sentence, ServerError, StoreError, UsageError, option
from harness.core.inert import quoted, visible
from harness.core.secret import HIDDEN
from harness.generation import fingerprint
from harness.runs import RunFolder
from harness.runs.manifest import Manifest
from harness.verbs.probe import overlap, reference, template, tools
from harness.verbs.probe.asking import Refused
from harness.verbs.probe.connecting import probed
from harness.verbs.probe.findings import Check, untested
from harness.verbs.probe.probed_endpoint import ProbedEndpoint
from harness.verbs.probe.reference import Likely, ProbeReference, RunSpelling, ServerReference
from harness.verbs.probe.subject import TOP
from server_launchers import isolated
from server_launchers.engines.table import EMBEDDED, LIBRARY

SECONDS = 900.0
"""Seconds that a model on this machine may take to load and to compute 96 short texts and 8 replies on a CPU."""

MAX_BYTES = 64 * 1024 * 1024
"""Largest file of a saved reference, in bytes; usual ones have about 100 KB."""

KEY_OPTIONS = ("api_key_env", "api_key_file")
"""Options that name the probed server's key; the options for the reference's key have the prefix `reference_`."""

NO_NAME = re.compile(r"[\d.]+|[\da-f:.]*:[\da-f:.]*|localhost")
"""A host that is an IP address, or this machine."""

GGUF = ".gguf"
FILES = (GGUF, ".json", ".jinja")
"""Endings that mark a name as a file, not a server."""


class SavedReference(msgspec.Struct, frozen=True, kw_only=True):
    """A `ProbeReference` whose answers an earlier probe saved in a file.

    version: of the texts. address: the reference's name when it was saved. likeliest: the likeliest tokens at each
    place of `texts`. begun: the beginnings of the greedy replies. rounded: divergence in nats that rounding to 16 bits
    alone makes at each place; empty if unknown.
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
    rounded: list[Annotated[float, msgspec.Meta(ge=0)]] = []

    @classmethod
    def of(cls, true: ProbeReference) -> SavedReference:
        """Ask a reference for everything that its file is to hold. Raises `Refused`."""
        return cls(
            version=reference.VERSION,
            model=true.model,
            engine=true.engine,
            address=true.named,
            harness=__version__,
            likeliest=[dict(likely) for likely in true.likely()],
            begun=list(true.beginnings()),
            rounded=list(true.rounding()),
        )

    @classmethod
    def read(cls, path: Path) -> SavedReference:
        """Read a saved reference. Raises `UsageError`."""
        try:
            saved = codec.decode(template.read_bounded(path, MAX_BYTES), cls)
        except (OSError, codec.DecodeError) as error:
            raise UsageError(
                f"this file is no saved reference ({error}); {option('save_reference')} writes one",
                field="reference",
                value=path,
            ) from error
        n = len(reference.texts())
        if saved.version != reference.VERSION or len(saved.likeliest) != n or len(saved.rounded) not in (0, n):
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

    @property
    def n_tokens(self) -> int:
        """Tokens requested so far: none, because the answers come from a file."""
        return 0

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`."""
        return self.likeliest

    def rounding(self) -> Sequence[float]:
        """How far rounding to 16 bits moves the model at each place of `texts`, in nats; empty if unknown."""
        return self.rounded

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        return self.begun


@dataclass(frozen=True)
class RunFingerprint:
    """The fingerprint of a stored run as a reference: it has only the beginnings of eight greedy replies."""

    named: str
    begun: Sequence[str]

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        return self.begun


@dataclass
class FolderReference:
    """A `ProbeReference` that computes a model's weights on this machine: transformers in a child process.

    Only safetensors are read, and no code of the model runs. python: an interpreter with torch and transformers. texts:
    the texts whose next token the model predicts.
    """

    path: Path
    python: str = isolated.PYTHON
    texts: Sequence[str] = field(default_factory=lambda: [text for _, text in reference.texts()])
    n_tokens: int = 0
    engine: str | None = LIBRARY

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.path.absolute().name

    @property
    def named(self) -> str:
        """The reference's name in a report."""
        return f"{quoted(self.model)} in transformers"

    def likely(self) -> Sequence[Likely]:
        """The likeliest tokens at each place of `texts`."""
        return self._output.likely

    def rounding(self) -> Sequence[float]:
        """How far rounding to 16 bits moves the model at each place of `texts`, in nats; empty if unknown."""
        computed = self._output
        if not computed.rounded:
            return ()
        pairs = zip(computed.rounded, computed.likely, strict=True)
        return [overlap.divergence(rounded, exact) for rounded, exact in pairs]

    def beginnings(self) -> Sequence[str]:
        """The beginnings of the greedy replies to the prompts of `fingerprint`."""
        return self._output.beginnings

    @cached_property
    def _output(self) -> _ChildOutput:
        """The output of the child process, computed once. Raises `Refused`."""
        request = {
            "path": str(self.path.absolute()),
            "texts": list(self.texts),
            "prompts": list(fingerprint.PROMPTS),
            "tokens": fingerprint.TOKENS,
            "top": TOP,
        }
        child = Path(__file__).with_name("transformers_child.py")
        by = f"the reference {self.named}"
        try:
            done = subprocess.run(
                isolated.command(str(child), python=self.python),
                input=json.dumps(request).encode(),
                capture_output=True,
                timeout=SECONDS,
                # The weights are on this machine; offline, a missing file fails at once instead of being sought on the
                # hub.
                env=isolated.environment(*isolated.MODELS, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1"),
                check=False,
            )
            output: _ChildOutput = codec.decode(done.stdout, _ChildOutput)
        except (subprocess.SubprocessError, codec.DecodeError) as error:
            raise Refused(0, f"transformers cannot load the model: {error}", by) from error
        if output.failure:
            raise Refused(0, output.failure, by)
        return output


class _ChildOutput(msgspec.Struct):
    """The output of the child process.

    likely: the likeliest tokens after each text. rounded: the same, computed in 16 bits; empty if `likely` is computed
    in 16 bits itself. beginnings: of the greedy replies. failure: why the model cannot be computed; else empty.
    """

    likely: list[dict[str, float]] = []
    rounded: list[dict[str, float]] = []
    beginnings: list[str] = []
    failure: str = ""


ITSELF = "the reference is the probed server itself, with the same model, so nothing is compared; name another server"
"""Why the checks against a reference are untested if it is the probed server."""


@dataclass(frozen=True)
class Counterpart:
    """The checks against a reference. true: the reference if next-token distributions of it are known; else None.
    server: the reference if it is a server; else None.
    """

    checks: tuple[Check, ...] = ()
    true: ProbeReference | None = None
    server: ProbedEndpoint | None = None

    def is_same_model(self, server: ProbedEndpoint) -> bool:
        """Whether the reference is `server` itself: the same model at the same address, by whatever name."""
        own = self.server
        if own is None or own.asker.model != server.asker.model:
            return False
        return _is_one_server(own.endpoint.base_url, server.endpoint.base_url)

    def of_itself(self) -> Counterpart:
        """The same checks, all untested: the reference is the probed server."""
        checks = tuple(replace(check, look=lambda _: untested("no request", ITSELF), tokens=0) for check in self.checks)
        return Counterpart(checks)

    @classmethod
    def weights(cls, true: ProbeReference, *further: Check) -> Counterpart:
        """The counterpart whose checks are the `further` ones and then the checks of weights against `true`."""
        return cls((*further, *reference.against(true)), true)


def _is_one_server(ours: str, theirs: str) -> bool:
    """Whether two addresses have the same path, port and IP address, and at most one of their hosts is a name: behind
    two names, one IP address may have two servers (virtual hosts).
    """
    urls = urlsplit(ours), urlsplit(theirs)
    hosts, (page, their_page) = (
        [url.hostname or "" for url in urls],
        [(url.path, url.port or url.scheme) for url in urls],
    )
    if hosts[0] == hosts[1] or page != their_page or not any(map(NO_NAME.fullmatch, hosts)):
        return ours == theirs
    try:
        first, second = ({entry[4][0] for entry in socket.getaddrinfo(host, None)} for host in hosts)
    except OSError:
        return False
    return bool(first & second)


@contextmanager
def counterpart(options: ProbeOptions, watcher: Watcher) -> Iterator[Counterpart]:
    """The checks against the reference; a server started for them lives for the length of the block.

    Raises `UsageError`, `ServerError`, `LaunchError`.
    """
    named = options.reference
    path = Path(named) if named is not None else None
    if named is None or path is None:
        yield Counterpart()
    elif path.is_file() and path.suffix == GGUF:
        spec = servers.spec(EMBEDDED, str(path.absolute()), watcher)
        with servers.launched(spec, watcher) as server:
            yield _server(WhichServer.of(base_url=server.base_urls[0]), path.name, watcher, options)
    elif path.exists():
        yield _of_path(path, options)
    elif path.suffix in FILES:
        raise UsageError("there is no such file; correct the path", field="reference", value=named)
    else:
        yield _of_address(named, options, watcher)


def _of_address(named: str, options: ProbeOptions, watcher: Watcher) -> Counterpart:
    """The checks against the server at `named`: an address with or without #MODEL, or the name of a running server.

    The reference never gets the probed server's key or headers: its key is the one that its own options name, else its
    provider's usual one.
    """
    url, _, model = named.partition("#")
    url = servers.address_of_running(url) or url
    keys = {name: getattr(options, f"reference_{name}") for name in KEY_OPTIONS}
    who = WhichServer.of(base_url=url, model=model or None, ca_file=options.ca_file, **keys)
    try:
        return _server(who, None, watcher, options)
    except ServerError as error:
        raise ServerError(_of_reference(error.sentence)) from error
    except UsageError as error:
        raise UsageError(_of_reference(error.sentence)) from error


def _of_reference(sentence: Sentence) -> str:
    """Return the sentence with the options for the reference's key in place of those for the probed server's key."""
    marked = sentence.marked
    for name in KEY_OPTIONS:
        # The last character closes the mark. It is not searched for, because the option's value may stand before it.
        marked = marked.replace(option(name)[:-1], option(f"reference_{name}")[:-1])
    return marked


def _server(who: WhichServer, name: str | None, watcher: Watcher, written: HowWritten) -> Counterpart:
    """The checks against another server. name: its name in the report; None: its address. written: the fields that all
    requests have, to both servers alike.
    """
    (server, *_) = probed(who, watcher, written, shared_key=False)
    named = name or server.endpoint.base_url
    # A field that the reference alone rejects ends no probe: the comparison is untested, the other checks stand.
    server.acceptance.answered = True
    return replace(Counterpart.weights(ServerReference(server, named), tools.against(server, named)), server=server)


def _of_path(path: Path, options: ProbeOptions) -> Counterpart:
    """The checks against a file or folder: a run, a saved reference, a model's folder or a chat template.

    Raises `UsageError` if the options add fields to all requests: all but a run are known for plain requests alone.
    """
    if path.is_dir() and (run := RunFolder(path)).manifest.exists():
        return Counterpart((reference.begun_alike(*_of_run(run)),))
    if options.further_fields is not None:
        raise UsageError(
            f"{option(options.further_fields)} is sent to servers only, so it needs a server, a GGUF file or a run's "
            "folder as the reference: name one of these, or leave the fields out",
            field="reference",
            value=path,
        )
    if path.suffix == ".json" and _is_saved_reference(path):
        return Counterpart.weights(SavedReference.read(path))
    own = template.against(template.ServerTemplate.of(path))
    if path.is_dir() and any(path.glob("*.safetensors")):
        return Counterpart.weights(FolderReference(path), own)
    return Counterpart((own,))


def _of_run(run: RunFolder) -> tuple[RunFingerprint, RunSpelling]:
    """The run's fingerprint, and how its requests were written. Raises `UsageError` if the run has no fingerprint."""
    try:
        manifest = Manifest.load(run)
    except StoreError as error:
        raise UsageError(error.sentence, field="reference", value=run.path) from error
    stored = fingerprint.comparable(manifest.provenance)
    if stored is None:
        raise UsageError(
            "the run has no fingerprint of this version (the first words of eight greedy replies of its server); "
            "name another reference",
            field="reference",
            value=run.path,
        )
    return RunFingerprint(f"the run {run.path.name}", stored.beginnings), _spelling(manifest, stored.neutral)


def _spelling(manifest: Manifest, neutral: Mapping[str, Any]) -> RunSpelling:
    """How the run's requests were written: API, thinking switch, further fields and prefill.

    The requests of all benchmarks of a run are written alike. Fields with a hidden value (a key) are left out.
    neutral: sampling values that the run sent so that the server's own defaults did not count.
    """
    first = next(iter(manifest.benchmarks.values()), None)
    identity = {} if first is None else first.identity
    switches, further = (identity.get(name) or {} for name in ("chat_template_kwargs", "extra_body"))
    return RunSpelling(
        api=identity.get("api", "chat"),
        chat_template_kwargs={name: value for name, value in switches.items() if value != HIDDEN},
        extra_body={name: value for name, value in further.items() if value != HIDDEN},
        prefill=None if first is None else first.begun,
        neutral=neutral,
    )


def _is_saved_reference(path: Path) -> bool:
    """Whether a .json file says that it is a saved reference."""
    try:
        # The kind is the first field; the tokenizer_config.json of a chat template is a .json file as well.
        return b"reference of a probe" in template.read_bounded(path, MAX_BYTES)[:200]
    except OSError:
        return False
