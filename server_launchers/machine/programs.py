"""Run other programs to completion: short queries, and the removal of our containers.

Containers outlive the client that started them, so they are stopped by name.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from harness.core.sanitize import quoted
from server_launchers import isolated
from server_launchers.errors import describe_exit
from server_launchers.machine.processes import MARK

ASK_SECONDS = 30.0
"""Seconds that a program may take; after that, its answer is unknown."""
NOT_INSTALLED = "is not installed"
"""`ProgramAnswer.reason` of a program that does not exist."""


@dataclass(frozen=True)
class ProgramAnswer:
    """What another program answered. If it failed, its subject is unknown, which is not the same as none."""

    program: str
    code: int | None = 0
    """Exit status; None: the program could not be run, or was still running at the deadline."""
    output: str = ""
    reason: str = ""
    """The words that explain a failure: standard error or, if that is empty, the output; for no code, what happened."""

    @property
    def problem(self) -> str:
        """How the program failed, in one sentence with its own words; empty if it succeeded."""
        if not self.code:
            return "" if self.code == 0 else f"{self.program} {self.reason}"
        words = " ".join(self.reason.split())
        # The end of a long text, such as a traceback, says more than its beginning.
        shown = quoted(words if len(words) <= 300 else self.reason.strip().splitlines()[-1])
        return f"{self.program} ended with {describe_exit(self.code)}" + (f": “{shown}”" if shown else "")


def ask(
    argv: Sequence[str],
    *,
    seconds: float | None = ASK_SECONDS,
    folder: str = "/",
    names: Sequence[str] = isolated.CONTAINERS,
    **variables: str,
) -> ProgramAnswer:
    """Run a program to completion, outside the caller's folder: Python also imports from the folder where it starts.

    seconds: its deadline; None: no deadline. names: the environment variables that it sees in addition to the system's;
    variables: further ones, with their values.
    """
    import subprocess  # Imported late: code that only reads facts about engines does not need it.

    environment = isolated.environment(*names, **variables)
    # Looked for first, because even the attempt to start a missing program starts a process.
    if "/" not in argv[0] and shutil.which(argv[0], path=environment.get("PATH")) is None:
        return ProgramAnswer(argv[0], None, reason=NOT_INSTALLED)
    try:
        process = subprocess.Popen(
            argv,
            # A program that prompts for input must not wait for the user's terminal.
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    except FileNotFoundError:
        return ProgramAnswer(argv[0], None, reason=NOT_INSTALLED)
    except OSError as error:
        return ProgramAnswer(argv[0], None, reason=f"cannot be run: {error.strerror}")
    with process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException as stop:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            # A client of a hanging driver survives even this signal, so nobody waits for it.
            process.returncode = -signal.SIGKILL
            if not isinstance(stop, subprocess.TimeoutExpired):
                raise
            return ProgramAnswer(argv[0], None, reason=f"did not answer within {seconds:g} s")
    return ProgramAnswer(argv[0], process.returncode, output, errors.strip() or output)


_CONTAINER = re.compile(r"harness-[0-9]{1,5}\Z")
"""The form of our container names."""


def container_name(port: int) -> str:
    """The name of the container whose engine listens on `port`."""
    return f"harness-{port}"


def end_container(name: str, mark: str) -> str:
    """Remove the container `name` if it is ours: its name has our form, and `mark` is in its environment.

    Returns why it may still be running; empty if it is gone or not ours.
    """
    if not _CONTAINER.match(name):
        return ""
    answer = ask(("docker", "inspect", "--type", "container", "--format", "{{json .Config.Env}}", name))
    with contextlib.suppress(ValueError):
        variables = json.loads(answer.output)
        if isinstance(variables, list) and f"{MARK}={mark}" in variables:
            answer = ask(("docker", "rm", "-f", name))
    is_gone = not answer.problem or "no such container" in answer.reason.casefold()
    return "" if is_gone else f"the container {name} may still be running: {answer.problem}"
