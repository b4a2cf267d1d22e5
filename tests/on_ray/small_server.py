"""A server that answers every question with x: `python small_server.py PORT FOLDER [dies]`. Leaves a file called by its
process number in FOLDER.

In the place of an engine over several nodes, with its words after FOLDER: `python small_server.py engine FOLDER …`.
Rank 0 serves once every other rank has called at the master's address, each once. No rank heeds the end of another one,
as an engine that hangs. The file holds rank, address and port. DIES=RANK lets a rank fail.
"""

from __future__ import annotations

import http.server
import itertools
import json
import os
import pathlib
import socket
import sys
import time


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


def serve(port: int) -> None:
    http.server.ThreadingHTTPServer(("", port), Handler).serve_forever()


def engine(folder: pathlib.Path, words: list[str]) -> None:
    """One rank."""
    given = dict(itertools.pairwise(words))
    rank, nodes = int(given["--node-rank"]), int(given["--nnodes"])
    address = given.get("--dist-init-addr") or f"{given['--master-addr']}:{given['--master-port']}"
    (folder / f".{os.getpid()}").write_text(f"{rank} {address}")
    (folder / f".{os.getpid()}").rename(folder / str(os.getpid()))
    if os.environ.get("DIES") == str(rank):
        sys.exit("ModuleNotFoundError: No module named 'flash_attn'")
    host, _, port = address.rpartition(":")
    # A name that stands for no machine of its own is one of several node daemons here.
    place = (host if host.startswith("127.") else "127.0.0.1", int(port))
    if rank > 0:
        assert ("--headless" in words) == ("--master-addr" in words)
        while True:
            try:
                peer = socket.create_connection(place)
                break
            except OSError:
                time.sleep(0.05)
        peer.sendall(f"{rank}\n".encode())
        while True:
            time.sleep(3600)
    with socket.create_server(place) as gathering:
        peers = [gathering.accept()[0] for _ in range(nodes - 1)]
        called = sorted(int(peer.makefile().readline()) for peer in peers)
        if called != list(range(1, nodes)):
            sys.exit(f"ranks {called} called")
        serve(int(given["--port"]))


if __name__ == "__main__":
    if sys.argv[1] == "engine":
        engine(pathlib.Path(sys.argv[2]), sys.argv[3:])
    pathlib.Path(sys.argv[2], str(os.getpid())).touch()
    if "dies" in sys.argv:
        sys.exit("ModuleNotFoundError: No module named 'flash_attn'")
    serve(int(sys.argv[1]))
