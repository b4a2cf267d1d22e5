"""Makes the 200 runs: 50 families of four models that are asked the same questions, sampled by `harness run`.

A family draws its benchmarks, kinds of answer, questions, samples, groups and clusters; a model its ability, and how
many of its replies are cut, without answer, undecided, copies, or missing. The seed decides everything but the times,
which are replaced by times that follow from the tokens, so that the archive is small.
"""

from __future__ import annotations

import io
import json
import math
import re
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

import harness
from tests.faults.server import FaultServer, Request, Step, completion, delta, event_stream, models
from tests.pins.stage import alone

SEED, N_FAMILIES, N_MODELS = 1, 50, 4
MAX_SAMPLES, MAX_TOKENS = 110, 1024
ADDRESS, PLACE = "http://127.0.0.1:8000", "/tmp/numbers"
KINDS = ("integer", "number", "expression", "multiple", "choice", "orders", "text", "parts")
WORDS = ("amber", "bell", "cedar", "drum", "ember", "fern", "grove", "harp", "iris")
WORDS += ("jade", "kite", "lark", "moss", "nettle", "opal", "pearl", "quartz", "reed")
PASSAGE = " ".join(f"{WORDS[i % 18]} {WORDS[(i * i + 5) % 18]}" for i in range(40))
"""Text of a long reply: equal ones are copies, while short ones may be equal by chance."""
SHOWN = re.compile(r"<answer-[0-9a-f]{12}>(.*?)</answer-[0-9a-f]{12}>", re.DOTALL)
NOT_STORED = ("grades.jsonl", "scores.json", "samples.index", "run.lock", "inflight.jsonl")

Content = dict[str, Any]


def rows_of(name: str, kind: str, n: int, rng: Random) -> list[Content]:
    """The rows of a benchmark."""
    rows = []
    for i in range(n):
        number, words = rng.randrange(2, 900), rng.sample(WORDS, 3)
        answer = {
            "integer": str(number), "number": str(number / 4), "expression": rf"\frac{{{number}}}{{{number + 1}}}",
            "multiple": f"{number}, {number + 3}", "choice": "ABCD"[number % 4], "orders": f"right {number}",
            "text": f"the {words[0]} that is kept beneath the {words[1]}", "parts": json.dumps({"all": words}),
        }[kind]  # fmt: skip
        row = {"id": f"{name}-{i}", "problem": f"[{name}-{i}] Which is it?", "answer": answer}
        row |= {"level": 1 + i % 3, "topic": rng.choice(("algebra", "geometry")), "passage": f"p{i // 3}"}
        row |= {"cluster": f"c{i % 2}", "same_as": f"s{i % 3}", "first": f"{name[:-1]}a-{i}"}
        if kind == "choice":
            row["options"] = [f"{word} {number}" for word in rng.sample(WORDS, 4)]
        rows.append(row | {f"wrong{j}": f"wrong {number + j}" for j in range(3) if kind == "orders"})
    return rows


def card_of(name: str, kind: str, family: int, rng: Random) -> Content:
    """The card of a benchmark; by its number a family has groups, clusters, twins, or columns named as ours."""
    own = "cluster" if family % 8 == 3 else "same_as"
    metadata = {0: [], 1: ["level"], 2: ["level", "topic"], 3: [own]}[family % 4]
    columns: Content = {"question": "problem", "answer": "answer", "id": "id", "metadata": metadata}
    card: Content = {"name": name, "title": name, "source": {"kind": "file", "path": f"{name}.jsonl"}}
    card |= {"kind": {"orders": "choice", "parts": "text"}.get(kind, kind), "columns": columns}
    if kind == "parts":
        grader = "harness.grading.verifiers.needles:named"
        card |= {"rules": {"grader": grader, "whole_reply": True}, "structured_answers": True, "prompt": "none"}
    elif kind == "choice":
        card["choices"] = {"options": "options"}
    elif kind == "orders":
        del columns["answer"]
        wrong = ["wrong0", "wrong1", "wrong2"]
        card["choices"] = {"correct": "answer", "incorrect": wrong, "shuffle_seed": 3, "orders": rng.choice((1, 2))}
    if family % 5 == 2:
        card["cluster_key"] = "passage"
    if family % 10 == 4 and not name.endswith("a"):
        card |= {"twin_of": f"{name[:-1]}a", "original_key": "first"}
    return card


def profile_of(family: int, model: int) -> Content:
    """What is true of one model's replies."""
    rng = Random(f"{SEED} model {family} {model}")
    rare = lambda share, most: rng.random() * most if rng.random() < share else 0.0  # noqa: E731
    profile: Content = {
        "ability": min(1.0, max(0.0, rng.gauss(0.55, 0.25) + 0.05 * model)),
        "tokens": rng.choice((60, 200, 500)),
    }
    profile |= {
        "silent": rare(0.4, 0.2),
        "undecided": rare(0.4, 0.3),
        "copies": rare(0.25, 0.9),
        "long": family % 3 == 0,
    }
    profile |= {
        "missing": rng.choice((0, 0, 0, 0.004, 0.05, 0.3)),
        "thinks": rng.random() < 0.3,
        "stream": rng.random() < 0.7,
    }
    return profile | {"no_usage": rng.random() < 0.06, "endpoints": 2 if rng.random() < 0.25 else 1}


def answered(row: Content, kind: str, prompt: str, fate: str, rng: Random) -> str:
    """The end of a reply. fate: right, wrong or undecided."""
    answer, right = row["answer"], fate == "right"
    if kind == "orders":
        letters = re.findall(r"([A-D])[.):]+ *(right|wrong)", prompt)
        answer, kind = next(letter for letter, word in letters if word == "right"), "choice"
    if kind == "parts":
        words = json.loads(answer)["all"]
        return " and ".join(words if right else words[: rng.randrange(3)]) or "nothing"
    if fate == "undecided":
        return rf"\boxed{{\text{{{'truly' if rng.random() < 0.5 else 'hardly'} the thing that one would look for}}}}"
    if kind == "text":
        return rf"\boxed{{\text{{{answer if right else WORDS[rng.randrange(3)]}}}}}"
    if kind == "choice":
        return rf"\boxed{{{answer if right else rng.choice([other for other in 'ABCD' if other != answer])}}}"
    if right:
        spelt = {"number": f"{answer}0", "multiple": ", ".join(answer.split(", ")[::-1])}
        return rf"\boxed{{{spelt.get(kind, answer)}}}"
    first = int(re.findall(r"\d+", answer)[0])
    return rf"\boxed{{{first + rng.choice((1, 1, 7))}}}"


class Replies:
    """Server of all models: a reply is decided by the model, the question and the seed."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Content, str]] = {}
        self.profiles: dict[str, Content] = {}

    def __call__(self, request: Request) -> Iterator[Step]:
        if request.method == "GET":
            return iter([models("judge", *self.profiles)])
        body = request.json
        prompt = body["messages"][-1]["content"]
        if body["model"] == "judge":
            shown = SHOWN.search(prompt)
            return completion(f"**VERDICT: {'CORRECT' if shown and 'truly' in shown[1] else 'INCORRECT'}**")
        return self._reply(body, prompt)

    def _reply(self, body: Content, prompt: str) -> Iterator[Step]:
        key = re.search(r"\[(\w+-\d+)\]", prompt)
        assert key is not None
        (row, kind), profile = self.rows[key[1]], self.profiles[body["model"]]
        rng = Random(f"{body['model']} {key[1]} {body['seed']}")
        if rng.random() < profile["copies"]:
            rng = Random(f"{body['model']} {key[1]}")
        ease = Random(key[1]).random()
        chance = min(1.0, max(0.0, profile["ability"] + 0.9 * (ease - 0.5)))
        draw = rng.random()
        fate = "silent" if draw < profile["silent"] else "right" if rng.random() < chance else "wrong"
        fate = "undecided" if fate == "wrong" and rng.random() < profile["undecided"] else fate
        n = int(profile["tokens"] * math.exp(rng.gauss(0.8 * (1 - ease), 0.8))) + 5
        text = f"Case {rng.randrange(10**6)}: {PASSAGE if profile['long'] else ''}"
        thought = f"Hm {rng.randrange(1000)}." if profile["thinks"] else None
        finish = "stop" if n < MAX_TOKENS else "length"
        if finish == "stop":
            text += " I give up." if fate == "silent" else answered(row, kind, prompt, fate, rng)
        usage: Content | None = {"prompt_tokens": 20 + len(prompt) // 4, "completion_tokens": min(n, MAX_TOKENS)}
        if thought and usage:
            usage["completion_tokens_details"] = {"reasoning_tokens": usage["completion_tokens"] // 2}
        thinking = [delta(reasoning_content=thought)] if thought else []
        last = delta(finish=finish, usage=None if profile["no_usage"] else usage)
        return event_stream(delta(role="assistant"), *thinking, delta(text), last)


def make(archive: Path) -> None:
    """Sample all runs, and pack them with a file of made-up published scores."""
    replies, published = Replies(), list[Content]()
    with tempfile.TemporaryDirectory() as place, alone(Path(place).resolve()), FaultServer(replies) as server:
        folder = Path(place).resolve()
        (folder / "runs").mkdir()
        for family in range(N_FAMILIES):
            rng = Random(f"{SEED} family {family}")
            names = [f"f{family:02}{'abc'[i]}" for i in range(2 if family % 10 == 4 else rng.choice((1, 1, 1, 2, 3)))]
            samples = rng.choice((1, 1, 2, 3, 4, 4, 8, 16, 32))
            n = min(
                rng.choice((1, 2, 3, 5, 8, 10, 12, 15, 20, 30, 40, 60)), max(1, MAX_SAMPLES // (samples * len(names)))
            )
            for i, name in enumerate(names):
                kind = "integer" if family % 10 == 4 else KINDS[(family + 3 * i) % len(KINDS)]
                rows = rows_of(name, kind, n, rng)
                replies.rows |= {row["id"]: (row, kind) for row in rows}
                (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
                (folder / f"{name}.yaml").write_text(yaml.safe_dump(card_of(name, kind, family, rng)), "utf-8")
            for model in range(N_MODELS):
                name = f"{family:02}{'wxyz'[model]}"
                profile = replies.profiles[name] = profile_of(family, model)
                run = folder / "runs" / name
                root = server.base_url.removesuffix("/v1")
                harness.run(
                    [f"{benchmark}.yaml" for benchmark in names], model=name, samples=samples, out=run, seed=family,
                    base_url=[f"{root}/e{i}/v1" for i in range(profile["endpoints"])], concurrency=2,
                    max_tokens=MAX_TOKENS, temperature=0.6 + 0.1 * (model == 3), stream=profile["stream"],
                    fingerprint=False,
                )  # fmt: skip
                by_hand(run, family, server.base_url)
                settle(run, root, folder, Random(name), profile["missing"])
                published += [
                    {"model": name, "benchmark": benchmark, "metric": metric, "samples": rng.choice((1, 8, 64))}
                    | {"percent": round(100 * rng.random() if model == 2 else 100 * profile["ability"], 1)}
                    for benchmark in names
                    for metric in ("pass@1", "maj@4")[: 1 + (samples >= 4)]
                ]
            if family % 7 == 1:
                outputs(folder / "runs" / f"{family:02}w" / names[0], folder / "runs" / f"{family:02}.jsonl")
        asked = {path.parent.name: sum(1 for _ in path.open()) for path in folder.glob("runs/*/f*/questions.jsonl")}
        source = {"title": "A wiki", "url": "https://example.org", "by": "others"}
        settings = {"temperature": 0.6, "max_tokens": MAX_TOKENS}
        content = {"schema": 1, "source": source, "settings": settings, "questions": asked, "scores": published}
        (folder / "runs" / "published.yaml").write_text(yaml.safe_dump(content), "utf-8")
        pack(folder / "runs", archive)


def by_hand(run: Path, family: int, judge: str) -> None:
    """Let a judge rule in every sixth family; let a person audit in every seventh."""
    if family % 6 == 0:
        harness.score(run, judge=harness.Judge(model="judge", base_url=[judge]), workers=1)
    if family % 7 == 0:
        harness.score(run, workers=1)
        todo = run.parent / "todo.jsonl"
        harness.audit(run, samples=12, out=todo)
        rows = [json.loads(line) for line in todo.read_text("utf-8").splitlines()]
        rng = Random(run.name)
        rows = [row | {"verdict": rng.choice(("correct", "wrong", "wrong"))} for row in rows[: rng.choice((4, 12))]]
        todo.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if rows:
            harness.audit(run, verdicts=todo, who="Ann")
        todo.unlink()


def settle(run: Path, root: str, folder: Path, rng: Random, missing: float) -> None:
    """Replace times, ports and folders; drop what is made again, and the share of samples that is to be missing."""
    for path in sorted(run.rglob("*")):
        if path.name in NOT_STORED:
            path.unlink()
        elif path.is_file():
            text = path.read_text("utf-8").replace(root, ADDRESS).replace(str(folder), PLACE)
            if path.name == "samples.jsonl":
                lines = [settled(json.loads(line)) for line in text.splitlines()]
                keep = [line for line in lines if path.parent.parent != run or rng.random() >= missing]
                text = "".join(keep or lines)
            path.write_text(text, "utf-8")


def settled(sample: Content) -> str:
    """A stored sample with times that follow from its number and tokens."""
    tokens = sample["usage"]["completion_tokens"] or 50
    timing, first, total = sample["timing"], 0.25, 0.25 + tokens / 64
    timing |= {"started": 1.75e9 + 8 * sample["sample_index"], "queued": 0.0, "total": total, "lag": 0.0}
    if timing.get("first_token") is not None:
        timing |= {"first_token": first, "last_token": total}
    timing |= {name: 1 / 64 for name in ("gap_p50", "gap_p99") if timing.get(name) is not None}
    sample.pop("crc")
    body = json.dumps(sample, ensure_ascii=False, separators=(",", ":")).removesuffix("}")
    return f'{body},"crc":"{zlib.crc32(body.encode()):08x}"}}\n'


def outputs(benchmark: Path, file: Path) -> None:
    """Write a benchmark of a run as another tool would, a row a question, without tokens and reasons."""
    rows: dict[str, Content] = {}
    for line in (benchmark / "questions.jsonl").read_text("utf-8").splitlines():
        question = json.loads(line)
        asked = {"question": question["messages"][-1]["content"], "answer": question["references"][0]}
        rows[question["question_id"]] = asked | {"gen": []}
    for line in (benchmark / "samples.jsonl").read_text("utf-8").splitlines():
        sample = json.loads(line)
        rows[sample["question_id"]]["gen"].append(sample["text"])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows.values() if row["gen"]), "utf-8")


def pack(folder: Path, archive: Path) -> None:
    """Pack the folder's files."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                member.size = path.stat().st_size
                packed.addfile(member, io.BytesIO(path.read_bytes()))


if __name__ == "__main__":
    make(Path(__file__).with_name("runs.tar.xz"))
