"""`harness published` and `harness verify --against any`: the index holds what the files say, whatever happened to it,
and a run beside all public scores gets the verdict that is true of it.

For: harness.verbs.published, harness.cli.published, harness.scoring.published.index,
harness.scoring.published.hub_results, harness.scoring.published.benchmark_name.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import re
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest

import harness as reasoning_harness
from harness.asking.options import ReportOptions
from harness.asking.options.deciding import PublishedUpdateOptions, VerifyOptions
from harness.core.errors import UsageError
from harness.scoring.published import every_eval_ever, index
from harness.verbs.compare import verify
from harness.verbs.published import published, update
from harness.verbs.report import report
from tests.reports.run_folders import write_run
from tests.scoring.test_scoring_published import RECORD
from tests.system.command import harness

MODEL = "org/model-7b"

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def record(
    model: str, benchmark: str, percent: float, source: str, questions: int = 30, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    content = copy.deepcopy(RECORD)
    content["model_info"] |= {"name": model, "id": model}
    content["source_metadata"] |= {"source_name": source}
    result = content["evaluation_results"][0]
    result["evaluation_name"] = result["source_data"]["dataset_name"] = benchmark
    result["source_data"]["samples_number"] = questions
    result["score_details"] = {"score": percent}
    result["generation_config"] = {"generation_args": settings or {}}
    return content


def write(folder: Path, content: dict[str, Any], chance: random.Random) -> Path:
    """The record under the path that the datastore gives it."""
    owner, _, name = content["model_info"]["id"].rpartition("/")
    model_folder = folder / "data" / content["evaluation_results"][0]["evaluation_name"] / (owner or "unknown") / name
    model_folder.mkdir(parents=True, exist_ok=True)
    path = model_folder / f"{uuid.UUID(int=chance.getrandbits(128), version=4)}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def datastore(folder: Path, n: int, seed: int = 0) -> list[tuple[str, str, float]]:
    """A made-up datastore: (model, benchmark, percentage) of each record."""
    chance, rows = random.Random(seed), []
    for number in range(n):
        row = (f"org{number % 7}/model{number % 50}-7b", f"bench{number % 9}", round(chance.uniform(0, 100), 2))
        write(folder, record(*row, source=f"board {number % 5}"), chance)
        rows.append(row)
    return rows


def scores_in_index(model: str, benchmark: str | None = None) -> list[tuple[str, str, float]]:
    rows = index.look_up(model, benchmark)
    return [(row.score.model, row.score.benchmark, round(100 * row.score.value, 2)) for row in rows]


def updated(folder: Path) -> index.Updated:
    (entry,) = update(PublishedUpdateOptions(source=str(folder)))
    return entry.updated


def test_the_index_gives_back_each_record_once_and_to_its_own_model(tmp_path: Path) -> None:
    rows = datastore(tmp_path / "store", 400)
    done = updated(tmp_path / "store")
    assert (done.read, done.unchanged, done.gone, done.scores, done.passed_over) == (400, 0, 0, 400, {})
    for model in sorted({row[0] for row in rows}):
        assert sorted(scores_in_index(model)) == sorted(
            row for row in rows if row[0].partition("/")[2] == model.partition("/")[2]
        )
        exact = [row for row in index.look_up(model) if row.match.same]
        assert sorted(row.score.model for row in exact) == [row[0] for row in sorted(rows) if row[0] == model]
    assert scores_in_index("org0/model0-7b", "bench1") == [
        row for row in scores_in_index("org0/model0-7b") if row[1] == "bench1"
    ]
    assert scores_in_index("org0/model0-8b") == []


def test_an_update_that_is_killed_anywhere_goes_on_and_ends_with_the_same_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store"
    datastore(store, 60)
    monkeypatch.setattr(index, "BATCH_FILES", 7)
    updated(store)
    expected = {model: scores_in_index(model) for model in {f"org{n % 7}/model{n % 50}-7b" for n in range(60)}}
    chance, n_deaths = random.Random(1), 0
    index.index_path().unlink()
    while True:
        try:
            done = index.update(
                str(store.resolve()), index.files_of(store.resolve()), dying(store, chance.randint(1, 25))
            )
            break
        except KeyboardInterrupt:
            n_deaths += 1
    assert n_deaths
    assert done.scores == 60
    assert done.unchanged > 0
    assert {model: scores_in_index(model) for model in expected} == expected


def dying(store: Path, n_files: int) -> index.Reader:
    """A reader of records that dies behind `n_files`."""
    left = n_files

    def read(path: str) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return every_eval_ever.scores_of((store / path).read_bytes(), path)

    return read


def test_a_file_that_changed_is_read_again_and_one_that_is_gone_takes_its_scores_along(tmp_path: Path) -> None:
    store, chance = tmp_path / "store", random.Random(2)
    unchanged, changed, removed = (write(store, record(MODEL, "demo", 40.0 + n, f"s{n}"), chance) for n in range(3))
    assert updated(store).read == 3
    assert updated(store).unchanged == 3
    changed.write_text(json.dumps(record(MODEL, "demo", 77.5, "s1")), encoding="utf-8")
    removed.unlink()
    done = updated(store)
    assert (done.read, done.unchanged, done.gone, done.scores) == (1, 1, 1, 2)
    assert sorted(value for *_, value in scores_in_index(MODEL)) == [40.0, 77.5]
    assert unchanged.exists()


def test_folders_do_not_disturb_each_other_and_a_record_under_two_paths_is_found_once(tmp_path: Path) -> None:
    chance = random.Random(3)
    path = write(tmp_path / "a", record(MODEL, "demo", 50.0, "s"), chance)
    write(tmp_path / "b", record(MODEL, "demo", 60.0, "t"), chance)
    flat = tmp_path / "a" / "flat" / "objects" / path.name
    flat.parent.mkdir(parents=True)
    flat.write_bytes(path.read_bytes())
    updated(tmp_path / "a")
    updated(tmp_path / "b")
    assert sorted(value for *_, value in scores_in_index(MODEL)) == [50.0, 60.0]


def test_a_record_that_differs_from_the_datastores_list_is_refused(tmp_path: Path) -> None:
    chance = random.Random(4)
    sound, bent = (write(tmp_path / "s", record(MODEL, "demo", value, "s"), chance) for value in (50.0, 60.0))
    lines = [
        {"object_path": f"x/{p.name}", "sha256": hashlib.sha256(p.read_bytes()).hexdigest()} for p in (sound, bent)
    ]
    (tmp_path / "s" / "aggregate.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    bent.write_text(bent.read_text().replace("60.0", "99.0"))
    done = updated(tmp_path / "s")
    assert done.passed_over == {"the SHA-256 of a file is not that of aggregate.jsonl": 1}
    assert [value for *_, value in scores_in_index(MODEL)] == [50.0]


def test_links_damaged_and_hostile_files_are_counted_and_end_no_update(tmp_path: Path) -> None:
    store, chance = tmp_path / "store", random.Random(5)
    sound = write(store, record(MODEL, "demo", 50.0, "s"), chance)
    (store / "link.json").symlink_to(sound)
    (store / "nowhere.json").symlink_to(store / "none")
    (store / "folder.json").mkdir()
    hostile = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        b'{"schema_version": 1}',
        json.dumps("x" * 10).encode(),
    ]
    hostile += [sound.read_bytes()[:n] for n in range(1, sound.stat().st_size, 100)]
    for number, data in enumerate(hostile):
        (store / f"bad{number}.json").write_bytes(data)
    results = store / "org" / "model-7b" / ".eval_results"
    results.mkdir(parents=True)
    for number, text in enumerate(["", "a: 1", "- 1", "- {dataset: {id: x}}", "&a [*a]", "- !!python/object:os.x {}"]):
        (results / f"{number}.yaml").write_text(text)
    done = updated(store)
    assert done.read == 1 + len(hostile) + 6
    assert done.scores == 1
    assert sum(done.passed_over.values()) == len(hostile) + 6
    assert not [reason for reason in done.passed_over if "bad" in reason or str(tmp_path) in reason]


def test_results_of_the_hub_are_read_where_their_unit_is_certain(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "org" / "model-7b" / ".eval_results"
    folder.mkdir(parents=True)
    (folder / "all.yaml").write_text(
        """
- dataset: {id: Idavidrein/gpqa, task_id: gpqa_diamond}
  value: 63.3
  date: '2026-02-03'
  source: {url: "https://example.org/card", name: Model Card}
- dataset: {id: Idavidrein/gpqa, task_id: gpqa_diamond}
  value: 0.412
- dataset: {id: Idavidrein/gpqa, task_id: gpqa_extended}
  value: 58.0
- dataset: {id: someone/mmlu-pro-de, task_id: mmlu_pro}
  value: 61.0
- dataset: {id: TIGER-Lab/MMLU-Pro, task_id: default}
  value: 20.90
  notes: no-tools
- dataset: {id: TIGER-Lab/MMLU-Pro, task_id: elo}
  value: 1250
""",
        encoding="utf-8",
    )
    done = updated(tmp_path / "models")
    assert sorted(scores_in_index(MODEL)) == [(MODEL, "gpqa_diamond", 63.3), (MODEL, "mmlu_pro", 20.9)]
    assert sorted(done.passed_over) == [
        "Idavidrein/gpqa: a value of at most 1, which may be a fraction or a percentage",
        "Idavidrein/gpqa: no card has this data set, or several have it and the result's task names none of these",
        "TIGER-Lab/MMLU-Pro: a value above 100, expected a percentage",
        "someone/mmlu-pro-de: no card has this data set, or several have it and the result's task names none of these",
    ]
    (row,) = index.look_up(MODEL, "GPQA-Diamond".replace("-", "_"))
    assert (row.score.source.title, row.score.source.url) == ("Model Card", "https://example.org/card")
    assert row.score.stated is False


def test_the_parts_of_a_benchmark_are_not_taken_for_the_whole(tmp_path: Path) -> None:
    content, chance = record(MODEL, "MMLU-Pro (overall)", 52.0, "board", questions=12000), random.Random(6)
    whole = content["evaluation_results"][0]
    whole["source_data"] |= {
        "dataset_name": "submissions",
        "additional_details": {"benchmark_hf_repo": "TIGER-Lab/MMLU-Pro"},
    }
    for subject in ("law", "physics"):
        part = copy.deepcopy(whole)
        part["evaluation_name"] = f"MMLU-Pro ({subject})"
        part["score_details"]["score"] = 90.0
        content["evaluation_results"].append(part)
    write(tmp_path / "s", content, chance)
    done = updated(tmp_path / "s")
    assert scores_in_index(MODEL) == [(MODEL, "mmlu_pro", 52.0)]
    assert done.passed_over == {"a part of mmlu_pro": 2}


@pytest.mark.parametrize(("repository", "names"), [("TIGER-Lab/MMLU-Pro", ("MMLU-Pro (overall)", "MMLU-Pro (law)"))])
def test_a_repository_names_no_part(tmp_path: Path, repository: str, names: tuple[str, ...]) -> None:
    content = record(MODEL, names[0], 52.0, "board")
    content["evaluation_results"][0]["source_data"] |= {"dataset_name": repository, "hf_repo": repository}
    for name in names[1:]:
        part = copy.deepcopy(content["evaluation_results"][0])
        part["evaluation_name"], part["score_details"]["score"] = name, 90.0
        content["evaluation_results"].append(part)
    write(tmp_path / "s", content, random.Random(8))
    updated(tmp_path / "s")
    assert scores_in_index(MODEL) == [(MODEL, "mmlu_pro", 52.0)]


def test_an_unrelated_metric_in_an_odd_unit_costs_no_other_result(tmp_path: Path) -> None:
    content = record(MODEL, "demo", 52.0, "board")
    odd = copy.deepcopy(content["evaluation_results"][0])
    odd["metric_config"] |= {"metric_id": "f1", "metric_unit": "percent", "max_score": 1.0}
    content["evaluation_results"].append(odd)
    write(tmp_path / "s", content, random.Random(9))
    updated(tmp_path / "s")
    assert scores_in_index(MODEL) == [(MODEL, "demo", 52.0)]


def test_text_that_is_no_unicode_ends_no_update(tmp_path: Path) -> None:
    store = tmp_path / "store"
    write(store, record(MODEL, "demo", 52.0, "board"), random.Random(10))
    (store / "half.json").write_text(json.dumps(record("o/\ud800", "demo", 1.0, "b")), encoding="utf-8")
    (store / os.fsdecode(b"\xff.json")).write_bytes(b"{}")
    (store / "aggregate.jsonl").write_text("\n", encoding="utf-8")
    (store / "data" / "aggregate.jsonl").write_text("{}\n", encoding="utf-8")
    done = updated(store)
    assert (done.scores, len(done.passed_over)) == (1, 1)
    assert updated(store).unchanged == 2


def test_a_run_of_one_sample_a_question_is_judged_with_the_error_that_it_may_have(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "once", model=MODEL, benchmarks=[("demo", 30, 1)], strength=0.5)
    (entry,) = _verified_beside(tmp_path, folder.path, [62.0, 63.0, 64.0])
    assert entry.public is not None
    assert entry.public.low < 0.5 < entry.public.high


def test_a_source_that_does_not_say_how_many_questions_it_asked_counts_beside_a_run_of_all_only(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "few", model=MODEL, benchmarks=[("aime24", 20, 16)], strength=0.5)
    chance = random.Random(11)
    for number in range(3):
        content = record(MODEL, "aime24", 90.0, f"board {number}")
        del content["evaluation_results"][0]["source_data"]["samples_number"]
        write(tmp_path / "store", content, chance)
    updated(tmp_path / "store")
    (entry,) = verify(folder.path, VerifyOptions(against="any"))
    assert (entry.public, entry.standing) == (None, "cannot say")
    whole = write_run(tmp_path / "all", model=MODEL, benchmarks=[("aime24", 30, 16)], strength=0.5)
    (entry,) = verify(whole.path, VerifyOptions(against="any"))
    assert entry.public is not None
    assert entry.standing == "not compatible"


def _verified_beside(tmp_path: Path, run: Path, percentages: list[float]) -> Any:
    sources(tmp_path / "store", percentages)
    return verify(run, VerifyOptions(against="any"))


def sources(folder: Path, percentages: list[float], settings: dict[str, Any] | None = None, model: str = MODEL) -> None:
    chance = random.Random(7)
    for number, percent in enumerate(percentages):
        write(folder, record(model, "demo", percent, f"board {number}", settings=settings), chance)
    updated(folder)


@pytest.mark.parametrize(
    ("percentages", "standing", "verdict"),
    [
        ([49.0, 51.5, 52.0, 47.0], "compatible", "as others report"),
        ([71.0, 74.5, 72.0, 77.0], "not compatible", "unlike what others report"),
        ([50.0], "cannot say", "as others report"),
        ([75.0], "cannot say", "unlike what others report"),
    ],
)
def test_scores_without_settings_decide_together_and_never_alone(
    tmp_path: Path, percentages: list[float], standing: str, verdict: str
) -> None:
    folder = write_run(tmp_path / "mine", model=MODEL, benchmarks=[("demo", 30, 64)], strength=0.5)
    sources(tmp_path / "store", percentages)
    (entry,) = verify(folder.path, VerifyOptions(against="any"))
    assert entry.standing == standing
    assert entry.public is not None
    assert (entry.public.verdict, entry.public.sources) == (verdict, len(percentages))
    with pytest.raises(UsageError, match="holds no score of any model on demo"):
        verify(folder.path, VerifyOptions())


def test_a_report_shows_scores_of_the_index_as_points_beside_the_run(tmp_path: Path) -> None:
    for source, percent, name in (("board A", 50.0, "org/model 7b"), ("board B", 52.0, "Org/Other-7B")):
        write(tmp_path / "store", record(name, "aime25", percent, source=source), random.Random(source))
    update(PublishedUpdateOptions(source=str(tmp_path / "store")))
    run = write_run(tmp_path / "run", model="Org/Model-7B", benchmarks=[("aime25", 30, 8)])
    shown = report([run.path], ReportOptions(), lambda *_: [])
    (strip,) = [plot for plot in shown.plots() if plot.name.startswith("published")]
    assert "board A" in repr(strip)
    assert "board B" not in repr(strip)
    assert "board A" in shown.markdown()


def test_names_that_may_be_another_model_are_counted_and_decide_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "mine", model=MODEL, benchmarks=[("demo", 30, 64)], strength=0.5)
    sources(tmp_path / "near", [90.0, 91.0, 92.0], model=f"{MODEL}-fp8")
    sources(tmp_path / "same", [50.0])
    (entry,) = verify(folder.path, VerifyOptions(against="any"))
    assert (entry.n_near, entry.public and entry.public.sources) == (3, 1)
    done = harness(tmp_path, "verify", "mine", "--against", "any")
    assert "left out: 3 of names that may be another model" in done.out


def test_a_person_sees_all_public_scores_and_what_a_name_leaves_open(tmp_path: Path) -> None:
    sources(tmp_path / "near", [90.0], model=f"{MODEL}-fp8")
    sources(tmp_path / "same", [50.0, 51.5])
    done = harness(tmp_path, "published", MODEL, "demo")
    assert done.code == 0, done.err
    assert "51.5" in done.out
    assert done.out.index("51.5") < done.out.index("Names that may be another model")
    assert "precision: not stated here, fp8 there" in " ".join(done.out.split())
    printed = json.loads(harness(tmp_path, "published", "show", MODEL, "demo", "--json").out)
    assert [row["score"]["value"] for row in printed["scores"]] == [0.515, 0.5]
    same = reasoning_harness.published(MODEL, "demo")
    assert [row.score.value for row in same.scores] == [0.515, 0.5]


def test_the_shipped_scores_are_listed_without_an_index(tmp_path: Path) -> None:
    done = harness(tmp_path, "published", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "AIME-24")
    assert done.code == 0
    assert "DeepSeek-R1 README" in done.out
    assert "quoted by MiMo README" in done.out
    doubted = harness(tmp_path, "published", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "aime25_i").out.splitlines()
    assert [line for line in doubted if "doubtful" in line] == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("published", "org/unheard-of-3b"), "nothing is published of org/unheard-of-3b"),
        (("published", "update", "--from", "nowhere"), "expected a folder of records"),
        (
            ("verify", "mine", "--against", "any", "--published", "x.yaml"),
            "--against any reads all public scores, --published those of one file: give one of the two",
        ),
        (("published", "update", "--from", ""), "--from"),
    ],
)
def test_bad_input_gets_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    done = harness(tmp_path, *words)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_damaged_index_is_told_and_an_older_one_made_anew(tmp_path: Path, cache: Path) -> None:
    sources(tmp_path / "store", [50.0])
    path = cache / "published.sqlite3"
    path.write_bytes(b"no database" * 100)
    done = harness(tmp_path, "published", MODEL)
    assert done.code == 2
    assert "remove it and run `harness published update` again" in done.err
    path.unlink()
    assert published("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B").scores  # the shipped ones need no index
    sources(tmp_path / "store", [50.0])
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    assert "make it anew" in harness(tmp_path, "published", MODEL).err
    assert harness(tmp_path, "published", "update", "--from", "store").code == 0
    assert scores_in_index(MODEL)


def reports() -> list[tuple[str, list[str]]]:
    """(name of a report with its date, the models of its commands), of each row of the page's table of reports."""
    page = (CHECKOUT / "docs" / "published.md").read_text("utf-8")
    table = page.partition("| report | command |")[2].partition("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if "`harness published" in line]
    return [(name, re.findall(r"`harness published ([^`]+)`", commands)) for name, commands in cells]


@pytest.mark.parametrize(("name", "models"), reports())
def test_each_report_that_the_page_lists_is_printed_by_one_command(
    tmp_path: Path, name: str, models: list[str]
) -> None:
    benchmarks: set[str] = set()
    for model in models:
        printed = json.loads(harness(tmp_path, "published", model, "--json").out)
        rows = [entry["score"] for entry in printed["scores"]]
        own = [row for row in rows if row["by"] == "authors" and name[:4] in row["source"]["title"]]
        assert own
        benchmarks |= {row["benchmark"] for row in own}
        assert all(row["model"].partition("/")[2] == model.partition("/")[2] for row in own)
    assert len(benchmarks) >= 3


def test_the_page_lists_six_reports_of_2026_at_least() -> None:
    assert sum("2026" in name for name, _ in reports()) >= 6
