"""llama.cpp through `xllamacpp`: GGUF files on CPU, or on a GPU if the build supports one.

Facts about its servers are from llama.cpp's tools/server/README.md and from running xllamacpp 2026.10.11549.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from server_launchers import isolated
from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import (
    MODELS,
    ROUTED,
    Body,
    Engine,
    EngineProfile,
    FactField,
    Neutral,
    Reading,
    TokenPages,
    fact_fields,
)
from server_launchers.errors import LaunchError, ModelError
from server_launchers.program import flag_pairs
from server_launchers.spec import flag_names

if TYPE_CHECKING:
    from server_launchers.machine.environments import Facts
    from server_launchers.spec import ServerSpec

# ---- how to recognize and communicate with its servers


def _text(_model: str, text: str, special: bool) -> Body:
    """The body of POST /tokenize for a text. special: whether to add the tokens that begin a prompt."""
    return {"content": text, "add_special": special, "parse_special": True}


_SAMPLING = (
    "temperature", "dynatemp_range", "top_k", "top_p", "min_p", "top_n_sigma", "typical_p", "xtc_probability",
    "repeat_last_n", "repeat_penalty", "presence_penalty", "frequency_penalty", "dry_multiplier", "mirostat",
    "samplers", "reasoning_format", "chat_format", "lora",
)  # fmt: skip
"""Sampling values of the server that /props reports."""

PROFILE = EngineProfile(
    name="llama.cpp",
    parser_flags="llama.cpp: a chat template that supports tools",
    binds_calls=True,
    source="tools/server/README.md of llama.cpp; seen on xllamacpp 2026.10.11549",
    owned_by="llamacpp",
    writes_by_schema=True,
    marks="meta",
    facts=(
        *fact_fields(
            MODELS, "model", ("meta",), parameters="n_params", bytes="size", quantization="ftype", vocabulary="n_vocab"
        ),
        *fact_fields("/props", "model", model_path="model_path"),
        FactField("chat_template", "model", "/props", ("chat_template",), digest=True),
        *fact_fields(
            "/props",
            "model",
            ("default_generation_settings", "params"),
            **{f"sampling_defaults.{name}": name for name in _SAMPLING},
        ),
        *fact_fields(
            "/props", "host", version="build_info", slots="total_slots", context="default_generation_settings/n_ctx"
        ),
    ),
    # One request may use its slot's share of the context.
    context=Reading("/props", ("default_generation_settings", "n_ctx")),
    at_once=(Reading("/props", ("total_slots",)),),
    neutral=Neutral(
        {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0},
        "tools/server/README.md (top_k 40, min_p 0.05 if omitted); /props of xllamacpp 2026.10.11549",
    ),
    names={"repetition_penalty": "repeat_penalty"},
    tokens=TokenPages(_text, template="/apply-template"),
    too_long=(r"exceed_context_size_error", r"exceeds the available context size"),
)
"""How to recognize and communicate with llama.cpp's servers."""

# ---- how it is started


class LlamaCpp(Engine):
    """The embedded server."""

    summary = "Start the embedded CPU server with a GGUF file or a model from `harness serve --models`."
    takes = ROUTED | {
        "served_name",
        "api_key_env",
        "python",
        "context",
        "max_sequences",
        "threads",
        "chat_template",
    }
    devices = "none"
    fetches_weights = True
    profile = PROFILE

    def served_as(self, spec: ServerSpec) -> str:
        """The file's name without its suffix."""
        return Path(spec.model).stem

    def command(self, spec: ServerSpec, _version: str, port: int) -> ProcessCommand:
        """The command that serves `spec.model`, a GGUF file, on `port`."""
        from server_launchers.embedded import llama_cpp_server

        # Started by file path, so that the interpreter of `--python` needs only the package xllamacpp.
        python = isolated.PYTHON if spec.python is None else str(spec.python)
        program = isolated.command(str(Path(llama_cpp_server.__file__).absolute()), python=python)
        options = flag_pairs(
            ("--host", spec.host),
            ("--port", port),
            ("--served-name", spec.served_name),
            ("--slots", spec.max_sequences),
            ("--context", spec.context),
            ("--threads", spec.threads),
            ("--chat-template", spec.chat_template and spec.chat_template.expanduser().absolute()),
            ("--api-key-env", spec.api_key_env),
        )
        model = str(Path(spec.model).expanduser().absolute())
        return ProcessCommand((*program, model, *options, *spec.extra_flags), dict(spec.environment))

    def check(self, spec: ServerSpec, facts: Facts) -> Facts:
        """The facts with the processor added, and with this Python's facts if the server runs in it.

        This Python's facts are xllamacpp's version and the environment variables for OpenMP. Raises LaunchError if the
        model's file or xllamacpp is missing.
        """
        from server_launchers.embedded import llama_cpp_server, openmp
        from server_launchers.machine import accelerators

        if spec.python is None and importlib.util.find_spec("xllamacpp") is None:
            raise LaunchError(llama_cpp_server.MISSING)
        path = Path(spec.model).expanduser()
        if path.is_dir():
            raise ModelError(f"{spec.model} is a folder; llama_cpp serves GGUF files, such as {path}/*.gguf")
        if not path.is_file():
            raise ModelError(
                f"no model file at {spec.model}; llama_cpp serves GGUF files (to download one: `harness serve fetch "
                "smollm2-135m`)"
            )
        versions = {"devices": accelerators.processor()}
        # All of the embedded server's options are fields of the spec.
        facts = replace(facts, lacking=tuple(flag_names(spec.extra_flags).values()))
        if spec.python is not None:
            return replace(facts, versions=versions)
        from importlib import metadata

        versions = {"xllamacpp": metadata.version("xllamacpp"), **versions}
        return replace(facts, versions=versions, environment=openmp.environment())


ENGINE = LlamaCpp()
