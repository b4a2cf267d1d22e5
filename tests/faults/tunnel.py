"""An HTTP proxy that tunnels every CONNECT to one server of ours, whatever host is asked for."""

from __future__ import annotations

import contextlib
import socket
import threading


class Tunnel:
    """A context manager. heads: the request heads that clients sent."""

    def __init__(self, port: int) -> None:
        self.heads: list[str] = []
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://user:pa%3Ass@127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Tunnel:
        self._threads[0].start()
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for connection in self._open:
            connection.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                head = b""
                while b"\r\n\r\n" not in head and (data := client.recv(65536)):
                    head += data
                self.heads.append(head.decode("latin-1"))
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open.append(server)
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                for source, target in ((client, server), (server, client)):
                    thread = threading.Thread(target=_pump, args=(source, target), daemon=True)
                    self._threads.append(thread)
                    thread.start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
