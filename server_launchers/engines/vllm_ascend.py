"""vLLM on Ascend NPUs: the same command as for vLLM, which loads the plug-in `vllm-ascend` by itself.

Versions belong together: a vllm-ascend release works with one vLLM release, one torch-npu and one CANN (`MATRIX`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from server_launchers.command_line import ProcessCommand
from server_launchers.engines import vllm
from server_launchers.engines.engine import GPU_SERVER
from server_launchers.errors import LaunchError
from server_launchers.program import Program, of_version, version_key

if TYPE_CHECKING:
    from server_launchers.machine.environments import Facts
    from server_launchers.spec import ServerSpec

MATRIX = "https://docs.vllm.ai/projects/ascend/en/latest/community/versioning_policy.html"
"""Page that says which versions belong together."""


_NEWEST = "0.23.0"
"""The newest version of vLLM and of the plug-in that was released for NPUs."""
INSTALL = (
    "with CANN 9.1.0 in place (`source /usr/local/Ascend/ascend-toolkit/set_env.sh`; `npu-smi info` shows the NPUs), "
    f"in an environment of its own: pip install vllm=={_NEWEST} && pip install vllm-ascend=={_NEWEST}; {MATRIX} says "
    "which versions belong together"
)


class VllmAscend(vllm.Vllm):
    """vLLM with the plug-in for Ascend."""

    summary = "vLLM on Ascend NPUs, with the plug-in vllm-ascend."
    takes = GPU_SERVER - {"deterministic"}
    assumed_version = _NEWEST
    accelerator = "ascend"

    def program(self, spec: ServerSpec) -> Program:
        """How vLLM of the spec's version is called; the hint says how to install it for NPUs."""
        # Only the plug-in has later builds, such as 0.7.3.post1 for vLLM 0.7.3.
        program = of_version(replace(super().program(spec), install=INSTALL), _NEWEST, spec.engine_version)
        return replace(program, install=re.sub(r"(vllm==[0-9.]+)\.post\d+", r"\1", program.install))

    def check(self, spec: ServerSpec, facts: Facts) -> Facts:
        """The facts with the plug-in's version added.

        Raises LaunchError if the plug-in is missing, if it is for another version of vLLM, or if npu-smi reports an NPU
        as unhealthy.
        """
        installed = facts.versions.get(vllm.PROGRAM.package)
        # In a container nothing can be asked before the start.
        if installed is None or spec.docker is not None:
            return facts
        from server_launchers.machine import accelerators, environments

        plugin = replace(self.program(spec), package="vllm-ascend")
        version = environments.installed_version(environments.prefix(spec, plugin), plugin) or "unknown"
        if version_key(installed)[:3] != version_key(version)[:3]:
            raise LaunchError(
                f"vllm-ascend {version} does not go with vLLM {installed}: {MATRIX} says which belong together"
            )
        if unhealthy := accelerators.unhealthy_ascend():
            raise LaunchError(f"npu-smi reports an unhealthy device: {unhealthy[0]}")
        return replace(facts, versions={**facts.versions, "vllm_ascend": version})

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """The command of vLLM, with the environment variables by which several NPU nodes find each other.

        Raises LaunchError for what this version cannot do.
        """
        environment: dict[str, str] = {}
        if spec.interface is not None:
            environment |= {f"{part}_SOCKET_IFNAME": spec.interface for part in ("HCCL", "GLOO", "TP")}
        if spec.node_address is not None:
            environment["HCCL_IF_IP"] = spec.node_address
        return self.on_any(spec, version, port).adding(environment)


ENGINE = VllmAscend()
