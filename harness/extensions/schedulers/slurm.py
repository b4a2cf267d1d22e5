"""Servers on many nodes of a Slurm cluster: one job array, whose members register where clients find them.

The script is plain text that may be read, changed and submitted by hand (`script`); `submit` hands it to sbatch. A
member that is requeued starts again and registers anew, in the file that is its own. A member of several nodes is one
server: a job step runs the command on each node, with the node's rank, and ends on all of them where it ends on one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from server_launchers import isolated
from server_launchers.errors import LaunchError, SpecError

MAX_MEMBERS = 4000
"""Members of one array; Slurm's own limit is 1001 unless the site has raised it."""

SUBMIT_SECONDS = 60.0
"""Seconds that sbatch may take to answer."""

_INDEX = '"$SLURM_ARRAY_TASK_ID"'

_RANKED = ('--node-rank "$SLURM_NODEID"', '--head-address "$head_address"', '--head-port "$head_port"')
"""Options of a command that runs on several nodes, each set by Slurm or by the script."""

_FREE_PORT = 'import socket; print(socket.create_server(("", 0)).getsockname()[1])'


def script(
    command: Sequence[str],
    members: int,
    folder: Path,
    directives: Sequence[str] = (),
    *,
    nodes: int = 1,
    head_port: int | None = None,
) -> str:
    """The script of `members` servers, each started by `command` (argv) and registered in `folder`.

    directives: further lines of sbatch, such as `--partition=gpu`. nodes: of each server; every one of them runs
    `command` with its rank, and the address and port at which the first one gathers them. head_port: that port; None
    takes one that is free on the first node. Raises SpecError.
    """
    if not 1 <= members <= MAX_MEMBERS:
        raise SpecError("slurm", f"expected 1 to {MAX_MEMBERS} servers")
    for line in directives:
        if not re.fullmatch(r"-{1,2}[A-Za-z][^\n\r\0]*", line):
            raise SpecError("sbatch", f"expected an option of sbatch such as --partition=gpu, not {line!r}")
    if "\n" in str(folder):
        raise SpecError("slurm_folder", "a line break in its name cannot stand in a script")
    shared = folder.absolute()
    end = command.index("--") if "--" in command else len(command)
    register = f"--register {shlex.quote(str(shared))}/{_INDEX}.url"
    own = [register, *(_RANKED if nodes > 1 else ())]
    started = " ".join(part for part in (shlex.join(command[:end]), *own, shlex.join(command[end:])) if part)
    head = [
        "#!/bin/bash",
        "#SBATCH --job-name=harness-serve",
        f"#SBATCH --array=0-{members - 1}",
        f"#SBATCH --nodes={nodes} --ntasks-per-node=1 --requeue",
        f"#SBATCH --output={str(shared).replace('%', '%%')}/slurm-%A_%a.log",
        "#SBATCH --signal=B:TERM@60",
        *(f"#SBATCH {line}" for line in directives),
    ]
    body = [f"mkdir -p {shlex.quote(str(shared))}"]
    if nodes > 1:
        free = f"$({shlex.join(isolated.code(_FREE_PORT, python=command[0]))})"
        body += [
            "# This script runs on the first node, which has rank 0.",
            'export head_address=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
            f"export head_port={free if head_port is None else head_port}",
        ]
        started = f"srun --kill-on-bad-exit=1 --label bash -c {shlex.quote(f'exec {started}')}"
    body += [
        "# bash acts on a signal only between commands, so the server runs beside it.",
        'trap \'kill -TERM "$server"; wait "$server"; exit 143\' TERM',
        f"{started} &",
        "server=$!",
        'wait "$server"',
    ]
    return "\n".join([*head, "", *body, ""])


def submit(text: str, folder: Path) -> str:
    """Hand the script to sbatch; the job's number. The folder is made, for its logs. Raises LaunchError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["sbatch", "--parsable"],  # noqa: S607 - wherever the site has it
            input=text,
            capture_output=True,
            text=True,
            timeout=SUBMIT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise LaunchError(
            "there is no sbatch on this machine; --print shows the script, to be submitted elsewhere"
        ) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LaunchError(f"sbatch could not be asked: {error}") from error
    if done.returncode != 0:
        raise LaunchError(f"sbatch refused the job: {done.stderr.strip()[:500] or f'exit code {done.returncode}'}")
    return done.stdout.strip().partition(";")[0]


class Slurm:
    """See `harness.verbs.elsewhere.SchedulerExtension`."""

    script = staticmethod(script)
    submit = staticmethod(submit)


SCHEDULER = Slurm()
