"""A search finds every sample that holds the text, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import UsageError
from harness.runs import RunFolder, offsets
from harness.scoring.opened import OpenBenchmark, OpenRun
from harness.viewer import search as searching
from harness.viewer.sample_filter import SampleFilter, matching_samples
from tests.viewer.running import answering_here
from tests.viewer.small_run import RunQuestion, RunReply, write_run


def hits(benchmark: OpenBenchmark, sought: str) -> list[searching.Hit]:
    return list(searching.search(benchmark, sought))


def opened(run: RunFolder) -> OpenBenchmark:
    return OpenRun("run", run).benchmark("demo")


@pytest.fixture
def benchmark(tmp_path: Path) -> OpenBenchmark:
    return opened(write_run(tmp_path / "run"))


@pytest.mark.parametrize(("sought", "n"), [("WAIT", 0), ("Wait", 1), ("wait", 1), ("finish_reason", 0)])
def test_small_letters_find_capitals_and_no_name_of_a_field_is_text(
    benchmark: OpenBenchmark, sought: str, n: int
) -> None:
    assert len(hits(benchmark, sought)) == n


def test_a_hit_shows_its_surroundings(benchmark: OpenBenchmark) -> None:
    (hit,) = hits(benchmark, "half of")
    assert (hit.part, hit.before, hit.match, hit.verdict) == ("text", "", "Half of", "correct")
    assert hit.after.startswith(r" 84 is \(42\)")


@pytest.mark.parametrize(("sought", "question"), [("1 + 1", "q2/odd id"), ("odd", "q2/odd id"), ("frac{84}", "q1")])
def test_questions_are_searched_too(benchmark: OpenBenchmark, sought: str, question: str) -> None:
    assert [hit.question_id for hit in hits(benchmark, sought) if hit.part == "question"] == [question]


@pytest.mark.parametrize("sought", ["", " \n", "x" * 1001])
def test_nothing_and_too_much_are_refused(benchmark: OpenBenchmark, sought: str) -> None:
    with pytest.raises(UsageError, match="1 to 1000 characters"):
        list(searching.search(benchmark, sought))


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
