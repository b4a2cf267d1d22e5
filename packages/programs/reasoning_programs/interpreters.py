"""Interpreters as a model's tool: one for each sample that has called it, in a sandbox, with persistent variables.

    first call ─► a sandbox that is free, or a new one ─► the sample's interpreter, until `forget`
    each call  ─► it resumes, runs the code, is stopped ─► what was printed, and how the call ended

No code runs twice. A call that exceeds a limit is interrupted, and the variables are kept. If the interpreter ends with
the call, or its sandbox is killed, they are lost, and the model is informed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable
from typing import Any, Literal, NamedTuple

from reasoning_programs.cells import (
    FAILURES,
    MEMORY_MARGIN,
    SILENCE_FACTOR,
    SILENCE_SECONDS,
    START_WAITS,
    SandboxCell,
    sandbox_maker,
    try_sandbox,
)
from reasoning_programs.errors import LostError, UnavailableError
from reasoning_programs.text import visible

PACKAGES = ("numpy", "sympy", "mpmath")
"""The packages that every sandbox of the tool has."""

SANDBOX_BYTES = 128 << 20
"""Maximum memory of a sandbox beyond what its interpreter allocates: 60 MB for its processes, 64 MB of /tmp."""

LOST = "your variables are lost"
"""The message to the model when its interpreter has ended."""

_FILE_BYTES = 16 << 20
_STOPPED = {
    "time limit": "stopped after {:g} s of processor time",
    "sleep limit": "stopped after {:g} s of waiting",
    "memory limit": "stopped, since it needs more than {memory_mb} MB",
}
"""Rule that ended a call → the message to the model."""


CallOutcome = Literal["ran", "failed", "stopped", "not run"]


class CallResult(NamedTuple):
    """A completed call. output: the text for the model. end: whether the code ran, raised an exception (failed), was
    stopped, or was not run because its key has used all of its time. seconds: CPU time. memory: bytes that the
    interpreter uses until the next call.
    """

    output: str
    end: CallOutcome
    seconds: float = 0.0
    memory: int = 0


class _Owned:
    """A sample's interpreter. runs: whether it exists. is_lost: whether an earlier interpreter ended and the model has
    not been informed yet. spent: seconds of CPU and sleep over all calls. memory: bytes that it uses while it is
    stopped.
    """

    def __init__(self, cell: SandboxCell) -> None:
        self.cell = cell
        self.runs = self.is_lost = False
        self.spent, self.memory = 0.0, SANDBOX_BYTES

    def lose(self) -> None:
        """End the interpreter with its sandbox."""
        self.is_lost = self.is_lost or self.runs
        self.runs, self.memory = False, SANDBOX_BYTES
        self.cell.close()


class Interpreters:
    """Interpreters by key. Any thread may call `run`, but only one at a time per key.

    sandbox: `bwrap` (None), `docker`, `podman`, or one of the latter two with an image, `docker:IMAGE`. seconds: CPU
    time, and sleep, of a call. total_seconds: of all calls of a key. characters: of a call's output; the middle of a
    longer one is omitted. memory_mb: of an interpreter. Raises `UnavailableError` for an unknown sandbox.
    """

    least_bytes = SANDBOX_BYTES
    """Memory that a key uses from its first call onward."""

    def __init__(
        self,
        sandbox: str | None = None,
        *,
        seconds: int = 120,
        total_seconds: int = 3600,
        characters: int = 10_000,
        memory_mb: int = 2048,
    ) -> None:
        self.kind, self._maker = sandbox_maker(sandbox)
        self._seconds, self._total_seconds, self._memory_mb = seconds, total_seconds, memory_mb
        memory = memory_mb << 20
        self._memory, self.most_bytes = memory + MEMORY_MARGIN, memory + SANDBOX_BYTES
        self._owned: dict[Hashable, _Owned] = {}
        self._free: list[SandboxCell] = []
        self._busy: set[_Owned] = set()
        self._guard = threading.Lock()
        self._closing = False
        self._silence = SILENCE_SECONDS + SILENCE_FACTOR * 2 * seconds
        self._job = {
            "style": "interpreter",
            "limits": {
                "cpu": seconds,
                "sleep": seconds,
                "cpu_total": total_seconds,
                "memory": memory,
                "tests_memory": 0,
                "file": _FILE_BYTES,
                "recursion": 1000,
                "characters": characters,
                "each": True,
            },
        }

    def facts(self) -> dict[str, Any]:
        """The kind of sandbox, and the versions of its Python and packages. A sandbox is started to determine them.

        Raises `UnavailableError` if it cannot be started, or does not have one of `PACKAGES`.
        """
        cell = try_sandbox(self._maker, PACKAGES)
        if missing := [name for name in PACKAGES if name not in cell.packages]:
            verb = "is" if len(missing) == 1 else "are"
            raise UnavailableError(
                f"{' and '.join(missing)} {verb} not in the sandbox (Python {cell.version}): run as a user who has them"
                " installed, or choose an image that contains them (sandbox=docker:IMAGE)"
            )
        return {"sandbox": self.kind, "python": cell.version, "packages": cell.packages}

    def run(self, key: Hashable, code: str) -> CallResult:
        """Run the code in the interpreter of `key`. Raises `LostError` if no interpreter can be started any more."""
        with self._guard:
            if key not in self._owned:
                self._owned[key] = _Owned(self._free.pop() if self._free else SandboxCell(self._maker, PACKAGES))
            own = self._owned[key]
            self._busy.add(own)
        try:
            return self._run(own, code)
        except BaseException:
            own.lose()
            raise
        finally:
            self._busy.discard(own)
            if self._owned.get(key) is not own:  # forgotten in the meantime
                own.cell.close()

    def lose(self, key: Hashable) -> None:
        """End the idle interpreter of `key` to free its memory; its next call reports this."""
        self._owned[key].lose()

    def forget(self, key: Hashable) -> None:
        """End the interpreter of `key`, which makes no more calls; another interpreter may reuse its sandbox."""
        with self._guard:
            own = self._owned.pop(key, None)
            if own is None or own in self._busy:
                return
            try:
                if own.runs:
                    own.cell.dismiss()
            except FAILURES:
                own.cell.close()
            self._free.append(own.cell)

    def close(self) -> None:
        """Kill all sandboxes; running calls fail."""
        self._closing = True
        while busy := [*self._busy]:
            for own in busy:
                own.cell.abandon()
            time.sleep(0.01)
        for cell in (*self._free, *(own.cell for own in self._owned.values())):
            cell.close()

    def _run(self, own: _Owned, code: str) -> CallResult:
        """Run the code, in an interpreter that is started if there is none, and report how it ended."""
        most = self._total_seconds
        left = most - own.spent
        if left <= 0:
            why = f"[not run: its calls have taken {most} s, all that a sample has]"
            return CallResult(why, "not run", 0.0, own.memory)
        if not own.runs:
            self._begin(own)
        seconds = min(left, self._seconds)
        try:
            report = own.cell.exchange({"code": code, "seconds": seconds}, self._silence)
            if report.get("ended"):
                own.runs = False
                own.cell.end(self._silence)
        except FAILURES:
            own.lose()
            report = {"end": "lost"}
        cpu = float(report.get("cpu") or 0.0)
        own.spent += cpu + float(report.get("slept") or 0.0)
        own.memory = SANDBOX_BYTES + int(report.get("memory") or 0)
        before, own.is_lost = f"[{LOST}]\n" * (own.is_lost and own.runs), False
        output, end = self._output(report, own.runs, seconds)
        return CallResult(before + output, end, cpu, own.memory)

    def _begin(self, own: _Owned) -> None:
        """Start an interpreter; a sandbox that fails in the meantime is replaced. Raises `LostError`."""
        why = ""
        for wait in START_WAITS:
            time.sleep(wait)
            try:
                own.cell.begin(self._job, self._memory, self._silence)
            except FAILURES as error:
                own.cell.close()
                why = str(error)
                if self._closing:
                    break
            else:
                own.runs = True
                return
        raise LostError(f"could not start an interpreter: {visible(why)}")

    def _output(self, report: dict[str, Any], goes_on: bool, seconds: float) -> tuple[str, CallOutcome]:
        """The output for the model, and how the call ended. goes_on: whether the interpreter continues."""
        out, end = str(report.get("out", "")), str(report.get("end"))
        if end == "ran":
            return out or "[no output]", "ran"
        if end == "failed":
            return out, "failed"
        why = _STOPPED.get(end, "the interpreter ended").format(seconds, memory_mb=self._memory_mb)
        kept = "your variables are kept" if goes_on else LOST
        return f"{out}\n[{why}; {kept}]".lstrip("\n"), "stopped"
