"""TensorRT-LLM on NVIDIA GPUs: `trtllm-serve MODEL`. Its options are read from its sources; it was not run here.

It calls a model that is a folder by the folder's name, and takes no key.
"""

from __future__ import annotations

from server_launchers.deployment import Command
from server_launchers.engines.launcher import PACKAGED, Launcher
from server_launchers.machine import accelerators, environments
from server_launchers.machine.environments import Program
from server_launchers.machine.known_flags import Flags, flag_pairs
from server_launchers.spec import ServerSpec

READ_VERSION = "1.2.0"
TAKES = (
    PACKAGED
    | {"tp", "pp", "docker", "context", "memory_fraction", "max_sequences", "max_batched_tokens"}
    | {"reasoning_parser", "chat_template", "trust_remote_code"}
)
INSTALL = environments.install_hint(
    f"tensorrt_llm=={READ_VERSION}", f"--docker nvcr.io/nvidia/tensorrt-llm/release:{READ_VERSION}"
)
PROGRAM = Program("trtllm-serve", ("-m", "tensorrt_llm.commands.serve"), "tensorrt_llm", INSTALL)


def command(spec: ServerSpec, flags: Flags, port: int, devices: str = "") -> Command:
    """The command for one replica on `port`; raises LaunchError for an option that its version does not know."""
    words = [environments.local_model(spec)]
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
    words += spec.extra_flags
    environment = dict(spec.environment)
    if spec.docker is not None:
        inside = Command(tuple(words), environment)
        kind = accelerators.kind_of(spec)
        return environments.contained(
            spec, spec.docker, ("trtllm-serve",), inside, port=port, kind=kind, devices=devices
        )
    return Command((*environments.prefix(spec, PROGRAM), *words), environment)


LAUNCHER = Launcher.of_package(
    lambda _spec: PROGRAM, command, TAKES, instead=", or give its own file of settings: `-- --config FILE`"
)
