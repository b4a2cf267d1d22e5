"""Interpreters as a tool of a model: one for each sample that has called it, in a sandbox, with its variables kept.

    call ─► the sample's interpreter, or a sandbox that is free, else the one idle longest ─► its earlier calls again
                                                                                              (output thrown away)
            ─► the call ─► what it printed, and how it ended

An interpreter that passes a limit, or ends itself, loses the call's own work; at the next call, the earlier calls run
again. A sandbox that fails is replaced once; if the next one fails, too, `SandboxFailedError` says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from harness.core.errors import UsageError
from harness.core.nouns import are
from harness.core.records import CallEnd
from harness.extensions.answers.program.cells import (
    MEMORY_MARGIN,
    SILENCE_FACTOR,
    SILENCE_SECONDS,
    SandboxCell,
    SandboxFailedError,
    maker_of,
)
from harness.extensions.answers.program.inside import frames
from harness.presets.tool import PythonTool

PACKAGES = ("numpy", "sympy", "mpmath")
"""The packages that every sandbox of the tool has."""

_FILE_BYTES = 16 << 20
_TOTAL_SECONDS = 1_000_000
_STOPPED = {
    "time limit": "stopped after {seconds} s of processor time",
    "sleep limit": "stopped after {seconds} s of waiting",
    "memory limit": "stopped, since it needs more than {memory_mb} MB",
}
"""Rule by which an interpreter was ended → the words for the model."""


@dataclass(eq=False)
class _Slot:
    """A sandbox that holds one interpreter at a time. key: of the sample whose interpreter it is; None: of nobody."""

    cell: SandboxCell
    key: Hashable | None = None
    has_job: bool = False
    busy: bool = False
    used_at: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        """End the sandbox."""
        self.key, self.has_job = None, False
        self.cell.close()


class Interpreters:
    """The interpreters of a run, at most `most` alive. Any thread may call `run`, one at a time for a key."""

    def __init__(self, tool: PythonTool, most: int) -> None:
        self._tool, self._most = tool, most
        self.kind, self._maker = maker_of(tool.sandbox)
        self._memory = (tool.memory_mb << 20) + MEMORY_MARGIN
        self._slots: list[_Slot] = []
        self._free = threading.Condition()
        self._calls: dict[Hashable, list[str]] = {}
        self._closing = False
        self._silence = SILENCE_SECONDS + SILENCE_FACTOR * 2 * tool.seconds
        self._job = {"style": "interpreter", "limits": {
            "cpu": tool.seconds, "sleep": tool.seconds, "cpu_total": _TOTAL_SECONDS, "memory": tool.memory_mb << 20,
            "tests_memory": 0, "file": _FILE_BYTES, "recursion": 1000, "characters": tool.characters, "each": True,
        }}  # fmt: skip

    def facts(self) -> dict[str, Any]:
        """The kind of the sandbox, and the versions of its Python and its packages. One is started to learn them.

        Raises `UsageError` if it cannot be started, or lacks one of `PACKAGES`.
        """
        cell = SandboxCell(self._maker, PACKAGES)
        try:
            cell.start(self._memory)
        finally:
            cell.close()
        if missing := [name for name in PACKAGES if name not in cell.packages]:
            where = "run the harness as an ordinary user who has them, or name an image with them"
            raise UsageError(
                f"{' and '.join(missing)} {are(len(missing))} not in the sandbox (Python {cell.version}): {where}, "
                "tool=python,sandbox=docker:IMAGE", field="tool",
            )  # fmt: skip
        return {"sandbox": self.kind, "python": cell.version, "packages": cell.packages}

    def run(self, key: Hashable, code: str) -> tuple[str, CallEnd, float]:
        """Run the code in the interpreter of `key`; return (what the model is told, how the call ended, CPU seconds).

        Raises `SandboxFailedError` if two sandboxes failed.
        """
        slot = self._taken(key)
        try:
            for attempt in (1, 2):
                try:
                    return self._in_words(self._report(slot, key, code))
                except (SandboxFailedError, frames.ClosedError, OSError) as error:
                    slot.close()
                    if attempt == 2 or self._closing:
                        raise SandboxFailedError(str(error)) from error
            raise AssertionError
        except BaseException:
            slot.close()
            raise
        finally:
            with self._free:
                slot.busy, slot.used_at = False, time.monotonic()
                self._free.notify()

    def forget(self, key: Hashable) -> None:
        """Note that `key` makes no more calls."""
        with self._free:
            self._calls.pop(key, None)
            for slot in self._slots:
                if slot.key == key and not slot.busy:
                    slot.key = None

    def close(self) -> None:
        """Kill all sandboxes; calls under way fail."""
        self._closing = True
        with self._free:
            while busy := [slot for slot in self._slots if slot.busy]:
                for slot in busy:
                    slot.cell.kill()
                self._free.wait(0.1)
        for slot in self._slots:
            slot.close()

    def _taken(self, key: Hashable) -> _Slot:
        """The sandbox for the next call of `key`: its own, a free one, a new one, or the one that is idle longest."""
        with self._free:
            while not self._closing:
                idle = sorted((slot for slot in self._slots if not slot.busy), key=lambda slot: slot.used_at)
                own = [slot for slot in idle if slot.key == key] or [slot for slot in idle if slot.key is None]
                if not own and len(self._slots) < self._most:
                    own = [_Slot(SandboxCell(self._maker, PACKAGES))]
                    self._slots += own
                if own := own or idle:
                    own[0].busy = True
                    return own[0]
                self._free.wait()
            raise SandboxFailedError("the interpreters are closed")

    def _report(self, slot: _Slot, key: Hashable, code: str) -> dict[str, Any]:
        """Run the code once, after the earlier calls of `key` if its interpreter has ended; return the report."""
        earlier = self._calls.setdefault(key, [])
        if slot.key != key:
            if slot.has_job:
                slot.has_job = False
                slot.cell.end(self._silence, {"code": None})
            slot.cell.begin(self._job, self._memory, self._silence)
            slot.key, slot.has_job = key, True
            for former in earlier:
                if not self._goes_on(slot, slot.cell.exchange({"code": former, "again": True}, self._silence)):
                    raise SandboxFailedError("an earlier call did not end again as it had")
        report = slot.cell.exchange({"code": code}, self._silence)
        if self._goes_on(slot, report):
            earlier.append(code)
        return report

    def _goes_on(self, slot: _Slot, report: dict[str, Any]) -> bool:
        """Whether the interpreter lives after this report; if not, wait until its job is over."""
        if report.get("end") in ("ran", "failed"):
            return True
        slot.key, slot.has_job = None, False
        slot.cell.end(self._silence)
        return False

    def _in_words(self, report: dict[str, Any]) -> tuple[str, CallEnd, float]:
        out, end, cpu = str(report.get("out")), str(report.get("end")), float(report.get("cpu") or 0.0)
        if end == "ran":
            return out or "[no output]", "ran", cpu
        if end == "failed":
            return out, "failed", cpu
        why = _STOPPED.get(end, "the interpreter ended").format(**self._tool.limits)
        return f"{out}\n[{why}; the variables of earlier calls are kept]".lstrip("\n"), "stopped", cpu
