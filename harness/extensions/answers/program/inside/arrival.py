"""One job in a sandbox that is a single run of a program, as SandboxFusion's: messages in, a file of messages out.

    standard input (base64) ─► this process ─ pipe ─► cell ─ pipe ─► this process ─► the file

The cell is forked before the input is read, so that neither it nor the program has the tests in its memory. The file is
written when both have ended.
"""

from __future__ import annotations

import base64
import os
import sys
import threading

from harness.extensions.answers.program.inside import cell, confinement, frames

_MAX_REPORT_BYTES = 64 * 1024 * 1024


def serve_once(path: str) -> None:
    """Do the job on standard input, and write what the cell says to the file `path`, which must not exist."""
    receives, to_cell = os.pipe()
    from_cell, sends = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for fd in (to_cell, from_cell):
                os.close(fd)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1):
                os.dup2(null, fd)
            # Not alone: the server's own processes may be in sight.
            cell.serve(frames.Channel(receives, sends), name_spaces=_has_name_spaces(), alone=False)
        finally:
            os._exit(0)
    for fd in (receives, sends):
        os.close(fd)
    confinement.hide()
    given = base64.b64decode(sys.stdin.buffer.read())
    # In a thread: the cell may stop reading until its own message is read.
    feeding = threading.Thread(target=_feed, args=(to_cell, given), daemon=True)
    feeding.start()
    report = b""
    while len(report) <= _MAX_REPORT_BYTES and (part := os.read(from_cell, 1 << 20)):
        report += part
    os.waitpid(pid, 0)
    with open(path, "xb") as file:
        file.write(report)


def _feed(fd: int, data: bytes) -> None:
    with open(fd, "wb") as file:
        file.write(data)


def _has_name_spaces() -> bool:
    """Whether a program can get name spaces of its own here: as root of a server that is privileged."""
    pid = os.fork()
    if pid == 0:
        try:
            confinement.call("unshare", 0x20000000)  # CLONE_NEWPID
            if os.fork() == 0:
                confinement.own_name_space()
                os._exit(0)
            os._exit(0 if os.wait()[1] == 0 else 1)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
