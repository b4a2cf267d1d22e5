"""A small server that speaks the part of SandboxFusion's protocol that we use, for tests of programs of ours.

Written after bytedance/SandboxFusion at 469de08: sandbox/server/sandbox_api.py (POST /run_code and its records),
sandbox/runners/base.py (run_command_bare, restore_files), runners/major.py (run_python: a folder of its own, `python
FILE`), utils/execution.py (only the beginning of an output is kept). It isolates nothing.
"""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MAX_OUTPUT_BYTES = 64 * 1024


@dataclass
class FusionServer:
    """The server's address, what it was sent, and what it answers first: (status, body) instead of a run; a body may be
    a function of the request. plain: whether programs get no name spaces and may write in the request's folder, as
    under a server that runs as a plain user."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    first: list[tuple[int, Any]] = field(default_factory=list)
    plain: bool = False


NO_NAME_SPACES = "import ctypes\nctypes.CDLL(None).prctl(24, 21)\n"
"""Code by which root's Python gives up the right to make name spaces (PR_CAPBSET_DROP, CAP_SYS_ADMIN)."""


def run_code(request: dict[str, Any], plain: bool = False) -> dict[str, Any]:
    """The reply to a request, as `run_code` gives it for Python."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder, "tmp1.py")
        code.write_text(NO_NAME_SPACES * plain + request["code"], "utf-8")
        if plain:
            Path(folder).chmod(0o777)
        try:
            done = subprocess.run(
                [sys.executable, str(code)], input=request["stdin"].encode(), capture_output=True, cwd=folder,
                timeout=request["run_timeout"], check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            result = {
                "status": "TimeLimitExceeded",
                "execution_time": request["run_timeout"],
                "stdout": "",
                "stderr": "",
            }
            return {"status": "Failed", "message": "", "compile_result": None, "run_result": result, "files": {}}
        files = {
            name: base64.b64encode(Path(folder, name).read_bytes()).decode()
            for name in request["fetch_files"] if Path(folder, name).is_file()
        }  # fmt: skip
        out, err = (text[:MAX_OUTPUT_BYTES].decode(errors="replace") for text in (done.stdout, done.stderr))
        result = {
            "status": "Finished",
            "execution_time": 0.1,
            "return_code": done.returncode,
            "stdout": out,
            "stderr": err,
        }
        return {
            "status": "Success" if done.returncode == 0 else "Failed", "message": "", "compile_result": None,
            "run_result": result, "executor_pod_name": None, "files": files,
        }  # fmt: skip


@contextlib.contextmanager
def fusion_server() -> Iterator[FusionServer]:
    """A server on this machine that is ended with the block."""
    served = FusionServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(request)
            served.keys.append(self.headers.get("Authorization", ""))
            if served.first:
                status, body = served.first.pop(0)
                body = body(request) if callable(body) else body
            elif self.path != "/run_code":
                status, body = 404, {"detail": "Not Found"}
            elif request.get("language") != "python":
                status, body = 422, {"detail": "unknown language"}
            else:
                status, body = 200, run_code(request, served.plain)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
