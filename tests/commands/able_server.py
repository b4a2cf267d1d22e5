"""A program that speaks the protocol and answers every question with 3.

    python able_server.py --port PORT [--model NAME] [--starts SECONDS] [--mark TEXT]

`--mark` changes nothing: by it two command lines differ, or a process is known by its own.
"""

from __future__ import annotations

import argparse
import threading
import time

from harness.testing import FakeServer, scripted

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int)
parser.add_argument("--model", default="able")
parser.add_argument("--starts", type=float, default=0.0)
parser.add_argument("--mark")
given = parser.parse_args()

time.sleep(given.starts)
with FakeServer(scripted(r"\boxed{3}", model=given.model), port=given.port):
    threading.Event().wait()
