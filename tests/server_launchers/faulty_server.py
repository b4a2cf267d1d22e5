"""A small HTTP server with the bad habits of real engines, for the supervisor's tests.

    python faulty_server.py PORT HABIT...

Habits: `ignores-term` · `forks` (a child in the same group) · `hides-child` (a child in a session of its own that
ignores TERM) · `never-ready` · `silent` (listens, answers nothing, prints nothing) · `chatty` (endless hostile output)
· `dies` (exit status 3 after a line) · `crashes` (SIGSEGV) ·
`other-model` (lists a model of another name) · `fails` and `streams` (log each request for a completion, and answer it
with 500, or with events only) · `second-late` (the second replica listens a second later). Asked for `/die`, it ends
with exit status 7.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import time

SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/die":
            os._exit(7)
        if self.path == "/health" and "never-ready" in habits:
            self.answer(503, {})
        else:
            names = ["other"] if "other-model" in habits else ["faulty", "adapter"]
            self.answer(200, {"data": [{"id": name} for name in names]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if "fails" in habits or "streams" in habits:
            sys.stdout.write(f"POST {self.path}\n")
            sys.stdout.flush()
        if "fails" in habits:
            self.answer(500, {"error": {"message": "CUDA out of memory"}})
        elif "streams" in habits:
            self.answer(200, {"choices": []}, "text/event-stream")
        else:
            self.answer(200, {"choices": [{"message": {"content": "x"}}]})

    def answer(self, status: int, body: object, form: str = "application/json") -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", form)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Quiet."""


port, habits = int(sys.argv[1]), sys.argv[2:]
if "ignores-term" in habits:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "forks" in habits:
    subprocess.Popen([sys.executable, "-c", SLEEPER])
if "hides-child" in habits:
    subprocess.Popen([sys.executable, "-c", SLEEPER], start_new_session=True)
if "second-late" in habits and os.environ["REASONING_HARNESS_SERVER"].endswith(":1"):
    time.sleep(1)
if "dies" in habits:
    sys.exit("ModuleNotFoundError: No module named 'flash_attn'")
if "crashes" in habits:
    os.kill(os.getpid(), signal.SIGSEGV)
if "chatty" in habits:
    values = " ".join(str(os.environ.get(name)) for name in ("SOME_KEY", "HF_TOKEN", "LEVEL"))
    for number in range(20_000):
        sys.stdout.write(f"\x1b[31m\x9b\u202e{number} \x1b]52;c;AAAA\x07 key={values} {'x' * 1000}\n")
if "silent" in habits:
    time.sleep(600)
sys.stdout.write("listening\n")
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
