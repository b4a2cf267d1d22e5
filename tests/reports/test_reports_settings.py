"""Settings in words, what a run took, what its log says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.commands.compare import compare
from harness.core.records import ServerFacts
from harness.options.deciding import CompareOptions
from harness.reports.scored import read_history, read_runs
from harness.reports.settings import (
    by_weight,
    checksum_table,
    failure_table,
    given_table,
    in_words,
    run_table,
    settings_table,
)
from harness.runs.layout import RunFolder, RunLog
from harness.runs.manifest import Manifest, Provenance
from harness.runs.recorded_settings import difference_in_words
from tests.reports.run_folders import write_run


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not set"),
        ("", "not set"),
        (True, "yes"),
        (False, "no"),
        (32768, "32,768"),
        (0.6, "0.6"),
        (0.800000011920929, "0.8"),  # 0.8 of 32 bits, as servers state it
        (0.949999988079071, "0.95"),
        (1e300, "1e+300"),
        (1.0, "1"),
        ([], "none"),
        ({}, "none"),
        (["a", "b"], "a; b"),
        ({"base_url": "http://x/v1", "weight": 1.0}, "address http://x/v1, weight 1"),
        (list(range(20)), "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; 10; 11 and 8 more"),
        ("0c1f88b04e09955a7f8556c2c1dcc9ad8105d79aa4c90d20eb8f22ca8344dd6e", "0c1f88b04e09"),
        ("seal-1:0c1f88b04e09955a7f8556c2c1dcc9ad8105d79aa4c90d20eb8f22ca8344dd6e", "seal-1:0c1f88b04e09"),
        ("see: the notes", "see: the notes"),
        ("\x1b[2J", r"\x1b[2J"),
    ],
)
def test_a_value_is_said_as_a_person_says_it(value: object, words: str) -> None:
    assert in_words(value) == words


def test_settings_that_move_a_score_most_come_first() -> None:
    settings = {"top_p": 1, "zeta": 1, "temperature": 1, "chat_template_kwargs.enable_thinking": 1, "max_tokens": 1}
    ranked = [name for name, _ in sorted(settings.items(), key=by_weight)]
    assert ranked == ["max_tokens", "chat_template_kwargs.enable_thinking", "temperature", "top_p", "zeta"]


def test_where_a_sampling_value_or_a_given_option_comes_from_is_said(tmp_path: Path) -> None:
    recorded: dict[str, object] = {
        "sampling_from": {"temperature": "preset r1"},
        "spelt_by": {"seed_field": "options"},
        "seed_field": "seed",
        "chosen_by": {"samples": "card"},
        "canary": False,
        "questions_made": {"rows_digest": "0c1f"},
    }
    folder = write_run(tmp_path / "run", settings=recorded)
    manifest = Manifest.load(folder)
    demo = msgspec.structs.replace(manifest.benchmarks["demo"], options={"canary": False})
    msgspec.structs.replace(manifest, benchmarks={"demo": demo}).save(folder)
    (run,) = read_runs([folder])
    rows = {name: (value, who) for name, value, who in given_table(run, "demo").rows}
    assert (rows["temperature"][1], rows["canary"], rows["seed_field"]) == (
        "preset r1",
        ("no", "options"),
        ("seed", "server"),
    )
    assert rows["samples"][1] == ""
    assert not rows.keys() & {"sampling_from", "spelt_by", "chosen_by", "questions_made.rows_digest"}
    (checksum,) = checksum_table([run], "demo").rows
    assert checksum == ("questions_made.rows_digest", "0c1f")


def _note_server(folder: RunFolder, url: str, **host: str) -> None:
    """Note in the run's manifest which server made its samples. host: facts of its host."""
    manifest = Manifest.load(folder)
    provenance = Provenance().after("2026-01-01T00:00:00+00:00", {url: ServerFacts(host=host)}, [])
    msgspec.structs.replace(manifest, provenance=provenance).save(folder)


def test_a_setting_is_starred_where_a_comparison_lists_it_and_the_title_says_what_a_star_is(tmp_path: Path) -> None:
    def run(name: str, port: int, digest: str) -> RunFolder:
        endpoints = [{"base_url": f"http://127.0.0.1:{port}/v1"}]
        made = {"rows_digest": digest}
        settings = {"endpoints": endpoints, "order": "longest", "questions_made": made}
        return write_run(tmp_path / name, settings=settings)

    folders = [run("base", 8001, "a"), run("other", 8002, "b"), run("twin", 8001, "a")]
    runs = read_runs(folders)
    (beside,) = compare(folders[:2], CompareOptions())
    assert [change.field for change in beside.settings] == ["endpoints"]
    table = settings_table(runs[:2], "demo")
    assert [row[0] for row in table.rows if row[0].endswith(" *")] == ["endpoints *"]
    assert (table.title, table.notes) == ("Settings of demo (* differs between runs)", ())
    assert checksum_table(runs[:2], "demo").rows == (("questions_made.rows_digest *", "a", "b"),)
    for folder, port in ((folders[0], 8001), (folders[1], 8002)):
        _note_server(folder, f"http://127.0.0.1:{port}/v1", launcher="command")
    (beside,) = compare(folders[:2], CompareOptions())
    assert not beside.settings, "the harness started both servers at free ports"
    assert "endpoints *" not in [row[0] for row in settings_table(read_runs(folders[:2]), "demo").rows]
    _note_server(folders[1], "http://127.0.0.1:8002/v1")
    (beside,) = compare(folders[:2], CompareOptions())
    (change,) = beside.settings
    for_people = "endpoints: address http://127.0.0.1:8001/v1 → address http://127.0.0.1:8002/v1"
    assert difference_in_words(change) == for_people, "one server is the user's"
    equal = settings_table([runs[0], runs[2]], "demo")
    assert (equal.title, [row for row in equal.rows if "*" in row[0]]) == ("Settings of demo", [])


def test_what_no_run_has_set_is_left_out(tmp_path: Path) -> None:
    runs = read_runs([write_run(tmp_path / "run", settings={"budget_usd": None, "order": "longest", "missing": {}})])
    names = [row[0] for row in settings_table(runs, "demo").rows]
    assert "order" in names
    assert not {"budget_usd", "missing"} & set(names)


def test_a_chosen_set_of_questions_and_one_without_an_end_are_said(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", n_failures=4)
    with RunLog(folder) as log:
        log.write("session_started", missing=1, done=0)
    (run,) = read_runs([folder])
    rows = {row[0]: row[1] for row in run_table([run]).rows}
    assert rows["sessions"] == "2, 1 without an end"
    assert rows["failed requests"] == "4"
    assert rows["retried requests"] == "4"
    assert rows["last reply (UTC)"].startswith("2026-01-01 1")
    failures = failure_table([run])
    assert failures is not None
    assert sorted((row[2], row[3]) for row in failures.rows) == [("connect", "2"), ("status 503", "2")]


def test_a_damaged_or_missing_log_costs_its_lines_only(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", n_failures=3)
    before = read_history(folder)
    with folder.log.open("ab") as log:
        log.write(b'{"event":"session_started"\n\xff\xfe"request_failed"\n"session_' + b"x" * 100_000 + b"\n")
    assert read_history(folder) == before
    folder.log.unlink()
    assert read_history(folder).sessions == 0


def test_many_causes_of_failure_are_bounded(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with RunLog(folder) as log:
        for number in range(500):
            log.write("request_failed", endpoint=f"http://{number}", kind="connect", status=None, message="x" * 5000)
    found = read_history(folder).failures
    assert len(found) == 200
    assert max(len(one.message) for one in found) <= 201
