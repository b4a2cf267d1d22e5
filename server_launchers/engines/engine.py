"""The values in an engine's file: how to start it, optionally behind a router, and how to communicate with its servers.

Each file in this package ends with one `ENGINE`. Code that depends on the engine uses that value; no code compares
names. Every value of an `EngineProfile` has a source: the engine's own code or documentation, or the behavior of a
running server.

A router gives several replicas one address: sglang-router (for SGLang, llama.cpp, …) or vllm-router (for vLLM). A
router's `/health` returns OK even without workers; `/readiness` is reliable. SGLang's router reports a worker's model
as "unknown" unless the worker is an SGLang server.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from server_launchers import isolated
from server_launchers.command_line import ProcessCommand
from server_launchers.errors import LaunchError
from server_launchers.program import KEY_VARIABLE, Program, at_least, install_hint, key_arguments, version_key
from server_launchers.spec import flag_names

if TYPE_CHECKING:
    from server_launchers.machine.accelerators import Accelerator
    from server_launchers.machine.environments import Facts
    from server_launchers.spec import ServerSpec


class Readiness(msgspec.Struct, frozen=True):
    """The indications that a server of this engine is ready."""

    health_path: str | None = "/health"
    lists_models: bool = True
    """Whether `/v1/models` reliably lists the served model (a router may report "unknown")."""
    owns_port: bool = True
    """Whether the port must belong to a process that we started (false for a container or a third-party server)."""


# ---- routers


POLICY = "round_robin"
"""The router's policy: replicas take turns. A cache-aware policy would send a benchmark's identical prompts to one
replica.
"""
STARTUP_SECONDS = 86_400
"""Seconds that the router waits for its workers: a day, because startup has its own limit."""


class Router(msgspec.Struct, frozen=True):
    """One router.

    module: the router's Python module. version: the tested version. lists_models: whether the router's model list
    contains its workers' models.
    """

    module: str
    version: str
    lists_models: bool

    @property
    def readiness(self) -> Readiness:
        """The indications that the router and its workers are ready."""
        return Readiness("/readiness", lists_models=self.lists_models)

    @property
    def install(self) -> str:
        """The sentence that says how to install the router."""
        return install_hint(f"{self.module.replace('_', '-')}=={self.version}", option="router_python")

    @property
    def program(self) -> Program:
        """How to call the router: as a Python module."""
        return Program(None, ("-m", f"{self.module}.launch_router"), self.module.replace("_", "-"), self.install)

    def interpreter(self, spec: ServerSpec) -> str:
        """The Python that has the router installed: `--router-python`, or the engine's Python, or the one on PATH."""
        python = spec.router_python or spec.python
        return "python3" if python is None else str(python.expanduser())

    def preferred_interpreter(self, spec: ServerSpec) -> str:
        """The Python for the router.

        It is the Python given by `--router-python`, or ours if it has the router, or the engine's, or the one on PATH.
        """
        ours = spec.router_python is None and importlib.util.find_spec(self.module) is not None
        return isolated.PYTHON if ours else self.interpreter(spec)

    def command(
        self, spec: ServerSpec, workers: Sequence[str], *, python: str, port: int, metrics_port: int
    ) -> ProcessCommand:
        """The command that starts the router on `port` with the interpreter `python`.

        workers: addresses of the replicas, without `/v1`. metrics_port: the port where the router exposes its metrics.
        """
        words = ["--host", spec.host, "--port", str(port), "--worker-urls", *workers, "--policy", POLICY]
        words += ["--worker-startup-timeout-secs", str(STARTUP_SECONDS)]
        # By default, every router on a machine uses the same port for its metrics.
        words += ["--prometheus-host", spec.host, "--prometheus-port", str(metrics_port)]
        if spec.api_key_env is None:
            return ProcessCommand((python, *self.program.module, *words))
        return ProcessCommand((python, *key_arguments(self.program), *words), {}, {KEY_VARIABLE: spec.api_key_env})


SGLANG_ROUTER = Router("sglang_router", "0.3.2", lists_models=False)
VLLM_ROUTER = Router("vllm_router", "0.1.17", lists_models=True)


# ---- how to recognize an engine's servers by their answers, and how requests to them differ


MODELS = "/models"
"""Path of the model list. It is the only page below the base URL; all others are at the server's root."""

FactKind = Literal["model", "host"]
"""Whether a fact changes the distribution of replies ("model") or not ("host")."""

Body = dict[str, Any]
"""The body of a request, as JSON."""


class FactField(msgspec.Struct, frozen=True):
    """Where a page reports one fact about a server.

    path: keys from the page's object (in `MODELS`: from the model's entry) down to the value. kind: "model" if the fact
    changes the distribution of replies. digest: whether to store only a digest, for a long text.
    """

    name: str
    kind: FactKind
    page: str
    path: tuple[str, ...]
    digest: bool = False


def fact_fields(page: str, kind: FactKind, within: tuple[str, ...] = (), **names: str) -> tuple[FactField, ...]:
    """The fields of one page that contain facts. names: fact → its key in the object at `within`; `a/b` is key b of
    a."""
    return tuple(FactField(name, kind, page, (*within, *key.split("/"))) for name, key in names.items())


class Neutral(msgspec.Struct, frozen=True):
    """Sampling values that leave the distribution unchanged, under the engine's field names.

    source: where the engine defines them.
    """

    values: Mapping[str, Any]
    source: str


class Reading(msgspec.Struct, frozen=True):
    """Where a page reports a number.

    path: keys from the page's object down to the number. If the path reaches a list, it continues in the first of the
    list's objects that has the next key.
    """

    page: str
    path: tuple[str, ...]

    def value(self, page: Mapping[str, Any]) -> object:
        """The value at the end of `path` in `page`; None if there is none."""
        value: object = page
        for key in self.path:
            if isinstance(value, list):
                value = next((part for part in value if isinstance(part, Mapping) and key in part), None)
            value = value.get(key) if isinstance(value, Mapping) else None
        return value


def prompt_body(model: str, text: str, special: bool) -> Body:
    """The body of POST /tokenize for a text. special: whether to add the tokens that begin a prompt."""
    return {"model": model, "prompt": text, "add_special_tokens": special}


class TokenPages(msgspec.Struct, frozen=True):
    """The token pages: POST /tokenize and /detokenize, which have the same names on all engines here.

    of_text: builds the body for (model, text, special). template: the page that turns messages into text; None if
    /tokenize accepts messages itself.
    """

    of_text: Callable[[str, str, bool], Body] = prompt_body
    template: str | None = None


class EngineProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers of one engine report about themselves, and how to communicate with them. By default nothing is
    known.

    A model list reveals the engine: by `owned_by` in an entry, or by the key `marks`, whose object no other engine has.
    A router's list, which hides its workers' models, is recognized by the name `hides_behind`.
    """

    name: str
    """The engine's name in facts, reports and run folders."""
    source: str = ""
    """Address of the page that documents `facts`."""
    owned_by: str = ""
    marks: str = ""
    hides_behind: str = ""
    facts: tuple[FactField, ...] = ()
    context: Reading | None = None
    """Where the server reports how many tokens one request may use, if the model's entry does not."""
    at_once: tuple[Reading, ...] = ()
    """Where the server reports how many requests run at once; the first page that reports it is used."""
    neutral: Neutral | None = None
    """Sampling values that replace the server's own defaults; None if servers of this engine are not known to have such
    defaults.
    """
    names: Mapping[str, str] = {}
    """Our name of a sampling field → the engine's name, if they differ."""
    tokens: TokenPages | None = None
    obeys: Mapping[str, Mapping[str, tuple[int, ...]]] = {}
    """API → sampling field that is not part of the API → the first version whose servers obey it; earlier versions
    silently drop it. Taken from the request classes of their packages.
    """
    too_long: tuple[str, ...] = ()
    """Patterns in the error text for a prompt that is longer than the context."""
    dead: tuple[str, ...] = ()
    """Patterns in the error text of a server that still responds although its engine has died."""
    writes_by_schema: bool = False
    """Whether a chat request's `response_format` constrains the reply to a JSON schema."""
    reads_prompts: Literal["", "prompt_logprobs", "input_token_logprobs"] = ""
    """The field in which a reply contains the log-probabilities of the prompt's tokens; empty if there is none."""
    parser_flags: str = ""
    """How to start a server so that it parses calls, with `{vllm}` or `{sglang}` in place of the parser's name there.
    Empty: unknown.
    """
    binds_calls: bool | None = None
    """Whether a forced call is decoded under the schema of its tool, even without `strict`; None: unknown."""
    thinking_budget: tuple[str, ...] = ()
    """The field that limits the thinking tokens."""

    def obeyed_fields(self, api: str, version: str) -> frozenset[str]:
        """The sampling fields of `obeys` that servers of this version obey."""
        return frozenset(field for field, first in self.obeys.get(api, {}).items() if at_least(version, first))

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages to read for facts in addition to the model list, without duplicates."""
        return tuple(dict.fromkeys(fact.page for fact in self.facts if fact.page != MODELS))


# ---- the engine


STARTED = frozenset({"host", "port", "environment", "dp", "dp_mode", "start_timeout", "stop_grace", "restarts"})
"""Fields of the spec that apply to every process we start; the harness handles them itself, not the engine."""
ROUTED = STARTED | {"router_python"}
"""Fields accepted by every engine that can run behind a router."""
PACKAGED = ROUTED | {"python", "engine_version", "devices"}
"""Fields of the spec accepted by every engine that is a Python package."""
GPU_SERVER = PACKAGED | {
    "nodes", "node_rank", "head_address", "head_port", "interface", "node_address", "served_name", "api_key_env", "tp",
    "pp", "docker", "context", "memory_fraction", "max_sequences", "max_batched_tokens", "attention_backend", "dtype",
    "quantization", "reasoning_parser", "sampling_defaults", "deterministic", "seed", "eager", "prefix_caching",
    "chat_template", "trust_remote_code",
}  # fmt: skip
"""Fields of the spec that vLLM and SGLang accept, except `deterministic` on Ascend."""
MODEL_FLAGS = (
    "quantization",
    "dtype",
    "kv-cache-dtype",
    "load-format",
    "revision",
    "tokenizer",
    "tokenizer-mode",
    "chat-template",
    "reasoning-parser",
    "tool-call-parser",
)
"""Options of both command lines that change the distribution of replies."""


class Engine:
    """One engine. Each file creates one value of its own subclass, `ENGINE`; the attributes here are the usual values.

    Engines differ in `command`, `check`, `readiness` and `served_as`.
    """

    summary: str
    """The program that is started, described in a sentence for `harness serve --help` and the reference."""
    takes: frozenset[str]
    """Fields of the spec that the engine accepts; `table.engine_of` rejects all others."""
    needs: Literal["model", "extra_flags"] = "model"
    """The field that is required to start the engine."""
    assumed_version = ""
    """The version whose flags are used if the installed version is unknown."""
    lists_models = True
    """Whether the model list contains the served model."""
    spreads = False
    """Whether the engine itself can run several replicas (`dp_mode` engine)."""
    router: Router = SGLANG_ROUTER
    """The router for this engine's workers."""
    router_profile: EngineProfile | None = None
    """The profile of this engine's router, if it hides the type of its workers."""
    accelerator: Accelerator = "cuda"
    devices: Literal["sliced", "named", "none"] = "sliced"
    """When each replica gets its own accelerators: "sliced" always, "named" if the spec names some, or for several
    replicas if the spec specifies their kind or the machine has any, "none" never.
    """
    keeps_folder = False
    """Whether the engine is started in the caller's folder (see `replicas.PlannedProcess`)."""
    fetches_weights = False
    """Whether a model name from `harness serve --models` is first replaced with its file."""
    profile: EngineProfile | None = None
    """How to recognize and communicate with the engine's servers; None if they are known to speak only the OpenAI
    protocol.
    """
    parsers = ""
    """The key under which presets list this engine's reasoning parser names; empty: the engine uses vLLM's names.
    """
    model_flags: tuple[str, ...] = ()
    """Command-line options that change the distribution of replies, without dashes."""
    file_flags: tuple[str, ...] = ()
    """The options among `model_flags` whose value may be a file or folder; its content is then recorded in the run."""
    gone_since: ClassVar[Mapping[str, str]] = {}
    """Version → the flags, without dashes, that it is the first known not to have; `check_flags` rejects them."""
    missing_until: ClassVar[Mapping[str, str]] = {}
    """Version → the flags, without dashes, that it is the last known not to have."""

    def program(self, _spec: ServerSpec) -> Program | None:
        """How to call the engine if it is a Python package; the version is then read from its environment. None: it is
        a standalone program, such as a binary.
        """
        return None

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """The command of one replica or node; for an engine with a `program`, only that program's arguments.

        Raises LaunchError for features that this version does not support.
        """
        raise NotImplementedError

    def check(self, _spec: ServerSpec, facts: Facts) -> Facts:
        """The facts so far, plus those that this engine adds. Raises LaunchError if the machine does not meet its
        requirements."""
        return facts

    def served_as(self, spec: ServerSpec) -> str:
        """The model name for requests if the spec has no `served_name`; empty if only the running server can report
        it."""
        return spec.model

    def readiness(self, _spec: ServerSpec) -> Readiness:
        """The indications that a server of this spec is ready."""
        return Readiness(lists_models=self.lists_models)

    def client_name(self, spec: ServerSpec) -> str:
        """The model name for requests; empty if only the running server can report it."""
        return spec.served_name or self.served_as(spec)

    def runs_on(self, spec: ServerSpec) -> Accelerator:
        """The kind of accelerator that the engine uses."""
        return "ascend" if spec.device == "npu" else self.accelerator

    def full_command(self, spec: ServerSpec, version: str, port: int, devices: str) -> ProcessCommand:
        """The complete command of one replica or node. devices: the ids of its devices, joined by commas.

        For a Python package (`program`), the arguments from `command` after the script or interpreter, optionally in a
        container; any other engine's `command` is already complete. Raises LaunchError for features that this version
        does not have.
        """
        command, program = self.command(spec, version, port), self.program(spec)
        if program is None:
            return command
        from server_launchers.machine import environments  # Imported late: every client loads the engines.

        kind = self.runs_on(spec)
        return environments.whole_command(spec, program, command, port=port, kind=kind, devices=devices)

    def check_flags(self, spec: ServerSpec, version: str, lacking: Iterable[str] = ()) -> None:
        """Raise LaunchError for flags after ` -- ` that this version is known not to have. lacking: names of flags that
        the installed package does not have.
        """
        lacked = [flags for first, flags in self.gone_since.items() if at_least(version, version_key(first))]
        lacked += [
            flags for last, flags in self.missing_until.items() if not at_least(version, (*version_key(last), 1))
        ]
        names = {*" ".join(lacked).split(), *lacking}
        if unknown := [flag for flag, name in flag_names(spec.extra_flags).items() if name in names]:
            other = ", or set `engine_version` to the version to start" if version else ""
            engine = f"{spec.engine} {version}".strip()
            them = "them" if len(unknown) > 1 else "it"
            raise LaunchError(f"{engine} does not support {', '.join(unknown)}: omit {them}{other}")

    def assumed_facts(self, spec: ServerSpec) -> Facts:
        """Facts without querying the machine: the version from the spec or the assumed one, and no devices."""
        from server_launchers.machine.environments import Facts

        return Facts(spec.engine_version or self.assumed_version, router_python=self.router.interpreter(spec))

    def actual_facts(self, spec: ServerSpec) -> Facts:
        """Facts about this machine: the installed version of an engine that is a Python package, otherwise the assumed
        one; and for a spec with a router, the router's interpreter and its version if installed there.

        Raises LaunchError if the engine is missing or its version does not fit.
        """
        from server_launchers.machine.environments import installed_version, of_package

        facts = replace(self.assumed_facts(spec), router_python=self.router.preferred_interpreter(spec))
        if (program := self.program(spec)) is not None:
            facts = of_package(spec, program, self.runs_on(spec), facts)
        facts, version = self.check(spec, facts), None
        # Launching checks later that the router is installed; a dry run does not need the router.
        with contextlib.suppress(LaunchError):
            version = installed_version((facts.router_python,), self.router.program) if spec.routed else None
        return replace(facts, versions={**facts.versions, self.router.module: version}) if version else facts
