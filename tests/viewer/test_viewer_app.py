"""The viewer's server: who is let in, what it hands out, what it stores.

For: harness.cli.view, harness.viewer, harness.commands.report, harness.reports.inputs.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from harness.benchmarks.prompts import BOXED, PROMPTS
from harness.core.records import Key
from harness.presets.grading import GradingOptions
from harness.runs import Manifest, RunFolder, overrides, read_samples
from harness.scoring.pipeline import score_run
from harness.scoring.score import Score
from harness.scoring.table_cells import accuracy_cell
from harness.viewer import pages
from tests.runs.recorded import append
from tests.system.command import harness
from tests.viewer.running import Viewer, answering_here
from tests.viewer.small_run import SMALL, RunQuestion, RunReply, sample, write_run

Q1 = {"run": "a", "benchmark": "demo", "question": "q1"}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("viewed")
    write_run(folder / "results" / "a")
    write_run(folder / "results" / "deeper" / "b")
    return folder


@pytest.fixture(autouse=True)
def _only_these_runs(results: Path) -> Iterator[None]:
    """What a test adds to the results is gone after it."""
    before = set((results / "results").iterdir())
    yield
    for added in set((results / "results").iterdir()) - before:
        shutil.rmtree(added)


@pytest.fixture(scope="module")
def viewer(results: Path) -> Iterator[Viewer]:
    with answering_here(results / "results") as running:
        yield running


@pytest.fixture
def client(viewer: Viewer) -> Iterator[httpx.Client]:
    with viewer.client() as visitor:
        yield visitor


# --- who is let in ---
PATHS = ["/", "/static/main.js", "/api/runs", "/raw?run=a&benchmark=demo&question=q1&sample=0", "/run/a/demo/q1/s0"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_told_without_the_token(viewer: Viewer, path: str) -> None:
    words = {"": "The token is missing; open the address that `harness view` printed."}
    words[viewer.token[:-1]] = "The token is wrong; open the address that `harness view` printed."
    for token, cookies in (("", {}), ("", {f"harness-view-{viewer.port}": "guess"}), (viewer.token[:-1], {})):
        url = httpx.URL(viewer.root + path)
        address = url.copy_set_param("token", token) if token else url
        refused = httpx.get(address, cookies=cookies, trust_env=False, timeout=None)
        assert (refused.status_code, refused.text, "set-cookie" in refused.headers) == (403, words[token], False)


def test_the_token_becomes_a_cookie_and_leaves_the_address(viewer: Viewer) -> None:
    path = f"/run/a/demo/q2%2Fodd%20id/s1?token={viewer.token}&sort=cut"
    answer = httpx.get(viewer.root + path, trust_env=False, timeout=None)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/run/a/demo/q2%2Fodd%20id/s1?sort=cut"
    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "///evil.example"])
def test_the_redirect_leads_to_no_other_host(viewer: Viewer, path: str) -> None:
    with socket.create_connection(("127.0.0.1", viewer.port)) as raw:
        request = (
            f"GET {path}?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nConnection: close\r\n\r\n"
        )
        raw.sendall(request.encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    location = [line.partition(": ")[2] for line in answer.split("\r\n") if line.lower().startswith("location")]
    assert all(target.startswith("/evil.example") for target in location)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_name_is_refused(viewer: Viewer, host: str) -> None:
    headers = {"Host": host.format(port=viewer.port)}
    answer = httpx.get(f"{viewer.root}/api/runs?token={viewer.token}", headers=headers, trust_env=False, timeout=None)
    assert answer.status_code in (400, 421)
    assert "set-cookie" not in answer.headers


def test_it_listens_on_the_loopback_interface_only(viewer: Viewer) -> None:
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    assert [line[1] for line in listening if line[1].endswith(f":{viewer.port:04X}") and line[3] == "0A"] == [
        f"0100007F:{viewer.port:04X}"
    ]
    everywhere = Path("/proc/net/tcp6").read_text() if Path("/proc/net/tcp6").exists() else ""
    assert f":{viewer.port:04X} 00000000000000000000000000000000:0000 0A" not in everywhere


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/runs", "/api/sample?run=a", "/nothing"])
def test_every_answer_has_a_strict_policy(client: httpx.Client, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/"),
        *("/api/benchmark?run=../a&benchmark=demo", "/api/benchmark?run=a&benchmark=../../a/demo"),
        *("/api/benchmark?run=/etc&benchmark=demo", "/api/benchmark?run=a&benchmark=%00"),
    ],
)
def test_no_address_leads_out_of_the_package_or_the_runs(client: httpx.Client, path: str) -> None:
    url = httpx.URL(str(client.base_url)).copy_with(raw_path=path.encode())
    assert client.get(url).status_code in (400, 404)


# --- what it hands out ---
def test_the_address_of_a_question_may_hold_line_breaks(client: httpx.Client) -> None:
    assert {client.get(f"/{page}/a/demo/q%0A%0D%E2%80%A8/s0").status_code for page in ("run", "compare")} == {200}


def test_runs_questions_samples_votes_reasons_and_raw_texts_are_handed_out(results: Path, client: httpx.Client) -> None:
    runs = [(run["run"], run["benchmarks"][0]["accuracy"]) for run in client.get("/api/runs").json()["runs"]]
    assert runs == [(name, pytest.approx(1 / 3)) for name in "ab"]
    page = client.get("/api/question", params=Q1).json()
    assert [row["verdict"] for row in page["samples"]] == ["correct", "wrong", "wrong"]
    votes = [(vote["answer"], vote["verdict"]) for vote in page["votes"]]
    assert votes == [("42", "correct"), ("41", "wrong"), ("43", "wrong")]
    steps = client.get("/api/why", params={**Q1, "sample": "1"}).json()["steps"]
    assert (steps[-1][:5], any("answer found by box" in step for step in steps)) == ("wrong", True)
    line = (results / "results/a/demo/samples.jsonl").read_bytes().splitlines(keepends=True)[1]
    assert client.get("/raw", params={**Q1, "sample": "1", "part": "record"}).content == line
    answer = client.get("/raw", params={**Q1, "part": "question"})
    assert (answer.text, answer.headers["content-type"]) == (SMALL["q1"].text, "text/plain; charset=utf-8")


def test_a_very_long_text_comes_without_its_middle_and_raw_with_it(results: Path, client: httpx.Client) -> None:
    text = "é" * 5_000_000 + r" $\boxed{42}$"
    write_run(results / "results" / "long", {"demo": {"q": RunQuestion("?", "42", [RunReply(text)])}})
    where = {"run": "long", "benchmark": "demo", "question": "q", "sample": "0"}
    before, answer, after = client.get("/api/sample", params=where).json()["text"]["parts"]
    gap = f" [{len(text) - 400_000:,} characters omitted here; see the raw text] "
    assert (len(before + answer + after), before.count(gap)) == (400_000 + len(gap), 1)
    assert (answer, after) == ("42", "}$")
    raw = client.get("/raw", params=where)
    assert raw.text == text
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.headers["content-security-policy"].startswith("sandbox")


@pytest.mark.parametrize(
    ("text", "span", "parts"),
    [
        ("0123456789", (2, 5), ["01", "234", "56789"]),
        ("0123456789", None, ["0123456789", "", ""]),
        ("0123456789", (5, 99), ["0123456789", "", ""]),
        ("0123456789ab", (1, 2), ["0", "1", "234…789ab"]),
        ("0123456789ab", (5, 6), ["01234…", "", "789ab"]),
        ("0123456789ab", (7, 8), ["01234…", "7", "89ab"]),
        ("0123456789ab", (4, 8), ["0123", "4…7", "89ab"]),
    ],
)
def test_a_text_is_cut_in_its_middle_at_the_answer(text: str, span: tuple[int, int] | None, parts: list[str]) -> None:
    shown = pages.show(text, span, limit=10)
    words = f" [{len(text) - 10} characters omitted here; see the raw text] "
    assert [part.replace(words, "…") for part in shown["parts"]] == parts


def test_what_has_not_changed_is_not_sent_again(client: httpx.Client) -> None:
    for path, query in (("/api/runs", {}), ("/api/benchmark", Q1), ("/api/sample", {**Q1, "sample": "0"})):
        tag = client.get(path, params=query).headers["etag"]
        again = client.get(path, params=query, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("path", "asked", "status", "sentence"),
    [
        ("/api/benchmark", {"run": "aa", "benchmark": "demo"}, 400, "there is no run 'aa' here. Did you mean a"),
        (
            "/api/benchmark",
            {"run": "a", "benchmark": "demos"},
            400,
            "does not include the benchmark 'demos'. Did you mean demo?",
        ),
        ("/api/question", {**Q1, "question": "q9"}, 400, "demo has no question 'q9'"),
        ("/api/sample", {**Q1, "sample": "9"}, 409, "has no sample 9 of question 'q1'"),
        ("/api/sample", {**Q1, "sample": "-1"}, 400, "'-1' is not a sample index"),
        ("/api/sample", {**Q1, "sample": "1" * 18}, 409, f"has no sample {'1' * 18} of"),
        ("/api/sample", {**Q1, "sample": "1" * 19}, 400, f"'{'1' * 19}' is not a sample index"),
        ("/api/sample", Q1, 400, "the query string has no sample"),
        ("/api/search", {**Q1, "text": " "}, 400, "1 to 1000 characters"),
    ],
)
def test_a_mistake_is_a_sentence(
    client: httpx.Client, path: str, asked: dict[str, str], status: int, sentence: str
) -> None:
    answer = client.get(path, params=asked)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_an_address_that_is_not_utf_8_is_a_mistake_and_a_blank_value_none(viewer: Viewer, client: httpx.Client) -> None:
    answer = client.get(f"{viewer.root}/api/run?run=%FF")
    assert (answer.status_code, answer.json()) == (400, {"error": "the query string is not UTF-8."})
    moved = httpx.get(f"{viewer.root}/?q=&token={viewer.token}&sort=cut", trust_env=False, timeout=None)
    assert moved.headers["location"] == "/?q=&sort=cut"


# --- runs that go on, and runs that are broken ---
def test_a_run_that_goes_on_is_followed(results: Path, client: httpx.Client) -> None:
    run = write_run(
        results / "results" / "going", {"demo": {"q": RunQuestion("?", "42", [RunReply("1"), RunReply(r"\boxed{42}")])}}
    )
    query = {"run": "going", "benchmark": "demo", "question": "q"}
    first = client.get("/api/question", params=query)
    append(run, "demo", [sample("demo", "q", 2, RunReply(r"\boxed{41}"))])
    second = client.get("/api/question", params=query, headers={"If-None-Match": first.headers["etag"]})
    assert [row["verdict"] for row in second.json()["samples"]] == ["wrong", "correct", None]
    assert client.get("/api/sample", params={**query, "sample": "2"}).json()["text"]["parts"][0] == r"\boxed{41}"
    score_run(run, GradingOptions(workers=1))
    third = client.get("/api/question", params=query, headers={"If-None-Match": second.headers["etag"]})
    assert third.json()["samples"][2]["verdict"] == "wrong"


@pytest.mark.parametrize("name", ["manifest.json", "demo/questions.jsonl", "demo/grades.jsonl", "demo/scores.json"])
def test_a_damaged_file_is_a_sentence_and_the_rest_is_shown(results: Path, client: httpx.Client, name: str) -> None:
    run = write_run(results / "results" / f"bad-{name.rpartition('/')[2]}")
    (run.path / name).write_bytes(b'{"\xff\xfe broken\n')
    line = next(run_line for run_line in client.get("/api/runs").json()["runs"] if run_line["run"] == run.path.name)
    if name == "manifest.json":
        assert "manifest.json is damaged" in line["problem"]
        for path in ("/api/run", "/api/benchmark"):
            answer = client.get(path, params={"run": run.path.name, "benchmark": "demo"})
            assert (answer.status_code, "manifest.json" in answer.json()["error"]) == (409, True)
        return
    page = client.get("/api/benchmark", params={"run": run.path.name, "benchmark": "demo"}).json()
    (problem,) = page["problems"]
    assert name.rpartition("/")[2] in problem


# --- verdicts by hand ---
def correction(**changed: Any) -> dict[str, Any]:
    correction = {"run": "hand", "benchmark": "demo", "question": "q1", "sample": 1, "verdict": "correct"}
    return {**correction, "who": "Ada", "why": "the reference is wrong", **changed}


WRITES = {"X-Harness-View": "1"}


@pytest.fixture
def by_hand(results: Path, request: pytest.FixtureRequest) -> RunFolder:
    path = results / "results" / "hand"
    return write_run(path) if not path.exists() else RunFolder(path)


def test_a_verdict_by_hand_stands_beside_the_grade(by_hand: RunFolder, client: httpx.Client) -> None:
    grades = by_hand.benchmark("demo").grades.read_bytes()
    query = {"run": "hand", "benchmark": "demo"}
    before = client.get("/api/benchmark", params=query).json()
    stored = client.post("/api/override", json=correction(), headers=WRITES)
    assert (stored.status_code, stored.json()) == (200, {"stored": True})
    page = client.get("/api/benchmark", params=query).json()
    score = Score.load(by_hand.benchmark("demo"))
    assert score is not None
    assert before["headline"][0] == page["headline"][0] == accuracy_cell(score, "%")
    assert not any("by hand" in note for note in before["notes"])
    assert "the accuracy is 50.00% with these verdicts and 33.33% with the grader's" in page["notes"][0]
    assert (
        f"{page['notes'][0]}; this list is based on these manual verdicts\n"
        in harness(by_hand.path.parent, "show", "hand").out
    )
    row = client.get("/api/question", params={**query, "question": "q1"}).json()["samples"][1]
    assert (row["verdict"], row["marks"]["hand"]) == ("correct", "by hand; the grader said wrong")
    (override,) = overrides.read(by_hand.benchmark("demo"))
    stored_words = (override.key, override.who, override.why, override.graded)
    assert stored_words == (Key("q1", 1), "Ada", "the reference is wrong", "wrong")
    assert by_hand.benchmark("demo").grades.read_bytes() == grades
    assert (
        "by hand: correct (the grader said wrong), by Ada" in harness(by_hand.path.parent, "show", "hand", "q1:1").out
    )
    # The grader says something else by now.
    by_hand.benchmark("demo").grades.write_bytes(grades.replace(b'"wrong"', b'"correct"'))
    shown = harness(by_hand.path.parent, "show", "hand", "q1:1").out
    assert "by hand: correct (the grader said wrong at that time)" in shown
    by_hand.benchmark("demo").grades.write_bytes(grades)
    client.post("/api/override", json=correction(verdict=None, why="I was wrong"), headers=WRITES)
    page = client.get("/api/benchmark", params=query).json()
    assert not any("by hand" in note for note in page["notes"])
    assert len(overrides.read(by_hand.benchmark("demo"))) == 2  # nothing said is forgotten
    assert len(list(read_samples(by_hand.benchmark("demo")))) == 6


@pytest.mark.parametrize(
    ("changed", "status", "sentence"),
    [
        ({"why": " "}, 400, "must have a reason"),
        ({"why": "x" * 2001}, 400, "must have a reason of 1 to 2000 characters"),
        ({"who": ""}, 400, "must include its author's name"),
        ({"verdict": "right"}, 400, "unknown value 'right'; expected correct, no_answer, undecided, wrong or null"),
        ({"sample": 9}, 409, "has no sample 9"),
        ({"run": "../hand"}, 400, "there is no run '../hand' here"),
        ({"more": 1}, 400, "unknown field `more`"),
    ],
)
def test_a_correction_that_says_too_little_is_refused(
    by_hand: RunFolder, client: httpx.Client, changed: dict[str, Any], status: int, sentence: str
) -> None:
    path = by_hand.benchmark("demo").overrides
    before = path.read_bytes() if path.exists() else b""
    answer = client.post("/api/override", json=correction(**changed), headers=WRITES)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]
    assert (path.read_bytes() if path.exists() else b"") == before


def test_a_correction_of_any_length_is_not_read_into_memory(by_hand: RunFolder, client: httpx.Client) -> None:
    assert client.post("/api/override", json=correction(why="x" * 65536), headers=WRITES).status_code == 413
    unknown_length = client.post("/api/override", content=iter([b"{", b"}"]), headers=WRITES)
    assert unknown_length.status_code == 413


def test_another_site_cannot_write(by_hand: RunFolder, client: httpx.Client) -> None:
    """A form of another page carries the cookie at worst, never the header."""
    path = by_hand.benchmark("demo").overrides
    before = path.read_bytes() if path.exists() else b""
    assert client.post("/api/override", json=correction()).status_code == 403
    assert (path.read_bytes() if path.exists() else b"") == before


# --- the command ---
def test_a_folder_without_a_run_and_a_taken_port_are_sentences(tmp_path: Path, viewer: Viewer, results: Path) -> None:
    done = harness(tmp_path, "view", "nothing", "--no-open")
    assert (done.code, done.out) == (3, "")
    assert "there is no run at" in done.err
    done = harness(results, "view", "--no-open", "--port", str(viewer.port))
    assert done.code == 2
    assert done.err.startswith(f"harness: --port {viewer.port}: the port is in use on 127.0.0.1")


def table(page: Any, title: str) -> dict[str, list[str]]:
    """The rows of a table of the page by their first cells."""
    (rows,) = [it["rows"] for it in page["facts"]["tables"] + page["facts"]["folded"] if it["title"] == title]
    return {row[0]: row[1:] for row in rows}


def test_the_page_of_a_run_says_settings_and_where_they_come_from(results: Path, client: httpx.Client) -> None:
    folder = write_run(results / "results" / "c")
    manifest = Manifest.load(folder)
    manifest.benchmarks["demo"].settings["sampling_from"] = {"temperature": "options", "top_p": "card"}
    manifest.save(folder)
    folder.log.write_bytes(
        b'{"event":"warning","message":"slow \\u001b[2J"}\n{"event":"warning","message":"slow \\u001b[2J"}\nbroken\n'
    )
    page = client.get("/api/run?run=c").json()
    settings = table(page, "Settings of demo")
    assert settings["temperature"] == ["0.6", "options"]
    assert settings["top_p"] == ["0.95", "card"]
    assert settings["max_tokens"] == ["32,768", "default"]
    assert settings["model"] == ["org/model-7b", ""]
    assert not [name for name in settings if name.startswith("sampling_from")]
    assert table(page, "The run")["model"] == ["org/model-7b"]
    assert page["facts"]["warnings"] == [r"slow \x1b[2J"]
    asked, scored = page["facts"]["commands"]
    assert asked.startswith("harness run demo:3 --model org/model-7b ")
    assert scored == "harness score c-again"
    assert page["prompts"]["demo"]["text"]["parts"][0].startswith("What is")


def test_the_newest_run_comes_first(results: Path, client: httpx.Client) -> None:
    for name, created in (("c", "2026-01-02"), ("d", "2026-03-01"), ("e", "2026-02-01")):
        folder = write_run(results / "results" / name, scored=False)
        manifest = msgspec.structs.replace(Manifest.load(folder), created=f"{created}T00:00:00+00:00")
        manifest.save(folder)
    assert [run["run"] for run in client.get("/api/runs").json()["runs"]][:3] == ["d", "e", "c"]


def test_a_question_is_titled_as_its_data_have_it(results: Path, client: httpx.Client) -> None:
    asked = {
        "own": RunQuestion(f"What is 17 + 25?\n{BOXED}", "42", [RunReply("42")]),
        "other": RunQuestion("Put your answer in a box: what is 1 + 1?", "2", [RunReply("2")]),
        "bare": RunQuestion(BOXED, "2", [RunReply("2")]),
    }
    write_run(results / "results" / "c", {"sums": asked}, identity={"prompt": "boxed"})
    lines = "Solve it step by step."
    wrapped = {"q": RunQuestion(PROMPTS["answer_line"].template.replace("{question}", lines), "1", [RunReply("1")])}
    write_run(results / "results" / "d", {"sums": wrapped}, identity={"prompt": "answer_line"})
    title = lambda run, name: client.get(f"/api/question?run={run}&benchmark=sums&question={name}").json()  # noqa: E731
    assert title("c", "own")["title"] == "What is 17 + 25?"
    assert title("c", "own")["question"]["text"]["parts"][0].endswith(BOXED), "the page shows what was asked"
    assert title("c", "other")["title"] == asked["other"].text
    assert title("c", "bare")["title"] == BOXED, "a question that is nothing else keeps it"
    assert title("d", "q")["title"] == lines
    rows = client.get("/api/benchmark?run=c&benchmark=sums").json()["questions"]
    assert rows[0]["excerpt"] == "What is 17 + 25?"


def test_broken_utf8_in_a_record_costs_that_record_only(results: Path, client: httpx.Client) -> None:
    run = write_run(results / "results" / "utf8")
    samples = run.path / "demo/samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b"Half", b"H\xfflf"))
    query = {"run": "utf8", "benchmark": "demo", "question": "q1"}
    assert "checksum differs" in client.get("/api/sample", params={**query, "sample": "0"}).json()["error"]
    parts = client.get("/api/sample", params={**query, "sample": "1"}).json()["text"]["parts"]
    assert parts == [r"It is $\boxed{", "41", "}$."]
