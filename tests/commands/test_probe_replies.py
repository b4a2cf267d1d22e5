"""`harness probe --replies`: a copy told from its base by what the base has already said.

For: harness.probes.likelihood_readings, harness.probes.likelihood, harness.probes.probed_endpoint.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records import ServerFacts, Usage
from harness.runs.layout import RunFolder
from harness.runs.manifest import Manifest, Provenance
from harness.testing import FAULTS, FakeServer, Request, Step, http
from tests.commands.reading_server import Reader, both
from tests.conftest import CHECKOUT
from tests.faults.able import able, sums
from tests.patience import PATIENCE_SECONDS, until
from tests.runs.recorded import question, sample, write_run
from tests.system.command import harness, start

WORDS = 60
"""Words of each reply; each is a token."""
QUESTIONS = 20
"""Questions of a run; each has one reply."""


COMMANDS = CHECKOUT / "tests" / "commands"


def a_run(folder: Path, n_questions: int = QUESTIONS, samples: int = 1, words: int = WORDS, name: str = "run") -> Path:
    """A run of the base: replies of so many words, beside tokens that no text shows."""
    asked = [question(f"q{i}", f"Sum {i} ?") for i in range(n_questions)]
    replies = [
        sample(
            each.question_id,
            n,
            " ".join(f"w{zlib.crc32(repr((each.question_id, n, i)).encode()) % 997}" for i in range(words)),
            usage=Usage(completion_tokens=3 * words),
        )
        for each in asked
        for n in range(samples)
    ]
    write_run(folder / name, asked, replies, planned=samples, identity={"model": "toy", "api": "chat"})
    return folder / name


def probed(folder: Path, copy: FakeServer, base: FakeServer | None, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the finding of the check."""
    reference = ("--reference", base.base_url) if base else ()
    done = harness(folder, "probe", copy.base_url, "--replies", "run", *reference, *words, "--json", "--quiet")
    assert done.out, done.err
    (finding,) = json.loads(done.out)["findings"]
    return done.code, finding


@pytest.mark.parametrize(
    ("copy", "words", "outcome", "verdict"),
    [
        (Reader("copy"), (), "pass", "same"),
        (Reader("copy", rounding=0.01), (), "pass", "same"),
        (Reader("copy", owner="sglang"), (), "pass", "same"),
        (Reader("copy", owner="someone"), (), "pass", "same"),
        (Reader("copy", shift=-0.05, rounding=0.05, owner="sglang"), (), "fail", "differs"),
        (Reader("copy", shift=0.005, rounding=0.01), (), "warn", "differs"),
        (Reader("copy", shift=0.05, rounding=0.3), ("--margin", "0.002"), "fail", "differs"),
        (Reader("copy", rounding=0.05), ("--margin", "0.0005"), "untested", "cannot tell"),
        (Reader("copy", system="You are kind ."), (), "warn", "same"),
    ],
)
def test_a_copy_is_told_from_its_base_and_rounding_is_not(
    tmp_path: Path, copy: Reader, words: tuple[str, ...], outcome: str, verdict: str
) -> None:
    a_run(tmp_path)
    with FakeServer(Reader(jitter=0.003)) as base, FakeServer(copy) as server:
        code, finding = probed(tmp_path, server, base, *words)
    read = finding["likelihood"]
    assert (finding["outcome"], read["verdict"]) == (outcome, verdict), finding["received"]
    assert code == {"pass": 0, "warn": 0, "fail": 1, "untested": 4}[outcome]
    assert (read["difference"]["tokens"], read["difference"]["questions"]) == (QUESTIONS * WORDS, QUESTIONS)
    assert (read["more_tokens"] > 0, read["template"] != "") == (verdict == "cannot tell", copy.system != "")
    assert "worse" not in finding["received"]
    assert 0 < read["noise"]["size"] < 0.02


def test_the_base_is_read_once_and_kept(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    with FakeServer(Reader()) as base, FakeServer(Reader("copy", shift=0.1)) as copy:
        itself = probed(tmp_path, base, base)
        n = reads(base)
        assert (itself[0], n) == (0, 2 * QUESTIONS)
        first = probed(tmp_path, copy, None)
        again = probed(tmp_path, copy, base, "--read-tokens", "600")
        assert reads(base) == n + 2  # one reply of each file shows that it is still the same server
    assert first[1]["likelihood"]["difference"]["tokens"] == QUESTIONS * WORDS
    assert again[1]["likelihood"]["difference"]["tokens"] <= 600
    assert {path.name[:5] for path in (run / "likelihood").iterdir()} == {"base-", "again"}
    with FakeServer(Reader("other", shift=1.0), port=base.port) as other:
        refused = harness(tmp_path, "probe", other.base_url, "--replies", "run", "--reference", other.base_url)
        assert refused.code == 2, refused.err
        assert "computes different log-probabilities than the base previously did" in refused.err, refused.err
    (kept,) = (run / "likelihood").glob("base-*")
    kept.write_bytes(kept.read_bytes().replace(b'"logprobs":[-', b'"logprobs":[-9', 1))
    with FakeServer(Reader("copy")) as copy:
        damaged = harness(tmp_path, "probe", copy.base_url, "--replies", "run")
        kept.unlink()
        lost = harness(tmp_path, "probe", copy.base_url, "--replies", "run")
    assert (damaged.code, "line 1 is damaged" in damaged.err) == (3, True)
    assert (lost.code, "does not contain the base's values" in lost.err) == (2, True)


def test_no_server_gets_the_key_of_another_and_none_is_shown(tmp_path: Path) -> None:
    a_run(tmp_path)
    with FakeServer(Reader()) as base, FakeServer(Reader("copy", shift=1.0, echo=True)) as copy:
        words = ("--replies", "run", "--reference", base.base_url, "--api-key-env", "MINE", "--json")
        done = harness(
            tmp_path, "probe", copy.base_url, *words, extra={"OPENAI_API_KEY": "key-shared", "MINE": "key-mine"}
        )
        assert done.code == 1, done.err
        assert {"key-mine" in str(request.headers) for request in copy.requests} == {True}
        assert not any("key-" in str(request.headers) for request in base.requests)
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert "key-" not in done.out + done.err + kept.decode()


OTHERS = [{"7": {"logprob": -1}}] * 60
"""Log-probabilities of other tokens than were sent."""


def reads(server: FakeServer) -> int:
    return sum(request.path in ("/v1/completions", "/generate") for request in server.requests)


@pytest.mark.parametrize("during", ["base", "copy"])
def test_a_probe_that_is_killed_goes_on_behind_what_was_read(tmp_path: Path, during: str) -> None:
    a_run(tmp_path)
    under_way, ends = threading.Event(), threading.Event()

    def stall(n: int) -> None:
        if n == {"base": 30, "copy": 15}[during]:
            under_way.set()
            ends.wait(PATIENCE_SECONDS)

    readers = {name: Reader(name, spoil=stall if name == during else lambda _n: None) for name in ("base", "copy")}
    with FakeServer(readers["base"]) as base, FakeServer(readers["copy"]) as copy:
        words = ["probe", copy.base_url, "--replies", "run", "--reference", base.base_url]
        run = start(tmp_path, words)
        assert under_way.wait(PATIENCE_SECONDS)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=PATIENCE_SECONDS)
        ends.set()
        before = reads(base), reads(copy)
        code, finding = probed(tmp_path, copy, base)
        after = reads(base) - before[0], reads(copy) - before[1]
    assert (code, finding["likelihood"]["difference"]["mean"]) == (0, 0.0)
    # One reply more of each file is read; eight may have been in flight.
    most = {"base": (2 * QUESTIONS - 21 + 2, QUESTIONS), "copy": (2, QUESTIONS - 7 + 1)}[during]
    assert after[0] <= most[0]
    assert after[1] <= most[1]


def write_sweep(folder: Path, samples: int = 1, base_url: str | None = None, **keys: Any) -> None:
    """A sweep over the sums, `s.yaml`, whose copies read."""
    asked = {"id_key": "id", "canary": False} | ({"base_url": base_url} if base_url else {})
    content = {"run": asked, "benchmarks": [{"data": "sums.jsonl", "samples": samples}], "likelihood": {}} | keys
    (folder / "s.yaml").write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_killed_sweep_resumes_reading_with_a_started_server(tmp_path: Path) -> None:
    """The server's port is another at the next start. One of another command, or other variables, is another server."""
    sums(tmp_path, 20)
    command = [sys.executable, str(COMMANDS / "reading_server.py"), str(tmp_path / "log"), "{port}"]
    models = [{"name": name, "model": "toy"} for name in ("base", "copy")]

    def write(*more: str, **variables: str) -> None:
        server = {"name": "s", "command": [*command, *more], "served_name": "toy", "environment": variables}
        write_sweep(tmp_path, models=models, servers=[server])

    write()
    log, words = tmp_path / "log", ("sweep", "s.yaml", "--out", "s")
    run = start(tmp_path, words)
    until(lambda: log.exists() and log.stat().st_size >= 30, "the thirtieth reply")
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=PATIENCE_SECONDS)
    log.with_suffix(".go").touch()
    done = harness(tmp_path, *words)
    assert done.code == 0, done.err
    # The base reads 20 replies twice, the copy once; one of each file is read once more, and eight were in flight.
    assert 60 <= log.stat().st_size <= 60 + 3 + 8
    assert len([*tmp_path.glob("s/base+s+sums/likelihood/base-*")]) == 1
    for n, write_other in enumerate((partial(write, "other"), partial(write, CACHE="fp8")), 2):
        write_other()
        assert harness(tmp_path, *words).code == 0
        assert len([*tmp_path.glob("s/base+s+sums/likelihood/base-*")]) == n


def test_replies_are_read_as_far_as_the_contexts_of_both_servers_have_room(tmp_path: Path) -> None:
    a_run(tmp_path)
    with (
        FakeServer(Reader()) as base,
        FakeServer(Reader("copy", context=40)) as copy,
        FakeServer(Reader(context=9)) as no,
    ):
        done = harness(tmp_path, "probe", copy.base_url, "--replies", "run", "--reference", base.base_url, "--json")
        refused = probed(tmp_path, no, base)
        wider = harness(tmp_path, "probe", base.base_url, "--replies", "run")
    # The base was not read to the ends of the replies.
    assert (wider.code, "does not contain the base's values for this many tokens" in wider.err) == (2, True), wider.err
    # A prompt of four tokens, and eight that stay free.
    n_read, says = (
        QUESTIONS * (40 - 4 - 8),
        f"{QUESTIONS * (WORDS - 28):,} tokens at the ends of {QUESTIONS} replies are skipped",
    )
    finding = json.loads(done.out)["findings"][0]
    assert (done.code, finding["likelihood"]["difference"]["tokens"], says in done.err) == (0, n_read, True), done.err
    assert (refused[0], "context is too small for any of the replies" in refused[1]["received"]) == (4, True)


def test_a_half_read_copy_that_became_another_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.probes.probed_endpoint.READ_WAITS", (0.01, 0.02, 0.04, 0.08))
    a_run(tmp_path)
    broken = Reader("copy", spoil=lambda n: [http(500, {})] if n > 10 else None)
    with FakeServer(Reader()) as base, FakeServer(broken) as copy:
        code, finding = probed(tmp_path, copy, base)
    assert (code, "HTTP 500" in finding["received"]) == (4, True)
    with FakeServer(Reader("copy", shift=0.5), port=copy.port) as other:
        _, finding = probed(tmp_path, other, None)
    assert finding["likelihood"]["difference"]["mean"] == pytest.approx(0.5)


def test_a_reading_that_fails_once_is_made_again(tmp_path: Path) -> None:
    a_run(tmp_path)
    failing: dict[int, list[Step]] = {3: [http(500, {})], 9: [http(520, b"gone")], 15: list(FAULTS["reset"])}
    with FakeServer(Reader()) as base, FakeServer(Reader("copy", spoil=failing.get)) as copy:
        code, finding = probed(tmp_path, copy, base)
    assert (code, finding["likelihood"]["verdict"]) == (0, "same")


def test_probes_of_one_copy_at_once_share_their_readings(tmp_path: Path) -> None:
    """One that ends removes the copy's readings while another still reads."""
    stored = a_run(tmp_path) / "likelihood"

    def remove(nth: int) -> None:
        for path in stored.glob("copy-*.jsonl") if nth == 10 else ():
            path.unlink()

    with FakeServer(Reader()) as base, FakeServer(Reader("copy", spoil=remove)) as copy:
        _, finding = probed(tmp_path, copy, base)
    assert finding["likelihood"]["difference"]["tokens"] == QUESTIONS * WORDS


@pytest.mark.parametrize(
    ("copy", "says"),
    [
        (Reader("copy", owner="llamacpp"), "llama.cpp does not return log-probabilities of prompt tokens"),
        (Reader("copy", spoil=lambda _n: [http(200, {"choices": [{"text": "a"}]})]), "only 0 of the 60 tokens"),
        (Reader("copy", spoil=lambda _n: [http(200, {"choices": [{"prompt_logprobs": OTHERS}]})]), "only 0 of the 60"),
        (Reader("copy", shift=-800.0), "as a log-probability; expected a value from -10000 to 0"),
        (Reader("copy", spoil=lambda _n: [http(200, b"[" * 9000)]), "its reply contains no prompt log-probabilities"),
        (Reader("copy", spoil=lambda _n: [http(400, {"error": {"message": "no logprobs here"}})]), "no logprobs here"),
    ],
)
def test_a_server_that_cannot_read_is_refused_in_a_sentence(tmp_path: Path, copy: Reader, says: str) -> None:
    a_run(tmp_path)
    with FakeServer(Reader()) as base, FakeServer(copy) as server:
        code, finding = probed(tmp_path, server, base)
    refused = 2 if says == "no logprobs here" else 4  # a rejected request ends the probe
    assert (code, finding["outcome"], says in finding["received"]) == (refused, "untested", True), finding["received"]


@pytest.mark.parametrize(
    ("since", "until", "band"),
    [(0, 16, "1–16"), (0, 256, "1–256"), (256, 1024, "257–1,024"), (1024, 9999, "1,025–4,096")],
)
def test_a_gap_shows_at_its_position(tmp_path: Path, since: int, until: int, band: str) -> None:
    a_run(tmp_path, n_questions=4, samples=1, words=1200)
    with FakeServer(Reader()) as base, FakeServer(Reader("copy", shift=1.0, since=since, until=until)) as server:
        _, finding = probed(tmp_path, server, base)
        shown, own = (harness(tmp_path, "probe", of.base_url, "--replies", "run").out for of in (server, base))
    read = finding["likelihood"]
    gaps = {each["of"]: each["mean"] for each in (read["opening"], *read["positions"])}
    assert gaps[band] == pytest.approx(1.0)
    assert gaps["1–256"] == pytest.approx(until / 256 if until <= 256 else 0.0)
    assert ("compare the chat templates" in finding["received"]) == (until == 16)
    assert all(since < token["position"] <= until for token in read["moved"])
    assert len(read["moved"]) == 10
    assert f"[{read['moved'][0]['token']}]" in shown
    assert ("moved most" in shown, "moved most" in own) == (True, False)
    assert band in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--reference", "http://127.0.0.1:1"), "it requires --replies"),
        (("--replies", "run", "--quick"), "remove one of the two options"),
        (("--replies", "nowhere"), "there is no run at"),
        (("--checks", "replies"), "requires the option"),
        (("--sampled", "run"), "`harness compare BASE COPY` shows the difference in points"),
        (("--replies", "short"), "replies to at least two questions but found 1"),
        (("--replies", "run", "--reference", "http://127.0.0.1:9/v1"), "the reference: no server answers"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    a_run(tmp_path)
    a_run(tmp_path, n_questions=1, name="short")
    with FakeServer(Reader("copy")) as server:
        done = harness(tmp_path, "probe", server.base_url, *words)
    assert (done.code in (2, 3), says in done.err) == (True, True), done.err


def test_a_sweep_reads_its_copies_once(tmp_path: Path) -> None:
    sums(tmp_path, 12)
    shifts = {"base": 0.0, "q8": 0.01, "q6": 0.02, "q5": 0.04}

    def serving(name: str, shift: float) -> Callable[[Request], Iterable[Step]]:
        return both(able(0.9 - 8 * shift), Reader(name, shift=shift, rounding=0.001))

    with contextlib.ExitStack() as stack:
        at = {name: stack.enter_context(FakeServer(serving(name, shift))) for name, shift in shifts.items()}
        # The base comes last: its group is carried out first all the same.
        named = [{"name": name, "run": {"base_url": server.base_url, "model": "toy"}} for name, server in at.items()]
        table = {"layout": "models", "shown": ["accuracy"], "base": "base"}
        # The key may come when all samples are there.
        for likelihood in (None, {"margin": 0.005}):
            write_sweep(tmp_path, 2, servers=named[::-1], table=table, likelihood=likelihood)
            done = harness(tmp_path, "sweep", "s.yaml", "--out", "s", "--json")
            assert done.code == 0, done.out + done.err
        n = {name: reads(server) for name, server in at.items()}
        again = harness(tmp_path, "sweep", "s.yaml", "--out", "s")
        assert (again.code, {name: reads(server) for name, server in at.items()}) == (0, n)
    cells = {row["servers"]: row for row in json.loads(done.out)["cells"]}
    assert {name: round(row["likelihood_difference"], 2) for name, row in cells.items()} == shifts
    assert "on the base's replies: differs by 0.0" in again.out


def test_a_cell_whose_engine_reads_no_replies_has_a_score_and_the_reason(tmp_path: Path) -> None:
    sums(tmp_path, 6)
    with FakeServer(both(able(1.0), Reader("x", owner="llamacpp"))) as server:
        write_sweep(tmp_path, base_url=server.base_url, models=["toy", {"name": "other", "model": "toy"}])
        done = harness(tmp_path, "sweep", "s.yaml")
        write_sweep(tmp_path, base_url=server.base_url, models=["toy"])
        alone = harness(tmp_path, "sweep", "s.yaml", "--dry-run")
    assert done.code == 0, done.out + done.err
    assert "does not return log-probabilities of prompt tokens" in done.out, done.out + done.err
    assert (alone.code, "copies are compared using their base's replies" in alone.err) == (2, True), alone.err


def swept(folder: Path, at: dict[str, FakeServer], names: tuple[str, ...], samples: int, **more: Any) -> dict[str, Any]:
    """The rows of a sweep over these servers, by name; the first is the base."""
    servers = [{"name": name, "run": {"base_url": at[name].base_url, "model": "toy"}} for name in names]
    write_sweep(folder, samples, servers=servers, **more)
    done = harness(folder, "sweep", "s.yaml", "--out", "s", "--json")
    assert done.out, done.err
    return {row["servers"]: row for row in json.loads(done.out)["cells"]}


def test_a_sweep_reads_anew_what_its_samples_or_its_file_have_made_old(tmp_path: Path) -> None:
    sums(tmp_path, 10)

    with contextlib.ExitStack() as stack:
        shifts = {"base": 0.0, "copy": 0.5, "new": 0.2}
        at = {
            name: stack.enter_context(FakeServer(both(able(0.7), Reader(name, shift=n)))) for name, n in shifts.items()
        }
        assert swept(tmp_path, at, ("base", "copy"), 2)["copy"]["likelihood_difference"] == pytest.approx(0.5)
        # A copy that comes when the base has more samples than it had read.
        assert swept(tmp_path, at, ("base", "copy", "new"), 4)["new"]["likelihood_difference"] == pytest.approx(0.2)
        before = reads(at["new"])
        swept(tmp_path, at, ("base", "copy", "new"), 4)
        assert reads(at["new"]) == before
        # Records of an earlier version, which called the difference a gap.
        cells = [path for path in (tmp_path / "s").rglob("*.json") if '"likelihood": {' in path.read_text()]
        for path in cells:
            path.write_text(re.sub(r'"difference": \{', '"gap": {', path.read_text()))
        former = swept(tmp_path, at, ("base", "copy", "new"), 4)["new"]
        assert (len(cells) >= 2, reads(at["new"])) == (True, before)
        assert former["likelihood_difference"] == pytest.approx(0.2)
        other = swept(tmp_path, at, ("base", "copy", "new"), 4, table={"base": "copy"})
        assert other["new"]["likelihood_difference"] == pytest.approx(-0.3)
        # The advice for another model's samples: delete the cell, and run the same command.
        port = at["copy"].port
        at["copy"].__exit__(None, None, None)
        at["copy"] = stack.enter_context(FakeServer(both(able(0.7), Reader("copy", shift=0.1)), port=port))
        shutil.rmtree(tmp_path / "s" / "copy+sums")
        assert swept(tmp_path, at, ("base", "copy"), 4)["copy"]["likelihood_difference"] == pytest.approx(0.1)
        # A target that is missed is a reason, and what was read stays.
        shutil.rmtree(tmp_path / "s" / "copy+sums")
        run = {"id_key": "id", "canary": False, "model": "toy", "target_error": 0.1}
        missed = swept(tmp_path, at, ("base", "copy"), 8, run=run)["copy"]
        assert ("target" in missed["reason"], missed["likelihood_difference"]) == (True, pytest.approx(0.1)), missed[
            "reason"
        ]
        before = reads(at["copy"])
        swept(tmp_path, at, ("base", "copy"), 8, run=run)
        assert reads(at["copy"]) == before


@pytest.mark.parametrize(("root", "code"), [("base", 0), ("copy", 2)])
def test_a_server_of_another_model_is_not_stored_as_the_runs_base(tmp_path: Path, root: str, code: int) -> None:
    run = RunFolder(a_run(tmp_path))
    provenance = Provenance().after("then", {"http://base:1/v1": ServerFacts(model={"root": "base"})}, [])
    msgspec.structs.replace(Manifest.load(run), provenance=provenance).save(run)
    with FakeServer(Reader(root=root)) as server:
        done = harness(tmp_path, "probe", server.base_url, "--replies", "run", "--reference", server.base_url)
    says = 'is not the server that produced run: root: "base" → "copy"'
    assert (done.code, says in done.err, (run.path / "likelihood").exists()) == (code, code == 2, code == 0), done.err


@pytest.mark.parametrize("given", [{"URL": ""}, {"URL": "/v1"}, {"URL": "/v1/"}, {"OPENAI_BASE_URL": "/v1"}])
def test_a_base_as_its_own_reference_is_one_server_in_any_spelling(tmp_path: Path, given: dict[str, str]) -> None:
    a_run(tmp_path)
    with FakeServer(Reader()) as base:
        root = base.base_url.removesuffix("/v1")
        words = [f"{root}{given['URL']}"] if "URL" in given else []
        extra = {name: f"{root}{end}" for name, end in given.items() if name != "URL"} | {"OPENAI_API_KEY": "key-mine"}
        done = harness(tmp_path, "probe", *words, "--replies", "run", "--reference", f"{root}/v1", extra=extra)
        assert {"key-mine" in str(request.headers) for request in base.requests} == {True}
    assert done.code == 0, done.err


def test_a_refused_or_failed_reading_costs_no_score(tmp_path: Path) -> None:
    """A refusal is not asked for again; a server that does not start any more, and a damaged file, lose no score."""
    sums(tmp_path, 6)
    reader = Reader("x", spoil=lambda _n: [http(400, {"error": {"message": "not by me"}})])
    with FakeServer(both(able(1.0), reader)) as server:
        write_sweep(tmp_path, base_url=server.base_url, models=["toy", {"name": "other", "model": "toy"}])
        first = harness(tmp_path, "sweep", "s.yaml")
        n = reads(server)
        again = harness(tmp_path, "sweep", "s.yaml")
    assert (first.code, again.code, n > 0, reads(server)) == (0, 0, True, n), first.err
    assert "not by me" in again.out
    starting = {"name": "s", "command": [sys.executable, str(COMMANDS / "able_server.py"), "--port", "{port}"]}
    models = ["able", {"name": "other", "model": "able"}]
    for server_entry, read in ((starting, None), ({"name": "s", "command": "false"}, {})):
        write_sweep(tmp_path, models=models, servers=[server_entry], likelihood=read)
        done = harness(tmp_path, "sweep", "s.yaml", "--out", "t")
        assert done.code == 0, done.out + done.err
    assert "the server did not start" in done.out
