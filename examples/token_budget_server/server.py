"""An OpenAI-compatible server for a Hugging Face model with your own class and a token budget.

    python server.py MODEL --class sparse_llama.py:SparseLlama --token-budget 512 --port 8000

Needs only torch and transformers. It generates one reply at a time while other requests wait, so a seed always gives
the same reply. With `--max-batch N` up to N replies are generated together, and seeds are ignored. Serves /health,
/v1/models and /v1/chat/completions, streamed or whole; and /tokenize, /detokenize and the log-probabilities of given
token ids (/v1/completions with `prompt_logprobs`), in vLLM's format.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import queue
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, StoppingCriteria, StoppingCriteriaList

MAX_BODY_BYTES = 16 * 1024 * 1024
IGNORED = ("user", "stream", "stream_options", "model", "messages", "chat_template_kwargs")
WINDOW = 16
"""The number of tokens at the end of a reply that are decoded again with the next token."""

GATHER_SECONDS = 0.05
"""The time that a batch waits for further requests."""

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


class Refused(Exception):
    """A request that gets an error response. status: the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Job:
    """A waiting request. prompt: its tokens. bound: most new tokens. pieces: generated text; last: (finish reason,
    new tokens) or an error. left: the client has gone.
    """

    def __init__(self, prompt: list[int], bound: int, settings: dict[str, Any], seed: int | None) -> None:
        self.prompt, self.bound, self.settings, self.seed = prompt, bound, settings, seed
        self.pieces: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.left = threading.Event()
        self.done = False
        self.n_new = 0
        self._window: list[int] = []
        self._sent = ""

    def put(self, token: int, tokenizer: Any, ends: set[int]) -> None:
        """Add one new token. Its text is sent as soon as it consists of whole characters."""
        self.n_new += 1
        self._window.append(token)
        text = tokenizer.decode(self._window, skip_special_tokens=True)
        self.done = token in ends or self.n_new >= self.bound or self.left.is_set()
        if self.done or not text.endswith("\N{REPLACEMENT CHARACTER}"):  # otherwise a character is incomplete
            self.pieces.put(text[len(self._sent) :])
            # Only the last tokens are decoded again; otherwise the time would grow with the square of the length.
            self._window = self._window[-WINDOW:]
            self._sent = tokenizer.decode(self._window, skip_special_tokens=True)
        if self.done:
            self.pieces.put(("stop" if token in ends else "length", self.n_new))


class Batch(StoppingCriteria):
    """Several jobs in one generation: passes each job its tokens, and ends finished jobs. Also a streamer."""

    def __init__(self, jobs: list[Job], tokenizer: Any, ends: set[int]) -> None:
        self.jobs, self._tokenizer, self._ends = jobs, tokenizer, ends
        self._prompt_is_next = True

    def put(self, value: torch.Tensor) -> None:
        """Receive the prompts once, then one new token of each job at a time."""
        if self._prompt_is_next:
            self._prompt_is_next = False
            return
        for job, token in zip(self.jobs, value.flatten().tolist(), strict=True):
            if not job.done:
                job.put(token, self._tokenizer, self._ends)

    def end(self) -> None:
        """Do nothing: each job ended with its last token."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **_: Any) -> torch.Tensor:
        del scores
        return torch.tensor([job.done for job in self.jobs], device=input_ids.device)


class Engine:
    """The model, with one generation at a time: as many waiting requests with equal settings as fit in a batch."""

    def __init__(self, cls: type, given: argparse.Namespace) -> None:
        self.name, self.token_budget = given.served_model_name or given.model, given.token_budget
        # Classes of transformers have no budget; if a budget is set, the class must accept it.
        budget = {} if self.token_budget is None else {"token_budget": self.token_budget}
        self.model = cls.from_pretrained(given.model, dtype="auto", **budget).to(given.device).eval()
        # A checkpoint that contains only gates names its base model.
        self.tokenizer = AutoTokenizer.from_pretrained(getattr(self.model.config, "base_model", given.model))
        self.context: int = self.model.config.max_position_embeddings
        ends = self.model.generation_config.eos_token_id
        self._ends = set(ends if isinstance(ends, list) else [ends])
        self._max_batch: int = given.max_batch
        self._line: queue.Queue[Job] = queue.Queue()
        self._busy = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def job(self, body: dict[str, Any]) -> Job:
        """Add a request to the queue. Raises `Refused`."""
        prompt = self.prompt_of(body)
        bound = body.get("max_completion_tokens") or body.get("max_tokens") or self.context - len(prompt)
        if len(prompt) + bound > self.context:
            raise Refused(
                400,
                f"This model's maximum context length is {self.context} tokens; {len(prompt)} of the prompt and "
                f"{bound} of the reply are {len(prompt) + bound}.",
            )
        settings = {name: body[name] for name in SAMPLING if body.get(name) is not None}
        settings["do_sample"] = settings.get("temperature", 1.0) != 0
        if not settings["do_sample"]:
            settings = {"do_sample": False}
        elif "top_k" in settings:
            settings["top_k"] = max(0, settings["top_k"])  # -1 also disables it
        job = Job(prompt, bound, settings, body.get("seed") if self._max_batch == 1 else None)
        self._line.put(job)
        return job

    def prompt_of(self, body: dict[str, Any]) -> list[int]:
        """The token ids of the messages. Raises `Refused`."""
        try:
            text = self.tokenizer.apply_chat_template(
                body["messages"],
                add_generation_prompt=True,
                tokenize=False,
                **body.get("chat_template_kwargs", {}),
            )
        except Exception as error:  # a template can raise any error on unknown messages
            raise Refused(400, f"the messages do not fit the chat template: {error}") from error
        ids: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return ids

    def read(self, ids: list[int], n_top: int) -> list[dict[str, Any] | None]:
        """The log-probabilities of each token and of the most likely tokens, by token id; None for the first token.

        One token at a time, as a reply is written: some attention is sparse only then.
        """
        places: list[dict[str, Any] | None] = [None]
        past = None
        with self._busy, torch.no_grad():
            for token, following in pairwise(ids):
                step = torch.tensor([[token]], device=self.model.device)
                out = self.model(step, past_key_values=past, use_cache=True)
                past, logprobs = out.past_key_values, out.logits[0, -1].float().log_softmax(-1)
                shown = {following, *logprobs.topk(n_top).indices.tolist()}
                places.append({str(each): {"logprob": logprobs[each].item()} for each in shown})
        return places

    def _work(self) -> None:
        waiting: list[Job] = []
        while True:
            waiting.append(self._line.get() if not waiting else waiting.pop(0))
            time.sleep(GATHER_SECONDS if self._max_batch > 1 else 0)
            while not self._line.empty():
                waiting.append(self._line.get())
            jobs = [job for job in waiting if job.settings == waiting[0].settings][: self._max_batch]
            waiting = [job for job in waiting if job not in jobs]
            try:
                self._generate(jobs)
            except Exception as error:  # noqa: BLE001 - told to the clients by their threads
                for job in jobs:
                    job.pieces.put(error)

    def _generate(self, jobs: list[Job]) -> None:
        if jobs[0].seed is not None:
            torch.manual_seed(jobs[0].seed)
        longest = max(len(job.prompt) for job in jobs)
        pad = self.tokenizer.pad_token_id
        rows = [[pad] * (longest - len(job.prompt)) + job.prompt for job in jobs]
        mask = [[0] * (longest - len(job.prompt)) + [1] * len(job.prompt) for job in jobs]
        batch = Batch(jobs, self.tokenizer, self._ends)
        with self._busy, torch.no_grad():
            self.model.generate(
                torch.tensor(rows, device=self.model.device),
                attention_mask=torch.tensor(mask, device=self.model.device),
                max_new_tokens=max(job.bound for job in jobs),
                streamer=batch,
                stopping_criteria=StoppingCriteriaList([batch]),
                pad_token_id=pad,
                **jobs[0].settings,
            )


def pieces_of(job: Job) -> Iterator[str | tuple[str, int]]:
    """Yield pieces of text as they are generated; finally (finish reason, new tokens)."""
    while True:
        piece = job.pieces.get()
        if isinstance(piece, Exception):
            raise piece
        yield piece
        if isinstance(piece, tuple):
            return


def _ids(engine: Engine, body: dict[str, Any], field: str) -> list[int]:
    """Token ids of a request. Raises `Refused`."""
    ids = body.get(field)
    known = range(len(engine.tokenizer))
    if not isinstance(ids, list) or not all(type(each) is int and each in known for each in ids):
        raise Refused(400, f"expected token ids as `{field}`")
    if len(ids) > engine.context:
        raise Refused(400, f"This model's maximum context length is {engine.context} tokens; {len(ids)} were sent.")
    return ids


def tokenized(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    """The token ids of `messages` by the chat template, or of the text `prompt`. Raises `Refused`."""
    if "messages" in body:
        return {"tokens": engine.prompt_of(body)}
    special = body.get("add_special_tokens") is True
    return {"tokens": engine.tokenizer(str(body.get("prompt", "")), add_special_tokens=special).input_ids}


def detokenized(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    """The text of `tokens`. Raises `Refused`."""
    return {"prompt": engine.tokenizer.decode(_ids(engine, body, "tokens"))}


def read(engine: Engine, body: dict[str, Any]) -> dict[str, Any]:
    """The log-probabilities of the token ids `prompt`. Raises `Refused`."""
    n_top = body.get("prompt_logprobs")
    if type(n_top) is not int or not 0 <= n_top <= 20:
        raise Refused(400, "this page only reads: expected `prompt_logprobs`, 0 to 20")
    ids = _ids(engine, body, "prompt")
    choice = {"index": 0, "text": "", "finish_reason": "length", "prompt_logprobs": engine.read(ids, n_top)}
    return {"object": "text_completion", "model": engine.name, "choices": [choice], "usage": _usage(len(ids), 0)}


PAGES = {"/tokenize": tokenized, "/detokenize": detokenized, "/v1/completions": read}


class Handler(BaseHTTPRequestHandler):
    """The HTTP handler."""

    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_GET(self) -> None:
        """Send the health page or the list of models."""
        if self.path == "/health":
            self._json(200, {"status": "ok"})
        elif self.path == "/v1/models":
            engine = self.engine
            one = {"id": engine.name, "object": "model", "max_model_len": engine.context}
            self._json(200, {"object": "list", "data": [{**one, "token_budget": engine.token_budget}]})
        else:
            self._json(404, _error(f"there is no {self.path}"))

    def do_POST(self) -> None:
        """Send a chat completion, or another page of `PAGES`."""
        try:
            if self.path in PAGES:
                self._json(200, PAGES[self.path](self.engine, self._object()))
                return
            if self.path != "/v1/chat/completions":
                raise Refused(404, f"there is no {self.path}")
            body = self._body()
            job = self.engine.job(body)
            reply = pieces_of(job)
            head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": self.engine.name}
            first = next(reply)  # reject bad requests before the stream starts
            if body.get("stream"):
                self._stream(first, reply, head, job, body)
            else:
                self._whole(first, reply, head, len(job.prompt))
        except Refused as refused:
            self._json(refused.status, _error(str(refused)))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _object(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            raise Refused(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
        try:
            body = json.loads(self.rfile.read(length))
            assert isinstance(body, dict)
        except (ValueError, AssertionError) as error:
            raise Refused(400, "expected a JSON object") from error
        return body

    def _body(self) -> dict[str, Any]:
        body = self._object()
        if not isinstance(body.get("messages"), list):
            raise Refused(400, "expected a JSON object with `messages`")
        if body.get("model") != self.engine.name:
            raise Refused(404, f"the model {body.get('model')!r} is not served here, {self.engine.name!r} is")
        known = {*IGNORED, *SAMPLING, "max_tokens", "max_completion_tokens", "seed"}
        if unknown := [name for name in body if name not in known and body[name] not in (None, 1, [], {})]:
            raise Refused(400, f"this server has nothing like {', '.join(unknown)}")
        return body

    def _stream(self, first: Any, rest: Iterator[Any], head: dict[str, Any], job: Job, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        head["object"] = "chat.completion.chunk"

        def send(choices: list[dict[str, Any]], **more: Any) -> None:
            self._chunk(f"data: {json.dumps({**head, 'choices': choices, **more})}\n\n")

        try:
            send([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
            for piece in _chain(first, rest):
                if isinstance(piece, str):
                    if piece:
                        send([{"index": 0, "delta": {"content": piece}, "finish_reason": None}])
                    continue
                reason, n_new = piece
                send([{"index": 0, "delta": {}, "finish_reason": reason}])
                if (body.get("stream_options") or {}).get("include_usage"):
                    send([], usage=_usage(len(job.prompt), n_new))
            self._chunk("data: [DONE]\n\n")
            self._chunk("")
        except OSError:
            job.left.set()
            raise
        except Exception as error:  # noqa: BLE001 - the stream has started, so it ends with an error event
            self._chunk(f"data: {json.dumps(_error(str(error)))}\n\n")
            self._chunk("")

    def _whole(self, first: Any, rest: Iterator[Any], head: dict[str, Any], n_prompt: int) -> None:
        *pieces, (reason, n_new) = _chain(first, rest)
        message = {"role": "assistant", "content": "".join(pieces)}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        self._json(200, {**head, "object": "chat.completion", "choices": choices, "usage": _usage(n_prompt, n_new)})

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _usage(n_prompt: int, n_new: int) -> dict[str, int]:
    return {"prompt_tokens": n_prompt, "completion_tokens": n_new, "total_tokens": n_prompt + n_new}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def load_class(where: str) -> type:
    """The class of `FILE.py:NAME`, or of an import path, `PACKAGE.MODULE:NAME`. Raises `SystemExit` with a sentence."""
    source, colon, name = where.rpartition(":")
    path = Path(source)
    if not colon or (source.endswith(".py") and not path.is_file()):
        sys.exit(f"--class {where}: expected FILE.py:NAME of a file here, or PACKAGE.MODULE:NAME")
    if source.endswith(".py"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(source)
        except ImportError as error:
            sys.exit(f"--class {where}: {source} cannot be imported: {error}")
    model_class = getattr(module, name, None)
    if not isinstance(model_class, type):
        sys.exit(f"--class {where}: {source} has no class {name}")
    return model_class


def main() -> None:
    """Serve until a signal."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="Folder of the hub's layout, or a name on the hub.")
    parser.add_argument(
        "--class",
        dest="where",
        required=True,
        metavar="FILE.py:NAME|PACKAGE.MODULE:NAME",
        help="The class that runs it.",
    )
    parser.add_argument("--token-budget", type=int, help="Tokens that a query attends to. Default: all.")
    parser.add_argument("--max-batch", type=int, default=1, help="Replies at a time. Above 1, seeds are ignored.")
    parser.add_argument("--served-model-name", help="Name in requests. Default: MODEL.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    Handler.engine = engine = Engine(load_class(given.where), given)
    budget = given.token_budget or "all"
    sys.stdout.write(f"{engine.name} with a budget of {budget} tokens on http://{given.host}:{given.port}\n")
    sys.stdout.flush()
    ThreadingHTTPServer((given.host, given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
