"""One job in a sandbox that is a single run of a program, as SandboxFusion's: messages in, a file of messages out.

    standard input (base64) ─► this process ─ pipe ─► cell ─ pipe ─► this process ─► the file
    a key, then messages                                                          a seal, then messages

The cell is forked before the input is read, so that neither it nor the program has the key and the tests in its memory.
The file is written when both have ended. A program without a name space of its own runs as the server's user and may
write in the same folder: a file that it leaves under the report's name is moved away, and without the key it cannot
seal a report.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import sys
import threading

from harness.extensions.answers.program.inside import cell, confinement, frames

_MAX_REPORT_BYTES = 64 * 1024 * 1024


def serve_once(path: str) -> None:
    """Do the job that comes on standard input. Write the seal and then the cell's messages to the file `path`."""
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
            # alone=False: the cell may see processes of the server, which it must not kill.
            cell.serve(frames.Channel(receives, sends), name_spaces=_has_name_spaces(), alone=False)
        finally:
            os._exit(0)
    for fd in (receives, sends):
        os.close(fd)
    confinement.hide()
    arrived = base64.b64decode(sys.stdin.buffer.read())
    key, messages = arrived[: frames.KEY_BYTES], arrived[frames.KEY_BYTES :]
    # In a thread: the cell may stop reading until this process has read the cell's own messages.
    feeding = threading.Thread(target=_feed, args=(to_cell, messages), daemon=True)
    feeding.start()
    report = b""
    while len(report) <= _MAX_REPORT_BYTES and (part := os.read(from_cell, 1 << 20)):
        report += part
    os.waitpid(pid, 0)
    # Renamed, not unlinked: a program may have made a folder of this name.
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, f"{path}.{os.urandom(8).hex()}")
    with open(path, "xb") as file:
        file.write(hmac.digest(key, report, "sha256") + report)


def _feed(fd: int, data: bytes) -> None:
    with open(fd, "wb") as file:
        file.write(data)


def _has_name_spaces() -> bool:
    """Whether a process here may make name spaces of its own, as root on a privileged server may. A child tries it."""
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
