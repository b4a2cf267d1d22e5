"""Engine metrics: the page formats of each engine, hostile pages, and reading them during a run."""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.client.facts.metrics import parse
from harness.generation import engine_watch
from harness.reports.plots.pictures import MOMENTS, load_plots
from harness.runs.engine_pages import EnginePage, EngineReading, read_engine_pages
from harness.runs.layout import RunFolder
from harness.scoring.engine_metrics import (
    EngineMetrics,
    Side,
    Speculation,
    engine_metrics,
    engines_beside,
    moments,
    paired_ratio,
    speculation,
)
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
from server_launchers.engines.metrics import ENGINES, GAUGES
from tests.patience import PATIENCE_SECONDS

MODEL = "Qwen/Qwen3-8B"


def metrics(*pages: str | EnginePage, tokens: int = 24000) -> EngineMetrics:
    """The metrics of one endpoint's pages, 10 s apart, while the client received `tokens`."""
    given_pages = [parse(page) if isinstance(page, str) else page for page in pages]
    last = max(1, len(pages) - 1)
    return of(
        EngineReading(1.0, 10.0 * n, "http://a/v1", page, 8, 8, tokens * n // last)
        for n, page in enumerate(given_pages)
    )


def of(lines: Iterable[EngineReading]) -> EngineMetrics:
    """The metrics of these readings."""
    made = engine_metrics(lines, MODEL)
    assert made is not None
    return made


# ---- pages of others


@pytest.fixture
def pages(shared_data: Path) -> Path:
    """Pages of 19 forms of engines and 24 hostile ones, each with what a reader makes of it."""
    folder = shared_data.parent / "metrics"
    if not folder.is_dir():
        pytest.skip(f"no pages of others: put them into {folder}")
    return folder


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


FIELDS = {
    "generation_tokens": "tokens",
    "preemptions": "preempted",
    "time_to_first_token": "first_token_s",
    "prefix_cache_hit_rate": "cache_hit_rate",
    "acceptance_length": "acceptance_length",
    "acceptance_rate": "acceptance_rate",
}


def test_each_form_of_a_page_gives_the_figures_that_stand_beside_it(pages: Path) -> None:
    wrong = []
    for row in csv.DictReader(text_of(pages / "pages" / "expected.csv").splitlines()):
        if row["fact"] not in FIELDS:
            continue
        before, after = (text_of(pages / "pages" / f"{row['form']}.{when}.prom") for when in ("before", "after"))
        value = getattr(metrics(before, after, tokens=48000 if "router" in row["form"] else 24000), FIELDS[row["fact"]])
        expected = None if row["value"] in ("unknown", "none") else float(row["value"])
        if value is None or expected is None:
            wrong += [] if value is expected else [(row["form"], row["fact"], value, expected)]
        elif abs(value - expected) > 1e-4:
            wrong.append((row["form"], row["fact"], value, expected))
    assert wrong == []


SOUND = (24000.0, 3.0, 0.6, "")
HOSTILE: dict[str, tuple[float | None, float | None, float | None, str]] = {
    "restarted": (None, None, None, "was restarted"),
    "restarted-above": (None, None, None, "was restarted"),
    "two-models": (24000.0, 3.0, 0.6, 'also served "other/model"'),
    "two-models-none-named": (None, None, None, 'counters for "a/b" and "c/d", but not for'),
    "lora-named": (24000.0, 3.0, 0.6, 'calls the model "base"'),
    "odd-labels": (24000.0, 3.0, 0.6, "calls the model"),
    "html": (None, None, None, "only once"),
    "json": (None, None, None, "only once"),
    "empty": (None, None, None, "only once"),
    "truncated": (24000.0, None, 0.6, ""),
    "doubled-unlike": (None, None, 0.6, "tokens unknown: a counter disappeared, appeared twice"),
    "not-a-number": (None, None, 0.6, " unknown: "),
    "engine-lost": (None, None, None, "a counter disappeared"),
    "fractions": (24000.5, 3.0, 0.6, ""),
    "accepted-above-drafted": (24000.0, None, 0.6, "contradict each other"),
    "drafts-without-accepts": (24000.0, 1.0, 0.6, "so speculative decoding has no effect"),
    **dict.fromkeys(
        ("crlf", "openmetrics", "timestamps", "doubled", "no-labels", "extra-labels", "scientific", "no-total"), SOUND
    ),
}


def test_each_hostile_page_is_unknown_with_a_reason_or_read_correctly(pages: Path) -> None:
    names = [row["page"] for row in csv.DictReader(text_of(pages / "hostile" / "expected.csv").splitlines())]
    assert sorted(names) == sorted(HOSTILE)
    for name in names:
        own = pages / "hostile" / f"{name}.before.prom"
        before = text_of(own if own.exists() else pages / "pages" / "vllm-0.32.before.prom")
        made = metrics(before, text_of(pages / "hostile" / f"{name}.prom"))
        tokens, length, hits, words = HOSTILE[name]
        assert (made.tokens, made.acceptance_length, made.cache_hit_rate) == (tokens, length, hits), name
        assert words in " ".join(made.remarks), (name, made.remarks)


# ---- pages of our own

COUNTERS = {prefix: sorted(names.keys() - GAUGES) for prefix, names in ENGINES.items()}


def page_of(prefix: str, values: Mapping[tuple[str, str], object], noise: str = "") -> str:
    """A page of an engine. values: (quantity, replica) → value, as it is to stand there."""
    names = {quantity: names.split()[0] for quantity, names in ENGINES[prefix].items()}
    return "".join(
        f'{noise}{prefix}:{names[quantity]}_total{{model_name="{MODEL}",engine="{replica}"}} {value}\n'
        for (quantity, replica), value in values.items()
    )


@st.composite
def runs(draw: st.DrawFn) -> Iterator[Any]:
    """(engine, values before, what they rise by)."""
    prefix = draw(st.sampled_from(sorted(ENGINES)))
    keys = [(quantity, str(n)) for quantity in COUNTERS[prefix] for n in range(draw(st.integers(1, 3)))]
    before = {key: draw(st.integers(0, 10**9)) for key in keys}
    return prefix, before, {key: draw(st.integers(1, 10**6)) for key in keys}  # type: ignore[return-value]


@given(runs(), st.sampled_from(["", "# HELP x y\n", "<html>\n", 'x{a="}"} 1\n', "\r\n"]), st.data())
def test_the_increase_sums_replicas_unless_one_series_is_bad(run: Any, noise: str, data: st.DataObject) -> None:
    prefix, before, more = run
    after = {key: before[key] + more[key] for key in before}
    total = sum(rose for (quantity, _), rose in more.items() if quantity == "tokens")
    made = metrics(page_of(prefix, before), page_of(prefix, after, noise), tokens=total)
    assert (made.tokens, made.own) == (total, True)
    hurt = data.draw(st.sampled_from([key for key in after if key[0] == "tokens"]))
    bad = data.draw(st.sampled_from(["NaN", "1_000", "0x10", "+Inf", "-1", "1e308", "gone", "twice"]))
    values: dict[tuple[str, str], object] = {**after, hurt: bad}
    if bad == "gone":
        del values[hurt]
    text = page_of(prefix, {**after, hurt: 1 + after[hurt]} if bad == "twice" else values)
    broken = metrics(page_of(prefix, before), text + (page_of(prefix, after) if bad == "twice" else ""), tokens=total)
    assert broken.tokens is None
    assert broken.remarks
    assert not broken.own


def test_foreign_tokens_and_missing_replicas_are_found_by_one_division() -> None:
    def used(tokens: int) -> EngineMetrics:
        first = {("tokens", "0"): 5, ("preempted", "0"): 0}
        return metrics(page_of("vllm", first), page_of("vllm", {**first, ("tokens", "0"): 5 + tokens}), tokens=1000)

    assert [(used(n).own, used(n).tokens) for n in (1000, 1019, 981)] == [(True, 1000.0), (True, 1019.0), (True, 981.0)]
    assert not used(2000).own
    assert "50% of the tokens on the metrics pages are not from this run" in used(2000).remarks[0]
    assert (used(500).own, used(500).tokens, used(500).preempted) == (False, None, None)  # a sum of a part is none
    assert "50% fewer tokens than the client received" in used(500).remarks[0]


@given(st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=9), min_size=2, max_size=4), st.randoms())
def test_replicas_that_answer_in_turn_are_not_taken_for_a_restart(rises: list[list[int]], chance: Any) -> None:
    turns = [n for n, rise in enumerate(rises) for _ in rise]
    chance.shuffle(turns)
    turns = [1, 0, 1, 0, *turns]  # the higher one first, so that the counters fall at least twice
    counts, values = [1000 * n for n in range(len(rises))], list[str]()
    for n in turns:
        counts[n] += 1
        values.append(page_of("vllm", {("tokens", "0"): counts[n]}))
    made = metrics(*values)
    assert made.tokens is None
    assert "several replicas share this address" in made.remarks[0]
    marks = ["A", "B", "A"] if len(rises) % 2 else ["A", "A", "B"]
    marked = [EnginePage("vllm", {MODEL: {"tokens": {"": 5.0 + n}}}, mark) for n, mark in enumerate(marks)]
    assert ("fall and rise" in metrics(*marked).remarks[0]) == (marks[-1] == "A")


def test_restarts_one_after_another_are_no_replicas() -> None:
    made = metrics(*(page_of("vllm", {("tokens", "0"): tokens}) for tokens in (50, 90, 3, 7, 0, 2)))
    assert "the server was restarted during the run" in made.remarks[0]
    gone = metrics(page_of("vllm", {("tokens", "0"): 5}), page_of("vllm", {("drafted", "0"): 5}))
    assert "tokens unknown: a counter disappeared" in gone.remarks[0]


def test_load_counts_all_endpoints_and_speed_only_full_load() -> None:
    def reading(endpoint: str, time: float, in_flight: int, arrived: int, waiting: int) -> EngineReading:
        page = parse(f"vllm:num_requests_running {in_flight // 2}\nvllm:num_requests_waiting {waiting}\n")
        return EngineReading(1.0, time, endpoint, page, in_flight, 8, arrived)

    busy = [reading(each, 10.0 * n, 8, 1000 * n, 2) for n in range(6) for each in ("a", "b")]
    tail = [reading(each, 60.0 + 10 * n, 2, 5000 + 10 * n, 0) for n in range(30) for each in ("a", "b")]
    made = of([*busy, *tail])
    assert made.client_tokens_per_s == 100.0
    assert made.waiting_share is not None
    assert made.waiting_share < 0.5
    full = of(busy)
    assert (full.running, full.waiting, full.waiting_share) == (8.0, 4.0, 1.0)
    assert "requests were queued in 100% of the readings: the server is overloaded" in full.remarks
    assert len(load_plots(moments(busy))) == 2
    assert max(len(plot.rows) for plot in load_plots(moments(tail))) <= 2 * MOMENTS.stop
    assert load_plots(moments(busy[:2])) == []
    for few in (busy[:6], [reading("a", 10.0 * n, 0, 1000 * n, 0) for n in range(9)]):  # two readings; an idle client
        assert (of(few).running, of(few).waiting, of(few).waiting_share, of(few).remarks[1:]) == (None, None, None, ())


def test_ranks_that_share_the_work_and_priorities_count_once() -> None:
    labels = (
        'dp_rank="0",tp_rank="0"',
        'dp_rank="0",tp_rank="1"',
        'dp_rank="1",tp_rank="2",priority=""',
        'dp_rank="1",tp_rank="2",priority="7"',
    )
    page = parse("".join(f"sglang:num_retracted_requests_total{{{each}}} 5\n" for each in labels))
    assert sum(value or 0.0 for value in page.models[""]["preempted"].values()) == 10
    assert parse("sglang:num_retracted_reqs 5\n").models == {}


# ---- counts of replies


def test_the_error_of_a_ratio_is_that_of_its_questions_drawn_anew() -> None:
    made = speculation(np.array([6.0, 3, 2, 9, np.nan]), np.array([2.0, 1, 2, 3, 9]), ["a", "a", "b", "c", "c"])
    assert made is not None
    assert (made.length, made.steps, made.n_questions) == (2.5, 8, 3)
    assert made.error == pytest.approx(math.sqrt(3 / 2 * (1.5**2 + 3**2 + 1.5**2)) / 8)  # residuals 1.5, -3, 1.5
    assert speculation(np.array([np.nan]), np.array([np.nan]), ["a"]) is None
    alone = speculation(np.array([6.0, 3]), np.array([2.0, 1]), ["a", "a"])
    assert alone is not None
    assert (alone.length, alone.error, alone.low) == (3.0, None, None)
    rng, covered = np.random.default_rng(1), 0
    names = [str(n) for n in range(60) for _ in range(4)]
    for _ in range(400):
        steps, rate = rng.lognormal(5, 0.8, 240).round() + 1, np.repeat(rng.normal(3, 0.6, 60).clip(1), 4)
        drawn = speculation(steps * rate + rng.normal(0, 9, 240), steps, names)
        assert drawn is not None
        covered += (drawn.low or 0) <= 3 <= (drawn.high or 0)
    assert 0.91 <= covered / 400 <= 0.98


def test_runs_are_compared_at_one_load_with_an_interval_if_replies_count() -> None:
    rng = np.random.default_rng(2)
    lengths, waves = rng.integers(9, 90, 50).tolist(), rng.normal(1, 0.2, 50).tolist()

    def side(length: float, concurrency: int = 8, error: float | None = 0.03, *, own: bool = True) -> Side:
        by = {str(n): (length * steps * wave, steps) for n, steps, wave in zip(range(50), lengths, waves, strict=True)}
        counted = Speculation(
            length=length, error=error, low=None, high=None, steps=900, n_questions=50, by_question=by
        )
        load = msgspec.structs.replace(metrics(page_of("vllm", {}), page_of("vllm", {})), concurrency=concurrency)
        return msgspec.structs.replace(load, acceptance_length=length, own=own), counted if error else msgspec.UNSET

    sentence, speed = engines_beside(side(4.0), side(3.0))
    low, high = map(float, re.findall(r"ratio 0.750 \(([\d.]+) to ([\d.]+)", sentence)[0])
    # The questions differ by a fifth, and both runs have asked the same ones.
    assert low == high == 0.75
    ours, theirs = (np.array([[1.0, 2, 4], [1, 1, 1]]) * scale for scale in ([[2], [1]], [[1], [1]]))
    noisy = paired_ratio(theirs, ours + rng.normal(0, 0.1, (2, 3)) * [[1], [0]])
    assert noisy is not None
    assert noisy.low < 2 < noisy.high
    assert speed.startswith("tokens/s at full load 2400, baseline 2400: ratio 1.000 (its variation within a run")
    by_page = engines_beside(side(4.0, error=None), side(3.0))[1]
    assert by_page.startswith("acceptance length 3, baseline 4: ratio 0.750 (its")
    why, speed = engines_beside(side(4.0, error=None, own=False), side(3.0, error=None))
    assert ("acceptance" in speed, "other clients used a server" in why) == (False, True)
    assert engines_beside(side(4.0), side(3.0, 64)) == [
        "the engine metrics are not compared because the load differs (up to 64 requests in flight, baseline 8)"
    ]
    assert engines_beside((msgspec.UNSET, msgspec.UNSET), side(3.0)) == []


# -- metrics pages during a run ----------------------------------------------------------------------------------------


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
    monkeypatch.setattr("harness.client.facts.metrics.PAGE_S", PATIENCE_SECONDS)


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
    assert harness.run("demo", base_url=urls, out=out, limit=limit, samples=samples).complete


def test_a_resumed_run_has_the_metrics_of_both_sessions(tmp_path: Path) -> None:
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
    assert part.tokens is None
    assert part.own is False
    assert part.remarks == (f"{third.base_url}: it reports no metrics (HTTP 404)",)


def only_first(server: FakeServer, _: Request, pages: list[int] = []) -> list[Step]:  # noqa: B006 - counts its calls
    pages.append(1)
    return honest(server, _) if len(pages) == 1 else [http(503)]


HOSTILE_PAGES: dict[str, tuple[Callable[[FakeServer, Request], Iterable[Step]], str]] = {
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
    "a bomb": (lambda *_: [http(200, gzip.compress(b"a" * 10**7), content_encoding="gzip")], "exceeds 4 MiB"),
    "no gzip": (lambda *_: [http(200, b"vllm:x 1\n", content_encoding="gzip")], "no metrics"),
    "only before": (only_first, "only once"),
    "not text": (lambda *_: [http(200, bytes(range(256)) * 99)], "no metrics"),
}


@pytest.mark.parametrize("name", HOSTILE_PAGES)
def test_a_false_metrics_page_changes_only_metrics(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, words = HOSTILE_PAGES[name]
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


def test_a_compressed_page_behind_a_redirect_of_its_host_is_read(tmp_path: Path) -> None:
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
def test_plausible_counts_of_a_reply_are_kept_and_impossible_ones_are_not(name: str, tmp_path: Path) -> None:
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
