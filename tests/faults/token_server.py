"""A model whose next token is a function of the ids before it, behind the protocols of vLLM, SGLang and llama.cpp.

Whoever goes on from the right ids gets the text that an undisturbed request gets; from any other ids, another one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.faults.server import CLOSE, END, HEAD, FaultServer, Pause, Request, Step, chunk, event, http

WORDS = [f" w{n}" for n in range(40)] + ["!", "é", " 😀", "\n\n"]
END_OF_PROMPT, THINK, THINK_END = 900, 901, 902
TAGS = {END_OF_PROMPT: "<assistant>", THINK: "<think>", THINK_END: "</think>"}


def ids_of(text: str) -> list[int]:
    """The tokens of a text: words and tags where they stand, else characters."""
    tokens = sorted([*enumerate(WORDS), *TAGS.items()], key=lambda pair: -len(pair[1]))
    ids = []
    while text:
        number, word = next(((n, w) for n, w in tokens if text.startswith(w)), (1000 + ord(text[0]), text[0]))
        ids.append(number)
        text = text[len(word) :]
    return ids


def text_of(token: int) -> str:
    return WORDS[token] if token < len(WORDS) else TAGS.get(token) or chr(token - 1000)


class Model:
    """thinks: tokens of reasoning before the answer; 0 = none. mind: another one writes and thinks otherwise. off:
    nats by which all that it says of its tokens is off."""

    def __init__(self, thinks: int = 0, shortest: int = 40, longest: int = 120, mind: int = 0) -> None:
        self.thinks, self.shortest, self.longest, self.mind = thinks, shortest, longest, mind
        self.off = 0.0

    def next(self, ids: list[int]) -> int | None:
        """The token after these; None at the end."""
        begin = ids.index(END_OF_PROMPT) + 1
        n = len(ids) - begin
        length = self.shortest + _number(ids[:begin], self.longest - self.shortest)
        if n >= length + self.thinks:
            return None
        if self.thinks and n == self.thinks:
            return THINK_END
        return _number([self.mind, *ids] if self.mind else ids, len(WORDS))

    def likeliest(self, ids: list[int]) -> list[tuple[int, float]]:
        """(token, log-probability) of twenty after these, the next one first."""
        token = self.next(ids) or 0
        others = [n for n in range(len(WORDS)) if n != token][_number(ids, 20) :][:19]
        first = -0.5 - _number([self.mind, ids], 100) / 200
        return [(token, first + self.off), *((n, -3 - i / 10 + self.off) for i, n in enumerate(others))]

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The rendered prompt. A model that thinks has its reasoning opened."""
        rendered = "".join(f"<{m['role']}>{m['content']}" for m in messages)
        return [*ids_of(rendered), END_OF_PROMPT]

    def answer(self, messages: list[dict[str, str]], max_tokens: int | None = None) -> tuple[list[int], str]:
        """(ids, finish reason) of an undisturbed request."""
        return self.onward(self.prompt(messages), max_tokens)

    def onward(self, ids: list[int], max_tokens: int | None) -> tuple[list[int], str]:
        ids, begin = list(ids), len(ids)
        while (token := self.next(ids)) is not None:
            if max_tokens is not None and len(ids) - begin >= max_tokens:
                return ids[begin:], "length"
            ids.append(token)
        return ids[begin:], "stop"

    def said(self, ids: list[int]) -> tuple[str | None, str]:
        """(reasoning, text) of an answer's ids."""
        text = "".join(map(text_of, ids))
        if not self.thinks:
            return None, text
        head, _, tail = text.partition(TAGS[THINK_END])
        return head, tail


class TokenServer(FaultServer):
    """engine: whose protocol it speaks. cut_after: how many events of a stream come before it breaks; a number for
    each request, by its place. pause: seconds between events. gateway: a chat and the list of models are all that can
    be reached of it, and fields that no gateway knows are dropped. most_listed: of a place's likeliest tokens; who asks
    for more is refused. onward: what becomes of requests over token ids, in place of an answer; n_onward counts those.
    """

    most_listed = 20
    onward: tuple[Step, ...] = ()
    n_onward = 0

    def __init__(
        self,
        model: Model,
        engine: str,
        *,
        pause: float = 0.0,
        cut_after: dict[int, int] | None = None,
        gateway: bool = False,
    ) -> None:
        super().__init__(self._answer)
        self.gateway = gateway
        self.model, self.engine, self.pause, self.cut_after = model, engine, pause, dict(cut_after or {})
        self.generated = 0
        self.streams = 0

    def _answer(self, request: Request) -> Iterator[Step]:
        path = request.path
        if path == "/v1/models":
            owner = self.engine.replace(".", "")
            yield http(200, {"data": [{"id": "test-model", "owned_by": owner, "max_model_len": 100_000}]})
        elif path == "/v1/chat/completions":
            yield from self._chat(request.json)
        elif self.gateway:
            yield http(404, {"error": {"message": "nothing here"}})
        elif path == "/v1/completions":
            prompt = request.json["prompt"]
            self.n_onward += isinstance(prompt, list)
            if self.onward and isinstance(prompt, list):
                yield from self.onward
                return
            yield from self._stream(request.json, prompt if isinstance(prompt, list) else ids_of(prompt), chat=False)
        elif path == "/apply-template":
            prompt = self.model.prompt(request.json["messages"])
            yield http(200, {"prompt": "".join(map(text_of, prompt))})
        elif path == "/tokenize":
            yield http(200, self._tokens(request.json))
        elif path == "/detokenize":
            yield http(200, {"prompt": "".join(map(text_of, request.json["tokens"]))})
        else:
            yield http(404, {"error": {"message": "nothing here"}})

    def _chat(self, body: dict[str, Any]) -> Iterator[Step]:
        messages = body["messages"]
        if not body.get("continue_final_message"):
            yield from self._stream(body, self.model.prompt(messages), chat=True)
        elif (self.engine == "vllm" and body.get("add_generation_prompt", True)) or messages[-1]["role"] != "assistant":
            yield http(400, {"error": {"message": "continue_final_message and add_generation_prompt are both true"}})
        else:
            begun = messages[-1]["content"].rstrip()
            yield from self._stream(body, [*self.model.prompt(messages[:-1]), *ids_of(begun)], chat=True)

    def _tokens(self, body: dict[str, Any]) -> dict[str, Any]:
        if "messages" in body:
            return {"tokens": self.model.prompt(body["messages"])}
        content = body.get("content", body.get("prompt"))
        texts = content if isinstance(content, list) else [content]
        ids = [n for text in texts for n in ids_of(text)]
        return {"tokens": [{"id": n, "piece": text_of(n)} for n in ids] if body.get("with_pieces") else ids}

    def _stream(self, body: dict[str, Any], prompt: list[int], *, chat: bool) -> Iterator[Step]:
        if "stream" in body and not body["stream"]:
            yield self._whole(body, prompt)
            return
        self.streams += 1
        cut = self.cut_after.get(self.streams)
        ids, reason = self.model.onward(prompt, body.get("max_tokens"))
        stated = body.get("return_token_ids") and self.engine != "llama.cpp" and not self.gateway
        yield HEAD
        head: dict[str, Any] = {"id": f"c-{self.streams}", "model": "test-model"}
        choice: dict[str, Any] = {"index": 0, "finish_reason": None}
        if chat:
            first = {**head, "choices": [{**choice, "delta": {"role": "assistant", "content": ""}}]}
            yield chunk(event({**first, "prompt_token_ids": prompt} if stated else first))
        thinking = chat and self.model.thinks > 0
        pending: list[int] = []
        said_of: list[float] = []
        for n, token in enumerate(ids):
            if n == cut:
                yield CLOSE
            self.generated += 1
            word = text_of(token)
            pending.append(token)
            said_of.append(self.model.likeliest([*prompt, *ids[:n]])[0][1] if body.get("logprobs") else 0.0)
            if thinking and token == THINK_END:
                thinking, word = False, ""
            piece = (
                {**choice, "delta": {"reasoning" if thinking else "content": word}}
                if chat
                else {**choice, "text": word}
            )
            if stated:
                piece["token_ids"] = pending
                if not chat and n == 0:
                    piece["prompt_token_ids"] = prompt
            if body.get("logprobs"):
                plain = {"tokens": [text_of(n) for n in pending], "token_logprobs": said_of}
                of_chat = {
                    "content": [{"token": text_of(n), "logprob": p} for n, p in zip(pending, said_of, strict=True)]
                }
                piece["logprobs"] = of_chat if chat else plain
            pending, said_of = [], []
            yield chunk(event({**head, "choices": [piece]}))
            if self.pause:
                yield Pause(self.pause)
        last = {**choice, "finish_reason": reason, **({"delta": {}} if chat else {"text": ""})}
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}
        yield chunk(event({**head, "choices": [last], "usage": usage}))
        yield chunk(b"data: [DONE]\n\n")
        yield END

    def _whole(self, body: dict[str, Any], prompt: list[int]) -> Step:
        """A reply to a plain completion that is no stream."""
        if body.get("logprobs", 0) > self.most_listed:
            return http(400, {"error": {"message": f"Requested logprobs of {body['logprobs']}"}})
        ids, reason = self.model.onward(prompt, body.get("max_tokens"))
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason, "text": "".join(map(text_of, ids))}
        if n_listed := body.get("logprobs"):
            listed = [self.model.likeliest([*prompt, *ids[:n]])[:n_listed] for n in range(len(ids))]
            named = "token_id:{}" if body.get("return_tokens_as_token_ids") else "{}"
            choice["logprobs"] = {
                "tokens": [named.format(n) for n in ids],
                "token_logprobs": [likeliest[0][1] for likeliest in listed],
                "top_logprobs": [{named.format(n): p for n, p in likeliest} for likeliest in listed],
            }
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids)}
        return http(200, {"id": "whole", "model": "test-model", "choices": [choice], "usage": usage})


def _number(value: object, below: int) -> int:
    text = json.dumps(value).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % below
