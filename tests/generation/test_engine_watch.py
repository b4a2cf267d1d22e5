"""The servers' metrics pages are read while a run goes on, and whatever they do, the run is as without them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import harness
from harness.generation import engine_watch
from harness.runs.engine_pages import read_engine_pages
from harness.runs.layout import RunFolder
from harness.scoring.engine_metrics import EngineMetrics, engine_metrics
from harness.testing import (
    CLOSE,
    RESET,
    STALL,
    FakeServer,
    Pause,
    Request,
    Step,
    delta,
    event,
    event_stream,
    http,
    scripted,
    serving,
)
from tests.patience import PATIENCE_SECONDS

KEY = "sk-very-secret-0123456789"


def vllm_page(server: FakeServer, base: int = 1000, replies: float = 1.0, labels: str = 'engine="0"') -> str:
    """A page by the requests that the server had; a reply of `scripted` has 3 tokens. replies: replies by request."""
    n = round(3 * replies * sum(request.method == "POST" for request in server.requests))
    names = ("generation_tokens_total", "spec_decode_num_drafts_total", "spec_decode_num_accepted_tokens_total")
    values = zip(names, (base + n, n // 3, 2 * n // 3), strict=True)
    return "".join(f'vllm:{name}{{model_name="test-model",{labels}}} {value}\n' for name, value in values)


BOUNDS = ("FIRST_S", "LAST_S")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in BOUNDS:
        monkeypatch.setattr(engine_watch, bound, PATIENCE_SECONDS)


def serve(page: Callable[[FakeServer, Request], Iterable[Step]]) -> FakeServer:
    server = FakeServer(scripted(r"\boxed{4}"))
    server.metrics = lambda request: page(server, request)
    return server


def honest(server: FakeServer, _: Request) -> list[Step]:
    return [http(200, vllm_page(server).encode())]


def metrics_of(out: Path) -> EngineMetrics | None:
    return engine_metrics(read_engine_pages(RunFolder(out)), "test-model")


def run(out: Path, *servers: FakeServer, limit: int, samples: int = 2) -> None:
    urls = [server.base_url for server in servers]
    assert harness.run("demo", base_url=urls, out=out, fingerprint=False, limit=limit, samples=samples).complete


def test_a_run_and_the_run_that_resumes_it_have_the_figures_of_both_sessions(tmp_path: Path) -> None:
    with serve(honest) as server:
        run(tmp_path / "r", server, limit=4)
        with (tmp_path / "r" / "engine.jsonl").open("ab") as file:
            file.write(b'{"session": 1.0, "ti')  # as a kill leaves it
        run(tmp_path / "r", server, limit=4, samples=4)
    made = metrics_of(tmp_path / "r")
    assert made is not None
    assert (made.tokens, made.client_tokens, made.own) == (48.0, 48, True)
    assert (made.acceptance_length, made.draft_share, made.remarks) == (3.0, 1.0, ())


def test_replicas_add_up_and_one_without_a_page_makes_the_sum_unknown(tmp_path: Path) -> None:
    with serve(honest) as first, serve(honest) as second, FakeServer(scripted(r"\boxed{4}")) as third:
        run(tmp_path / "both", first, second, limit=6)
        run(tmp_path / "part", first, third, limit=6)
    both, part = metrics_of(tmp_path / "both"), metrics_of(tmp_path / "part")
    assert both is not None
    assert part is not None
    assert (both.tokens, both.own) == (36.0, True)
    assert (part.tokens, part.own, part.remarks) == (
        None,
        False,
        (f"{third.base_url}: it reports no metrics (HTTP 404)",),
    )


def only_first(server: FakeServer, _: Request, pages: list[int] = []) -> list[Step]:  # noqa: B006 - counts its calls
    pages.append(1)
    return honest(server, _) if len(pages) == 1 else [http(503)]


HOSTILE: dict[str, tuple[Callable[[FakeServer, Request], Iterable[Step]], str]] = {
    "silent": (lambda *_: [STALL], "no response in time"),
    "a byte a second": (
        lambda *_: [http(200, b"x" * 99)[:-99], *(step for _ in range(99) for step in (Pause(1.0), b"x"))],
        "no response in time",
    ),
    "an endless head": (
        lambda *_: [b"HTTP/1.1 200 X\r\n", *(step for n in range(99) for step in (Pause(0.5), b"a: b\r\n"))],
        "no response in time",
    ),
    "reset": (lambda *_: [RESET], "no answer"),
    "closed": (lambda *_: [CLOSE], "no answer"),
    "no HTTP": (lambda *_: [b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE], "no answer"),
    "not allowed": (lambda *_: [http(403, b'{"error": "no key"}')], "(HTTP 403: no key)"),
    "redirects": (
        lambda *_: [http(307, location="http://127.0.0.2/metrics")],
        "HTTP 307: redirects to http://127.0.0.2/metrics",
    ),
    "redirects to itself": (lambda *_: [http(307, location="/metrics")], "HTTP 307: redirects to /metrics"),
    "redirects nowhere": (lambda *_: [http(307, location="http://[/")], "no answer"),
    "switched off": (lambda *_: [http(501)], "HTTP 501"),
    "HTML": (lambda *_: [http(200, b"<html>\n<p>vllm:generation_tokens_total 3</p>\n")], "no engine metrics"),
    "too long": (lambda *_: [http(200, b"# x\n" * 1_100_000)], "exceeds 4 MiB"),
    "many series": (
        lambda *_: [http(200, b"".join(b'vllm:generation_tokens{a="%d"} 1\n' % n for n in range(9000)))],
        "more series",
    ),
    "a bomb": (lambda *_: [http(200, gzip.compress(b"a" * 10**8), content_encoding="gzip")], "exceeds 4 MiB"),
    "no gzip": (lambda *_: [http(200, b"vllm:x 1\n", content_encoding="gzip")], "no metrics"),
    "only before": (only_first, "only once"),
    "not text": (lambda *_: [http(200, bytes(range(256)) * 99)], "no metrics"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page_that_lies_or_hangs_changes_nothing_but_the_figures(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, words = HOSTILE[name]
    for bound in BOUNDS if words == "no response in time" else ():
        monkeypatch.setattr(engine_watch, bound, 0.2)
    with serve(page) as server:
        run(tmp_path / "r", server, limit=2)
    made = metrics_of(tmp_path / "r")
    assert made is not None
    assert (made.tokens, made.acceptance_length, made.own) == (None, None, False)
    assert words in " ".join(made.remarks)
    (score,) = harness.score(tmp_path / "r", workers=1)
    assert score.engine
    assert score.engine.remarks == made.remarks


def moved(server: FakeServer, request: Request) -> list[Step]:
    """A page as mounted in Starlette, behind a proxy that packs what it sends and knows another port."""
    if request.path == "/metrics":
        return [http(307, location="http://127.0.0.1:1/metrics/")]
    return [http(200, gzip.compress(vllm_page(server).encode()), content_encoding="gzip")]


def test_a_page_behind_a_redirect_of_its_host_and_packed_against_our_wish_is_read(tmp_path: Path) -> None:
    with serve(moved) as server:
        run(tmp_path / "r", server, limit=4)
    made = metrics_of(tmp_path / "r")
    assert made is not None
    assert (made.tokens, made.own, made.remarks) == (24.0, True, ())


COUNTS: dict[str, tuple[dict[str, object], tuple[int, int] | None]] = {
    "vLLM": ({"metrics": {"speculative_decoding": {"num_spec_steps": 4, "num_accepted_draft_tokens": 6}}}, (10, 4)),
    "SGLang": ({"sglext": {"spec_tokens_details": {"spec_verify_ct": 4, "spec_num_correct_drafts": 5}}}, (12, 4)),
    "llama.cpp": ({"timings": {"predicted_n": 12, "draft_n": 20, "draft_n_accepted": 7}}, (12, 5)),
    "llama.cpp without drafts": ({"timings": {"predicted_n": 12}}, None),
    "no steps": ({"metrics": {"speculative_decoding": {"num_spec_steps": 0, "num_accepted_draft_tokens": 0}}}, None),
    "more steps than tokens": ({"sglext": {"spec_tokens_details": {"spec_verify_ct": 40}}}, None),
    "words": ({"metrics": {"speculative_decoding": {"num_spec_steps": "4", "num_accepted_draft_tokens": 9}}}, None),
    "lists": ({"metrics": [1], "sglext": "x", "timings": {"predicted_n": -1, "draft_n": 1e300}}, None),
}


@pytest.mark.parametrize("name", COUNTS)
def test_the_counts_of_a_reply_are_kept_and_those_that_cannot_be_true_are_not(name: str, tmp_path: Path) -> None:
    fields, counts = COUNTS[name]
    last = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 12}, **fields})

    stream = [*event_stream(delta(r"\boxed{4}"), delta(finish="stop"), last)]
    with FakeServer(serving(stream)) as server:
        run(tmp_path / "r", server, limit=2)
    (score,) = harness.score(tmp_path / "r", workers=1)
    counted = score.speculation or None
    assert (counted and (counted.length, counted.steps)) == (counts and (counts[0] / counts[1], 4 * counts[1]))


def test_the_page_gets_the_key_and_the_file_never_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers: list[str] = []

    def repeats(server: FakeServer, request: Request) -> list[Step]:
        headers.append(request.headers.get("authorization", ""))
        return [http(200, vllm_page(server, labels=f'engine="{KEY}"').encode())]

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serve(repeats) as server:
        run(tmp_path / "r", server, limit=2)
    assert set(headers) == {f"Bearer {KEY}"}
    made = metrics_of(tmp_path / "r")
    assert made is not None
    assert made.own
    assert KEY not in (tmp_path / "r" / "engine.jsonl").read_text()


def test_a_disk_that_refuses_the_readings_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "engine.jsonl").symlink_to(tmp_path / "elsewhere")
    with serve(honest) as server:
        run(tmp_path / "r", server, limit=2)
    assert not (tmp_path / "elsewhere").exists()
    assert metrics_of(tmp_path / "r") is None
