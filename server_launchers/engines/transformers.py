"""The server of Hugging Face transformers: `transformers serve MODEL`; for models that no faster engine knows.

python -m server_launchers.engines.transformers Qwen/Qwen3-0.6B
"""

from __future__ import annotations

import sys

from server_launchers.deployment import Command, Readiness, flag_pairs
from server_launchers.engines import environments
from server_launchers.engines.environments import Program
from server_launchers.engines.known_flags import Flags
from server_launchers.errors import LaunchError
from server_launchers.spec import ServerSpec

# Its list of models is that of the hub's cache, and an error without a network.
READINESS = Readiness(lists_models=False)
TESTED_VERSION = "5.23.0"
INSTALL = environments.install_hint(f"'transformers[serving]=={TESTED_VERSION}' torch")
PROGRAM = Program("transformers", ("-m", "transformers.cli.transformers"), "transformers")


def help_argv(spec: ServerSpec) -> tuple[str, ...]:
    """What prints the options when `--help` is added."""
    return (*environments.prefix(spec, PROGRAM), "serve")


def command(spec: ServerSpec, flags: Flags, *, port: int) -> Command:
    """The command for one replica on `port`; raises LaunchError for what this server cannot do."""
    unsupported = {
        "--tp": spec.tp > 1,
        "--pp": spec.pp > 1,
        "--nodes": spec.nodes > 1,
        "--context": spec.context,
        "--reasoning-parser": spec.reasoning_parser,
        "--served-name": spec.served_name,
        "--chat-template": spec.chat_template,
        "--api-key-env": spec.api_key_env,
        "--docker": spec.docker,
    }
    if given := [flag for flag, value in unsupported.items() if value]:
        raise LaunchError(f"transformers serve has nothing like {', '.join(given)}; leave it out or use vllm or sglang")
    words = ["serve", environments.local_model(spec)]
    words += flag_pairs(
        (
            ("--host", spec.host),
            ("--port", port),
            ("--device", spec.device),
            ("--dtype", spec.dtype),
            ("--quantization", spec.quantization),
            ("--attn-implementation", spec.attention_backend),
            ("--default-seed", spec.seed),
            ("--trust-remote-code", spec.trust_remote_code),
            ("--continuous-batching", spec.max_sequences is not None or spec.max_batched_tokens is not None),
            ("--cb-max-batch-tokens", spec.max_batched_tokens),
            ("--cb-max-memory-percent", spec.memory_fraction),
        )
    )
    flags.check([*words, *spec.extra_flags])
    return Command((*environments.prefix(spec, PROGRAM), *words, *spec.extra_flags), dict(spec.environment))


if __name__ == "__main__":
    from server_launchers.foreground import main

    sys.exit(main("transformers"))
