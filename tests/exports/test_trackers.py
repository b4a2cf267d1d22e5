"""What a tracker gets of a run, and how one that cannot be used is refused.

For: harness.exports.trackers.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

import harness
from harness.cli.flags import command_of
from harness.core import plugins
from harness.core.errors import UsageError
from harness.exports.trackers import Tracked
from harness.runs import RunFolder
from harness.testing import FakeServer
from tests.commands.test_sweep_runs import answering, questions
from tests.exports.graded_runs import sample, varied, write_run
from tests.system.command import harness as in_folder

SENT: list[Tracked] = []
"""What the tracker `notes` got, newest last."""


def notes(tracked: Tracked) -> str:
    """The tracker of an installed package, by the entry point that the fixture `sent` writes."""
    print("a tracker talks")  # noqa: T201
    SENT.append(tracked)
    return "over there"


def fails(_tracked: Tracked) -> str:
    raise ConnectionError("no\x1b[31m route")


@pytest.fixture
def sent(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Tracked]]:
    """The runs that were sent to the tracker `notes`, a plug-in that the fixture installs."""
    site = tmp_path_factory.mktemp("site")
    about = site / "harness_notes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: harness-notes\nVersion: 1.0\n")
    points = "".join(f"{name} = {__name__}:{name}\n" for name in ("notes", "fails"))
    (about / "entry_points.txt").write_text(f"[harness.trackers]\n{points}")
    monkeypatch.syspath_prepend(site)
    plugins._points.cache_clear()
    SENT.clear()
    yield SENT
    plugins._points.cache_clear()


def test_a_tracker_gets_scores_names_and_identity_but_no_text_or_key(tmp_path: Path, sent: list[Tracked]) -> None:
    secret = "sk-aaaaaaaaaaaaaaaaaaaaaaaa"
    identity = {"extra_body": {"api_key": secret, "n": [1, 2]}, "system_prompt": "long " * 100, "seed": None}
    folder = write_run(
        tmp_path / "my run", varied(), identity=identity, settings={"endpoints": [{"base_url": "http://10.0.0.1:1/v1"}]}
    )
    scores = harness.score(folder, track="notes", workers=1)
    (entry,) = sent
    assert entry.name == "my run"
    assert entry.scores["own/accuracy"] == scores[0].accuracy.value
    assert scores[0].accuracy.sampling is not None
    ends = (entry.scores["own/accuracy_sampling_low"], entry.scores["own/accuracy_sampling_high"])
    assert ends == scores[0].accuracy.sampling
    assert entry.scores["own/n_missing"] == 2
    assert entry.facts["model"] == "org/model-7b"
    assert entry.facts["own.sampling.temperature"] == 0.6
    assert entry.facts["own.extra_body.n"] == "[1, 2]"
    assert str(entry.facts["own.system_prompt"]).startswith("sha256:")
    assert "own.seed" not in entry.facts
    printed = json.dumps([entry.facts, entry.scores])
    for hidden in (secret, "boxed", "What is", "still thinking", "10.0.0.1"):
        assert hidden not in printed


def test_the_same_run_is_the_same_entry_and_another_is_another(tmp_path: Path, sent: list[Tracked]) -> None:
    for name in ("a", "a", "b"):
        folder = RunFolder(tmp_path / name)
        if not folder.path.exists():
            write_run(folder.path, varied())
        harness.score(folder, track=["notes"], workers=1)
    assert sent[0].key == sent[1].key != sent[2].key
    assert sent[0].scores == sent[1].scores


def test_a_sweep_s_benchmark_is_sent_under_its_name_in_the_sweep(tmp_path: Path, sent: list[Tracked]) -> None:
    cells = [write_run(tmp_path / f"topics/ck-step_50+{name}", varied()) for name in ("sums", "facts")]
    (tmp_path / "topics/cells").mkdir()
    for cell in cells:
        (tmp_path / f"topics/cells/{Path(cell).name}.json").write_text("{}")
    for cell in cells:
        harness.score(cell, track="notes", step=50, workers=1)
    assert len({*sent[0].scores} & {*sent[1].scores}) == 0, "two benchmarks of one card are two curves"
    assert ["sums/accuracy" in sent[0].scores, "facts/accuracy" in sent[1].scores] == [True, True]
    assert any(fact.startswith("sums.") for fact in sent[0].facts)
    # Wrong twin: a run that no sweep has a record of keeps the name of its card, whatever its folder is called.
    (tmp_path / "topics/cells/ck-step_50+sums.json").unlink()
    harness.score(cells[0], track="notes", step=50, workers=1)
    assert "own/accuracy" in sent[-1].scores


def test_a_step_that_is_sent_nowhere_is_refused(tmp_path: Path, sent: list[Tracked]) -> None:
    run = write_run(tmp_path / "run", varied())
    for options, sentence in (
        ({"step": 1}, "it requires a tracker: specify one with `track`"),
        ({"series": "s"}, "it requires `step`"),
    ):
        with pytest.raises(UsageError, match=sentence):
            harness.score(run, **options)


def test_names_are_such_as_every_tracker_takes(tmp_path: Path, sent: list[Tracked]) -> None:
    many = [sample(number, index, rf"\boxed{{{number + 1}}}", "gym:a@b") for number in range(3) for index in range(4)]
    harness.score(write_run(tmp_path / "run", {"gym:a@b": many}), track="notes", workers=1)
    (entry,) = sent
    assert entry.scores["gym:a_at_b/pass_at_4"] == 1.0
    assert entry.scores["gym:a_at_b/pass_hat_4"] == 1.0
    assert not [name for name in (*entry.scores, *entry.facts) if set(name) & set("@^\n\"'")]


def test_the_command_says_where_and_keeps_its_output_json(tmp_path: Path, sent: list[Tracked]) -> None:
    run = write_run(tmp_path / "run", varied())
    done = CliRunner().invoke(command_of("score"), [str(run.path), "--track", "notes", "--json", "--workers", "1"])
    assert done.exit_code == 0
    assert [score["benchmark"] for score in json.loads(done.stdout)] == ["own"]
    assert "sent the scores to notes: over there" in done.stderr
    assert len(sent) == 1


def test_bad_trackers_are_refused_first(tmp_path: Path, sent: list[Tracked], monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", varied(), scored=False)
    monkeypatch.setitem(sys.modules, "trackio", None)
    for name, sentence in (
        ("wandv", "Did you mean wandb?"),
        ("trackio", "the package trackio is missing. Install it: "),
    ):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            harness.score(run, track=name)
    assert not run.benchmark("own").grades.exists()


def test_a_file_is_tracked_as_the_run_that_is_made_of_it(tmp_path: Path, sent: list[Tracked]) -> None:
    (tmp_path / "outputs.jsonl").write_text('{"gen": "1", "answer": "1"}\n')
    harness.score(tmp_path / "outputs.jsonl", track="notes", workers=1)
    assert len(sent) == 1


def test_a_tracker_that_fails_is_a_sentence_and_the_score_stands(tmp_path: Path, sent: list[Tracked]) -> None:
    run = write_run(tmp_path / "run", varied(), scored=False)
    with pytest.raises(UsageError) as raised:
        harness.score(run, track="fails")
    assert raised.value.sentence == "the tracker 'fails' failed: ConnectionError: no\\x1b[31m route"
    assert run.benchmark("own").scores.exists()


def test_the_next_call_sends_unsent_cells(tmp_path: Path, sent: list[Tracked], monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(answering("able")) as server:
        questions(tmp_path, "a", 2, 3)
        run = {"base_url": server.base_url, "model": "able", "canary": False}
        (tmp_path / "s.yaml").write_text(json.dumps({"benchmarks": [{"data": "a.jsonl", "samples": 1}], "run": run}))
        failed = in_folder(tmp_path, "sweep", "s.yaml", "--track", "fails", "--track", "notes")
        assert failed.code == 4
        assert len(sent) == 1, "the other tracker has the score"
        assert "a: the score was stored but not sent: the tracker 'fails' failed: ConnectionError" in failed.err
        assert "1 of 1 cell is incomplete; the same command retries them" in failed.err
        n_requests = len(server.requests)
        monkeypatch.setattr(sys.modules[__name__], "fails", notes)
        again = in_folder(tmp_path, "sweep", "s.yaml", "--track", "fails", "--track", "notes")
        assert again.code == 0, again.err
        assert len(sent) == 2, "each tracker got it once"
        assert sum(request.method == "POST" for request in server.requests[n_requests:]) == 0


def test_each_tracker_that_ships_is_named_as_its_package_and_its_extra() -> None:
    extras = metadata("reasoning-harness").get_all("Provides-Extra")
    assert extras is not None
    assert set(plugins.extensions("tracker")) == {"mlflow", "trackio", "wandb"} <= set(extras)
    for name in plugins.extensions("tracker"):
        assert callable(plugins.extension("tracker", name))
