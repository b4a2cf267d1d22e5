"""A server that answers every question with x: `python small_server.py PORT FOLDER [dies]`. Leaves a file called by its
process number in FOLDER."""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer({"data": [{"id": "small"}]})

    def do_POST(self) -> None:
        if self.path == "/die":
            os._exit(7)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]})

    def answer(self, body: object) -> None:
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Quiet."""


pathlib.Path(sys.argv[2], str(os.getpid())).touch()
if "dies" in sys.argv:
    sys.exit("ModuleNotFoundError: No module named 'flash_attn'")
http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
