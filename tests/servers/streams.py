"""One streamed chat completion as it came over the wire, without the harness's client: what engines really send."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from server_launchers.lifecycle.launch import RunningServer

LIMIT_SECONDS = 300.0
STARTED_EVENTS = 20
"""So many events in, a stream is in its middle."""
LONG = 30_000
"""Tokens that take the scripted model half a minute: the first request to a second server may take ten seconds."""


@dataclass
class Stream:
    """Events of one reply, and how it ended."""

    status: int = 0
    events: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False
    """Whether `[DONE]` came."""
    broken: str | None = None
    """Name of the transport's error; None where the body ended as HTTP wants it."""
    body: str = ""
    """Text of a reply that is no stream."""
    ended: bool = False

    @property
    def finish(self) -> list[str]:
        """All finish reasons."""
        return [choice["finish_reason"] for choice in self.choices() if choice.get("finish_reason")]

    @property
    def errors(self) -> list[Any]:
        """Error objects inside the stream."""
        return [event["error"] for event in self.events if "error" in event]

    @property
    def usage(self) -> list[dict[str, Any]]:
        """Every usage that was sent."""
        return [event["usage"] for event in self.events if event.get("usage")]

    def choices(self) -> list[dict[str, Any]]:
        """All choices of all events."""
        return [choice for event in self.events for choice in event.get("choices", ())]

    def text(self, name: str = "content") -> str:
        """What field `name` of the deltas adds up to."""
        return "".join(choice["delta"].get(name) or "" for choice in self.choices())

    def read(self, url: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        """Send the request and keep what comes until the end."""
        try:
            with httpx.stream("POST", url, json=body, headers=headers, timeout=LIMIT_SECONDS, trust_env=False) as reply:
                self.status = reply.status_code
                if self.status != 200:
                    self.body = reply.read().decode()
                    return
                for line in reply.iter_lines():
                    if line == "data: [DONE]":
                        self.done = True
                    elif line.startswith("data: "):
                        self.events.append(json.loads(line[6:]))
        except httpx.HTTPError as error:
            self.broken = type(error).__name__
        finally:
            self.ended = True


def request(server: RunningServer, prompt: str = "What is 40 + 2?", **fields: Any) -> dict[str, Any]:
    """The body of a streamed request with usage."""
    streamed = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 64}
    return {"model": server.model, "messages": [{"role": "user", "content": prompt}]} | streamed | fields


def ask(server: RunningServer, prompt: str = "What is 40 + 2?", *, key: str | None = None, **fields: Any) -> Stream:
    """One streamed reply, waited for."""
    stream = Stream()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    stream.read(f"{server.base_urls[0]}/v1/chat/completions", request(server, prompt, **fields), headers)
    return stream


def begin(server: RunningServer, *, tokens: int = LONG) -> tuple[Stream, threading.Thread]:
    """A stream that goes on past the model's own end, returned when it is in its middle."""
    url, body = f"{server.base_urls[0]}/v1/chat/completions", request(server, max_tokens=tokens, ignore_eos=True)
    stream = Stream()
    reading = threading.Thread(target=stream.read, args=(url, body, {}), daemon=True)
    reading.start()
    end = time.monotonic() + LIMIT_SECONDS
    while len(stream.events) < STARTED_EVENTS:
        assert not stream.ended, stream
        assert time.monotonic() < end, stream
        time.sleep(0.01)
    return stream, reading
