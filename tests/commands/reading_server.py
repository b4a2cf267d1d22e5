"""A server that states the log-probabilities of the tokens that it is sent; it answers no question.

    python reading_server.py LOG PORT

This process also answers each question with 3. It logs a byte for each reply that it reads; from the thirtieth on it
waits until `LOG.go` is there.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from harness.testing import FakeServer, Request, Step, http, scripted

NORMAL = NormalDist()
PAGES = ("/tokenize", "/detokenize", "/v1/completions", "/generate")


def noise_of(*parts: Any) -> float:
    """A standard normal number that the parts decide."""
    return NORMAL.inv_cdf((zlib.crc32(repr(parts).encode()) + 0.5) / 2**32)


@dataclass
class Reader:
    """A server that reads token ids, one a word, if seven more have room in its context. shift: of its
    log-probabilities, in nats, at some positions. rounding: standard deviation of its own rounding; jitter: of each
    reading.
    """

    name: str = "base"
    shift: float = 0.0
    since: int = 0
    until: int = 10**6
    rounding: float = 0.0
    jitter: float = 0.0
    owner: str = "vllm"
    system: str = ""
    context: int = 9000
    echo: bool = False
    root: str = ""
    spoil: Callable[[int], list[Step] | None] = lambda _n: None

    def __post_init__(self) -> None:
        self.read, self._words, self._lock = itertools.count(1), dict[int, str](), threading.Lock()

    def id_of(self, word: str) -> int:
        number = zlib.crc32(word.encode()) % 50_000
        self._words[number] = word
        return number

    def logprob(self, ids: list[int], i: int, n_prompt: int, nth: int) -> float:
        place = tuple(ids[max(0, i - 2) : i + 1])
        moved = self.shift if self.since < i - n_prompt + 1 <= self.until else 0.0
        own = self.rounding * noise_of(self.name, place) + self.jitter * noise_of(self.name, nth, i)
        return -1.5 - abs(noise_of(place)) - moved + own

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.path == "/v1/models":
            entry = {"id": "toy", "owned_by": self.owner, "max_model_len": self.context}
            yield http(200, {"data": [entry | ({"root": self.root} if self.root else {})]})
        elif request.method == "GET" or request.path not in PAGES:
            yield http(404, {})
        elif request.path == "/tokenize":
            messages = request.json.get("messages")
            text = f"{self.system} {messages[-1]['content']} <a>" if messages else request.json["prompt"]
            yield http(200, {"tokens": [self.id_of(word) for word in text.split()]})
        elif request.path == "/detokenize":
            text = " ".join(self._words.get(n, "?") for n in request.json["tokens"])
            yield http(200, {"prompt": text + request.headers.get("authorization", "") * self.echo})
        else:
            with self._lock:
                nth = next(self.read)
            ids = request.json.get("prompt") or request.json["input_ids"]
            if len(ids) > self.context - 7:
                yield http(400, {"error": {"message": "longer than the context"}})
            yield from self.spoil(nth) or [http(200, self.reply(request, nth))]

    def reply(self, request: Request, nth: int) -> dict[str, Any]:
        ids = request.json.get("prompt") or request.json["input_ids"]
        n_prompt = ids.index(self.id_of("<a>")) + 1 if self.id_of("<a>") in ids else 0
        stated = [self.logprob(ids, i, n_prompt, nth) for i in range(len(ids))]
        if request.path == "/generate":
            first = request.json["logprob_start_len"]
            entries = [[p, t, None] for p, t in zip(stated[first:], ids[first:], strict=True)]
            tops = [[[p, t, None], [-3.0, 7, None]] for p, t, _ in entries[1:]]
            meta = {
                "input_token_logprobs": [[None, ids[first], None], *entries[1:]],
                "input_top_logprobs": [None, *tops],
            }
            return {"meta_info": meta}
        pairs = zip(stated, ids, strict=True)
        places = [{str(t): {"logprob": p, "rank": 1}, "7": {"logprob": -3.0}} for p, t in pairs]
        return {"choices": [{"text": "", "finish_reason": "length", "prompt_logprobs": [None, *places[1:]]}]}


def both(chat: Callable[[Request], Iterable[Step]], reader: Reader) -> Callable[[Request], Iterable[Step]]:
    """A server that answers by `chat`, and reads."""
    return lambda request: (chat if request.path.endswith("/chat/completions") else reader)(request)


def main() -> None:
    """Serve, as the module says."""
    log = Path(sys.argv[1])

    def spoil(_n: int) -> None:
        with log.open("ab") as file:
            file.write(b".")
        while log.stat().st_size >= 30 and not log.with_suffix(".go").exists():
            time.sleep(0.02)

    reader, chat = Reader("a", spoil=spoil), scripted(r"so it is \boxed{3}", model="toy")
    with FakeServer(both(chat, reader), port=int(sys.argv[2])):
        threading.Event().wait()


if __name__ == "__main__":
    main()
