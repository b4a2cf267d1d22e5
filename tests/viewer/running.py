"""`harness view` as a user starts it: a process, its address, its end; and its server in a thread of the test."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx

from harness.commands.compare import picture, published_beside
from harness.commands.report import run_facts
from harness.viewer.app import ViewerServer
from harness.viewer.pages import Library
from tests.patience import PATIENCE_SECONDS
from tests.system.command import start


class Viewer(NamedTuple):
    """A viewer that answers. root: its address without a path; token: what it wants to be told."""

    root: str
    token: str

    @property
    def port(self) -> int:
        return int(self.root.rpartition(":")[2])

    @property
    def address(self) -> str:
        """As it was printed."""
        return f"{self.root}/?token={self.token}"

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A visitor who was let in."""
        with httpx.Client(
            base_url=self.root, follow_redirects=True, trust_env=False, timeout=PATIENCE_SECONDS
        ) as client:
            assert client.get("/", params={"token": self.token}).status_code == 200
            yield client


@contextmanager
def viewing(folder: Path, *runs: str) -> Iterator[Viewer]:
    """A viewer of `runs` in `folder`, on a free port; it must end well when it is told to."""
    process = start(folder, ["view", *runs, "--no-open", "--port", "0"])
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert urlsplit(address).hostname == "127.0.0.1", process.communicate(timeout=PATIENCE_SECONDS)
        yield _viewer(address)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err) == (0, "")
    finally:
        process.kill()
        process.communicate()


@contextmanager
def answering_here(runs: Path) -> Iterator[Viewer]:
    """The viewer's server over the runs in this folder, in a thread: a process would import everything anew."""
    library = Library([runs])
    library.refresh()
    server = ViewerServer(library, published=published_beside, facts=run_facts, picture=picture, ports=[0])
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield _viewer(server.address)
    finally:
        server.should_exit = True
        thread.join()


def _viewer(address: str) -> Viewer:
    parts = urlsplit(address)
    return Viewer(f"http://{parts.netloc}", parse_qs(parts.query)["token"][0])
