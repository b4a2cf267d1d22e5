"""Published scores: folders of files, and what the shipped files state.

For: harness.scoring.published.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.core.errors import UsageError
from harness.scoring import load_published
from harness.scoring.published import loading
from tests.conftest import CHECKOUT

SCORES = """\
schema: 1
source: {title: A page, url: https://example.org/scores, by: others}
questions: {demo: 30}
scores:
  - {model: org/m, benchmark: demo, metric: pass@1, percent: 50.0}
"""


def test_a_folder_is_read_with_all_below_it_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    for path in (tmp_path / "scores.yaml", tmp_path / "below" / "again.yaml"):
        path.write_text(SCORES)
    assert len(load_published(tmp_path)) == 2
    monkeypatch.setattr(loading, "MAX_FILES", 1)
    with pytest.raises(UsageError, match="holds more than 1 files"):
        load_published(tmp_path)


def test_the_page_counts_the_shipped_scores_and_those_that_were_held_against_their_sources() -> None:
    files = [path.read_text("utf-8") for path in sorted((CHECKOUT / "results/published").glob("*.yaml"))]
    scores = [text.count("\n  - {model: ") for text in files]
    assert all("\n  checked: " in text for text in files)
    quoted = sum(text.count(", quoted: true") for text in files)
    page = " ".join((CHECKOUT / "docs/published.md").read_text("utf-8").split())
    assert f"There are {sum(scores):,} scores in {len(files)} files. {quoted} of them are quoted" in page
    assert "all of them were compared with stored copies of their sources, number by number" in page


OWN_MODELS = {
    "agentica-project": "agentica-org/",
    "ChenxinAn-fdu": "POLARIS-Project/",
    "GAIR-NLP": "GAIR/",
    "LG-AI-EXAONE": "LGAI-EXAONE/",
    "MiniMax-AI": "MiniMaxAI/",
    "mlfoundations-dev": "open-thoughts/",
    "openai": r"(o\d|gpt-)",
    "QwenLM": "Qwen/",
    "SkyworkAI": "Skywork/",
    "XiaomiMiMo": "(XiaomiMiMo/|MiMo-)",
}
"""How the names of the models of a source's owner begin, where that is not the owner's own name."""

QUOTES_AUTHORS = {
    *("makers-quoted", "qwen3-235b-quoted", "qwen3-30b-quoted", "qwen3-quoted-image", "gpt-oss-quoted"),
    *("llmeval", "efficient-reasoning", "sglang", "aime26-hub"),
}
"""Files of sources that say of numbers which they quote that the models' authors stated them."""


def test_a_shipped_number_is_its_authors_only_if_they_own_the_source_or_are_quoted() -> None:
    seen = 0
    for path in sorted((CHECKOUT / "results/published").glob("*.yaml")):
        for score in load_published(path):
            owner = urlsplit(score.source.url).path.strip("/").removeprefix("datasets/").partition("/")[0]
            own = re.match(OWN_MODELS.get(owner, owner + "/"), score.model, re.IGNORECASE)
            seen += score.by == "authors"
            if score.by == "authors":
                assert own or path.stem in QUOTES_AUTHORS, (path.name, score.model)
            elif not score.quoted:
                assert not own, (path.name, score.model)
    assert seen > 400


def test_shipped_accuracies_are_shares_of_the_samples_that_their_sources_state() -> None:
    """Of 14 no number of right samples gives what their source prints; a source may round or cut its last digit."""
    impossible = set()
    for score in load_published():
        if score.metric == "pass@1" and score.samples and score.n_questions:
            total = score.samples * score.n_questions
            if abs(round(score.value * total) / total - score.value) > score.unit + 1e-6:
                impossible.add((score.source.repository, score.model, score.benchmark))
    sources = Counter(source for source, _, _ in impossible)
    assert sources == {"LLMEval": 1, "POLARIS": 2, "SeerAttention": 2, "sober-reasoning": 9}
