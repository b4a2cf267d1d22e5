"""Find the accelerators of this machine, and divide them among replicas."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from harness.core.cores import granted_cores
from harness.core.inert import visible
from server_launchers.errors import LaunchError
from server_launchers.machine.programs import output_of

Accelerator = Literal["cuda", "ascend"]

VARIABLES: dict[Accelerator, str] = {"cuda": "CUDA_VISIBLE_DEVICES", "ascend": "ASCEND_RT_VISIBLE_DEVICES"}
"""Kind → the variable that restricts a process to some devices (the visible-devices variable)."""


class Machine(msgspec.Struct, frozen=True):
    """The accelerators of one kind (such as NVIDIA GPUs) in this machine.

    ids: None if no tool lists them. names: the product name of each, in the order of `ids`; empty if unknown.
    """

    ids: tuple[str, ...] | None
    driver: str | None = None
    names: tuple[str, ...] = ()


def find(kind: Accelerator) -> Machine:
    """The accelerators of this kind for this process, according to the vendor's tool and the visible-devices
    variable."""
    machine = _nvidia() if kind == "cuda" else _ascend()
    ids = allowed(kind)
    return machine if ids is None else of_ids(machine, ids)


def allowed(kind: Accelerator) -> tuple[str, ...] | None:
    """The devices to which the visible-devices variable restricts this process; None: it is not set."""
    value = os.environ.get(VARIABLES[kind])
    # An empty variable leaves no device, as in CUDA itself; only an unset one means all.
    return None if value is None else tuple(part.strip() for part in value.split(",") if part.strip())


def of_ids(machine: Machine, ids: Sequence[str]) -> Machine:
    """The machine with only these devices; devices whose name is unknown are missing from `names`."""
    name_of = dict(zip(machine.ids or (), machine.names, strict=False))
    # A device may be given by its UUID, which is not in `machine.ids`; its name is known if all devices have the same
    # name.
    common_name = machine.names[0] if len(set(machine.names)) == 1 else None
    names = [name_of.get(device, common_name) for device in ids]
    return replace(machine, ids=tuple(ids), names=tuple(name for name in names if name is not None))


def processor() -> str:
    """The processor for a server without accelerators: its name and the cores it may use."""
    name = platform.machine()
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        if match := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            name = visible(match[1].strip(), 120)
    return f"{name}, {granted_cores()} cores"


def slices(
    kind: Accelerator, replicas: int, per_replica: int, devices: Sequence[str] | None, existing: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """The ids of each replica's devices, in order, with `per_replica` devices for each.

    devices: the ids to choose from; None: all existing devices. existing: the ids of the machine's devices; None if no
    tool lists them. Raises LaunchError if there are too few, or if one of `devices` does not exist.
    """
    needed = replicas * per_replica
    if devices is not None and existing is not None:
        absent = [name for name in devices if name not in existing]
        if absent:
            raise LaunchError(
                f"device {', '.join(absent)} does not exist: with this {VARIABLES[kind]}, `devices` can contain "
                f"{', '.join(existing) or 'none'}"
            )
    pool = devices if devices is not None else existing
    if pool is None:
        # Numbers from 0 are a guess; the engine reports a wrong number.
        pool = [str(index) for index in range(needed)]
    if len(pool) < needed:
        raise LaunchError(
            f"{replicas} x {per_replica} = {needed} devices are needed (replicas x devices per replica), "
            f"but only {len(pool)} are available ({', '.join(pool) or 'none'}); lower `tp`, `pp` or `dp`, choose "
            "other devices with `devices`, or set `device=cpu` for a program that does not need any"
        )
    return [tuple(pool[index * per_replica : (index + 1) * per_replica]) for index in range(replicas)]


def memory_holders() -> list[str]:
    """Processes that use GPU memory, as text; empty if no tool lists them."""
    rows = output_of("nvidia-smi", "--query-compute-apps=pid,used_memory,name", "--format=csv,noheader")
    return [visible(row) for row in rows.splitlines() if row.strip()]


def _nvidia() -> Machine:
    """The NVIDIA devices of this machine; `ids` is None without nvidia-smi."""
    listing = output_of("nvidia-smi", "--query-gpu=index,driver_version,name", "--format=csv,noheader")
    rows = [[cell.strip() for cell in row.split(",")] for row in listing.splitlines()]
    # nvidia-smi prints warnings, of a corrupted infoROM for example, between its rows.
    rows = [row for row in rows if len(row) >= 3 and row[0].isdigit()]
    if not rows:
        # If nvidia-smi exists but lists nothing, there is no device; if it does not exist, the devices are unknown.
        return Machine(() if shutil.which("nvidia-smi") else None)
    return Machine(tuple(row[0] for row in rows), rows[0][1], tuple(row[2] for row in rows))


def _ascend() -> Machine:
    """The Ascend devices that this process can see."""
    # npu-smi lists all devices, even in a container; /dev has files only for the devices that the container may use.
    names = (path.name.removeprefix("davinci") for path in Path("/dev").glob("davinci*"))
    numbers = sorted(int(name) for name in names if name.isdecimal())
    if not numbers:
        return Machine(() if shutil.which("npu-smi") else None)
    info = output_of("npu-smi", "info")
    version = re.search(r"Version:\s*(\S+)", info)
    return Machine(tuple(map(str, numbers)), version[1] if version else None)


def unhealthy_ascend() -> list[str]:
    """Lines of `npu-smi info` that report a device whose health is not OK."""
    rows = (row for row in output_of("npu-smi", "info").splitlines() if re.match(r"\|\s*\d+\s+\S+\s*\|", row))
    return [
        visible(row) for row in rows if re.search(r"\|\s*(Warning|Alarm|Critical|UNKNOWN)\s*\|", row, re.IGNORECASE)
    ]
