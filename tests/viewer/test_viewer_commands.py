"""`harness show` and `harness compare --samples`, driven as a user drives them.

For: harness.cli.compare, harness.cli.show, harness.viewer.rows, harness.viewer.search, harness.viewer.printed.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.records import Key, Message
from harness.runs import RunFolder, grades, offsets
from harness.runs.grades import replace_opinions
from harness.runs.line_file import write_lines
from harness.scoring.opened import OpenBenchmark, OpenRun
from harness.viewer import search as searching
from harness.viewer.search import SampleFilter, matching_samples
from tests.reports.payloads import PAYLOADS
from tests.system.command import harness
from tests.viewer.running import answering_here
from tests.viewer.small_run import SMALL, RunQuestion, RunReply, write_run


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
    assert "[reasoning of 36 characters; use reasoning (--reasoning) to show it]" in out
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
        (
            DOUBT,
            f"the last sentence contains 1, but {NOT_STATED}: “{DOUBT[:-1]}”",
        ),
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
    assert lines[1] == "A 33.3%, B 50.0% over 2 questions; B better on 1, worse on 0"
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


def test_a_page_shows_the_first_hits_and_the_filter_of_the_terminal_misses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_worked_examples_are_printed_with_the_question_and_not_with_each_filtered_sample(tmp_path: Path) -> None:
    examples = (Message("user", "What is 4 + 3?"), Message("assistant", r"\boxed{7}"))
    asked = RunQuestion("What is 9 / 9?", "1", [RunReply(DOUBT)], before=examples)
    write_run(tmp_path / "a", {"demo": {"q1": asked}})
    filtered = shown(tmp_path, "a", "--undecided")
    assert "[2 messages before the question]\nWhat is 9 / 9?\n" in filtered
    assert "4 + 3" not in filtered
    for words in (["q1"], ["q1:0"]):
        assert "[user] What is 4 + 3?" in shown(tmp_path, "a", *words)
