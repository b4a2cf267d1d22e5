"""What a server rejects is no fault of its replies, and empty replies are named by one check.

For: harness.verbs.probe.acceptance, harness.verbs.probe.whole_replies.
"""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import Any

import pytest

import harness as product
from harness.cli.help import spell
from harness.client.address.providers import rejected_fields
from harness.client.asker import Asker
from harness.client.spelling import Spelling
from harness.core.errors import option
from harness.verbs.probe import probe, reference
from harness.verbs.probe.acceptance import Attempt, FieldRejected
from harness.verbs.probe.asking import Choice, Inquiry, Token, _Message, _ReplyLogprobs
from harness.verbs.probe.findings import Finding, Seen, by_keywords, findings_of
from tests.faults.server import FaultServer
from tests.system.command import harness
from tests.verbs.toy_faults import Empties, Rejects
from tests.verbs.toy_model import Body, Fault, Toy, ToyAsker, answering

SPOILS_OR_WARNS = ("spoils", "warns")


def asker(fault: Fault, **extra_body: Any) -> ToyAsker:
    toy = Toy(weights="3", spread=1.0, chance=random.Random(5))
    return ToyAsker(toy, fault, Asker(model="toy", spelling=Spelling(extra_body=extra_body)))


def findings(server: ToyAsker, *checks: str) -> dict[str, Finding]:
    true = reference.against(reference.ServerReference(ToyAsker(Toy(weights="3", spread=1.0)), "the reference"))
    selected = probe.select(checks, checks=(*probe.CHECKS, *true))
    return {finding.check: finding for finding in probe.examine(server, selected, seed=11).findings}


SPARE = ("top_k", "min_p", "repeat_penalty", "seed", "top_p")
"""The fields that requests to llama.cpp may lack: no check but those of the field itself is about them."""


@pytest.mark.parametrize("check", ["reply text", "streaming", "load", "weights"])
def test_a_users_field_that_the_server_rejects_ends_the_probe_at_the_first_reply(check: str) -> None:
    server = asker(Rejects("top_k", "min_p"), top_k=-1, min_p=0)
    with pytest.raises(FieldRejected, match=r"the server rejects top_k: leave it out .*Unrecognized request argument"):
        findings(server, check)
    assert server.n_requests <= 64  # `load` sends its crowd at once; every other check sends one request


NEUTRAL = ("top_k", "min_p", "repeat_penalty", "seed", "top_p")
"""The spare fields of a request to llama.cpp."""


class RejectsInChat(Rejects):
    """A gateway that takes raw text as it comes. lenient: it takes wrong values, and puts right ones in their place."""

    def __init__(self, *names: str, lenient: bool = False) -> None:
        super().__init__(*names)
        self.lenient = lenient

    def request(self, body: Body) -> Body:
        right = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 4, "tool_choice": "auto"}
        return {**body, **{name: right[name] for name in right.keys() & body.keys()}} if self.lenient else body

    def rejects(self, body: Body) -> str | None:
        return super().rejects(body) if "messages" in body else None


def test_spare_fields_that_either_server_rejects_are_left_out_and_named() -> None:
    checks = ("later draws", "added words", "streaming", "refused parameters")
    either = [names for n in (1, 2) for names in itertools.combinations(SPARE[:3], n)] + [SPARE]
    cases = [("greedy replies", names, ()) for names in either] + [(check, SPARE, ()) for check in checks]
    cases += [("greedy replies", (), names) for names in either] + [("greedy replies", SPARE[:2], SPARE[1:])]
    llama = Asker(model="toy", engine="llama.cpp")
    plain = Inquiry("a", {"seed": 1, "top_p": 1.0}).body(llama)
    for check, ours, theirs in cases:
        server, beside = (
            ToyAsker(Toy(chance=random.Random(5)), RejectsInChat(*names), llama) for names in (ours, theirs)
        )
        true = reference.against(reference.ServerReference(beside, "the reference"))
        report = probe.examine(server, probe.select([check], checks=(*probe.CHECKS, *true)), seed=11, beside=beside)
        (finding,) = report.findings
        assert finding.outcome == "sound", (ours, theirs, finding)
        for asked, names, rejected in ((server, ours, report.rejected), (beside, theirs, report.reference_rejected)):
            # A field that no request of the check has is not known to be rejected.
            assert {*rejected} <= {*names}
            assert not {*rejected} & Attempt(asked.acceptance, plain).body.keys()
            if check == "greedy replies":
                assert {*rejected} == {*names} - {"seed", "top_p"}


def test_a_spare_field_that_is_refused_is_no_refusal_of_what_the_check_sends_beside_it() -> None:
    llama = Asker(model="toy", engine="llama.cpp")
    for lenient, outcome in ((False, "sound"), (True, "warns")):
        server = ToyAsker(Toy(), RejectsInChat(*SPARE, lenient=lenient), llama)
        seen = findings(server, "refused parameters")["refused parameters"]
        assert (seen.outcome, "accepted: max_tokens -5" in seen.came) == (outcome, lenient), seen.came


def test_the_user_may_drop_a_field_that_a_refusal_does_not_name(tmp_path: Path) -> None:
    class SaysNothing(Fault):
        """Refuses two fields as it refuses a wrong temperature, without a word on the cause."""

        def request(self, body: Body) -> Body:
            return {**body, "temperature": 9.0} if {"top_p", "stream_options"} & body.keys() else body

        def refusal(self, content: bytes) -> bytes:
            return b'{"error": {"message": "Bad Request"}}'

    with FaultServer(answering(Toy(chance=random.Random(5)), SaysNothing())) as server:
        for drop, outcome in (((), "untested"), (("top_p", "stream_options"), "sound")):
            report = product.probe(server.base_url, checks=["later draws", "streaming"], drop=drop, seed=11)
            assert [finding.outcome for finding in report.findings] == [outcome] * 2
        named = harness(tmp_path, "probe", server.base_url, "--checks", "streaming", "--drop", "temperature")
    assert named.code == 2
    assert "expected one of top_k, min_p, repetition_penalty, top_p, stream_options: a probe sends" in named.err


def test_a_field_that_a_check_sends_ends_no_probe_once_the_users_fields_were_answered() -> None:
    class OnlyWithCuts(Rejects):
        """Rejects the user's min_p beside a top_k."""

        def rejects(self, body: Body) -> str | None:
            return "min_p" if "top_k" in body else None

    seen = findings(asker(OnlyWithCuts(), min_p=0), "reply text", "top_k")
    assert (seen["reply text"].outcome, seen["top_k"].outcome) == ("sound", "untested")
    assert "refused: HTTP 400" in seen["top_k"].came


def test_refused_streams_accuse_nobody_and_broken_ones_do() -> None:
    seen = findings(asker(Rejects("stream_options")), "streaming", "load", "prefix cache", "finished streams")
    assert {finding.outcome for finding in seen.values()} == {"untested"}, seen
    assert "the server refused" in seen["streaming"].came


def test_a_server_that_rejects_seeds_is_compared_without_them() -> None:
    server = asker(Rejects("seed"))
    seen = findings(server, "weights", "draws", "temperature 1", "top_k", "same seed", "other seed", "later draws")
    for check in ("weights", "draws", "temperature 1", "top_k", "later draws"):
        assert seen[check].outcome == "sound", seen[check].came
    for check in ("same seed", "other seed"):
        assert seen[check].outcome == "untested"
        assert "the server rejects seed, so no request has one" in seen[check].came
    # Another refusal is no matter of the seed.
    assert asker(Rejects("top_k")).acceptance.no_seed == ""
    other = asker(Rejects("logit_bias"))
    findings(other, "temperature 1", "same seed")
    assert other.acceptance.no_seed == ""


def test_no_sentence_of_a_finding_holds_the_marks_of_an_option(tmp_path: Path) -> None:
    values = (None, 1, "a b", ["top_k", "min_p"], {"a": True})
    sentences = [f"a {option(name, value)} b {option(name)}" for name in ("seed", "run.drop", "x") for value in values]
    checks = [check for check in probe.CHECKS for _ in sentences]
    seen = [Seen(outcome="spoils", sent=s, came=s, p=1.0, hidden=s) for _ in probe.CHECKS for s in sentences]
    for shown in (by_keywords, spell):
        for finding in findings_of(checks, seen, shown):
            texts = (finding.sent, finding.came, finding.why, finding.mend)
            assert not [text for text in texts if re.search(r"[\x0e\x0f\x1f]", text)]
    with FaultServer(answering(Toy(), Rejects("seed"))) as server:
        done = harness(tmp_path, "probe", server.base_url, "--checks", "same seed", "--json")
        report = product.probe(server.base_url, checks=["same seed"])
    assert "so no request has one; a run of it needs --seed none" in done.out
    assert report.findings[0].came.endswith("a run of it needs seed=None")


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_empty_replies_are_counted_by_one_check_and_mislead_no_other(share: float) -> None:
    seen = findings(asker(Empties(share)), "protocol", "sampling", "load")
    accused = {check: finding.came for check, finding in seen.items() if finding.outcome == "spoils"}
    assert accused.keys() == {"empty replies"}, accused
    assert "came empty with finish_reason stop" in accused["empty replies"]


def test_an_empty_reply_at_any_place_of_a_check_ends_no_probe_and_accuses_no_load() -> None:
    class Nth(Empties):
        """Sends the n-th chat reply empty, and the 41st after it."""

        def __init__(self, n: int) -> None:
            super().__init__(0.0)
            self.n = n

        def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
            self.n -= 1
            self.share = 1.0 if self.n in (0, -41) else 0.0
            return super().whole(asked, answer)

    for n in (1, 2, 13, 99):
        seen = findings(asker(Nth(n)), "later draws at 0.5")["later draws at 0.5"]
        assert seen.outcome == ("sound" if n == 99 else "untested"), seen.came
    # The first eight requests of `load` come one by one.
    for n, outcome in ((4, "untested"), (12, "spoils"), (99, "sound")):
        seen = findings(asker(Nth(n)), "load")["load"]
        assert seen.outcome == outcome, seen.came


def test_a_prompt_that_only_empty_replies_answer_is_the_models_own_silence() -> None:
    class Speechless(Empties):
        """Has nothing to say to one prompt, ever."""

        def whole(self, asked: Body, answer: dict[str, Any]) -> dict[str, Any]:
            self.share = 1.0 if "virus" in str(asked["messages"]) else 0.0
            return super().whole(asked, answer)

    seen = findings(asker(Speechless(1.0)), "empty replies")["empty replies"]
    assert (seen.outcome, seen.came) == ("sound", "none was empty to a prompt that has a text at other times")


def test_a_token_without_text_is_no_difference_between_equal_replies() -> None:
    tokens = [Token(" so"), Token("</think>"), Token(" 42")]
    ours = Choice("stop", message=_Message(content=" 42", reasoning=" so"), logprobs=_ReplyLogprobs(content=tokens))
    assert reference._agreeing(ours, " so 42") == (3, 3)
    assert reference._agreeing(ours, " so 43") == (1, 3)


def test_a_message_names_a_users_field_only_as_a_field() -> None:
    said = "HTTP 400: Unrecognized request argument supplied: user"
    assert rejected_fields(said, ["user", "top_k"]) == ["user"]
    assert rejected_fields("HTTP 400: invalid: the last message must be of a user", ["user"]) == []
    assert rejected_fields("HTTP 429: top_k is not supported", ["top_k"]) == []
