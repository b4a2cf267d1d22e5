"""What runs and gradings on a cluster do without one: refusals, shards joined to a run, stretches to a grading.

For: harness.extensions, harness.extensions.clusters.ray, harness.commands.cluster_interface.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.core.errors import HarnessError, InUse, ServerError, UsageError
from harness.core.installation import build
from harness.core.records import Key
from harness.extensions.clusters.ray import cluster, grading, sampling
from harness.presets.grading import GradingOptions
from harness.progress.events import Watcher
from harness.runs import RunFolder, read_samples
from harness.runs.lock import locked
from harness.scoring.pipeline import grade_run, score_run
from harness.testing import FakeServer, http
from harness.tools.python import PYTHON
from tests.budget import rounds
from tests.faults.able import able, sums
from tests.runs.recorded import NAME, sampled, write
from tests.system.command import harness as command

N, M = 6, 2


class Here:
    """In place of a cluster: each task runs in this process, and the first of them twice, as where its node is lost."""

    n_nodes, n_cpus = 3, 3

    def __init__(self, on: str) -> None:
        assert on == "ray"

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def each(
        self,
        work: Callable[..., Any],
        given: Sequence[Any],
        names: Sequence[str],
        watcher: Watcher,
        progress: Callable[[], str] = str,
    ) -> list[Any]:
        assert len(given) == len(names)
        results = [work(*arguments) for arguments in (given[0], *given)][1:]
        watcher.standing(progress())
        return results


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    # A run on a cluster sets it for good where it is not set.
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    for module in (sampling, grading):
        monkeypatch.setattr(module, "Cluster", Here)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(able(0.6)) as running:
        yield running


def asked(folder: Path, server: FakeServer) -> dict[str, Any]:
    return {
        "data": sums(folder, N),
        "id_key": "id",
        "samples": M,
        "model": "test-model",
        "base_url": server.base_url,
        "canary": False,
    }


def test_shards_of_a_cluster_become_one_run(tmp_path: Path, server: FakeServer) -> None:
    alone = harness.run(**asked(tmp_path, server), out=tmp_path / "alone")
    run = harness.run(**asked(tmp_path, server), out=tmp_path / "run", on="ray")
    assert (run.path, run.model, run.complete) == (tmp_path / "run", "test-model", True)
    assert (run.outcome.n_expected, run.outcome.n_done, run.outcome.n_missing) == (N * M, N * M, 0)
    n_lost = N * M - run.outcome.tally.finished
    assert n_lost > 0, "the first task was lost"
    assert f"{n_lost} samples from this session came from tasks that were later lost" in "".join(run.outcome.warnings)
    assert {sample.key: sample.text for sample in run.samples()} == {one.key: one.text for one in alone.samples()}
    before = len(server.requests)
    again = harness.run(**asked(tmp_path, server), out=tmp_path / "run", on="ray")
    assert (again.complete, again.outcome.tally.finished) == (True, 0)
    assert [request for request in server.requests[before:] if request.method == "POST"] == []
    assert sorted(path.name for path in (tmp_path / "run/shards").iterdir()) == ["1-of-3", "2-of-3", "3-of-3"]


@pytest.mark.parametrize(("first", "n_missing"), [({"limit": 3, "samples": 4}, 3), ({"samples": 4}, 0)])
def test_only_what_this_session_plans_counts(
    tmp_path: Path, server: FakeServer, first: dict[str, Any], n_missing: int
) -> None:
    """Samples of an earlier session beyond the plan stand for no missing one, and lack of none."""
    given = asked(tmp_path, server) | {"out": tmp_path / "run", "on": "ray"}
    harness.run(**given | first)
    model = server.answer
    server.answer = lambda request: model(request) if request.method == "GET" else [http(400, b"no")]
    run = harness.run(**given | {"samples": 1})
    assert (run.outcome.n_expected, run.outcome.n_missing, run.complete) == (N, n_missing, not n_missing)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shard": "1/2"}, "shard='1/2'|shard: it cannot be used with `on`"),
        ({"rpm": 10.0}, "rpm: it cannot be used with `on`"),
        ({"budget_tokens": 10}, "budget_tokens: it cannot be used with `on`"),
        ({"serve": "vllm"}, "serve: it cannot be used with `on`"),
        ({"base_url": ()}, "requires an address that every node can reach"),
        ({"model": None}, "requires `model` or `out`"),
    ],
)
def test_what_means_nothing_to_several_clients_is_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    options = {"benchmarks": "aime24", "model": "m", "base_url": "http://127.0.0.1:1"} | given
    if "serve" in given:
        del options["base_url"]
    with pytest.raises(UsageError, match=message):
        harness.run(**options, on="ray")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_equal", [2, 7])
def test_nodes_whose_sandboxes_differ_are_refused_before_a_shard_asks(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch, n_equal: int
) -> None:
    """Among the nodes that are looked at (six looks), and where a shard begins on one that was not."""
    versions = iter(["2.0"] * n_equal + ["2.1"] * 9)
    of_node = lambda _: {"sums": PYTHON.settings({"packages": {"numpy": next(versions)}})}  # noqa: E731
    monkeypatch.setattr(sampling, "tools_of", of_node)
    with pytest.raises(UsageError, match=r"the sandbox .*2\.1.* differs from the first node's .*2\.0"):
        harness.run(**asked(tmp_path, server), out=tmp_path / "run", on="ray")
    assert bool([r for r in server.requests if r.method == "POST"]) == (n_equal == 7)


def test_a_shard_waits_for_a_lost_lock(tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(tmp_path, server) | {"data": str(tmp_path / "sums.jsonl"), "out": str(tmp_path / "part")}
    monkeypatch.setattr(sampling, "FREED_SECONDS", 0.0)
    with locked(RunFolder(tmp_path / "part")), pytest.raises(InUse):
        sampling.run_shard(given, {})
    assert sampling.run_shard(given, {}).complete


RUN_ON = ["run", "aime24", "--model", "m", "--on"]
URL = ["--base-url", "http://127.0.0.1:1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*RUN_ON, "ray", *URL], "requires the ray package"),
        ([*RUN_ON, "dask", *URL], "expected ray or ray://HOST:PORT"),
        ([*RUN_ON, "ray", "--dry-run"], "requires an address that every node can reach"),
        (["score", "run", "--on", "ray"], "requires the ray package"),
    ],
)
def test_without_ray_it_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    write(tmp_path / "run", [sampled(0, 0)], n_questions=1, planned=1)
    monkeypatch.undo()  # of `_here`: the real cluster
    monkeypatch.setitem(sys.modules, "ray", None)
    result = command(tmp_path, *words)
    assert (result.code, message in result.err, result.err.count("\n")) == (2, True, 1), result.err


@given(st.lists(st.integers(0, 4_000), max_size=5), st.lists(st.integers(0, N * M - 1), min_size=1, max_size=30))
def test_stretches_side_by_side_hold_every_line_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], order: list[int]
) -> None:
    folder = write(tmp_path_factory.mktemp("run") / "run", journal(order), n_questions=N, planned=M)
    files = folder.benchmark(NAME)
    size = files.samples.stat().st_size
    spans = pairwise(sorted({0, size, *(min(cut, size) for cut in cuts)}))
    first = dict[Key, Any]()
    for sample in (sample for span in spans for sample in read_samples(files, span=span)):
        first.setdefault(sample.key, sample)
    assert list(first.values()) == list(read_samples(files))


@pytest.mark.fuzz
@settings(max_examples=rounds(6))
@given(st.integers(1, 3_000), st.lists(st.integers(0, N * M - 1), min_size=1, max_size=20), st.booleans())
def test_stretches_are_graded_as_the_whole_is(
    tmp_path_factory: pytest.TempPathFactory, part_bytes: int, order: list[int], fresh: bool
) -> None:
    folder = write(tmp_path_factory.mktemp("run") / "run", journal(order), n_questions=N, planned=M)
    files = folder.benchmark(NAME)
    score_run(folder, GradingOptions(workers=1))
    whole = [files.grades.read_bytes(), files.scores.read_bytes()]
    if fresh:
        files.grades.unlink()
    patch = pytest.MonkeyPatch()
    patch.setattr(grading, "PART_BYTES", part_bytes)
    patch.setattr(grading, "PARTS_PER_CPU", 100)
    left = grading.grade_on("ray", folder, GradingOptions(workers=1, fresh=fresh), Watcher())
    patch.undo()
    assert not left.fresh
    counts: list[int] = []
    list(grade_run(folder, left, lambda _, n: counts.append(n)))
    assert counts == [], "nothing is left to be graded here"
    score_run(folder, left)
    assert [files.grades.read_bytes(), files.scores.read_bytes()] == whole
    assert list(files.path.glob("grading-parts")) == []


def journal(order: Sequence[int]) -> list[Any]:
    """Samples in this order; one whose key comes again has another text there."""
    again = [number in order[:position] for position, number in enumerate(order)]
    return [
        sampled(number % N, number // N, r"\boxed{7}" if twice else None)
        for number, twice in zip(order, again, strict=True)
    ]


def test_a_refusal_of_a_task_comes_back_as_itself() -> None:
    def refuse() -> None:
        raise UsageError("too many", field="samples", value=3)

    for version, refusal, message in (
        (build(), UsageError, "shard 1: samples=3: too many"),
        ("0.0.1", HarnessError, r"the caller has 0\.0\.1: install the same"),
    ):
        with pytest.raises(refusal, match=message):
            cluster._unpack(*cluster._task(refuse, version, str(Path.cwd()), ()), "shard 1")
    assert cluster._task(lambda: sys.maxsize, build(), str(Path.cwd()), ()) == ("done", sys.maxsize)


def stand_in(patch: pytest.MonkeyPatch, head: socket.socket, **functions: Any) -> None:
    """Put a package `ray` in place whose cluster has this head."""
    context = SimpleNamespace(gcs_address="{}:{}".format(*head.getsockname()))
    usual = {"init": lambda **_: None, "nodes": list, "cluster_resources": dict, "get_runtime_context": lambda: context}
    patch.setitem(sys.modules, "ray", SimpleNamespace(**{**usual, **functions}))  # type: ignore[arg-type]
    patch.setenv("RAY_ENABLE_AUTO_CONNECT", "0")


def test_cluster_workers_import_nothing_from_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray puts the folder that is current when it begins on the path of every worker (its `worker.connect`)."""
    folders: list[Path] = []
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as head:
        stand_in(monkeypatch, head, init=lambda **_: folders.append(Path.cwd()), shutdown=lambda: None)
        with cluster.Cluster("ray"):
            pass
    assert (folders, Path.cwd()) == ([Path("/")], tmp_path)


def test_a_cluster_that_loses_its_head_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray's `shutdown`, which would wait for the head."""
    monkeypatch.setattr(cluster, "HEAD_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as head:
        looks = iter([head.fileno, head.close])

        def wait(refs: list[int], timeout: float) -> tuple[list[int], list[int]]:
            next(looks, int)()
            return [], refs

        stand_in(monkeypatch, head, remote=lambda **_: lambda _: SimpleNamespace(remote=lambda *_: 0), wait=wait)
        with (
            pytest.raises(ServerError, match="its head node has not accepted connections for 0 s"),
            cluster.Cluster("ray") as lost,
        ):
            lost.each(print, [()], ["shard 1"], Watcher())
