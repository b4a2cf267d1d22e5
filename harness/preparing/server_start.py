"""Starts the server that a run's options describe; `checked_spec` first checks it against the prompts of the run."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.core import plugins
from harness.core.errors import UsageError, misspelled
from harness.core.options import options_of
from harness.core.sanitize import visible
from harness.generation.context import fitted_max_tokens, may_lower
from harness.generation.network.control import Signals
from harness.preparing.run_questions import RunQuestions
from harness.preparing.run_settings import refuse_other_settings
from harness.progress.events import Watcher
from server_launchers.engines import table as engines

if TYPE_CHECKING:
    from server_launchers.lifecycle.launch import RunningServer
    from server_launchers.spec import ServerSpec


EVERYBODY = frozenset({"0.0.0.0", "::"})  # noqa: S104 - known in order to be warned of
"""Addresses that let a server listen on every network of its machine."""


def started_for(questions: RunQuestions, watcher: Watcher) -> RunningServer:
    """Start the server that the options of these questions describe.

    Errors are detected before the start as far as possible: settings that differ from those of the stored samples, a
    prompt that does not fit, or a folder that is not writable should not cost minutes of loading weights.
    """
    refuse_other_settings(questions)
    spec = checked_spec(questions, watcher)
    if (folder := questions.options.folder(questions.options.model)) is not None:
        folder.create()
    return launch_server(spec, watcher)


def checked_spec(questions: RunQuestions, watcher: Watcher | None = None) -> ServerSpec:
    """The server to start, checked against the benchmarks before minutes are spent on starting it.

    Raises `UsageError`, and `ServerError` if a prompt with its max_tokens does not fit the server's context.
    """
    options, preset = questions.options, questions.preset
    assert options.serve is not None
    assert options.model is not None
    fields = dict(options.serve)
    engine = fields.pop("engine")
    known_engine = engines.find(engine)
    if preset is not None and known_engine is not None:
        if preset.reasoning_parser is not None and "reasoning_parser" in known_engine.takes:
            fields.setdefault("reasoning_parser", preset.reasoning_parser.name_in(known_engine.parsers))
        if preset.context is not None and "context" in known_engine.takes:
            fields.setdefault("context", preset.context.tokens)
    most_images = max((len(each.images) for one in questions.sets for each in one.questions), default=0)
    if most_images and known_engine is not None and "images_per_prompt" in known_engine.takes:
        fields.setdefault("images_per_prompt", most_images)
    spec = spec_of(engine, fields.pop("model", None) or options.model, watcher or Watcher(), **fields)
    if spec.context is not None:
        for question_set in questions.sets:
            benchmark = questions.benchmarks[question_set.name]
            # A default max_tokens is lowered to the context, which is not an error.
            fit = may_lower(benchmark.origins, fit_context=options.fit_context)
            bound = benchmark.sampling.max_tokens
            # Only for its error; the value to send is recomputed from the context that the started server reports.
            fitted_max_tokens(question_set.name, question_set.selection, bound, spec.context, fit=fit)
    return spec


def spec_of(engine: str, model: str, watcher: Watcher, **fields: Any) -> ServerSpec:
    """The spec of the server that the fields describe; fetches the weights of a known small model.

    Raises `UsageError`.
    """
    spec = spec_without_download(engine, model, **fields)
    if not engines.engine_of(spec).fetches_weights:
        return spec
    from server_launchers.embedded import weights

    if model not in weights.KNOWN:
        return spec
    path = weights.fetch(model, lambda what: watcher.standing(f"fetching {what}"))
    return spec.replace(model=str(path), served_name=spec.served_name or model)


def spec_without_download(engine: str, model: str, **fields: Any) -> ServerSpec:
    """Make the spec of a server to start, like `spec_of`, but without downloading a known model's weights.

    Raises `UsageError` that names the field.
    """
    from server_launchers.spec import ENGINES, ServerSpec

    if engine not in ENGINES and (line := plugins.function("launcher", engine)) is not None:
        words = (*_words_of(engine, line(model)), *fields.get("extra_flags", ()))
        engine, fields = engines.ANY_PROGRAM, fields | {"extra_flags": words}
    if engine not in ENGINES:
        there = f"unknown engine; expected one of {', '.join(ENGINES)}.{misspelled(engine, ENGINES)}"
        raise UsageError(there, field="serve", value=engine)
    known = options_of(ServerSpec)
    if unknown := [name for name in fields if name not in known]:
        raise UsageError(f"servers have no option {visible(unknown[0], 60)!r}.{misspelled(unknown[0], known)}")
    spec = ServerSpec(engine=engine, model=model, **fields)
    engines.engine_of(spec)  # raises an error for a field that does not fit its engine
    return spec


def _words_of(launcher: str, returned: object) -> Iterator[str]:
    """The words of a command that a plug-in's launcher returned. Raises `UsageError` for anything other than a list or
    tuple of words.
    """
    if not isinstance(returned, list | tuple) or not returned:
        raise UsageError(
            f"the plug-in launcher {visible(launcher, 100)!r} returned {visible(repr(returned), 100)}; expected "
            "a command line as a list of words, such as ['program', '{port}']"
        )
    return map(str, returned)


def launch_server(spec: ServerSpec, watcher: Watcher, *, stem: str = "", detach: bool = False) -> RunningServer:
    """Start a server, wait until it is ready, and return it.

    Raises `ServerError` if it does not become ready, `Interrupted` if a signal arrives in the meantime.

    stem: the beginning of the server's name; if empty, the model's name. detach: the server outlives this process.
    """
    from server_launchers.lifecycle import launch

    if spec.host in EVERYBODY and spec.api_key_env is None:
        watcher.warn(
            f"`host={spec.host}` lets anyone on the network use the server: set a key "
            f"(`api_key_env`), or listen on 127.0.0.1."
        )
    begun = time.monotonic()
    # Loading takes minutes; a signal during this time must not leave a server process behind.
    with Signals(
        lambda number: (
            f"stopped by {signal.Signals(number).name} while the server for {spec.model or spec.engine} was "
            "starting. The server was removed. Run the same command to start it again."
        )
    ):
        server = launch.launch(spec, stem=stem, detach=detach, on_progress=watcher.starting)
    state = f"answers at {', '.join(server.base_urls)}" if server.base_urls else f"runs on node {spec.node_rank}"
    watcher.standing(f"{server.name}: {visible(server.model)} {state} after {time.monotonic() - begun:.1f} s")
    return server
