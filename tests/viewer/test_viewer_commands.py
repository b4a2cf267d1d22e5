"""`harness show` and `harness compare --samples`, driven as a user drives them.

For: harness.cli.compare, harness.cli.show, harness.viewer.rows, harness.viewer.search, harness.viewer.sample_text,
harness.viewer.pages.
"""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.request_fields import Spelling
from harness.core.records import Grade, Key, Message
from harness.core.sanitize import visible
from harness.generation.settings import BenchmarkSettings
from harness.grading.second.judge_messages import JudgeRuling, apply_ruling
from harness.presets.grading import GradingOptions
from harness.presets.sampling import Sampling
from harness.runs import RunFolder, grades, offsets
from harness.runs import questions as question_file
from harness.runs.grades import replace_opinions
from harness.runs.line_file import write_lines
from harness.runs.manifest import BenchmarkRecord, Manifest, Plan
from harness.scoring.pipeline import score_run
from harness.scoring.run_reader import OpenBenchmark, OpenRun
from harness.testing import FakeServer
from harness.viewer import search as searching
from harness.viewer.sample_text import curl, verdict_steps
from harness.viewer.search import SampleFilter, matching_samples
from tests.generation.small_runs import question_set, run, run_settings, well
from tests.reports.payloads import PAYLOADS
from tests.system.command import harness
from tests.viewer.running import answering_here
from tests.viewer.small_run import IDENTITY, SMALL, RunQuestion, RunReply, question, sample, write_run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shown")
    write_run(folder / "a")
    second = [RunReply(r"\boxed{42}"), RunReply(r"\boxed{42}"), RunReply(r"\boxed{43}")]
    changed = {**SMALL, "q1": RunQuestion(SMALL["q1"].text, "42", second)}
    write_run(folder / "b", {"demo": changed}, identity={"seed": 7})
    return folder


def shown(folder: Path, *words: str) -> str:
    done = harness(folder, "show", *words)
    assert (done.code, done.err) == (0, "")
    return done.out


def test_a_run_is_shown_as_a_list_of_its_questions(results: Path) -> None:
    lines = shown(results, "a").splitlines()
    assert lines[0] == "demo: 2 questions; + correct, - wrong, o no answer, ? undecided"
    assert lines[1].split() == ["33%", "1/3", "+--", "q1", "reference", "42"], "three answers, none a majority"
    assert lines[2].split()[2] == "o+o"
    more = shown(results, "b").splitlines()[1].split()
    assert more == ["67%", "2/3", "++-", "q1", "reference", "42", "majority", "42"]


def test_a_question_is_shown_with_its_samples_and_votes(results: Path) -> None:
    out = shown(results, "a", "q1")
    assert r"What is $\frac{84}{2}$?" in out
    assert "level Level 5, subject Algebra" in out
    assert "wrong, the right answer is in a box other than the one that was graded" in out
    assert "votes: 42 ×1 (correct), 41 ×1, 43 ×1" in out


def test_a_sample_is_shown_with_its_answer_its_reasons_and_its_request(results: Path) -> None:
    out = shown(results, "a", "q1:0")
    assert r"Half of 84 is \(42\), so $\boxed{»42«}$." in out
    assert "[reasoning of 36 characters; pass `reasoning` (--reasoning) to show it]" in out
    assert "answer found by box at characters 33–35: 42" in out
    assert "curl http://127.0.0.1:8000/v1/chat/completions" in out
    assert "2 · 42 = 84" not in out
    assert "2 · 42 = 84" in shown(results, "a", "q1:0", "--reasoning")


def titles(out: str) -> list[str]:
    """The title lines of the printed samples."""
    return [line for line in out.splitlines() if line.startswith("demo · ") and " · sample " in line]


NOT_STATED = "neither a box nor “the answer is” confirms it"
DOUBT = "It is 9 less than 10, so 9 is »1« indeed."


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (DOUBT, f"the last sentence contains 1, but {NOT_STATED}: “{DOUBT[:-1]}”"),
        ("\\boxed{1}\n\nWe divide. So we get 3.", "the text after the answer 1 gives a different value: 3"),
        (r"\boxed{1米蓝}", "no rule can tell whether the answer equals the reference"),
        (r"\boxed{2}", None),
    ],
)
def test_an_undecided_sample_says_why(tmp_path: Path, reply: str, reason: str | None) -> None:
    write_run(tmp_path / "a", {"demo": {"q1": RunQuestion("What is 9 / 9?", "1", [RunReply(reply)])}})
    lines = shown(tmp_path, "a", "q1:0").splitlines()
    assert [line for line in lines if line.startswith("undecided because")] == (
        [] if reason is None else [f"undecided because {reason}"]
    )


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["a", "q3"], 2, "demo has no question 'q3'."),
        (["a", "q1:9"], 3, "has no sample 9 of question 'q1'"),
        (["a", "q2/od id"], 2, "demo has no question 'q2/od id'. Did you mean q2/odd id?"),
        (["a", "q1:x"], 2, "demo has no question 'q1:x'"),
        (["a", "第一组"], 2, "demo has no question '第一组'."),
        (["a", "x" * 5000], 2, "demo has no question 'xxx"),
        (["a", "b", "a"], 2, "unexpected argument a: `harness show` accepts RUN [QUESTION[:SAMPLE]]"),
        (["a", "--filter", "level=难"], 2, "no question has level=难; its values are Level 1, Level 5"),
        (["c"], 3, "there is no run at"),
        (["a", "--benchmark", "dem"], 2, "run a does not include the benchmark 'dem'. Did you mean demo?"),
        (["a", "--grep", " "], 2, "1 to 1000 characters"),
    ],
)
def test_a_mistake_is_one_sentence(results: Path, words: list[str], code: int, sentence: str) -> None:
    done = harness(results, "show", *words)
    assert done.code == code
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1


def test_hostile_texts_reach_the_terminal_as_text(tmp_path: Path) -> None:
    replies = [RunReply(payload, reasoning=payload) for payload in PAYLOADS]
    hostile = "\x1b]0;title\x07\u202e"
    hostile_question = RunQuestion(
        hostile + PAYLOADS[0], "1" + hostile, replies, kind="text", metadata={hostile: hostile}
    )
    write_run(tmp_path / "run", {"demo": {"q" + hostile: hostile_question}})
    outs = [
        shown(tmp_path, "run"),
        shown(tmp_path, "run", "q" + hostile),
        shown(tmp_path, "run", "--wrong", "--no-answer", "--undecided", "--reasoning"),
        shown(tmp_path, "run", f"q{hostile}:19"),
        harness(tmp_path, "compare", "run", "run", "--samples").out,
    ]
    for out in outs:
        assert not {sign for sign in out if not sign.isprintable()} - {"\n"}
    assert r"\x1b]52;c;cm0gLXJm\x07" in outs[2]


def test_differences_of_two_runs_are_said_in_words(results: Path) -> None:
    lines = [" ".join(line.split()) for line in harness(results, "compare", "a", "b", "--samples").out.splitlines()]
    assert lines[1] == harness(results, "compare", "a", "b").out.splitlines()[0]
    assert lines[2] == "A 33.3%, B 50.0% over 2 questions; B better on 1, worse on 0"
    assert {"seed: not set → 7", "q1 33% of 3 67% of 3 +33", "1 sample from wrong to correct"} <= {*lines}


def test_what_a_second_grader_says_otherwise_is_found(tmp_path: Path) -> None:
    files = write_run(tmp_path / "a").benchmark("demo")
    replace_opinions(files, "other", {Key("q1", 0): True, Key("q1", 1): True, Key("q2/odd id", 1): None})
    replace_opinions(files, "another", {Key("q1", 0): True, Key("q1", 1): False})
    out = shown(tmp_path, "a", "--disputed")
    assert titles(out) == ["demo · q1 · sample 1"]
    assert "wrong, other disagrees" in shown(tmp_path, "a", "q1")
    replace_opinions(files, "other", {Key("q1", 0): True})
    assert "demo: 0 samples" in shown(tmp_path, "a", "--disputed")


LOOP = "Well. " + "Wait, let me check again. " * 40


def test_samples_that_look_wrong_are_found_and_their_signs_named(tmp_path: Path) -> None:
    run_questions = {
        "odd": RunQuestion(
            "?", "5", [RunReply(r"\boxed{5}", reasoning=LOOP), RunReply(r"\boxed{5}"), RunReply("\ufffd" * 9 + LOOP)]
        ),
        "sound": RunQuestion("?", "5", [RunReply(r"\boxed{5}", reasoning="It is 5. Wait, let me check again. It is.")]),
    }
    run = write_run(tmp_path / "a", {"demo": run_questions})
    out = shown(tmp_path, "a", "--anomaly")
    assert titles(out) == ["demo · odd · sample 0", "demo · odd · sample 2"]
    out = shown(tmp_path, "a", "odd")
    assert "correct, looks wrong: repetition\n" in out
    assert "no answer, looks wrong: repetition, garbled\n" in out
    assert "looks wrong" not in shown(tmp_path, "a", "sound")
    assert "demo: 1 sample\n" in shown(tmp_path, "a", "--anomaly", "--no-answer")
    files = run.benchmark("demo")  # grades of before know of no signs, and keep their verdicts when these are added
    former = grades.read(files)
    write_lines(files.grades, [msgspec.structs.replace(grade, anomalies=()) for grade in former])
    assert "demo: 0 samples" in shown(tmp_path, "a", "--anomaly")
    assert harness(tmp_path, "score", "a").code == 0
    assert grades.read(files) == former


def test_what_only_grades_tell_is_not_sought_where_there_are_none(tmp_path: Path) -> None:
    write_run(tmp_path / "a")
    write_run(tmp_path / "raw", scored=False)
    assert "..." in shown(tmp_path, "raw")
    assert "not graded" in shown(tmp_path, "raw", "q1:0")
    words = "no sample of demo in raw has been graded yet, and this filter needs grades: run `harness score raw`."
    for asked in (["raw", "--wrong"], ["raw", "--anomaly"]):
        done = harness(tmp_path, "show", *asked)
        assert (done.code, done.err) == (2, f"harness: {words}\n")
    assert "demo: 1 sample\n" in shown(tmp_path, "raw", "--cut")
    assert (
        "no samples of the second run have been graded yet" in harness(tmp_path, "compare", "a", "raw", "--samples").out
    )
    neither = harness(tmp_path, "compare", "raw", "raw", "--samples").out
    assert "no samples of the first or the second run have been graded yet" in neither


def test_samples_are_shown_by_a_column_of_the_questions(tmp_path: Path) -> None:
    easy = RunQuestion("1 + 1?", "2", [RunReply("2")], metadata={"单元": "第1单元", "done": True})
    hard = RunQuestion("1 + 2?", "3", [RunReply("3")], metadata={"单元": "第2单元"})
    write_run(tmp_path / "a", {"demo": {"q1": easy, "q2": hard}})
    assert titles(shown(tmp_path, "a", "--filter", "单元=第1单元")) == ["demo · q1 · sample 0"]
    assert titles(shown(tmp_path, "a", "--filter", "done=true", "--correct")) == ["demo · q1 · sample 0"]
    assert titles(shown(tmp_path, "a", "--filter", "done=true", "--filter", "单元=第2单元")) == []
    refusals = {
        "单元=3": "no question has 单元=3; its values are 第1单元, 第2单元",
        "难度=3": "they have done, 单元. To keep a column as metadata, add `metadata: [难度]` to the card.",
        "单元": "expected a filter COLUMN=VALUE",
    }
    for text, sentence in refusals.items():
        done = harness(tmp_path, "show", "a", "--filter", text)
        assert done.code == 2
        assert sentence in done.err


def hits(benchmark: OpenBenchmark, sought: str) -> list[searching.Hit]:
    return list(searching.search(benchmark, sought))


def opened(run: RunFolder) -> OpenBenchmark:
    return OpenRun("run", run).benchmark("demo")


@pytest.fixture
def benchmark(tmp_path: Path) -> OpenBenchmark:
    return opened(write_run(tmp_path / "run"))


def test_a_hit_shows_its_surroundings(benchmark: OpenBenchmark) -> None:
    (hit,) = hits(benchmark, "half of")
    assert (hit.part, hit.before, hit.match, hit.verdict) == ("text", "", "Half of", "correct")
    assert hit.after.startswith(r" 84 is \(42\)")


def test_a_page_has_the_first_hits_the_filter_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n = searching.MAX_HITS + 20
    samples = [RunReply(rf"it is \boxed{{{i}}}") for i in range(n)]
    write_run(tmp_path / "results" / "many", {"demo": {"q": RunQuestion("?", "1", samples)}}, scored=False)
    many = opened(RunFolder(tmp_path / "results" / "many"))
    opened_files: list[Path] = []
    open_once = offsets.open_untrusted
    monkeypatch.setattr(offsets, "open_untrusted", lambda path: opened_files.append(path) or open_once(path))
    assert [key.sample_index for _, key in matching_samples(many, SampleFilter(text="boxed"))] == list(range(n))
    assert len(opened_files) == 1, "the journal is opened once, not for each sample"
    with answering_here(tmp_path / "results") as running, running.client() as client:
        parameters = {"run": "many", "benchmark": "demo", "text": "boxed"}
        page = client.get("/api/search", params=parameters).json()
    assert (len(page["hits"]), page["complete"]) == (searching.MAX_HITS, False)


texts = st.text(alphabet=st.sampled_from('aAbn\\u"é\n\x1b中\ud800 /'), max_size=40)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=6), texts.filter(str.strip))
def test_the_same_as_looking_into_every_sample(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]], sought: str
) -> None:
    question_of_run = RunQuestion("?", "1", [RunReply(text, reasoning=thought) for text, thought in said])
    benchmark = opened(
        write_run(tmp_path_factory.mktemp("any") / "run", {"demo": {"q": question_of_run}}, scored=False)
    )

    def holds(text: str) -> bool:
        small = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
        return sought in (small if sought == sought.lower() else text)

    assert [hit.sample_index for hit in hits(benchmark, sought) if hit.sample_index is not None] == [
        i for i, (text, thought) in enumerate(said) if holds(text) or holds(thought)
    ]


def test_worked_examples_are_printed_once_with_the_question(tmp_path: Path) -> None:
    examples = (Message("user", "What is 4 + 3?"), Message("assistant", r"\boxed{7}"))
    asked = RunQuestion("What is 9 / 9?", "1", [RunReply(DOUBT)], before=examples)
    write_run(tmp_path / "a", {"demo": {"q1": asked}})
    filtered = shown(tmp_path, "a", "--undecided")
    assert "[2 messages before the question]\nWhat is 9 / 9?\n" in filtered
    assert "4 + 3" not in filtered
    for words in (["q1"], ["q1:0"]):
        assert "[user] What is 4 + 3?" in shown(tmp_path, "a", *words)


# -- reasons for verdicts ----------------------------------------------------------------------------------------------


CARDS = {"plain": "{}", "yes": '{grader: "own_words:yes"}', "open": '{grader: "own_words:leaves"}'}
"""Rules that a card may have; each gives the answer 41 to the reference 40 another verdict or another reason."""

KEY = Key("q1", 0)
LAST = {"correct": "correct", "wrong": "wrong", "undecided": "undecided", "no_answer": "no answer"}
"""Verdict → the last step of an explanation that ends in it."""

AGAIN = "score the run again"
FUNCTIONS = """
def yes(answer, question):
    return True


def leaves(answer, question):
    return None
"""


class Changing:
    """A run of one sample whose card changes under it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = folder / "own_words.py"
        self.module.write_text(FUNCTIONS)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        monkeypatch.setenv("HARNESS_GRADERS", "own_words")
        self.card = folder / "numbers.yaml"
        (folder / "rows.jsonl").write_text('{"problem": "?", "answer": "40"}\n')
        asked = {"q1": RunQuestion("?", "40", [RunReply(r"\boxed{41}")])}
        self.run = write_run(folder / "a", {"numbers": asked}, scored=False)
        manifest = Manifest.load(self.run)
        record = msgspec.structs.replace(manifest.benchmarks["numbers"], settings={"card": str(self.card)})
        msgspec.structs.replace(manifest, benchmarks={"numbers": record}).save(self.run)

    def has_card(self, rules: str | None) -> None:
        """Write the card with these rules of `CARDS`; None: delete it."""
        self.card.unlink(missing_ok=True)
        if rules is not None:
            self.card.write_text(
                "title: Numbers\nsource: {kind: file, path: rows.jsonl}\ncolumns: {question: problem, answer: answer}\n"
                f"kind: integer\nsamples: 1\nrules: {CARDS[rules]}\n"
            )

    def began_with(self, rules: str) -> None:
        """Store the rules as those with which the run began."""
        from harness.benchmarks.catalog import apply_card_rules

        self.has_card(rules)
        place = self.run.benchmark("numbers")
        asked, _ = apply_card_rules("numbers", {"card": str(self.card)}, list(question_file.read(place)))
        write_lines(place.questions, list(asked))

    def scored(self) -> Grade:
        score_run(self.run, GradingOptions(workers=1))
        (grade,) = grades.read(self.run.benchmark("numbers"))
        return grade

    def why(self) -> Sequence[str]:
        """The steps to the verdict on the sample."""
        benchmark = OpenBenchmark(self.run.benchmark("numbers"), Manifest.load(self.run).benchmarks["numbers"])
        return verdict_steps(benchmark, KEY)


@pytest.fixture
def changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Changing:
    return Changing(tmp_path, monkeypatch)


def test_steps_end_in_the_stored_verdict_or_say_its_rules_are_unknown(changing: Changing) -> None:
    ends = set()
    for began, then in itertools.product(CARDS, CARDS):
        changing.began_with(began)
        changing.has_card(then)
        grade = changing.scored()
        for now in (*CARDS, None):
            changing.has_card(now)
            steps = changing.why()
            known = then in (began, now)
            assert (steps[-1] == LAST[grade.verdict]) == known, (began, then, now, steps)
            assert any(f"rule {grade.rule}" in step for step in steps) == known, (began, then, now, steps)
            if not known:
                assert len(steps) == 1, steps
                assert steps[0].endswith(AGAIN), steps
            ends.add((grade.verdict, known))
    assert ends == set(itertools.product(("correct", "wrong", "undecided"), (True, False)))


CHANGES: list[tuple[dict[str, object], str]] = [
    *(
        (fields, "after regrading with rules/")
        for fields in (
            {"verdict": "correct"},
            {"rule": "tolerance"},
            {"verdict": "undecided", "rule": "time"},
            {"grader": "rules/1"},
            {"grader": "own_words:yes@123456789abc"},
            {"reply_checksum": 1},
        )
    ),
    ({"basis": ""}, "the steps to this verdict are unknown: its rules match neither the run's rules nor"),
    ({"reply_checksum": None}, ""),
    ({}, ""),
]
"""Fields of a stored grade in place of its own, and how the step begins that says why it is not explained."""


def test_only_a_grade_that_today_s_grader_makes_again_is_explained(changing: Changing) -> None:
    changing.began_with("plain")
    grade = changing.scored()
    for fields, sentence in CHANGES:
        write_lines(changing.run.benchmark("numbers").grades, [msgspec.structs.replace(grade, **fields)])
        steps = changing.why()
        assert (
            steps[-1] == "wrong" if not sentence else (steps[0].startswith(sentence), AGAIN in steps[0]) == (True,) * 2
        )
        assert not sentence or len(steps) == 1


def test_a_judges_verdict_is_not_explained_by_the_rules_it_contradicts(changing: Changing) -> None:
    for rules in ("open", "plain"):
        changing.began_with(rules)
        grade = changing.scored()
        for ruling in ("correct", "wrong"):
            judged = apply_ruling(grade, JudgeRuling(ruling), "judge:judge@verdict", override=True)
            write_lines(changing.run.benchmark("numbers").grades, [judged])
            in_place = changing.why() == ["according to the rules, the sample is wrong, but a judge made the decision"]
            assert in_place == ((rules, ruling) == ("plain", "correct"))


def test_a_function_that_is_gone_explains_nothing(changing: Changing) -> None:
    changing.began_with("plain")
    changing.has_card("yes")
    assert changing.scored().verdict == "correct"
    changing.module.unlink()
    sys.modules.pop("own_words", None)
    steps = changing.why()
    assert len(steps) == 1, steps
    assert "own_words" in steps[0]


# -- requests as they were sent ----------------------------------------------------------------------------------------


def body_of(command: str) -> Any:
    words = shlex.split(command.replace("\\\n", " "))
    return json.loads(words[words.index("--data-raw") + 1])


@pytest.mark.parametrize(
    "spelling",
    [
        Spelling(),
        Spelling(api_name="completions", stream=False),
        Spelling(
            max_tokens_field="max_completion_tokens",
            chat_template_kwargs={"enable_thinking": True},
            extra_body={"top_k": 20, "note": 'it\'s "quoted"'},
        ),
    ],
)
def test_the_body_is_the_one_that_the_server_got(tmp_path: Path, spelling: Spelling) -> None:
    built = question_set(tmp_path, 2, templated=spelling.api.templated)
    sampling = Sampling(temperature=0.6, top_p=0.9, max_tokens=99)
    benchmarks = {
        "sums": BenchmarkSettings(samples=2, sampling=sampling, neutral={"min_p": 0.0, "repeat_penalty": 1.0})
    }
    with FakeServer(well) as server:
        settings = run_settings(tmp_path / "run", server.base_url, benchmarks=benchmarks, spelling=spelling)
        run(settings, built)
        sent = {json.dumps(request.json, sort_keys=True) for request in server.requests if request.method == "POST"}
    opened = OpenRun("run", RunFolder(tmp_path / "run")).benchmark("sums")
    shown = set()
    for question_id, stored in opened.questions.items():
        for index in range(2):
            command = curl(opened.record, stored, opened.offsets.read(Key(question_id, index)))
            assert command.startswith(f"curl {server.base_url}{spelling.api.path}")
            shown.add(json.dumps(body_of(command), sort_keys=True))
    assert shown == sent
    assert len(sent) == 4


def test_a_shell_sends_it_as_it_stands(tmp_path: Path) -> None:
    """With a `curl` that prints what it was given, in a real shell."""
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
    fake.chmod(0o755)
    text = "\n".join(PAYLOADS) + "$(touch hacked) `touch hacked` '; touch hacked; '"
    asked_question = question("demo", "q", RunQuestion(text, "1", []))
    command = curl(record(), asked_question, sample("demo", "q", 0, RunReply("")))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "API_KEY": "k"}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, check=True)
    words = done.stdout.decode().split("\0")
    assert json.loads(words[words.index("--data-raw") + 1])["messages"] == [{"role": "user", "content": text}]
    assert "Authorization: Bearer k" in words
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_it_can_be_read_and_cannot_act_on_a_terminal(payload: str) -> None:
    text = payload + "因式分解 x²-9 é 🙂\x7f\x1b\u202e\ue000\U000e0041\ud800"
    asked_question = question("demo", "q", RunQuestion(text, "1", []))
    command = curl(record(), asked_question, sample("demo", "q", 0, RunReply("")))
    assert "\n".join(map(visible, command.split("\n"))) == command
    assert r"因式分解 x²-9 é 🙂\u007f\u001b\u202e\ue000\udb40\udc41\ud800" in command
    assert body_of(command)["messages"][0]["content"] == text


def record() -> BenchmarkRecord:
    return BenchmarkRecord(identity=IDENTITY, plan=Plan(samples=1))
