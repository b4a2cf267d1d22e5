"""Find the accelerators of this machine, and divide them among replicas."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from harness.core.cores import granted_cores
from harness.core.number_text import is_are
from harness.core.sanitize import visible
from server_launchers.errors import LaunchError
from server_launchers.machine.programs import NOT_INSTALLED, ask

Accelerator = Literal["cuda", "ascend"]

VARIABLES: dict[Accelerator, str] = {"cuda": "CUDA_VISIBLE_DEVICES", "ascend": "ASCEND_RT_VISIBLE_DEVICES"}
"""Kind → the variable that restricts a process to some devices (the visible-devices variable)."""


class Machine(msgspec.Struct, frozen=True):
    """The accelerators of one kind (such as NVIDIA GPUs) in this machine.

    ids: None if they are unknown. names: the product name of each, in the order of `ids`; empty if unknown. problem:
    why the vendor's tool lists none or not all of them, in its own words; empty if it succeeded or is not installed.
    """

    ids: tuple[str, ...] | None
    driver: str | None = None
    names: tuple[str, ...] = ()
    problem: str = ""


def find(kind: Accelerator) -> Machine:
    """The accelerators of this kind for this process, according to the vendor's tool and the visible-devices
    variable."""
    machine = _nvidia() if kind == "cuda" else _ascend()
    ids = allowed(kind)
    return machine if ids is None else select_devices(machine, ids)


def allowed(kind: Accelerator) -> tuple[str, ...] | None:
    """The devices to which the visible-devices variable restricts this process; None: it is not set."""
    value = os.environ.get(VARIABLES[kind])
    # An empty variable leaves no device, as in CUDA itself; only an unset one means all.
    return None if value is None else tuple(part.strip() for part in value.split(",") if part.strip())


def select_devices(machine: Machine, ids: Sequence[str]) -> Machine:
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
    kind: Accelerator, replicas: int, per_replica: int, devices: Sequence[str] | None, machine: Machine
) -> list[tuple[str, ...]]:
    """The ids of each replica's devices, in order, with `per_replica` devices for each.

    devices: the ids to choose from; None: all devices of `machine`. Raises LaunchError if there are too few, if the
    number is unknown, or if one of `devices` does not exist.
    """
    needed, existing = replicas * per_replica, machine.ids
    if devices is not None and existing is not None:
        absent = [name for name in devices if name not in existing]
        if absent:
            raise LaunchError(
                f"device {', '.join(absent)} does not exist: with this {VARIABLES[kind]}, `devices` can contain "
                f"{', '.join(existing) or 'none'}"
            )
    pool = devices if devices is not None else existing
    if pool is None and machine.problem:
        raise LaunchError(f"the devices of this machine are unknown: {machine.problem}; name them with `devices`")
    if pool is None:
        # Numbers from 0 are a guess; the engine reports a wrong number.
        pool = [str(index) for index in range(needed)]
    if len(pool) < needed:
        raise LaunchError(
            f"{replicas} x {per_replica} = {needed} devices are needed (replicas x devices per replica), "
            f"but only {len(pool)} {is_are(len(pool))} available ({', '.join(pool) or 'none'})"
            + (machine.problem and f"; {machine.problem}")
            + ("; lower `tp`, `pp` or `dp`" if pool else "")
        )
    return [tuple(pool[index * per_replica : (index + 1) * per_replica]) for index in range(replicas)]


def memory_holders() -> list[str]:
    """The processes that use GPU memory, a sentence for each, or why they are unknown; empty without nvidia-smi."""
    answer = ask(("nvidia-smi", "--query-compute-apps=pid,used_memory,name", "--format=csv,noheader"))
    if answer.reason == NOT_INSTALLED:
        return []
    if answer.problem:
        return [f"the processes that use device memory are unknown: {answer.problem}"]
    return [f"device memory is in use by {visible(row, 300)}" for row in answer.output.splitlines() if row.strip()]


_NO_DEVICES = 6
"""The exit status of nvidia-smi if its query found nothing."""


def _nvidia() -> Machine:
    """The NVIDIA devices of this machine."""
    answer = ask(("nvidia-smi", "--query-gpu=index,driver_version,name", "--format=csv,noheader"))
    if answer.reason == NOT_INSTALLED:
        return Machine(None)
    # Between its rows, nvidia-smi prints warnings, and errors about devices that it cannot list.
    rows, others = list[list[str]](), list[str]()
    for line in map(str.strip, answer.output.splitlines()):
        cells = re.split(" *, *", line, maxsplit=2)
        if len(cells) == 3 and cells[0].isdigit():
            rows.append(cells)
        else:
            others.append(line)
    if rows:
        problem = dataclasses.replace(answer, reason=" ".join(others) or answer.reason).problem
        return Machine(tuple(row[0] for row in rows), rows[0][1], tuple(row[2] for row in rows), problem)
    return Machine(() if answer.code in (0, _NO_DEVICES) else None, problem=answer.problem)


_NPU_SMI = ("npu-smi", "info")


def _ascend() -> Machine:
    """The Ascend devices that this process can see."""
    # npu-smi lists all devices, even in a container; /dev has files only for the devices that the container may use.
    names = (path.name.removeprefix("davinci") for path in Path("/dev").glob("davinci*"))
    numbers = sorted(int(name) for name in names if name.isdecimal())
    answer = ask(_NPU_SMI)
    is_missing = answer.reason == NOT_INSTALLED
    if not numbers:
        return Machine(None if is_missing else ())
    version = re.search(r"Version:\s*(\S+)", answer.output)
    problem = "" if is_missing else answer.problem
    return Machine(tuple(map(str, numbers)), version[1] if version else None, problem=problem)


def unhealthy_ascend() -> list[str]:
    """Lines of `npu-smi info` that report a device whose health is not OK."""
    rows = (row for row in ask(_NPU_SMI).output.splitlines() if re.match(r"\|\s*\d+\s+\S+\s*\|", row))
    return [
        visible(row) for row in rows if re.search(r"\|\s*(Warning|Alarm|Critical|UNKNOWN)\s*\|", row, re.IGNORECASE)
    ]
