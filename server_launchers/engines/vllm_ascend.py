"""vLLM on Ascend NPUs: the same command as for vLLM, which loads the plug-in `vllm-ascend` automatically.

Versions must match: a vllm-ascend release works with one release each of vLLM, torch-npu and CANN (`MATRIX`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from server_launchers.command_line import ProcessCommand
from server_launchers.engines import vllm
from server_launchers.engines.engine import GPU_SERVER
from server_launchers.errors import LaunchError
from server_launchers.program import Program, version_key

if TYPE_CHECKING:
    from server_launchers.machine.environments import Facts
    from server_launchers.spec import ServerSpec

MATRIX = "https://docs.vllm.ai/projects/ascend/en/latest/community/versioning_policy.html"
"""Page that lists compatible versions."""


RELEASES = {
    "0.23.0": ("0.23.0", "9.1.0"),
    "0.18.0": ("0.18.0", "8.5.1"),
    "0.13.0": ("0.13.0", "8.5.0"),
    "0.9.1": ("0.9.1", "8.2.RC1"),
    "0.7.3": ("0.7.3.post1", "8.1.RC1"),
}
"""vLLM version → the matching releases of the plug-in and of CANN, newest first (`MATRIX`)."""


def install_line(version: str) -> str:
    """How to install a version of vLLM for NPUs, if its row of `RELEASES` is known."""
    vllm_version = next((known for known in RELEASES if version_key(known) == version_key(version)[:3]), None)
    if vllm_version is None:
        return f"no vllm-ascend version is known for vLLM {version}, only for {', '.join(RELEASES)}: see {MATRIX}"
    plugin, cann = RELEASES[vllm_version]
    return (
        f"with CANN {cann} set up (`source /usr/local/Ascend/ascend-toolkit/set_env.sh`; `npu-smi info` shows the "
        f"NPUs), in a separate environment: pip install vllm=={vllm_version} && "
        f"pip install vllm-ascend=={plugin}; see {MATRIX} for compatible versions"
    )


class VllmAscend(vllm.Vllm):
    """vLLM with the plug-in for Ascend."""

    summary = "Start vLLM on Ascend NPUs with the vllm-ascend plug-in."
    takes = GPU_SERVER - {"deterministic"} | {"images_per_prompt"}
    assumed_version = next(iter(RELEASES))
    accelerator = "ascend"

    def program(self, spec: ServerSpec) -> Program:
        """How to call the spec's version of vLLM; the hint says how to install it for NPUs."""
        return replace(super().program(spec), install=install_line(spec.engine_version or self.assumed_version))

    def check(self, spec: ServerSpec, facts: Facts) -> Facts:
        """The facts with the plug-in's version added.

        Raises LaunchError if the plug-in is missing, if it is for another version of vLLM, or if npu-smi reports an NPU
        as unhealthy.
        """
        installed = facts.versions.get(vllm.PROGRAM.package)
        # A container cannot be queried before the start.
        if installed is None or spec.docker is not None:
            return facts
        from server_launchers.machine import accelerators, environments

        plugin = replace(self.program(spec), package="vllm-ascend")
        version = environments.installed_version(environments.prefix(spec, plugin), plugin) or "unknown"
        if version_key(installed)[:3] != version_key(version)[:3]:
            raise LaunchError(f"vllm-ascend {version} does not work with vLLM {installed}: {install_line(installed)}")
        if unhealthy := accelerators.unhealthy_ascend():
            raise LaunchError(f"npu-smi reports an unhealthy device: {unhealthy[0]}")
        return replace(facts, versions={**facts.versions, "vllm_ascend": version})

    def command(self, spec: ServerSpec, version: str, port: int) -> ProcessCommand:
        """vLLM's command, with the environment variables with which several NPU nodes find each other.

        Raises LaunchError for what this version cannot do.
        """
        environment: dict[str, str] = {}
        if spec.interface is not None:
            environment |= {f"{part}_SOCKET_IFNAME": spec.interface for part in ("HCCL", "GLOO", "TP")}
        if spec.node_address is not None:
            environment["HCCL_IF_IP"] = spec.node_address
        return self.base_command(spec, version, port).with_env(environment)


ENGINE = VllmAscend()
