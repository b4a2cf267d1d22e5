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

import os
import signal
import subprocess
import sys
import threading
import time

from harness.testing import FakeServer, Request, Step, http, models

SLEEPER = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def answer(request: Request) -> list[Step]:
    if request.path == "/die":
        os._exit(7)
    if request.method == "GET":
        names = ["other"] if "other-model" in habits else ["faulty", "adapter"]
        return [http(503, {}) if request.path == "/health" and "never-ready" in habits else models(*names)]
    if habits & {"fails", "streams"}:
        sys.stdout.write(f"POST {request.path}\n")
        sys.stdout.flush()
    if "fails" in habits:
        return [http(500, {"error": {"message": "CUDA out of memory"}})]
    if "streams" in habits:
        return [http(200, b'{"choices": []}', content_type="text/event-stream")]
    return [http(200, {"choices": [{"message": {"content": "x"}}]})]


port, habits = int(sys.argv[1]), {*sys.argv[2:]}
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
with FakeServer(answer, port=port):
    threading.Event().wait()
