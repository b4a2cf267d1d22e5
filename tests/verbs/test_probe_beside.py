"""A server beside what it should be: the model's own template, a reference server; and before a run.

For: harness.verbs.probe.template_child, harness.verbs.probe.transformers_child.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import api
from harness.asking.options import ProbeOptions, WhichServer
from harness.asking.watching import Watcher
from harness.cli import probe as cli_probe
from harness.client.asker import Asker
from harness.client.spelling import Spelling
from harness.core import codec
from harness.core.errors import ServerError, UsageError
from harness.core.records import Message
from harness.core.secret import HIDDEN
from harness.generation import fingerprint
from harness.runs import RunFolder
from harness.runs.manifest import BenchmarkRecord, Fingerprint, Manifest, Plan
from harness.verbs.probe import counterparts, load, overlap, probe, reference, template
from harness.verbs.probe.asking import CHAT
from harness.verbs.probe.counterparts import FolderReference, SavedReference, counterpart
from harness.verbs.probe.findings import Check, Finding, Group, ProbeReport, Seen, findings_of
from harness.verbs.probe.template import ServerTemplate
from server_launchers.keeping.supervisor import RunningServer
from tests.budget import thinned
from tests.faults.server import FaultServer, Request, Step, http
from tests.system.command import harness
from tests.verbs.toy_faults import FAULTS, ColdIgnored, Echoes, Messages, Silent, Unlisted
from tests.verbs.toy_model import Fault, Hot, Rounded, SaysStop, Temperature, Toy, ToyAsker, answering

OWN = (
    "{{ bos_token }}{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}"
)


@dataclass
class Rendering(ToyAsker):
    """A server that shows its prompts. Its template, with a BOS of one character that is token 1."""

    prompts: str = OWN

    def render(self, messages: Sequence[Message], kwargs: Mapping[str, Any]) -> tuple[str, list[int]]:
        text = _rendered(self.prompts)[tuple(messages)]
        return text, self.tokens(text)

    def tokens(self, text: str) -> list[int]:
        return [1 if c == "§" else ord(c) for c in text]

    def text_of(self, ids: Sequence[int]) -> str:
        return "".join("§" if n == 1 else chr(n) for n in ids)


@cache
def _rendered(prompts: str) -> dict[tuple[Message, ...], str]:
    """What a template makes of all conversations, by one process."""
    asked = list(template.CONVERSATIONS.values())
    prompt = ServerTemplate(prompts, {"bos_token": "§"}).render(asked)
    return {messages: text for messages, text in zip(asked, prompt, strict=True) if text is not None}


def examined(server: ToyAsker, *checks: Check) -> dict[str, Finding]:
    return {one.check: one for one in probe.examine(server, checks, seed=3).findings}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("{{ bos_token }}" + OWN, "doubled BOS"),
        (
            OWN.replace("{% for m in messages %}", "{% for m in messages if m['role'] != 'system' %}"),
            "system prompt is",
        ),
        (OWN.replace("{% for m", "<|system|>Be brief.\n{% for m"), "adds a default system prompt"),
        (OWN.replace("<think>", "<think>\n<think>"), "2 times instead of 1"),
        (OWN.replace("<think>", ""), "0 times instead of 1"),
        (
            OWN.replace("\n{% endfor", "\n\n{% endfor"),
            'a question: token 36, after "?" "\\n": the model\'s template has nothing, the server "\\n"',
        ),
    ],
)
def test_another_template_is_found(changed: str, message: str) -> None:
    check = template.against(ServerTemplate(OWN, {"bos_token": "§"}))
    ill = examined(Rendering(Toy(), prompts=changed), check)["chat template"]
    assert ill.outcome == "spoils"
    assert message in ill.came


def test_places_that_differ_are_told_in_words_where_the_server_tells_no_tokens() -> None:
    class Silent(Rendering):
        def tokens(self, text: str) -> None:  # type: ignore[override]
            return None

        def render(self, messages: Sequence[Message], kwargs: Mapping[str, Any]) -> tuple[str, list[int]]:
            return _rendered(self.prompts)[tuple(messages)], []

    check = template.against(ServerTemplate(OWN, {"bos_token": "§"}))
    ill = examined(Silent(Toy(), prompts=OWN.replace("<|assistant|>", "<|bot|>")), check)["chat template"]
    assert 'the model\'s template has "<|assistant|>", the server "<|bot|>"' in ill.came


def test_the_models_own_template_passes() -> None:
    well = examined(Rendering(Toy()), template.against(ServerTemplate(OWN, {"bos_token": "§"})))["chat template"]
    assert well.outcome == "sound", well.came


def test_what_is_wrong_in_itself_is_found_without_the_template() -> None:
    (check,) = template.CHECKS
    assert examined(Rendering(Toy()), check)["prompt"].outcome == "sound"
    for changed in ("{{ bos_token }}" + OWN, OWN.replace("<think>", "<think><think>"), "{{ messages[-1].content }}"):
        assert examined(Rendering(Toy(), prompts=changed), check)["prompt"].outcome == "spoils"
    assert examined(ToyAsker(Toy()), check)["prompt"].outcome == "untested"


def test_a_template_is_read_from_a_models_files(tmp_path: Path) -> None:
    config = {"chat_template": [{"name": "default", "template": OWN}], "bos_token": {"content": "§"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    from_folder = ServerTemplate.of(tmp_path)
    assert (
        from_folder == ServerTemplate(OWN, {"bos_token": "§"}) == ServerTemplate.of(tmp_path / "tokenizer_config.json")
    )
    (tmp_path / "chat_template.jinja").write_text("other")
    assert ServerTemplate.of(tmp_path).text == "other"
    with pytest.raises(UsageError, match="chat template"):
        ServerTemplate.of(tmp_path / "none.json")


def test_a_hostile_template_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = [[Message("user", "x")]]
    for text in ("{{ ''.__class__.__mro__ }}", "{{ cycler.__init__.__globals__ }}", "{% include '/etc/passwd' %}"):
        (found,) = ServerTemplate(text).render(conversation)
        assert not found
    (long,) = ServerTemplate("{% for i in range(99999) %}xxxxxxxxxx{% endfor %}").render(conversation)
    assert long is None
    monkeypatch.setattr(template, "SECONDS", 0.5)
    nested = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(UsageError, match="does not end"):
        ServerTemplate(nested).render(conversation)


# ---- weights


def weights(server: Toy, fault: Fault | None = None, noise: float = 0.003) -> dict[str, Finding]:
    """What is found of `server` beside true weights, whose logits have so much noise."""
    asker = ToyAsker(server, fault or Fault())
    return examined(asker, *reference.against(reference.ServerReference(ToyAsker(Toy(noise=noise)), "the reference")))


@pytest.mark.parametrize(
    ("spread", "outcome"), [(0.0, "sound"), (0.003, "sound"), (0.05, "warns"), (0.3, "spoils"), (1.0, "spoils")]
)
def test_other_weights_are_told_by_how_far_they_are_off(spread: float, outcome: str) -> None:
    assert weights(Toy("b", spread))["weights"].outcome == outcome


def by_yardstick(server: Toy) -> Finding:
    true = Rounded(ToyAsker(Toy()), "the reference", ToyAsker(Toy(noise=0.05)))
    return examined(ToyAsker(server), *reference.against(true))["weights"]


@pytest.mark.parametrize(
    ("server", "outcome"),
    [
        (Toy(), "sound"),
        (Toy(noise=0.05, chance=random.Random(5)), "sound"),
        (Toy("b", 0.05, noise=0.05, chance=random.Random(5)), "warns"),
        (Toy("b", 0.3, noise=0.05, chance=random.Random(5)), "spoils"),
    ],
)
def test_a_server_is_measured_by_what_rounding_does_to_the_model(server: Toy, outcome: str) -> None:
    found = by_yardstick(server)
    assert found.outcome == outcome, found.came
    assert "times what rounding does" in found.came
    assert ("more than rounding does" in found.came) == (outcome == "warns")


def test_without_the_yardstick_rounding_is_no_more_than_a_warning_that_says_so() -> None:
    found = weights(Toy(noise=0.05, chance=random.Random(5)), noise=0.0)["weights"]
    assert found.outcome == "warns"
    assert "rounding in two engines" in found.came
    assert "times what" not in found.came


def test_draws_that_are_not_the_references_are_found_whatever_the_server_says_of_them() -> None:
    assert weights(Toy())["draws"].outcome == "sound"
    assert weights(Toy(), Temperature())["draws"].outcome == "spoils"


def test_a_server_without_log_probabilities_is_not_judged() -> None:
    class Silent(Fault):
        def answer(self, asked: dict[str, Any], content: bytes) -> bytes:
            return content.replace(b'"logprobs"', b'"unsaid"')

    found = weights(Toy(), Silent())
    assert {check: one.outcome for check, one in found.items()} == {
        "weights": "untested", "draws": "untested", "greedy replies": "sound"
    }  # fmt: skip


def test_greedy_replies_of_other_weights_part_and_those_of_the_same_do_not() -> None:
    same, other = (weights(Toy(*one), noise=0.0)["greedy replies"] for one in (("a",), ("b", 1.0)))
    assert same.outcome == "sound"
    assert "8 of 8" in same.came
    assert "128 of 128 tokens" in same.came
    assert other.outcome == "spoils"
    assert "samples at temperature 0" not in other.came


def test_replies_that_begin_alike_and_end_early_are_called_cut_and_no_other_weights() -> None:
    class Cut(Fault):
        """Ends every n-th greedy reply after so many tokens, and says stop."""

        def __init__(self, n_tokens: int, every: int) -> None:
            self.n_tokens, self.every, self.prompts = n_tokens, every, dict[str, int]()

        def request(self, body: dict[str, Any]) -> dict[str, Any]:
            number = self.prompts.setdefault(str(body.get("messages")), len(self.prompts))
            return {**body, "max_tokens": min(body["max_tokens"], self.n_tokens)} if number % self.every == 0 else body

    true = Toy("b", 1.0)
    for n_tokens in (1, 12):
        for every, outcome in ((1, "spoils"), (2, "sound")):
            for toy, alike in ((true, True), (Toy("c", 1.0), False)):
                fault = Cut(n_tokens, every)
                server, beside = ToyAsker(toy, fault), ToyAsker(true)
                for one, other, whose in ((server, beside, "the server"), (beside, server, "the reference")):
                    fault.prompts.clear()
                    greedy = reference.begun_alike(reference.ServerReference(other, "R"))
                    seen = examined(one, greedy)["greedy replies"]
                    # A single token may be the same by chance.
                    if n_tokens == 1 and not alike:
                        continue
                    assert (f"{8 // every} more of {whose} begin alike and end early" in seen.came) == alike, seen.came
                    assert ("a hidden limit" in seen.mend) == (alike and outcome == "spoils")
                    assert seen.outcome == (outcome if alike else "spoils"), seen.came


def test_what_is_by_raw_text_says_so() -> None:
    for own, says in (("chat", True), ("completions", False)):
        asker = ToyAsker(Toy(), Fault(), Asker(model="toy", spelling=Spelling(api=own)))  # type: ignore[arg-type]
        true = reference.against(reference.ServerReference(ToyAsker(Toy()), "the reference"))
        found = examined(asker, *true[:2])
        assert ["by raw text only: a run asks by chat" in one.sent for one in found.values()] == [says] * 2


def test_a_server_that_samples_at_temperature_0_is_not_called_another_model() -> None:
    hot = weights(Toy(chance=random.Random(5)), Hot(), noise=0.0)["greedy replies"]
    assert hot.outcome == "untested", hot.came
    assert "the probed server repeats" in hot.came
    assert "so nothing is known of the weights" in hot.came
    cold = weights(Toy("b", 2.0, chance=random.Random(5)), noise=0.0)["greedy replies"]
    assert (cold.outcome, "asked again" in cold.came) == ("spoils", False), cold.came


# ---- what a server is held against


def test_what_is_kept_of_a_server_stands_for_it(tmp_path: Path) -> None:
    path = tmp_path / "true.json"
    path.write_bytes(codec.pretty(SavedReference.of(reference.ServerReference(ToyAsker(Toy(noise=0.003)), "http://h"))))
    for toy, expected in ((Toy(), "sound"), (Toy("b", 0.9), "spoils")):
        with counterpart(ProbeOptions.of(reference=str(path)), Watcher()) as held:
            found = examined(ToyAsker(toy), *held.checks)
        assert {found[check].outcome for check in ("weights", "greedy replies")} == {expected}
    path.write_text(path.read_text().replace(reference.VERSION, "0" * 12))
    with (
        pytest.raises(UsageError, match="save the reference again"),
        counterpart(ProbeOptions.of(reference=str(path)), Watcher()),
    ):
        pass


def test_a_model_of_this_machine_is_kept_with_its_yardstick(tmp_path: Path) -> None:
    """A stand-in for the interpreter that has transformers answers as it would."""
    exact, rounded = (reference.ServerReference(ToyAsker(Toy(noise=noise)), "") for noise in (0.0, 0.05))
    stored = {"likely": exact.likely(), "rounded": rounded.likely(), "beginnings": exact.beginnings()}
    (tmp_path / "told.json").write_bytes(codec.encode(stored))
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat > /dev/null\ncat '{tmp_path / 'told.json'}'\n")
    python.chmod(0o755)
    folder = FolderReference(tmp_path, python=str(python))
    path = tmp_path / "kept.json"
    path.write_bytes(codec.pretty(SavedReference.of(folder)))
    kept = SavedReference.read(path)
    assert (kept.model, kept.engine) == (tmp_path.name, "transformers")
    assert list(kept.rounding()) == list(folder.rounding())
    assert min(kept.rounding()) > 0
    server = Toy(noise=0.05, chance=random.Random(5))
    for true in (folder, kept):
        found = examined(ToyAsker(server), *reference.against(true))["weights"]
        assert found.outcome == "sound", found.came
        assert "times what rounding does" in found.came
    for wrong in (kept.rounded[1:], [-1.0, *kept.rounded[1:]]):
        path.write_bytes(codec.pretty(msgspec.structs.replace(kept, rounded=wrong)))
        with pytest.raises(UsageError, match=r"save the reference again|no saved reference"):
            SavedReference.read(path)


def test_the_command_keeps_the_reference_where_one_is_named_and_else_the_server(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as server, FaultServer(answering(Toy("b", 1.0), Fault())) as true:
        asked = ("probe", server.base_url, "--checks", "length", "--quiet", "--save-reference")
        harness(tmp_path, *asked, "own.json")
        harness(tmp_path, *asked, "true.json", "--reference", true.base_url)
    own, other = (SavedReference.read(tmp_path / name) for name in ("own.json", "true.json"))
    assert own.address == server.base_url
    assert other.address == true.base_url
    assert own.likeliest != other.likeliest


def test_a_file_that_is_not_there_is_no_address() -> None:
    for name in ("none.gguf", "none.json"):
        with pytest.raises(UsageError, match="no such file"), counterpart(ProbeOptions.of(reference=name), Watcher()):
            pass


def test_a_run_stands_for_its_servers_replies(tmp_path: Path) -> None:
    begun = list(reference.ServerReference(ToyAsker(Toy()), "").beginnings())
    manifest = Manifest.start(RunFolder(tmp_path), model="toy", harness_version="0")
    known = Fingerprint(version=fingerprint.version({}), beginnings=begun, endpoint="http://h")
    provenance = manifest.provenance.after("now", {}, []).with_fingerprint(known, {})
    msgspec.structs.replace(manifest, provenance=provenance).save(RunFolder(tmp_path))
    for toy, expected in ((Toy(), "sound"), (Toy("b", 1.0), "spoils")):
        with counterpart(ProbeOptions.of(reference=str(tmp_path)), Watcher()) as found:
            assert examined(ToyAsker(toy), *found.checks)["greedy replies"].outcome == expected


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", None])
@pytest.mark.parametrize("neutral", [{}, {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}])
def test_a_runs_replies_are_asked_for_as_they_were_then(
    tmp_path: Path, engine: str | None, neutral: dict[str, Any]
) -> None:
    """Without neutral values where the run's had none; else with those of the server's engine, or the run's."""
    asked: list[Mapping[str, Any]] = []

    class Recording(ToyAsker):
        def whole(self, fields: Mapping[str, Any], path: str = CHAT) -> Any:
            asked.append(fields)
            return super().whole(fields, path)

    manifest = Manifest.start(RunFolder(tmp_path), model="toy", harness_version="0")
    known = Fingerprint(
        version=fingerprint.version(neutral), beginnings=["x"] * 8, endpoint="http://h", neutral=neutral
    )
    provenance = manifest.provenance.after("now", {}, []).with_fingerprint(known, {})
    msgspec.structs.replace(manifest, provenance=provenance).save(RunFolder(tmp_path))
    with counterpart(ProbeOptions.of(reference=str(tmp_path)), Watcher()) as found:
        examined(Recording(Toy(), asker=Asker(model="toy", engine=engine)), *found.checks)
    names = {*neutral, "repeat_penalty"}
    sent = [{name: value for name, value in fields.items() if name in names} for fields in asked]
    own = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0} if engine == "llama.cpp" else neutral
    # Asked twice, because the replies are not the run's: would they repeat?
    assert sent == [own if neutral else {}] * len(fingerprint.PROMPTS) * 2


@dataclass
class Switched(ToyAsker):
    """A server whose replies are another model's unless it is asked as the run asked."""

    def whole(self, fields: Mapping[str, Any], path: str = CHAT) -> Any:
        as_run = fields.get("chat_template_kwargs") == {"enable_thinking": False} and fields.get("effort") == "low"
        begun = fields["messages"][-1] == {"role": "assistant", "content": "<think>"}
        self.toy = Toy() if as_run and begun and "key" not in fields else Toy("b", 1.0)
        return super().whole(fields, path)


def test_a_run_is_compared_by_requests_as_it_sent_them(tmp_path: Path) -> None:
    asked = Spelling(
        stream=False,
        chat_template_kwargs={"enable_thinking": False},
        extra_body={"effort": "low"},
        prefill={"role": "assistant", "content": "<think>"},
    )
    own = fingerprint.template(Asker(model="toy", spelling=asked), {})
    fields = [json.loads(body) for body in fingerprint.bodies(own)]
    begun = [Switched(Toy()).whole(one).first.whole[: fingerprint.MAX_CHARS] for one in fields]
    identity = {
        "api": "chat",
        "chat_template_kwargs": {"enable_thinking": False},
        "extra_body": {"effort": "low", "key": HIDDEN},
        "prefill": "<think>",
    }
    manifest = Manifest.start(RunFolder(tmp_path), model="toy", harness_version="0")
    known = Fingerprint(version=fingerprint.version({}), beginnings=begun, endpoint="http://h")
    provenance = manifest.provenance.after("now", {}, []).with_fingerprint(known, {})
    for kept, expected in ((identity, "sound"), ({**identity, "chat_template_kwargs": {}}, "spoils")):
        record = BenchmarkRecord(identity=kept, plan=Plan(samples=1))
        both = msgspec.structs.replace(manifest, provenance=provenance, benchmarks={"b": record})
        both.save(RunFolder(tmp_path))
        with counterpart(ProbeOptions.of(reference=str(tmp_path)), Watcher()) as found:
            assert examined(Switched(Toy()), *found.checks)["greedy replies"].outcome == expected


def test_a_models_folder_stands_for_its_template_and_its_weights_where_they_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(OWN)
    with counterpart(ProbeOptions.of(reference=str(tmp_path)), Watcher()) as held:
        assert [check.name for check in held.checks] == ["chat template"]
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with counterpart(ProbeOptions.of(reference=str(tmp_path)), Watcher()) as held:
        found = examined(Rendering(Toy()), *held.checks)
    assert found.keys() == {"chat template", "weights", "draws", "greedy replies"}
    assert found["weights"].outcome == "untested"
    assert "transformers" in found["weights"].came


@pytest.mark.server
def test_a_file_of_weights_is_served_and_compared(embedded_server: RunningServer, smollm2: Path) -> None:
    address = embedded_server.base_urls[0]
    report = probe.probe(ProbeOptions(base_url=address, reference=str(smollm2), checks=["greedy replies"]))
    assert [(one.check, one.outcome) for one in report.findings] == [("greedy replies", "sound")]


@pytest.mark.server
def test_a_running_server_is_a_reference_by_its_name(
    embedded_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a path of that name would come first
    address = embedded_server.base_urls[0]
    named = ProbeOptions(base_url=address, reference=embedded_server.name, checks=["greedy replies"])
    (finding,) = probe.probe(named).findings
    assert finding.came == counterparts.ITSELF, "the name leads to the address of the server"


def test_a_divergence_is_that_of_the_definition() -> None:
    server, other = ({name: math.log(p) for name, p in zip("ab", ps, strict=True)} for ps in ((0.5, 0.2), (0.4, 0.3)))
    place = reference.compared(0, "b", server, other)
    assert place.divergence == pytest.approx(0.5 * math.log(5 / 4) + 0.2 * math.log(2 / 3) + 0.3 * math.log(1))
    assert place.ratio == pytest.approx(math.log(2 / 3))
    assert place.same


class Babbling(reference.ServerReference):
    """A reference whose likeliest tokens are others than the toy's, at the first `n` places."""

    n: int = 96

    def likely(self) -> Sequence[Mapping[str, float]]:
        return [
            {f"{name}~": value for name, value in top.items()} if i < self.n else top
            for i, top in enumerate(super().likely())
        ]


@pytest.mark.parametrize("n", [0, 40, 96])
def test_lists_that_share_nothing_bound_the_divergence_and_leave_the_draws_untested(n: int) -> None:
    other = Babbling(ToyAsker(Toy()), "the reference")
    other.n = n
    found = examined(ToyAsker(Toy()), *reference.against(other))
    weights, draws = found["weights"], found["draws"]
    (mean,) = re.findall(r"divergence from the reference (?:at least )?(\S+) nats", weights.came)
    assert weights.outcome == ("spoils" if n else "sound")
    assert ("at least" in weights.came) is (n > 0)
    assert float(mean) > 0.2 if n else float(mean) < 0.001
    assert ("mean log-ratio" in weights.came) is (n < 48)
    assert (draws.outcome == "untested") is (n > 48)
    assert ("share less than 50%" in draws.came) is (n > 48)


@given(st.lists(st.floats(0.001, 1), min_size=12, max_size=12), st.lists(st.floats(0.001, 1), min_size=12, max_size=12))
def test_a_divergence_of_lists_is_never_above_the_true_one(a: list[float], b: list[float]) -> None:
    p, q = ([weight**3 / sum(one**3 for one in weights) for weight in weights] for weights in (a, b))
    true = sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
    for n in (2, 3, 5, 8):
        lists = [
            dict(sorted(((str(i), math.log(x)) for i, x in enumerate(full)), key=lambda item: -item[1])[:n])
            for full in (p, q)
        ]
        assert overlap.divergence(*lists) <= true + 1e-4


def test_replies_that_come_empty_under_load_are_found() -> None:
    class Overrun(ToyAsker):
        def streamed(self, requests: Sequence[Mapping[str, Any]], at_once: int = 1) -> Any:
            few = [{**one, "max_tokens": 0} for one in requests] if at_once > 1 else requests
            return super().streamed(few, at_once)

    assert examined(ToyAsker(Toy()), *load.CHECKS)["load"].outcome == "sound"
    assert examined(Overrun(Toy()), *load.CHECKS)["load"].outcome == "spoils"


def test_a_promise_of_equal_text_under_load_is_held_to() -> None:
    class Batched(ToyAsker):
        def streamed(self, requests: Sequence[Mapping[str, Any]], at_once: int = 1) -> Any:
            few = [{**one, "max_tokens": 3} for one in requests[:1]] if at_once > 1 else requests[:1]
            return super().streamed([*few, *requests[1:]], at_once)

    assert examined(ToyAsker(Toy(), deterministic=True), *load.CHECKS)["load"].outcome == "sound"
    assert examined(Batched(Toy()), *load.CHECKS)["load"].outcome == "sound"
    broken = examined(Batched(Toy(), deterministic=True), *load.CHECKS)["load"]
    assert broken.outcome == "warns"
    assert "63 of 64" in broken.came


@dataclass
class Effortful(ToyAsker):
    """Thinks, for longer at a higher effort where it obeys it."""

    obeys: bool = True

    def whole(self, fields: Mapping[str, Any], path: str = CHAT) -> Any:
        answer = super().whole({name: value for name, value in fields.items() if name != "reasoning_effort"}, path)
        high = self.obeys and fields.get("reasoning_effort") == "high"
        message = msgspec.structs.replace(answer.first.message, reasoning_content="Hm. " * (9 if high else 2))
        return msgspec.structs.replace(answer, choices=[msgspec.structs.replace(answer.first, message=message)])


def test_an_effort_that_changes_nothing_is_worth_knowing() -> None:
    checks = probe.select(["effort"])
    assert examined(Effortful(Toy()), *checks)["effort"].outcome == "sound"
    assert examined(Effortful(Toy(), obeys=False), *checks)["effort"].outcome == "warns"
    assert examined(ToyAsker(Toy()), *checks)["effort"].outcome == "untested"


def test_a_server_that_fails_while_it_is_examined_does_not_end_the_probe() -> None:
    class Gone(ToyAsker):
        def whole(self, fields: Mapping[str, Any], path: str = "") -> Any:
            raise ServerError("connection refused")

    found = examined(Gone(Toy()), *probe.select(["protocol"]))
    assert len(found) == len(probe.select(["protocol"]))
    assert found["length"].outcome == "spoils"
    assert "connection refused" in found["length"].came


# ---- one of the two servers refuses


def refusing(toy: Toy) -> Any:
    """A server that shows its model and refuses every request."""
    well = answering(toy, Fault())

    def answer(request: Request) -> Iterable[Step]:
        return well(request) if request.method == "GET" else [http(401, {"error": {"message": "no such key"}})]

    return answer


@pytest.mark.parametrize("refuses", thinned(["reference", "probed server", "neither"]))
def test_the_server_that_refuses_is_named_and_a_probe_without_a_check_is_no_success(
    tmp_path: Path, refuses: str
) -> None:
    def answers(server: str) -> Any:
        toy = Toy(chance=random.Random(2))
        return refusing(toy) if server == refuses else answering(toy, Fault())

    with FaultServer(answers("probed server")) as mine, FaultServer(answers("reference")) as theirs:
        words = ("probe", mine.base_url, "--reference", theirs.base_url, "--checks", "reference", "--quiet")
        done = harness(tmp_path, *words, "--html", "page.html")
        as_json = harness(tmp_path, *words, "--json")
    page = (tmp_path / "page.html").read_text()
    findings = json.loads(as_json.out)[0]["findings"]
    if refuses == "neither":
        assert (done.code, as_json.code) == (0, 0), done.out
        assert "nothing spoils a score" in done.out
        return
    assert (done.code, as_json.code) == (2, 2), done.out
    assert "no check could be made" in done.out
    assert "nothing spoils a score" not in done.out + page
    name = f"the reference {theirs.base_url}" if refuses == "reference" else "the probed server"
    assert {one["came"].partition(": HTTP 401: ")[0] for one in findings} == {name}


def chats_only(toy: Toy) -> Any:
    """A server without a page for raw text."""
    well = answering(toy, Fault())

    def answer(request: Request) -> Iterable[Step]:
        raw = request.path.endswith("/completions") and not request.path.endswith("/chat/completions")
        return [http(404, {"error": {"message": "Not Found"}})] if raw else well(request)

    return answer


@pytest.mark.parametrize("lacks", ["reference", "probed server"])
def test_a_server_for_chats_only_is_found_by_one_request(tmp_path: Path, lacks: str) -> None:
    def answers(server: str) -> Any:
        toy = Toy(chance=random.Random(2))
        return chats_only(toy) if server == lacks else answering(toy, Fault())

    with FaultServer(answers("probed server")) as mine, FaultServer(answers("reference")) as theirs:
        words = ("probe", mine.base_url, "--reference", theirs.base_url, "--checks", "weights,draws", "--quiet")
        done = harness(tmp_path, *words, "--json")
        asked = [len([r for r in server.requests if r.path.endswith("/v1/completions")]) for server in (mine, theirs)]
    assert done.code == 2
    assert {one["outcome"] for one in json.loads(done.out)[0]["findings"]} == {"untested"}
    for finding in json.loads(done.out)[0]["findings"]:
        assert "HTTP 404" in finding["came"]
        assert "POST /v1/completions" in finding["came"]
    assert asked == ([1, 1] if lacks == "reference" else [1, 0])


@pytest.mark.parametrize(
    ("theirs", "outcome", "says"),
    [
        ("the same", "sound", "the reference has as many tokens, so the model's own template adds it"),
        ("none", "spoils", "the server adds a system prompt that the reference does not add"),
        ("longer", "spoils", "both add a system prompt, the reference the longer one; which of the two departs"),
        ("no reply", "warns", "the reference cannot be asked"),
        ("no reference", "warns", "a system prompt is added where none is sent"),
    ],
)
def test_a_system_prompt_that_the_reference_adds_too_is_the_models_own(theirs: str, outcome: str, says: str) -> None:
    adding = FAULTS["a system prompt added"]

    def longer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        system = {"role": "system", "content": "You are the voice of a lighthouse. " * 9}
        return messages if messages[0]["role"] == "system" else [system, *messages]

    servers = {
        "longer": ToyAsker(Toy(), Messages(longer)),
        "the same": ToyAsker(Toy(), adding()),
        "none": ToyAsker(Toy()),
        "no reply": ToyAsker(Toy(names=("other",))),
    }
    (check,) = probe.select(["added words"])
    (finding,) = probe.examine(ToyAsker(Toy(), adding()), [check], beside=servers.get(theirs)).findings
    assert (finding.outcome, says in finding.came) == (outcome, True), finding.came


@pytest.mark.parametrize(
    ("theirs", "outcome", "says"),
    [
        ("a system prompt added", "spoils", "the reference adds a system prompt that the server does not add"),
        ("a system prompt always added", "spoils", "with a system message"),
        (None, "sound", "the reference has as many tokens"),
        ("no reply", "sound", "the reference cannot be asked"),
        ("no reference", "sound", "6 tokens alone, 7 with a system message"),
    ],
)
def test_a_short_prompt_is_compared_with_that_of_the_reference(theirs: str | None, outcome: str, says: str) -> None:
    servers = {"no reply": ToyAsker(Toy(names=("other",))), "no reference": None}
    beside = servers[theirs] if theirs in servers else ToyAsker(Toy(), FAULTS[theirs]() if theirs else Fault())
    (check,) = probe.select(["added words"])
    (finding,) = probe.examine(ToyAsker(Toy()), [check], beside=beside).findings
    assert (finding.outcome, says in finding.came) == (outcome, True), finding.came
    assert ("which of the two departs from the model's own template is unknown" in finding.came) == (
        theirs == "a system prompt added"
    )


def test_two_servers_with_other_prompts_differ_and_neither_is_accused_alone(tmp_path: Path) -> None:
    """Other prompts are named in either order; servers with other weights and the same prompts have no such words."""
    adding = FAULTS["a system prompt added"]
    which = "which of the two departs from the model's own template is unknown"
    for ours, theirs in ((adding, Fault), (Fault, adding), (Fault, Fault)):
        server, other = answering(Toy(), ours()), answering(Toy(weights="4", spread=2.0), theirs())
        with FaultServer(server) as mine, FaultServer(other) as beside:
            words = ("--reference", beside.base_url, "--checks", "added words,greedy replies", "--seed", "1")
            done = harness(tmp_path, "probe", mine.base_url, *words)
        assert done.code == 4
        said = " ".join(done.out.split())
        unlike = ours is not theirs
        what = "prompts, greedy replies" if unlike else "greedy replies"
        assert f"the two servers differ ({what}): their scores are of two set-ups" in said
        assert said.count("adds a system prompt that") == unlike, said
        assert said.count(which) == 2 * unlike


def test_nothing_spoils_only_if_no_check_spoils_and_two_servers_differ_only_if_nothing_else_does() -> None:
    for outcomes in itertools.product(("sound", "warns", "untested", "spoils"), repeat=3):
        seen = [
            Seen(outcome=outcome, sent="", came="", beside=beside)  # type: ignore[arg-type]
            for outcome, beside in zip(outcomes, ("", "prompts", ""), strict=True)
        ]
        checks = [replace(probe.CHECKS[0], name=name, group=group) for name, group in zip("abc", GROUPS, strict=True)]
        report = ProbeReport(
            address="", model="", engine=None, version="", seed=1, findings=findings_of(checks, seen), requests=0,
            tokens=0, seconds=0.0,
        )  # fmt: skip
        spoilt = [name for name, outcome in zip(("", "prompts", "c"), outcomes, strict=True) if outcome == "spoils"]
        assert report.sound == (not spoilt)
        assert report.differs == (spoilt if "" not in spoilt else [])


GROUPS: tuple[Group, ...] = ("protocol", "template", "reference")


def test_the_last_lines_name_the_warned_checks_and_say_that_no_temperature_above_0_was_decided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcomes = ("sound", "spoils", "warns", "untested")
    for first, second, usage in itertools.product(outcomes, repeat=3):
        of = {"temperature 1": first, "later draws": second, "usage": usage}
        checks = [replace(probe.CHECKS[0], name=name, group="sampling") for name in of]
        seen = [Seen(outcome=outcome, sent="", came="") for outcome in of.values()]  # type: ignore[arg-type]
        for selected in (slice(3), slice(2, 3)):
            report = ProbeReport(
                address="", model="", engine=None, version="", seed=1, requests=0, tokens=0, seconds=0.0,
                findings=findings_of(checks[selected], seen[selected]),
            )  # fmt: skip
            cli_probe._table(report, None)
            out = capsys.readouterr().out
            undecided = not {first, second} & {"sound", "spoils"} and selected == slice(3) and report.tested
            assert ("no temperature above 0 was decided" in out) == undecided
            warned = [one.check for one in report.findings if one.outcome == "warns"]
            assert (f"; {len(warned)} with a warning: {', '.join(warned)}; " in out) == bool(warned)


def test_where_the_weights_are_the_same_other_greedy_replies_are_not_laid_to_them() -> None:
    class Short(Fault):
        """Cuts the prompts of chats on their way."""

        def request(self, body: dict[str, Any]) -> dict[str, Any]:
            asked = body.get("messages")
            return body if asked is None else {**body, "messages": [{**one, "content": "Hi"} for one in asked]}

    true = reference.ServerReference(ToyAsker(Toy()), "R")
    found = {one.check: one for one in examined(ToyAsker(Toy(), Short()), *reference.against(true)).values()}
    assert (found["weights"].outcome, found["greedy replies"].outcome) == ("sound", "spoils")
    assert "a prompt that is cut or changed on its way" in found["greedy replies"].why
    # Wrong twins: weights that differ or are unknown, replies that agree, and replies that only end early.
    for weighed, greedy, mend in itertools.product(
        ("sound", "warns", "spoils", "untested"), ("sound", "warns", "spoils", "untested"), ("", reference.MEND_CUT)
    ):
        seen = [
            Seen(outcome=weighed, sent="", came=""),  # type: ignore[arg-type]
            Seen(outcome="sound", sent="", came=""),
            Seen(outcome=greedy, sent="", came="", mend=mend),  # type: ignore[arg-type]
        ]
        *_, last = reference.beside_equal_weights(findings_of(reference.against(true), seen))
        same = weighed == "sound" and greedy in ("warns", "spoils") and not mend
        assert ("The weights are the same" in last.why, "Other weights" in last.why) == (same, not same)


def test_one_server_by_two_names_is_the_same_and_two_names_of_one_address_need_not_be() -> None:
    for theirs, same in {
        "http://127.0.0.1:8001/v1": True, "http://127.0.0.1:8002/v1": False,
        "http://127.0.0.1:8001/v2": False, "http://10.9.8.7:8001/v1": False, "http://no.such.invalid:8001/v1": False,
    }.items():  # fmt: skip
        assert counterparts._is_one_server("http://localhost:8001/v1", theirs) == same, theirs
    assert not counterparts._is_one_server("http://a.localhost/v1", "http://b.localhost/v1")


SWITCHED = {"extra_body": {"top_k": 7}, "chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize("fields", [SWITCHED, {}])
def test_further_fields_are_in_the_requests_to_both_servers(fields: dict[str, Any]) -> None:
    with FaultServer(answering(Toy(), Fault())) as mine, FaultServer(answering(Toy(), Fault())) as theirs:
        checks = ("length", "thinking switch", "weights", "greedy replies", "top_k")
        api.probe(mine.base_url, reference=theirs.base_url, checks=checks, seed=1, **fields)
        sent = [request for server in (mine, theirs) for request in server.requests if request.method == "POST"]
    assert {request.json.get("top_k") for request in sent} == ({7, 2} if fields else {None, 2})
    chats = [request.json for request in sent if request.path.endswith("/chat/completions")]
    switches = {body.get("chat_template_kwargs", {}).get("enable_thinking") for body in chats}
    # The check of the switch itself sends both values.
    assert switches == ({False, True} if fields else {None, False, True})


@pytest.mark.parametrize("option", ["--extra-body", "--chat-template-kwargs"])
@pytest.mark.parametrize("words", [("--save-reference", "kept.json"), ("--reference", "own.jinja")])
def test_further_fields_are_refused_beside_what_knows_plain_requests_alone(
    tmp_path: Path, option: str, words: tuple[str, str]
) -> None:
    (tmp_path / "own.jinja").write_text(OWN)
    with FaultServer(answering(Toy(), Fault())) as server:
        plain = ("probe", server.base_url, "--checks", "length", *words)
        refused = harness(tmp_path, *plain, option, '{"enable_thinking": false}')
        assert not [request for request in server.requests if request.method == "POST"]
        done = harness(tmp_path, *plain)
    assert refused.code == 2
    assert words[0] in refused.err
    assert option in refused.err
    assert done.code == 0


def test_the_report_says_that_the_reference_was_not_examined(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as mine, FaultServer(answering(Toy(), Fault())) as theirs:
        words = ("probe", mine.base_url, "--quiet", "--checks")
        beside = harness(tmp_path, *words, "length,greedy replies", "--reference", theirs.base_url)
        alone = harness(tmp_path, *words, "length")
    assert f"{theirs.base_url} is the reference: its sampling" in beside.out
    assert "NOT compared" not in beside.out
    assert "is the reference" not in alone.out


@pytest.mark.parametrize(
    ("checks", "why"),
    [
        ("length", "weights, draws and greedy replies are not among the checks\n"),
        ("added words", "weights, draws and greedy replies are not among the checks; compared by added words\n"),
        ("length,weights", "the budget left out weights"),
    ],
)
def test_a_reference_that_no_check_is_compared_with_is_told_as_such(checks: str, why: str, tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as mine, FaultServer(answering(Toy(), Fault())) as theirs:
        words = ("probe", mine.base_url, "--quiet", "--checks", checks, "--budget", "700")
        done = harness(tmp_path, *words, "--reference", theirs.base_url)
    assert f"NOT compared with {theirs.base_url}: {why}" in done.out
    assert "is the reference: its sampling" not in done.out


def test_one_check_that_could_be_made_is_enough_for_a_verdict(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as mine, FaultServer(refusing(Toy())) as theirs:
        words = ("probe", mine.base_url, "--reference", theirs.base_url, "--checks", "reference,length", "--quiet")
        done = harness(tmp_path, *words)
    assert done.code == 0, done.out
    assert "3 could not be tested" in done.out
    assert f"NOT compared with {theirs.base_url}: weights, draws, greedy replies could not be made" in " ".join(
        done.out.split()
    )
    assert "is the reference: its sampling" not in done.out


def test_a_wrong_path_of_an_address_is_named_by_the_argument(tmp_path: Path) -> None:
    with FaultServer(lambda _request: iter([http(404)])) as server:
        done = harness(tmp_path, "probe", server.base_url.replace("/v1", "/v2"), "--quick")
    assert "(HTTP 404); URL usually ends in /v1" in done.err


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (ColdIgnored, "of 8 greedy replies when asked again: it may sample at temperature 0"),
        (Silent, "sent no text in 8 of 8 replies"),
        (Echoes, "sent the prompt itself as the reply in 8 of 8 cases"),
    ],
)
def test_a_reference_whose_greedy_replies_show_nothing_accuses_nobody(fault: Callable[[], Fault], says: str) -> None:
    def beside(server: Fault, true: Fault, weights: str = "a") -> Finding:
        theirs = reference.ServerReference(ToyAsker(Toy(), true), "the reference")
        return examined(ToyAsker(Toy(weights, 1.0), server), reference.begun_alike(theirs))["greedy replies"]

    theirs, mine = beside(Fault(), fault()), beside(fault(), Fault())
    assert (theirs.outcome, says in theirs.came) == ("untested", True), theirs.came
    assert theirs.came.startswith("the reference the reference ")
    assert (mine.outcome, says in mine.came) == ("untested", True), mine.came
    assert mine.came.startswith("the probed server ")
    assert beside(Fault(), Fault(), "b").outcome == "spoils", "other weights, and both sides repeat themselves"


class Thinking(Fault):
    """All text of a chat comes in a field that no client reads."""

    def answer(self, asked: dict[str, Any], content: bytes) -> bytes:
        return content.replace(b'{"content": "', b'{"thinking": "').replace(b', "content": "', b', "thinking": "')


def test_a_field_that_is_not_read_is_named_and_no_check_accuses_by_texts(tmp_path: Path) -> None:
    checks = "reply text,streaming,reasoning,other seed,no cached replies"
    with FaultServer(answering(Toy(), Thinking())) as odd, FaultServer(answering(Toy(), Fault())) as plain:
        words = ("--checks", checks, "--quiet", "--json")
        reports = [json.loads(harness(tmp_path, "probe", server.base_url, *words).out) for server in (odd, plain)]
    ill, well = ({one["check"]: one for one in report[0]["findings"]} for report in reports)
    assert ill["reply text"]["outcome"] == "warns"
    assert "a field of the message that is not read: thinking" in ill["reply text"]["came"]
    assert {name for name, one in ill.items() if one["outcome"] != "untested"} == {"reply text"}
    assert "thinking" in ill["reasoning"]["came"]
    assert {one["outcome"] for name, one in well.items() if name != "reasoning"} == {"sound"}


def test_a_reference_that_is_the_probed_server_shows_nothing(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as server, FaultServer(answering(Toy(), Fault())) as other:
        words = ("probe", server.base_url.removesuffix("/v1"), "--checks", "greedy replies,length", "--quiet")
        itself = harness(tmp_path, *words, "--reference", server.base_url)
        two = harness(tmp_path, *words, "--reference", other.base_url)
    assert "the reference is the probed server itself" in itself.err
    assert f"NOT compared with {server.base_url}: weights" not in itself.out
    assert f"NOT compared with {server.base_url}: greedy replies could not be made" in " ".join(itself.out.split())
    assert "itself" not in two.out + two.err
    assert "NOT compared" not in two.out


def test_the_last_lines_say_what_was_not_compared_and_which_limits_were_not_looked_for(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Unlisted())) as mine, FaultServer(answering(Toy(), Fault())) as theirs:
        words = ("probe", mine.base_url, "--reference", theirs.base_url, "--quiet", "--checks")
        partly = harness(tmp_path, *words, "reference,long stream")
        wholly = harness(tmp_path, *words, "greedy replies")
    last = " ".join(partly.out.split())
    assert f"NOT compared with {theirs.base_url}: weights, draws (the table, or a line above, says why)" in last
    assert "compared by greedy replies" in last
    assert "hidden limits of a reply's length beyond the reply of `long stream` (at most 2,000 tokens) were not" in last
    assert "NOT compared" not in wholly.out
    assert "hidden limits" not in wholly.out


# ---- before a run


def test_a_run_is_not_begun_where_its_score_would_be_spoilt(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": "a", "problem": "1+1?", "answer": "2"}\n')
    asked = ("--data", "q.jsonl", "--question-key", "problem", "--answer-key", "answer", "--samples", "1",
             "--max-tokens", "8", "--no-canary", "--probe", "--base-url")  # fmt: skip
    toy = Toy(chance=random.Random(2))
    with FaultServer(answering(toy, SaysStop())) as spoilt, FaultServer(answering(toy, Fault())) as sound:
        ill = harness(tmp_path, "run", *asked, spoilt.base_url, "--out", "ill")
        well = harness(tmp_path, "run", *asked, sound.base_url, "--out", "well")
    assert ill.code == 4
    assert "length: a reply that was cut says finish_reason 'stop'" in ill.err
    assert not list((tmp_path / "ill").rglob("samples.jsonl"))
    assert well.code == 0, well.err
    assert list((tmp_path / "well").rglob("samples.jsonl"))


@pytest.mark.parametrize(
    ("named", "url", "model"),
    [("http://h:8000/v1#org/B", "http://h:8000/v1", "org/B"), ("http://h:8000/v1", "http://h:8000/v1", None)],
)
def test_a_reference_server_may_name_its_model(
    monkeypatch: pytest.MonkeyPatch, named: str, url: str, model: str | None
) -> None:
    asked: list[WhichServer] = []

    def server(who: WhichServer, *_: object) -> counterparts.Counterpart:
        asked.append(who)
        return counterparts.Counterpart()

    monkeypatch.setattr(counterparts, "_server", server)
    with counterpart(ProbeOptions.of(base_url="http://mine:1/v1", model="A", reference=named), Watcher()):
        pass
    (who,) = asked
    assert ([str(each) for each in who.base_url], who.model) == ([url], model)


# ---- keys of two servers

KEYS = {"OPENAI_API_KEY": "key-shared", "MINE": "key-mine", "THEIRS": "key-theirs"}


def keys_of(server: FaultServer) -> set[str]:
    """The keys in any header of any request, as the first word that begins with `key-`; "" of a request without."""
    seen = ["\n".join(request.headers.values()) for request in server.requests]
    return {text[text.index("key-") :].split()[0] if "key-" in text else "" for text in seen}


@pytest.mark.parametrize(
    ("words", "own", "theirs"),
    thinned(
        [
            (("--api-key-env", "MINE", "--reference-api-key-env", "THEIRS"), "key-mine", "key-theirs"),
            ((), "key-shared", ""),
            (("--api-key-env", "MINE"), "key-mine", ""),
            (("--api-key-file", "mine.txt"), "key-in-file", ""),
            (("--api-key-env", "UNSET", "--header", "X-Secret: key-header"), "key-header", ""),
            (("--reference-api-key-env", "THEIRS"), "key-shared", "key-theirs"),
            (("--reference-api-key-file", "mine.txt"), "key-shared", "key-in-file"),
            (("--reference-api-key-env", "OPENAI_API_KEY"), "key-shared", "key-shared"),
        ]
    ),
)
def test_a_reference_server_gets_only_the_key_that_is_named_for_it(
    tmp_path: Path, words: tuple[str, ...], own: str, theirs: str
) -> None:
    (tmp_path / "mine.txt").write_text("key-in-file\n")
    toy = Toy(chance=random.Random(2))
    with FaultServer(answering(toy, Fault())) as server, FaultServer(answering(toy, Fault())) as true:
        asked = ("probe", server.base_url, "--reference", true.base_url, "--checks", "weights", "--json", *words)
        done = harness(tmp_path, *asked, extra=KEYS)
        assert done.code == 0, done.err
        assert len(server.requests) > 90 < len(true.requests)
        assert (keys_of(server), keys_of(true)) == ({own}, {theirs})
    assert "key-" not in (done.out + done.err).replace("api-key-", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--api-key-env", "UNSET"), "--api-key-env: the environment variable UNSET is not set or empty"),
        (("--reference-api-key-env", "UNSET"), "--reference-api-key-env: the environment variable UNSET is not set"),
        (("--api-key-env", "key-typed"), "--api-key-env: the environment variable of that name is not set or empty"),
    ],
)
def test_a_named_variable_that_is_not_set_is_refused_before_a_check(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    with FaultServer(answering(Toy(), Fault())) as server, FaultServer(answering(Toy(), Fault())) as true:
        done = harness(tmp_path, "probe", server.base_url, "--reference", true.base_url, *words, extra=KEYS)
        assert not [request for request in (*server.requests, *true.requests) if request.method == "POST"]
    assert done.code == 2
    assert sentence in done.err
    assert "key-typed" not in done.err


def test_a_reference_server_that_wants_a_key_is_named_with_its_option(tmp_path: Path) -> None:
    def closed(request: Request) -> Iterable[Step]:
        return [http(401, {"error": {"message": "who are you?"}})]

    with FaultServer(answering(Toy(), Fault())) as server, FaultServer(closed) as true:
        done = harness(tmp_path, "probe", server.base_url, "--reference", true.base_url, extra=KEYS)
        assert done.code == 2
        assert f"{true.base_url} answers HTTP 401" in done.err
        assert "name the variable that holds it, such as --reference-api-key-env OPENAI_API_KEY" in done.err
        alone = harness(tmp_path, "probe", server.base_url, "--reference-api-key-env", "THEIRS", extra=KEYS)
    assert alone.code == 2
    assert (
        "--reference-api-key-env: it is the key of a reference server; name that server with --reference" in alone.err
    )


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    thinned(
        [
            (",key=MINE", ",key=THEIRS", ("key-mine", "key-theirs")),
            ("", "", ("", "")),
            (",key=MINE", "", ("key-mine", "")),
            ("", ",key=THEIRS", ("", "key-theirs")),
            (",key=OPENAI_API_KEY", "", ("key-shared", "")),
        ]
    ),
)
def test_each_server_of_a_matrix_gets_only_the_key_that_is_named_with_it(
    tmp_path: Path, first: str, second: str, keys: tuple[str, str]
) -> None:
    toy = Toy(chance=random.Random(2))
    with FaultServer(answering(toy, Fault())) as one, FaultServer(answering(toy, Fault())) as two:
        urls = (one.base_url + first, two.base_url + second)
        words = ("--checks", "errors", "--history", "days.jsonl", "--json", "--quiet")
        done = harness(tmp_path, "probe", "--matrix", *urls, *words, extra=KEYS)
        assert done.code == 0, done.err
        assert (keys_of(one), keys_of(two)) == ({keys[0]}, {keys[1]})
    stored = (tmp_path / "days.jsonl").read_text()
    assert not any(key in done.out + done.err + stored for key in KEYS.values())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--api-key-env", "MINE"),
            "--api-key-env: it would go to all 2 servers; after the URL of each server, write the environment",
        ),
        (("--api-key-file", "mine.txt"), "--api-key-file: it would go to all 2 servers"),
        (("--header", "X-Secret: key-header"), "--header: it would go to all 2 servers"),
    ],
)
def test_a_key_of_no_server_of_a_matrix_is_refused(tmp_path: Path, words: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "mine.txt").write_text("key-in-file\n")
    with FaultServer(answering(Toy(), Fault())) as one, FaultServer(answering(Toy(), Fault())) as two:
        done = harness(tmp_path, "probe", "--matrix", one.base_url, two.base_url, *words, extra=KEYS)
        assert not one.requests + two.requests
    assert done.code == 2
    assert sentence in done.err
    assert "key-" not in (done.out + done.err).replace("api-key-", "")


def test_one_server_may_have_its_key_in_either_place_and_not_in_both(tmp_path: Path) -> None:
    with FaultServer(answering(Toy(), Fault())) as server:
        for url, words in ((f"{server.base_url},key=MINE", ()), (server.base_url, ("--api-key-env", "MINE"))):
            assert harness(tmp_path, "probe", url, *words, "--checks", "errors", extra=KEYS).code == 0
        assert keys_of(server) == {"key-mine"}
        both = harness(tmp_path, "probe", f"{server.base_url},key=MINE", "--api-key-env", "MINE", extra=KEYS)
        typed = harness(tmp_path, "probe", f"{server.base_url},key=sk-typed-here", extra=KEYS)
    assert (both.code, typed.code) == (2, 2)
    assert "leave one out" in both.err
    assert "expected the name of an environment variable" in typed.err
    assert "sk-typed" not in typed.err
