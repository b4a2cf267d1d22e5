"""What the storms of all commands play: of each command its lines, what stands before them, and what comes out.

A campaign is a list of command lines that are started one after the other. The same list again goes on from where a
storm left it, so a campaign that was disturbed at any line and played once more must end as an undisturbed one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.storms.server import MODEL

Line = list[str]

SAMPLED = ["--id-key", "id", "--model", MODEL, "--no-canary", "--no-fingerprint", "--concurrency", "6"]
SAMPLED += ["--timeout", "5", "--seed", "7"]
ASKED = ["--data", "sums.jsonl", *SAMPLED]
SWEEP = {
    "models": [MODEL],
    "run": {"id_key": "id", "canary": False, "fingerprint": False, "concurrency": 6, "seed": 7, "timeout": 5},
    "score": {"workers": 1},
    "benchmarks": [{"data": "sums.jsonl", "samples": 2}],
    "sampling": [{"name": "cool", "temperature": 0.3}, {"name": "hot", "temperature": 1.0}],
}
PUBLISHED = {
    "schema": 1,
    "source": {"title": "A paper", "url": "https://example.org/paper", "by": "others"},
    "questions": {"sums": 4},
    "scores": [{"model": "org/storm", "benchmark": "sums", "metric": "pass@1", "percent": 40.0, "samples": 8}],
}
N_QUESTIONS = 4
N_SAMPLES = 3


@dataclass(frozen=True)
class Campaign:
    """A command as storms play it.

    lines: the command lines, of the server's address. stored: they begin beside two scored runs, `one` and `two`.
    server: they ask the model; gateway: through a gateway that fails what goes on with half-written answers.
    varies: what they print or write holds times, so only the
    exit code and what was sampled are compared. told: what they answer depends on what came before, so neither exit
    codes nor what they print is compared.
    """

    lines: Callable[[str], list[Line]]
    stored: bool = True
    server: bool = False
    gateway: bool = False
    varies: bool = False
    told: bool = False


def prepare(folder: Path) -> None:
    """The files of questions, outputs and settings that the campaigns name."""
    sums = [
        {"id": f"q{i}", "problem": f"What is {i} + 1 (mod 3)?", "answer": str(i % 3 + 1)} for i in range(N_QUESTIONS)
    ]
    prose = [
        {"id": f"p{i}", "problem": f"Say in prose what {i} is.", "answer": rf"\text{{a {i} in light}}"} for i in (1, 2)
    ]
    outputs = [
        {"id": f"o{i // 3}", "gen": rf"So it is \boxed{{{i % 2 + 1}}}.", "answer": str(i // 3 % 2 + 1)}
        for i in range(12)
    ]
    for name, rows in (("sums", sums), ("prose", prose), ("outputs", outputs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name, content in (("sweep", SWEEP), ("published", PUBLISHED)):
        (folder / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML


def run_line(out: str, url: str, *more: str, data: str = "sums.jsonl") -> Line:
    """The command line that samples into the folder `out`."""
    asked = ["run", "--data", data, *ASKED[2:], "--samples", str(N_SAMPLES), "--out", out]
    return [*asked, *(["--base-url", url] if url else []), *more]


def _shards(url: str) -> list[Line]:
    shards = [run_line("joined", url, "--shard", f"{i}/2") for i in (1, 2)]
    return [*shards, ["score", "joined", "--workers", "2"]]


def _race(url: str) -> list[Line]:
    candidates = ["--candidate", "cool temperature=0.3 seed=5", "--candidate", "hot temperature=1.0 seed=6"]
    return [["race", *ASKED, "--samples", "4", "--step", "1", "--out", "races", "--base-url", url, *candidates]]


def _judged(url: str) -> list[Line]:
    judge = ["--judge", f"{MODEL}@{url}", "--workers", "1"]
    return [run_line("told", url, data="prose.jsonl"), ["score", "told", *judge]]


def _only(*words: str) -> Callable[[str], list[Line]]:
    return lambda _url: [list(words)]


def _scored(*more: str) -> Callable[[str], list[Line]]:
    return _only("score", "one", "--fresh", "--workers", "2", *more)


_SERVED = [
    word
    for option in ("health-path=/health", f"served-name={MODEL}", "stop-grace=1")
    for word in ("--serve-option", option)
]

FORMATS = ("alpaca", "sharegpt", "trl", "llmeval", "parquet", "every-eval-ever", "inspect")

CAMPAIGNS: dict[str, Campaign] = {
    "run": Campaign(lambda url: [run_line("run", url), ["score", "run"]], stored=False, server=True),
    "run by a package": Campaign(
        lambda url: [run_line("run", url, "--transport", "openai"), ["score", "run"]], stored=False, server=True
    ),
    "gateway": Campaign(
        lambda url: [run_line("run", url, "--timeout", "2", "--attempts", "20"), ["score", "run"]],
        stored=False,
        server=True,
        gateway=True,
    ),
    "run served": Campaign(
        lambda _url: [[*run_line("run", ""), "--serve", "command", *_SERVED, "ENGINE-FLAGS"], ["score", "run"]],
        stored=False,
    ),
    "shards": Campaign(_shards, stored=False, server=True),
    "race": Campaign(_race, stored=False, server=True),
    "sweep": Campaign(
        lambda url: [["sweep", "sweep.yaml", "--out", "swept", "--base-url", url]],
        stored=False,
        server=True,
    ),
    "judge": Campaign(_judged, stored=False, server=True, told=True),
    "merge": Campaign(_only("merge", "half-1", "half-2", "--out", "joined")),
    "score": Campaign(_scored()),
    "score again": Campaign(_scored("--k", "2", "--answer-from-reasoning")),
    "score file": Campaign(
        _only("score", "outputs.jsonl", "--response-key", "gen", "--answer-key", "answer", "--id-key", "id")
    ),
    "second grader": Campaign(_scored("--also", "sympy")),
    "report": Campaign(_only("report", "one", "two", "--out", "reported")),
    "plots": Campaign(_only("report", "one", "two", "--out", "reported", "--plots", "plots"), varies=True),
    "compare": Campaign(_only("compare", "one", "two", "--json")),
    "diff": Campaign(_only("compare", "one", "two", "--samples")),
    "plan": Campaign(_only("plan", "one", "--detect", "5", "--json")),
    "verify": Campaign(_only("verify", "one", "--model", "org/storm", "--published", "published.yaml", "--json")),
    "audit": Campaign(_only("audit", "one", "--samples", "4", "--out", "to_judge.jsonl"), varies=True, told=True),
    "show": Campaign(lambda _url: [["show", "one", *more] for more in ([], ["q0:1", "--reasoning"], ["--wrong"])]),
    "status": Campaign(_only("status", "one", "--json"), varies=True),
    "doctor": Campaign(_only("doctor", "one", "two")),
    "grade": Campaign(lambda _url: [["grade", "1/2", r"It is \boxed{0.5}."], ["show", "one", "--near-miss"]]),
    "tables": Campaign(
        lambda _url: [
            ["benchmarks"], ["serve", "--models"], ["score", "--json-schema"], ["sweep", "--list"],
        ],
        stored=False,
    ),
    "probe": Campaign(
        lambda url: [["probe", url, "--quick", "--seed", "3", "--json"]],
        stored=False,
        server=True,
        varies=True,
    ),
    "serve": Campaign(
        lambda _url: [
            ["serve", "stop", "--all"],
            ["serve", "command", "--name", "toy", "--detach", "--health-path", "/health", "--served-name", MODEL,
             "--stop-grace", "1", "--", "SERVER"],
            ["serve", "status"],
            ["serve", "logs", "toy"],
            ["serve", "stop", "--all"],
        ],
        stored=False,
        varies=True,
    ),
} | {
    f"export {name}": Campaign(_only("export", "one", "--to", name, "--i-know", "--out", f"to-{name}"))
    for name in FORMATS
}  # fmt: skip

OFTEN = ("run", "gateway", "run served", "shards", "race", "sweep", "judge", "merge", "score", "score file", "serve")
"""Campaigns that are drawn three times as often, since they write what cannot be made again for nothing."""


def commands_of(campaign: Campaign) -> set[str]:
    """The commands whose lines this campaign starts."""
    return {line[0] for line in campaign.lines("http://127.0.0.1:9/v1")}
