"""Starting servers on many nodes of a Slurm cluster: one job array, each member of which starts and registers a server.

`script` writes the job's script, plain text that a user may read, change and submit; `submit` hands it to sbatch.
Clients find the servers in a shared folder, where each member writes its address into a file of its own; a member that
Slurm requeues writes it anew. A server may take several nodes: the command then runs on each of them with the node's
rank, and if it ends on one node, Slurm ends it on all.
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
"""Largest number of servers of a job array. Slurm itself allows 1001 unless the site has raised that."""

SUBMIT_SECONDS = 60.0
"""Longest wait for sbatch."""

_INDEX = '"$SLURM_ARRAY_TASK_ID"'

_RANKED = ('--node-rank "$SLURM_NODEID"', '--head-address "$head_address"', '--head-port "$head_port"')
"""Options that are added to the command of a server on several nodes; Slurm or the script sets these variables."""

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
    """The script of a job array of `members` servers, each started by `command` (argv) and registered in `folder`.

    directives: further options of sbatch, such as `--partition=gpu`. nodes: number of nodes of each server; each node
    runs `command` with its rank and the address and port of the server's first node. head_port: that port; None: any
    free port. Raises SpecError.
    """
    if not 1 <= members <= MAX_MEMBERS:
        raise SpecError("slurm", f"expected 1 to {MAX_MEMBERS} servers")
    for line in directives:
        if not re.fullmatch(r"-{1,2}[A-Za-z][^\n\r\0]*", line):
            raise SpecError("sbatch", f"expected an option of sbatch such as --partition=gpu, not {line!r}")
    if "\n" in str(folder):
        raise SpecError("slurm_folder", "its name has a line break, which a job's script cannot hold")
    shared = folder.absolute()
    # What follows `--` goes to the engine, so our own options must stand before it.
    end = command.index("--") if "--" in command else len(command)
    register = f"--register {shlex.quote(str(shared))}/{_INDEX}.url"
    own = [register, *(_RANKED if nodes > 1 else ())]
    started = " ".join(part for part in (shlex.join(command[:end]), *own, shlex.join(command[end:])) if part)
    head = [
        "#!/bin/bash",
        "#SBATCH --job-name=harness-serve",
        f"#SBATCH --array=0-{members - 1}",
        f"#SBATCH --nodes={nodes} --ntasks-per-node=1 --requeue",
        # sbatch reads % as a pattern in this name.
        f"#SBATCH --output={str(shared).replace('%', '%%')}/slurm-%A_%a.log",
        # Slurm sends TERM to the script (B:) 60 s before the time limit, so that the server can end in order and remove
        # its address.
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
        # exec: srun's signals must reach the server, not a shell that waits for it.
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
    """Hand the script `text` to sbatch; return the job's number. folder: the folder of the logs, made if missing.

    Raises LaunchError.
    """
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
    # Where a site has several clusters, --parsable writes JOB;CLUSTER.
    return done.stdout.strip().partition(";")[0]


class Slurm:
    """The extension for Slurm: writes a job's script and submits it with `sbatch`."""

    script = staticmethod(script)
    submit = staticmethod(submit)


SCHEDULER = Slurm()
