"""TensorRT-LLM on NVIDIA GPUs: `trtllm-serve MODEL`. Its options come from its sources; the harness never ran it.

The server calls a model in a folder by the folder's name, and supports no key.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from server_launchers.deployment import ProcessCommand
from server_launchers.engines.engine import PACKAGED, Engine, Launcher
from server_launchers.program import Program, flag_pairs, install_hint, local_model

if TYPE_CHECKING:
    from server_launchers.machine.known_flags import Flags
    from server_launchers.spec import ServerSpec

READ_VERSION = "1.2.0"
INSTALL = install_hint(f"tensorrt_llm=={READ_VERSION}", f"--docker nvcr.io/nvidia/tensorrt-llm/release:{READ_VERSION}")
PROGRAM = Program("trtllm-serve", ("-m", "tensorrt_llm.commands.serve"), "tensorrt_llm", INSTALL)


def command(spec: ServerSpec, flags: Flags, port: int) -> ProcessCommand:
    """The command for one replica on `port`; raises LaunchError for an option that its version does not know."""
    words = [local_model(spec)]
    words += flag_pairs(
        (
            ("--host", spec.host),
            ("--port", port),
            ("--tp_size", spec.tp if spec.tp > 1 else None),
            ("--pp_size", spec.pp if spec.pp > 1 else None),
            ("--max_seq_len", spec.context),
            ("--kv_cache_free_gpu_memory_fraction", spec.memory_fraction),
            ("--max_batch_size", spec.max_sequences),
            ("--max_num_tokens", spec.max_batched_tokens),
            ("--reasoning_parser", spec.reasoning_parser and spec.reasoning_parser.replace("_", "-")),
            ("--chat_template", spec.chat_template and spec.chat_template.expanduser().absolute()),
            ("--trust_remote_code", spec.trust_remote_code),
        )
    )
    flags.check([*words, *spec.extra_flags])
    return ProcessCommand((*words, *spec.extra_flags), dict(spec.environment))


def served_as(spec: ServerSpec) -> str:
    """The name by which the server serves the model: the name of its folder, else the model as the spec has it."""
    folder = Path(spec.model).expanduser()
    return folder.absolute().name if folder.is_dir() else spec.model


LAUNCHER = Launcher(
    takes=PACKAGED
    | {"tp", "pp", "docker", "context", "memory_fraction", "max_sequences", "max_batched_tokens"}
    | {"reasoning_parser", "chat_template", "trust_remote_code"},
    instead=", or give its own file of settings: `-- --config FILE`",
    program=lambda _spec: PROGRAM,
    command=command,
    served_as=served_as,
)

ENGINE = Engine(summary="TensorRT-LLM's trtllm-serve.", launcher=LAUNCHER)
