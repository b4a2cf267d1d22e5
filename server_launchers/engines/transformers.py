"""The server of Hugging Face transformers: `transformers serve MODEL`, for models that no faster engine supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_launchers.command_line import ProcessCommand
from server_launchers.engines.engine import PACKAGED, Engine
from server_launchers.program import Program, flag_pairs, install_hint, local_model, of_version

if TYPE_CHECKING:
    from server_launchers.spec import ServerSpec

TESTED_VERSION = "5.23.0"
"""The newest version that was tried."""
INSTALL = install_hint(f"'transformers[serving]=={TESTED_VERSION}' torch")
PROGRAM = Program(
    "transformers", ("-m", "transformers.cli.transformers"), "transformers", INSTALL, subcommand=("serve",)
)


class Transformers(Engine):
    """The server of transformers."""

    summary = "Start Hugging Face Transformers (`transformers serve`)."
    takes = PACKAGED | {
        "device",
        "dtype",
        "quantization",
        "attention_backend",
        "seed",
        "trust_remote_code",
        "max_batched_tokens",
        "memory_fraction",
    }
    assumed_version = TESTED_VERSION
    # Its model list shows the hub's cache, and fails without a network.
    lists_models = False

    def program(self, spec: ServerSpec) -> Program:
        """How to call it."""
        return of_version(PROGRAM, TESTED_VERSION, spec.engine_version)

    def command(self, spec: ServerSpec, _version: str, port: int) -> ProcessCommand:
        """The command for one replica on `port`."""
        words = [*PROGRAM.subcommand, local_model(spec)]
        words += flag_pairs(
            ("--host", spec.host),
            ("--port", port),
            ("--device", spec.device),
            ("--dtype", spec.dtype),
            ("--quantization", spec.quantization),
            ("--attn-implementation", spec.attention_backend),
            ("--default-seed", spec.seed),
            ("--trust-remote-code", spec.trust_remote_code),
            ("--continuous-batching", spec.max_batched_tokens is not None),
            ("--cb-max-batch-tokens", spec.max_batched_tokens),
            ("--cb-max-memory-percent", spec.memory_fraction),
        )
        return ProcessCommand((*words, *spec.extra_flags), dict(spec.environment))


ENGINE = Transformers()
