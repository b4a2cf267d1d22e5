"""Sandboxes in docker or podman containers: `--sandbox docker`, `--sandbox podman:IMAGE`.

The container has no access to files of this machine: the code that runs in it is passed on the command line
(`sandbox_source`), and jobs and reports use its standard streams. So the engine may also run on another machine
(DOCKER_HOST).

    no network, no capability, no new privileges, own IPC, a read-only image, an empty /tmp, its own user id, limits on
    memory and processes

In it, programs are confined as in bubblewrap (`inside.confinement`), except that they share one /tmp and one view of
processes: they cannot signal or trace any process, and a container in which a program leaves a file is removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from functools import cached_property

from reasoning_programs.errors import UnavailableError
from reasoning_programs.sandbox_source import ENVIRONMENT, OPTIONS, python_text
from reasoning_programs.text import visible

ENGINES = ("docker", "podman")
"""Container engines that can run a sandbox."""

IMAGE = "docker.io/library/python:3.11-slim"
"""The default image of a container. An image must have python3."""

_VARIABLES = (
    *("PATH", "HOME", "USER", "TMPDIR", "LANG", "LC_ALL", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"),
    *("XDG_DATA_HOME", "SSH_AUTH_SOCK"),
)
"""Environment variables that an engine's command may see: those with which it finds its server, and no key."""

_ANSWER_SECONDS = 60.0
"""Maximum time for an engine to respond to a query or to remove a container."""

_MAX_PROCESSES = 128
"""Maximum number of processes and threads in a container."""
# Set explicitly, because podman refuses to start if its own defaults are above the limits of the calling process.
_MAX_FILES, _MAX_THREADS = 1024, 512

_CLOSED = [
    "--rm",
    "--interactive",
    "--init=false",
    "--pull=never",
    "--log-driver=none",
    "--label=reasoning-programs",
    "--network=none",
    "--ipc=none",
    "--hostname=sandbox",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    f"--pids-limit={_MAX_PROCESSES}",
    f"--ulimit=nofile={_MAX_FILES}:{_MAX_FILES}",
    f"--ulimit=nproc={_MAX_THREADS}:{_MAX_THREADS}",
    "--tmpfs=/tmp:rw,nosuid,nodev,size=64m,mode=1777",
    "--workdir=/tmp",
    *(f"--env={name}={value}" for name, value in ENVIRONMENT.items()),
]
"""Options that isolate a container. --init=false: the process of `inside.cell` must be the first one, so that it can
end all others."""


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ}


class ContainerEngine:
    """A maker of sandboxes (`cells.SandboxMaker`) with docker or podman. _names: process → its container's name."""

    def __init__(self, engine: str, image: str = "") -> None:
        # The engine would read a name that begins with a dash as an option.
        if image.startswith("-"):
            raise UnavailableError(
                f"expected an image name after {engine}:, such as {engine}:{IMAGE}; the name cannot begin with `-` "
                "(nothing was executed)"
            )
        self.engine, self.image = engine, image or IMAGE
        self._names: dict[int, str] = {}

    @cached_property
    def path(self) -> str:
        """The path of the engine's command. Raises `UnavailableError` if the engine or the image is not available."""
        path = shutil.which(self.engine)
        if path is None:
            raise UnavailableError(f"{self.engine} is not installed")
        image = self._ask(path, "image", "inspect", "--format", "{{.Id}}", self.image)
        if image.returncode == 0:
            return path
        name, why = visible(self.image, 200), image.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        is_missing = "no such image" in why.casefold() or "image not known" in why
        advice = (
            f": run `{self.engine} pull {name}`, or choose another image that contains python3 ({self.engine}:IMAGE)"
        )
        raise UnavailableError(
            f"{self.engine} cannot inspect the image {name} ({visible(why, 200) or f'exit status {image.returncode}'})"
            + (advice if is_missing else "")
        )

    def _ask(self, path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the container engine (docker, podman). Raises `UnavailableError` if it does not answer."""
        try:
            return subprocess.run(
                [path, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ANSWER_SECONDS,
                check=False,
                env=_environment(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise UnavailableError(f"{self.engine} does not respond: {visible(str(error), 200)}") from error

    def command(self, name: str, memory: int, packages: tuple[str, ...] = ()) -> list[str]:
        """The command line of a sandbox in a container with this name. Raises `UnavailableError`."""
        # Each container has its own user, because the limit on threads counts all processes of a user.
        user = 10_000 + secrets.randbelow(50_000)
        words = [
            self.path,
            "run",
            *_CLOSED,
            f"--name={name}",
            f"--memory={memory}",
            f"--memory-swap={memory}",
            f"--user={user}:{user}",
            "--entrypoint=python3",
        ]
        if self.engine == "podman":  # podman mounts writable folders over a read-only image unless this is set
            words.append("--read-only-tmpfs=false")
        return [*words, self.image, *OPTIONS, "-c", python_text("name_spaces=False, alone=os.getpid() == 1", packages)]

    def start(self, channel: int, memory: int, packages: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start a container that talks over `channel`, a descriptor of this process. Raises `UnavailableError`."""
        name = f"reasoning-programs-{secrets.token_hex(8)}"
        process = subprocess.Popen(
            # In its own session: Ctrl-C reaches only the caller, which stops its sandboxes in an orderly way.
            self.command(name, memory, packages),
            stdin=channel,
            stdout=channel,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
            env=_environment(),
        )
        self._names[process.pid] = name
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Remove the container that `process`, a killed `docker run`, left running."""
        name = self._names.pop(process.pid, None)
        if name is not None:
            with contextlib.suppress(UnavailableError):  # a container that remains does not change any verdict
                self._ask(self.path, "rm", "--force", name)
