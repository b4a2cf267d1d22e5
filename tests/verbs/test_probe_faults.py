"""Each fault of `toy_faults` is found by its checks and named by one; odd but sound servers are not accused.

For: harness.verbs.probe.bare, harness.verbs.probe.tools, harness.verbs.probe.effect,
harness.verbs.probe.ends, harness.verbs.probe.later, harness.verbs.probe.mixture.
"""

from __future__ import annotations

import math
import random
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from harness.cli.probe import _verdict_line
from harness.client.protocol.reply import Reply
from harness.core.errors import UsageError
from harness.core.records import Timing, Usage
from harness.verbs.probe import bare, ends, exact, later, league, load, mixture, probe, reference, tools, worth
from harness.verbs.probe.asking import CHAT, Choice, ProbeReply, Refused, Token, _Likely, _ReplyLogprobs
from harness.verbs.probe.effect import Shift, effect
from harness.verbs.probe.ends import Ended
from harness.verbs.probe.findings import Finding, ProbeReport
from harness.verbs.probe.page import standing_table
from harness.verbs.probe.sampling import CUTS
from harness.verbs.probe.subject import Subject, listed
from tests.budget import examples
from tests.verbs import toy_model
from tests.verbs.toy_faults import (
    FAULTS,
    MISLEADING,
    SOUND,
    ColdIgnored,
    DeafToTheTail,
    Drops,
    Ends,
    Silent,
    Undercounts,
    Unfinished,
    Unlisted,
)
from tests.verbs.toy_model import Body, Fault, Toy, ToyAsker


def findings(
    fault: Fault, checks: tuple[str, ...], noise: float = 0.003, weights: int = 3, seed: int = 11
) -> dict[str, Finding]:
    toy = Toy(weights=str(weights), spread=1.0, noise=noise, chance=random.Random(5))
    true = reference.against(reference.ServerReference(ToyAsker(replace(toy)), "the reference"))
    selected = probe.select(checks, checks=(*probe.CHECKS, *true))
    report = probe.examine(ToyAsker(toy, fault), selected, seed=seed)
    return {finding.check: finding for finding in report.findings}


def assert_named(fault: Fault, report: dict[str, Finding]) -> None:
    odd = {check: finding.came for check, finding in report.items() if finding.outcome in ("spoils", "warns")}
    assert set(fault.finds) <= odd.keys(), {check: report[check].came for check in fault.finds}
    assert any(fault.says in came for came in odd.values()), odd


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(name: str) -> None:
    fault = FAULTS[name]()
    assert_named(fault, findings(fault, fault.finds))


def test_a_word_whose_effect_drowns_in_noise_is_not_called_lost() -> None:
    class Counted(Fault):
        n_long = 0

        def request(self, body: Body) -> Body:
            self.n_long += "A code word is" in str(body)
            return body

    noisy, still = Counted(), Counted()
    seen = findings(noisy, ("context",), noise=0.5)["context"]
    assert (seen.outcome, "repeats of one request differ" in seen.came) == ("untested", True), seen.came
    # No word shows an effect at first here, so these are the most prompts; docs/probe.md (Cost) states their number.
    assert f"else up to {noisy.n_long}: " in Path("docs/probe.md").read_text()
    assert findings(still, ("context",))["context"].outcome == "sound"
    assert still.n_long < noisy.n_long


def test_a_stream_is_not_compared_with_whole_replies_that_never_come_twice() -> None:
    noisy = findings(Fault(), ("streaming",), noise=0.5)["streaming"]
    assert (noisy.outcome, "all differ" in noisy.came) == ("untested", True), noisy.came
    still = findings(toy_model.FAULTS["an event of the stream dropped"](), ("streaming",), noise=0.02)["streaming"]
    assert still.outcome == "spoils", still.came


def test_a_token_that_is_listed_because_it_was_drawn_does_not_count_as_likely() -> None:
    # Half of the mass lies beyond the three likeliest of 60 tokens; a drawn one is listed instead of the third.
    likely = {"a": math.log(0.3), "b": math.log(0.15), "c": math.log(0.05)}
    tail = {f"t{i}": math.log(0.5 / 57) for i in range(57)}
    every = {**likely, **tail}
    rng = random.Random(4)
    drawn = rng.choices([*every], [math.exp(value) for value in every.values()], k=400)
    tops = [likely if token in likely else {token: every[token], "a": likely["a"], "b": likely["b"]} for token in drawn]

    def standard_errors(tops: Sequence[Mapping[str, float]]) -> float:
        return later.too_odd([later.rank(token, top, rng.random()) for token, top in zip(drawn, tops, strict=True)])[0]

    assert later.undrawn(tops) == [{"a": likely["a"], "b": likely["b"]}] * 400
    assert abs(standard_errors(later.undrawn(tops))) < 2.5
    assert standard_errors(tops) < -4, "as it was taken for a likely token"


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("stop texts ignored", 22),  # the greedy story is full stops alone
        ("an event of the stream dropped", 22),
        ("prefix cache by first words", 53),  # the batch changes copies
        ("prefix cache by last words", 13),
        ("another model at one place of ten", 8),  # six odd places in a few passages, two other likeliest tokens
        ("a decode kernel off by 0.3", 22),  # 0.014 nats a token
    ],
)
def test_a_fault_is_named_behind_a_model_that_nearly_hides_it(name: str, weights: int) -> None:
    fault = {**toy_model.FAULTS, **FAULTS}[name]()
    report = findings(fault, fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert_named(fault, report)
    honest = findings(Fault(), fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert {check: finding.outcome for check, finding in honest.items()} == dict.fromkeys(fault.finds, "sound")


@pytest.mark.parametrize("name", SOUND)
def test_an_odd_but_sound_server_is_not_accused(name: str) -> None:
    checks = (
        "protocol",
        "messages",
        "added words",
        "streamed calls",
        "tool choice",
        "later draws",
        "later draws at 0.5",
        "one model",
        "writing and reading",
        "context",
        "opening",
        "refused parameters",
        "pictures",
    )
    report = findings(SOUND[name](), checks, noise=0.02)
    assert {check: finding.came for check, finding in report.items() if finding.outcome == "spoils"} == {}


# ---- findings that rest on another fault


MISLED = ("protocol", "temperature 0", "same seed", "other seed", "no cached replies", "load", "greedy replies")


@pytest.mark.parametrize("name", MISLEADING)
def test_a_fault_that_misleads_other_checks_is_named_and_no_other_is(name: str) -> None:
    fault = MISLEADING[name]()
    report = findings(fault, MISLED)
    assert_named(fault, report)
    accused = {check: item.came for check, item in report.items() if item.outcome in ("spoils", "warns")}
    assert accused.keys() == set(fault.finds), accused


def test_checks_that_need_true_counts_say_that_the_counts_are_false() -> None:
    report = findings(Undercounts(0.7, ""), ("usage", "ends", "long stream"))
    for check in ("ends", "long stream"):
        assert report[check].outcome == "untested"
        assert f"no evidence of a cut (`usage`: {report['usage'].came})" in report[check].came


def test_no_check_reads_texts_that_did_not_come() -> None:
    report = findings(Silent(), MISLED)
    assert {check for check, item in report.items() if item.outcome in ("spoils", "warns")} == set()
    for check in ("temperature 0", "same seed", "other seed", "no cached replies", "load", "prefix cache", "streaming"):
        if check in report:
            assert (report[check].outcome, "no text came in" in report[check].came) == ("untested", True), check
    assert report["reply text"].outcome == "untested"


def test_a_single_unfinished_stream_is_a_warning_and_one_under_load_is_a_finding_of_load() -> None:
    (of_checks,) = probe.examine(ToyAsker(Toy(), Unfinished(8)), probe.select(["finished streams"]), seed=1).findings
    assert (of_checks.outcome, of_checks.came) == ("warns", "1 of 8 streams ended without a finish reason")
    (of_checks,) = probe.examine(ToyAsker(Toy(), Unfinished(4)), probe.select(["finished streams"]), seed=1).findings
    assert of_checks.outcome == "spoils"
    (of_checks,) = probe.examine(ToyAsker(Toy(), Unfinished(40)), probe.select(["load"])[:1], seed=1).findings
    assert (of_checks.outcome, "1 failed" in of_checks.came) == ("warns", True), of_checks.came


def test_a_cut_is_accused_without_log_probabilities_if_short_replies_have_true_counts() -> None:
    class Capped(Ends):
        def request(self, body: Body) -> Body:
            return super().request(Unlisted().request(body))

    of_checks = findings(Capped("long stream", cap=512, reason="length"), ("usage", "long stream"))
    assert [of_checks[check].outcome for check in ("usage", "long stream")] == ["sound", "spoils"]
    # The texts alone refute a false `stop`, whatever the counts are.
    of_checks = findings(Capped("ends", share=0.5), ("usage", "ends"))
    assert (of_checks["ends"].outcome, "goes on from there" in of_checks["ends"].came) == ("spoils", True), of_checks[
        "ends"
    ].came


@dataclass
class Refusing(ToyAsker):
    """Refuses requests with this field."""

    field: str = ""

    def whole(self, fields: Mapping[str, Any], path: str = CHAT) -> ProbeReply:
        if self.field in fields:
            raise Refused(400, f"{self.field} is not supported")
        return super().whole(fields, path)


def test_a_cut_is_called_refused_only_if_the_request_without_it_is_accepted() -> None:
    def later_cuts(field: str) -> Finding:
        asker = Refusing(Toy(), field=field)
        return probe.examine(asker, probe.select(["later cuts"]), seed=1).findings[0]

    hidden, cut = later_cuts("logprobs"), later_cuts("top_k")
    assert (hidden.outcome, "refused without a cut, too: HTTP 400: logprobs" in hidden.came) == ("untested", True)
    assert "top_k" not in hidden.came
    assert "top_k is refused (top_k is not supported)" in cut.came
    assert "top_p is obeyed" in cut.came


def test_a_name_of_no_check_is_answered_by_near_names_or_by_all() -> None:
    with pytest.raises(UsageError, match=r"no such check\. Did you mean weights\?"):
        probe.select(["wieghts"])
    with pytest.raises(UsageError, match=r"The groups are protocol, .* the checks are reply text, "):
        probe.select(["xyzzy"])


# ---- ends


def ended(limit: int, text: str, reason: str = "length", n: int | None = None) -> Ended:
    return Ended(limit, text, reason, len(text.split()) if n is None else n)


def test_an_end_that_a_longer_reply_walks_past_is_a_lie() -> None:
    lie = ends.unnatural([ended(4, "a b", "stop"), ended(8, "a b c d", "stop")])
    assert lie is not None
    assert "goes on from there" in lie
    # The same text at both limits is a natural end; another text is a batch's doing.
    assert ends.unnatural([ended(4, "a b", "stop"), ended(8, "a b", "stop")]) is None
    assert ends.unnatural([ended(4, "a b", "stop"), ended(8, "a x c d", "stop")]) is None
    # Half a character at the end of a cut reply is no other text.
    assert ends.unnatural([ended(4, "a b\ufffd", "stop"), ended(8, "a b c d", "length", 8)]) is not None


def test_a_count_beside_the_limit_is_told() -> None:
    assert "tokens came where" in str(ends.unnatural([ended(4, "a b c d e f")]))
    assert "length after 2" in str(ends.unnatural([ended(4, "a b")]))
    assert ends.unnatural([ended(4, "a b c d")]) is None


def test_only_equal_counts_of_three_replies_are_a_cap() -> None:
    def three(*counts: int, reason: str = "stop") -> list[Ended]:
        return [ended(900, "x", reason, n) for n in counts]

    assert ends.cap(three(256, 256, 256)) == 256
    assert ends.cap(three(256, 255, 256)) == 256
    assert ends.cap(three(256, 256, 231)) is None
    assert ends.cap(three(256, 256)) is None
    assert ends.cap(three(256, reason="length")) == 256
    assert ends.cap(three(900, 900, 900, reason="length")) is None
    # One reply may end by itself below a cap that three others show.
    assert ends.cap(three(256, 192, 256, 256)) == 256
    assert ends.cap(three(256, 256, 256, 300)) is None


class EndsEarly(Ends):
    """Cuts replies, and ends the replies to some prompts after another number of tokens. ends: beginning of a prompt →
    tokens.
    """

    def __init__(self, cap: int, **ends: int) -> None:
        super().__init__(cap=cap)
        self.ends = ends

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        first = body["messages"][0]["content"].split()[0] if "messages" in body else ""
        return {**super().request(body), **({"max_tokens": self.ends[first]} if first in self.ends else {})}

    def whole(self, asked: Any, answer: dict[str, Any]) -> dict[str, Any]:
        for choice in answer["choices"]:
            if self.request(asked)["max_tokens"] < asked["max_tokens"]:
                choice["finish_reason"] = "stop"
        return answer


@pytest.mark.parametrize(("natural", "fault", "outcome"), [
    (200, EndsEarly(40), "untested"), (200, EndsEarly(70), "untested"), (40, Fault(), "untested"),
    (200, Fault(), "sound"),
])  # fmt: skip
def test_a_reply_that_ends_below_the_largest_limit_shows_no_cap_and_no_soundness(
    monkeypatch: pytest.MonkeyPatch, natural: int, fault: Fault, outcome: str
) -> None:
    """A cap at 40 tokens and a story that ends there look alike; the story that reaches its limit is not capped."""
    monkeypatch.setattr(toy_model, "NATURAL", natural)
    (of_checks,) = probe.examine(ToyAsker(Toy(), fault), probe.select(["ends"]), seed=1).findings
    assert of_checks.outcome == outcome, of_checks.came
    assert ("a hidden limit of the server, which `long stream` tells apart" in of_checks.came) == (
        outcome == "untested"
    )


def test_usage_is_untested_without_log_probabilities_where_the_reply_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toy_model, "NATURAL", 10)
    for fault, outcome in (
        (Unlisted(), "untested"), (Fault(), "sound"), (Undercounts(0.5, ""), "warns"),
        (Undercounts(3, "", listed=False), "warns"), (Undercounts(0.5, "", listed=False), "untested"),
    ):  # fmt: skip
        (usage,) = probe.examine(ToyAsker(Toy(), fault), probe.select(["usage"]), seed=1).findings
        assert usage.outcome == outcome, usage.came


def long_stream(fault: Fault, budget: int | None = None) -> Finding:
    checks = probe.select(["long stream"])
    return probe.examine(ToyAsker(Toy(), fault), checks, seed=1, budget=budget).findings[0]


def test_two_equal_lengths_are_a_possible_cap_and_further_prompts_decide() -> None:
    # One reply of the first three is short; the replies to the further prompts are cut, too.
    of_checks = long_stream(EndsEarly(300, List=192))
    assert (of_checks.outcome, "3 different replies of 4 end there and say stop" in of_checks.came) == (
        "spoils",
        True,
    ), of_checks.came
    assert long_stream(Ends(cap=300, reason="length")).came.endswith("the reply ends there and says length")
    # The replies to the further prompts are short, too: nothing decides.
    unsure = long_stream(EndsEarly(300, List=192, For=150, Starting=170))
    assert unsure.outcome == "untested"
    assert "2 of 5 replies end after exactly 300 tokens, none is longer (300, 192, 300, 150, 170)" in unsure.came
    # A longer reply shows that two equal lengths were chance; so do three different ones.
    longer = long_stream(EndsEarly(10**9, Write=300, List=192, Multiply=300))
    assert (longer.outcome, longer.came) == ("sound", "finish_reason length after 2,000 tokens")
    assert "end by themselves" in long_stream(EndsEarly(300, List=192, Multiply=180)).came


def test_a_possible_cap_is_named_where_the_budget_pays_for_no_further_prompt() -> None:
    unsure = long_stream(EndsEarly(900, List=192), budget=2_300)
    assert unsure.outcome == "untested"
    assert "2 of 3 replies end after exactly 900 tokens" in unsure.came
    assert "possibly a cap" in unsure.came
    assert "A longer reply of a run (max_tokens above 900) rules it out" in unsure.came


def test_a_server_that_draws_at_temperature_0_is_not_accused_of_another_kernel() -> None:
    for fault in (toy_model.Hot(), Fault()):
        (of_checks,) = probe.examine(ToyAsker(Toy(), fault), probe.select(["writing and reading"]), seed=1).findings
        assert of_checks.outcome == ("untested" if isinstance(fault, toy_model.Hot) else "sound"), of_checks.came
        assert ("draws at temperature 0" in of_checks.came) == isinstance(fault, toy_model.Hot)


# ---- a crowd


def reply(text: str, reason: str = "length") -> Reply:
    timing = Timing(started=0.0, first_token=0.1, last_token=0.2, total=0.2)
    return Reply(text=text, reasoning=None, finish_reason=reason, usage=Usage(), timing=timing)


def test_one_reply_of_another_prompt_is_seen_in_a_crowd() -> None:
    alone = [reply("The keeper lit the lamp"), reply("Two odd numbers add up"), reply("The keeper lit the candle")]
    result = load.crowd(alone, [(0, alone[0]), (0, alone[1]), (1, reply("")), (1, reply("Two odd", "stop"))])
    assert (result.same, result.swapped, result.empty, result.cut) == (1, 1, 1, 1)
    # Replies that begin alike part in a batch now and then: that one's text is another prompt's proves nothing.
    assert load.crowd(alone, [(0, alone[2])]).swapped == 0
    assert load.crowd(alone, [(1, reply("Odd numbers are two"))]).strange == 1


# ---- effects and lists


def noisy(top: dict[str, float], rng: random.Random, sd: float) -> dict[str, float]:
    return {token: value + rng.gauss(0, sd) for token, value in top.items()}


def test_an_effect_is_told_from_the_noise_of_repeats() -> None:
    rng = random.Random(2)
    top = {str(i): -0.3 * i - 1 for i in range(20)}
    moved = {token: value + rng.gauss(0, 0.3) for token, value in top.items()}
    assert effect([top, top], [top]) == 0
    assert effect([top, top], [moved]) == math.inf
    none = [effect([noisy(top, rng, 0.02) for _ in range(2)], [noisy(top, rng, 0.02)]) for _ in range(200)]
    some = [effect([noisy(top, rng, 0.02) for _ in range(2)], [noisy(moved, rng, 0.02)]) for _ in range(200)]
    assert max(none) < 8 < min(some)


def test_a_missing_effect_counts_only_where_one_as_large_as_elsewhere_would_show() -> None:
    nothing, some = Shift(0.01, 0.01, 0.01), Shift(0.05, 0.01, 0.01)
    assert nothing.hides_none([Shift(1.0, 0.01, 0.01)])
    assert not nothing.hides_none([]), "nothing was seen elsewhere"
    assert not nothing.hides_none([Shift(0.02, 0.01, 0.01)]), "nothing was seen elsewhere, either"
    assert not nothing.hides_none([some]), "an effect somewhat smaller than elsewhere would not show"
    assert not Shift(0.02, 0.01, 0.01).hides_none([Shift(1.0, 0.01, 0.01)]), "an F ratio of 4 is undecided"
    assert Shift(0.0, 0.0, 0.0).hides_none([]), "without noise every effect would show"


def test_a_tail_without_an_effect_is_lost_where_noise_is_small_and_untested_where_it_is_large() -> None:
    small = findings(DeafToTheTail(0.003), ("context",))["context"]
    assert (small.outcome, "its tail never reached" in small.came) == ("spoils", True), small.came
    large = findings(DeafToTheTail(), ("context",))["context"]
    assert (large.outcome, "words at its tail" in large.came) == ("untested", True), large.came


def test_log_probabilities_at_a_floor_are_left_out() -> None:
    assert listed({"a": -0.5, "b": -2.0, "c": -5.0, "d": -5.0, "e": -5.0}) == {"a": -0.5, "b": -2.0}
    assert len(listed({"a": -0.5, "b": -2.0, "c": -2.0})) == 3
    assert listed({}) == {}


def test_two_models_are_two_groups_and_noise_is_one() -> None:
    rng = random.Random(3)
    a = {str(i): math.log(p) for i, p in enumerate((0.5, 0.2, 0.1, 0.05))}
    b = {str(i): math.log(p) for i, p in enumerate((0.2, 0.5, 0.1, 0.05))}
    assert mixture.models([noisy(a, rng, 0.02) for _ in range(20)]) == [20]
    assert mixture.models([noisy(a if i % 5 else b, rng, 0.02) for i in range(20)]) == [16, 4]


# ---- after the first token


def test_ranks_of_drawn_tokens_are_uniform_whatever_the_floor() -> None:
    rng = random.Random(4)
    ps = [0.4, 0.2, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.006, 0.004]
    true = {str(i): math.log(p) for i, p in enumerate(ps)}
    stated = {name: max(value, math.log(0.01)) for name, value in list(true.items())[:9]} | {"9": math.log(0.01)}
    stated |= {"10": math.log(0.01)}
    for temperature, odd in ((1.0, False), (0.6, True), (1.6, True)):
        weights = [p ** (1 / temperature) for p in ps]
        tokens = rng.choices(list(true), weights, k=300)
        _, p = later.too_odd([later.rank(token, stated, rng.random()) for token in tokens])
        assert (p < 1e-4) == odd
    cold = rng.choices(list(true), [p**2 for p in ps], k=300)
    ranks = [later.rank_among(token, true, rng.random(), 0.5) for token in cold]
    assert later.too_odd([u for u in ranks if u is not None])[1] > 1e-3


def test_later_draws_are_sound_only_where_they_could_show_another_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers draw hot behind llama.cpp's cuts, or as asked; few words decide nothing, however they are drawn."""
    for constant in ("SIMULATED", "SIMULATED_AGAIN"):
        monkeypatch.setattr(exact, constant, 199)
    rng = np.random.default_rng(5)
    places = [np.sort(toy_model._logits(str(i), 1.0, "", i))[::-1] for i in range(60)]
    places = [values - math.log(np.exp(values).sum()) for values in places]
    tops = [[_Likely(str(k), float(value)) for k, value in enumerate(values[:20])] for values in places]

    def outcome(temperature: float, min_p: float, top_k: int, n: int = later.REPLIES) -> str:
        def sampled(_subject: Subject, _n: int, **_fields: object) -> list[Choice]:
            tokens = []
            for i in rng.integers(0, len(places), n * 24):
                kept = places[i][:top_k][places[i][:top_k] >= places[i][0] + math.log(min_p)]
                k = min(int(exact._softmax(kept / temperature).cumsum().searchsorted(rng.random())), len(kept) - 1)
                tokens.append(Token(str(k), float(kept[k]), tops[i]))
            return [Choice(logprobs=_ReplyLogprobs(content=tokens))]

        monkeypatch.setattr(later, "_sampled", sampled)
        seen = later._later_draws(1.0)(Subject(ToyAsker(Toy()), int(rng.integers(99))))
        return "untested" if seen.hidden else "sound"

    n = examples(40)
    assert "sound" not in {outcome(1.6, 0.05, 40) for _ in range(n)}
    assert sum(outcome(1.0, 1e-9, 99) == "sound" for _ in range(n)) >= 0.9 * n
    assert {outcome(hot, 0.05, 40, n=3) for hot in (1.0, 1.6)} == {"untested"}, "too few draws"
    # Of these two tokens, one is nearly certain: no number of such places shows a temperature.
    assert exact.rounds_needed([{"a": -0.01}] * 900, 1.0, factor=1.5, level=0.01, power=0.8) == math.inf


def test_the_first_token_shows_of_which_temperature_log_probabilities_are() -> None:
    warm = {str(i): -0.5 * i - 1 for i in range(6)}
    cold = {name: 2 * value for name, value in warm.items()}
    assert later.stated_at(warm, warm, 0.5) == 1.0
    assert later.stated_at(cold, warm, 0.5) == 0.5
    assert later.stated_at({name: 5 * value for name, value in warm.items()}, warm, 0.5) is None


def test_a_token_outside_a_cut_counts_and_a_near_one_does_not() -> None:
    def token(p: float) -> Token:
        tops = [_Likely(str(i), math.log(q)) for i, q in enumerate((0.4, 0.2, 0.19, 0.1))]
        return Token("x", math.log(p), tops)

    _, _, two = CUTS[0]
    assert later.outside([token(0.2), token(0.19)], two)[0] == 0
    assert later.outside([token(0.1)], two)[0] == 1
    assert later.outside([token(0.2)] * 30, two)[1] > 0.99


# ---- what a stream changes, and calls


def test_marks_that_a_stream_changes_are_told_from_words_that_a_batch_changes() -> None:
    whole = "first line\nsecond line\nthird line with \\frac{a}{b} in it\n"
    assert bare.changes(whole.replace("\n", ""), whole)["\n", ""] == 2  # the last one has nothing behind it
    assert bare.changes(whole.replace("second", "other"), whole) == {}
    assert bare.changes(whole, whole) == {}


def test_a_call_is_wrong_in_each_way_by_itself() -> None:
    good = '{"city": "Oslo", "days": 3, "unit": "celsius"}'

    def judged(arguments: str = good, name: str = "get_weather", reason: str = "tool_calls", text: str = "") -> str:
        return tools.wrong(tools.Called(((name, arguments),), text, reason)) or "right"

    assert judged() == "right"
    assert judged(name="weather") == "a tool that does not exist"
    assert judged(good[:-1]) == "arguments that are no JSON"
    for odd in (good.replace("3", "true"), good.replace("3", "99"), good.replace("celsius", "kelvin"), "[]", "{}"):
        assert judged(odd) == "arguments that break the schema"
    assert "finish_reason" in judged(reason="stop")
    assert "reasoning" in judged(text="so</think>")
    assert tools.wrong(tools.Called((), "<tool_call>{}", "stop")) == "a call in the text"
    assert tools.wrong(tools.Called((), "It will rain.", "stop")) is None


def beside(ours: str | None, theirs: str | None) -> Finding:
    """The calls of a server behind the fault `ours`, beside those of a reference behind `theirs`."""
    one, other = (ToyAsker(Toy(weights="3"), FAULTS[name]() if name else Fault()) for name in (ours, theirs))
    report = probe.examine(one, [tools.against(other, "the reference")], seed=1)
    return report.findings[0]


def test_calls_are_judged_beside_a_reference_that_may_be_a_weak_caller() -> None:
    weak = "an argument too many in 1 of 5 calls"
    worse = beside(weak, None)
    assert worse.outcome == "spoils"
    assert "of the reference" in worse.came
    assert beside(weak, weak).outcome == beside(None, None).outcome == "sound"
    # One wrong call in twenty is within what chance makes of 200 replies each.
    assert beside(None, weak).outcome == "warns"


def test_two_shares_are_compared_exactly() -> None:
    assert exact.two_shares(5, 5, 10) == 1.0
    assert exact.two_shares(0, 3, 3) == pytest.approx(0.1)  # 1 of the 20 ways to lay 3 of 6, and its mirror image
    # Newcombe 1998, table II, method 10.
    assert exact.difference(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert exact.difference(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)


def test_a_servers_bos_is_counted_whether_it_adds_one_to_raw_text_or_not() -> None:
    for adds in (True, False):
        toy = Toy(weights="3", adds=adds)
        (of_checks,) = probe.examine(ToyAsker(toy), probe.select(["opening"]), seed=1).findings
        assert (of_checks.outcome, "Gemma" in of_checks.came) == ("sound", True), of_checks.came
        (of_checks,) = probe.examine(ToyAsker(replace(toy, bos=0)), probe.select(["opening"]), seed=1).findings
        assert of_checks.outcome == ("untested" if adds else "spoils")


def test_a_call_in_pieces_is_put_together() -> None:
    stream = (
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}\n\n'
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\""}}]}}]}\n\n'
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}\n\n'
        b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    )
    assert tools.called_in(stream) == tools.Called((("f", '{"a":1}'),), "", "tool_calls")


# ---- beside a reference


def test_a_few_flipped_places_are_not_averaged_away() -> None:
    true = {"a": math.log(0.6), "b": math.log(0.2), "c": math.log(0.1)}
    flipped = {"a": math.log(0.2), "b": math.log(0.6), "c": math.log(0.1)}
    same = [reference.compared(i % 16, "a", true, true) for i in range(96)]
    few = [reference.compared(i % 16, "a", flipped if i in (3, 40, 70) else true, true) for i in range(96)]
    assert reference.weighed(same, "r")[0] == "sound"
    outcome, sentence = reference.weighed(few, "r")
    assert outcome == "spoils"
    assert "3 of 96 places" in sentence
    # Two tokens that are nearly as likely swap by rounding.
    near = {"a": math.log(0.4), "b": math.log(0.41)}, {"a": math.log(0.41), "b": math.log(0.4)}
    assert "places" not in reference.weighed([reference.compared(i % 16, "a", *near) for i in range(96)], "r")[1]


def test_surprises_of_the_references_own_draws_are_seldom_odd() -> None:
    rng = random.Random(6)
    true = {"a": math.log(0.97), "b": math.log(0.02), "c": math.log(0.009)}
    names = ["a", "b", "c", "z"]
    odd = 0
    for i in range(100):
        drawn = rng.choices(names, [0.97, 0.02, 0.009, 0.001], k=48)
        odd += (
            reference.surprise_p([reference.compared(n, token, true, true) for n, token in enumerate(drawn)], i) < 0.01
        )
    assert odd <= 5  # of 100 at 1 %: more comes by chance 5 times in 10,000
    unlikely = [reference.compared(n, "b", true, true) for n in range(48)]
    assert reference.surprise_p(unlikely, 1) < 1e-3


# ---- the budget


def test_a_budget_takes_the_checks_that_find_most_and_says_what_it_leaves_out() -> None:
    rooms = worth.allotted(probe.CHECKS, 20_000)
    assert sum(rooms.values()) <= 20_000
    assert {"ends", "long stream", "one model", "later draws", "messages", "context", "load"} <= rooms.keys()
    # What a check finds that costs less is no reason to make a dear one.
    assert not {"temperature 1", "temperature 0.5", "tool calls"} & rooms.keys()
    assert set(worth.FINDS) <= {check.name for check in probe.CHECKS} | {"weights"}
    assert {kind for kinds in worth.FINDS.values() for kind in kinds} == set(worth.CLASSES)
    assert sum(worth.CLASSES.values()) == len({**toy_model.FAULTS, **FAULTS})
    report = probe.examine(ToyAsker(Toy()), probe.select(["ends", "long stream"]), seed=1, budget=1_000)
    assert "the reply with max_tokens 96 does not reach it" in report.findings[0].came
    assert report.findings[1].outcome == "untested"
    assert "left of the budget; it alone finds 5 kinds of faults" in report.findings[1].came
    assert report.tokens == sum(finding.tokens for finding in report.findings) <= 1_000


@pytest.mark.parametrize("names", [["temperature 1", "top_k", "tool calls"], ["whole distribution"]])
def test_the_budget_is_no_reason_where_the_server_shows_no_probabilities(names: list[str]) -> None:
    checks = probe.select(names)
    dear, blind = (
        probe.examine(ToyAsker(Toy(), fault), checks, seed=1, budget=700)
        for fault in (Fault(), Drops("logprobs", (), ""))
    )
    assert {finding.outcome for finding in (*dear.findings, *blind.findings)} == {"untested"}
    assert all("left of the budget" in finding.came for finding in dear.findings)
    assert dear.left_out == {check.name: 19 * check.draws or check.tokens for check in checks}
    assert blind.left_out == {name: n for name, n in dear.left_out.items() if name == "tool calls"}
    for finding in blind.findings:
        assert ("left of the budget" in finding.came) == (finding.check in blind.left_out)
        assert ("no log-probabilities" in finding.came) == (finding.check not in blind.left_out)
    for report in (dear, blind):
        assert report.tokens == sum(finding.tokens for finding in report.findings) <= 700


def test_draws_are_priced_by_what_one_costs_on_this_server() -> None:
    # 250 draws of 19 tokens each, and 100; by the usual price the first check would cost 11,250.
    report = probe.examine(
        ToyAsker(Toy()), probe.select(["whole distribution", "temperature 0.5"]), seed=1, budget=7_000
    )
    assert {finding.outcome for finding in report.findings} == {"sound"}
    assert report.tokens <= 7_000
    assert not report.left_out


def test_beside_a_reference_a_temperature_above_0_comes_before_other_checks() -> None:
    beside = reference.against(reference.ServerReference(ToyAsker(Toy()), "the reference"))
    warm = [name for name, kinds in worth.FINDS.items() if "temperature" in kinds]
    for budget in range(5_000, 20_000, 500):
        with_reference = worth.allotted([*probe.CHECKS, *beside], budget)
        assert set(warm) & with_reference.keys(), budget
        assert {"weights", "draws", "greedy replies"} <= with_reference.keys()
    assert not set(warm) & worth.allotted(probe.CHECKS, 1_500).keys()


def test_greedy_replies_that_do_not_repeat_are_explained_next_or_the_verdict_says_that_they_are_not() -> None:
    def report(fault: Fault, names: list[str], budget: int | None) -> ProbeReport:
        beside = reference.against(reference.ServerReference(ToyAsker(Toy()), "the reference"))
        server = ToyAsker(Toy(chance=random.Random(5)), fault)
        return probe.examine(server, probe.select(names, checks=(*probe.CHECKS, *beside)), seed=1, budget=budget)

    doubt = "nothing spoils a score; greedy replies do not repeat: not explained; "
    for fault, names, budget, cold, says in (
        (ColdIgnored(), [], 5_000, "spoils", False),
        (ColdIgnored(), ["greedy replies", "length"], None, None, True),
        (ColdIgnored(), ["streaming", "length"], None, None, True),
        (Fault(), ["greedy replies", "streaming"], None, None, False),
    ):
        came = report(fault, names, budget)
        seen = {finding.check: finding.outcome for finding in came.findings}
        assert seen.get("temperature 0") == cold
        assert (doubt in _verdict_line(came, None)) == says, _verdict_line(came, None)
        assert budget is None or {"later draws", "temperature 0"}.isdisjoint(came.left_out)
    # A fault that was seen before the server stopped is no end of the probe, and few checks examine little.
    fault = msgspec.structs.replace(came.findings[0], outcome="spoils")
    ended = msgspec.structs.replace(came, ended_by="the server", findings=[fault, *came.findings[1:]])
    assert _verdict_line(ended, None).startswith(
        "NOT finished, since the server answers no more; 1 of its checks would"
    )
    assert _verdict_line(came, None).endswith("; not examined: sampling, prompts, long prompts")
    assert "not examined" not in _verdict_line(probe.examine(ToyAsker(Toy()), probe.CHECKS, seed=1), None)
    # A check of a temperature that shows nothing is no check of it, whether the budget left it out or not.
    unheard = msgspec.structs.replace(
        came, left_out={"later draws": 900}, findings=[
            msgspec.structs.replace(came.findings[0], check=check, outcome="untested")
            for check in ("later draws", "later draws at 0.5")
        ],
    )  # fmt: skip
    assert worth.unwarmed(unheard)
    assert worth.unwarmed(msgspec.structs.replace(unheard, left_out={}))


def test_a_budget_pays_for_the_comparison_with_a_reference_first() -> None:
    beside = reference.against(reference.ServerReference(ToyAsker(Toy()), "the reference"))
    report = probe.examine(ToyAsker(Toy()), [*probe.CHECKS, *beside], seed=1, budget=5_000)
    assert not {"weights", "draws", "greedy replies"} & report.left_out.keys()
    assert report.left_out
    assert report.tokens <= 5_000
    few = probe.examine(ToyAsker(Toy()), [*probe.CHECKS, *beside], seed=1, budget=1_000)
    assert "weights" in few.left_out
    assert "greedy replies" not in few.left_out


# ---- a league of providers


def looks_at(*toys: Toy, seed: int = 1) -> list[league.ProviderLook]:
    """A look at each toy, under the addresses a, b, c …"""
    return [
        league.ProviderLook(
            version=league.VERSION,
            time="2026-11-22T00:00:00+00:00",
            address=name,
            model="toy",
            draws=league.draws(ToyAsker(replace(toy, chance=random.Random(seed))), seed * 10 + ord(name)),
            spoils=[],
        )
        for name, toy in zip("abcdefgh", toys, strict=False)
    ]


def test_a_provider_that_changes_is_named_and_the_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "SIMULATED_AGAIN", 9_999)
    true, other = Toy(weights="3", spread=1.0), Toy(weights="4", spread=1.0)
    history = looks_at(true, true, true, seed=3)
    same = league.standings(history, looks_at(true, true, true, seed=7))
    assert [(one.changed, one.differs, one.n_looks) for one in same] == [(False, False, 2)] * 3
    swapped = league.standings(history, looks_at(true, other, true, seed=8))
    assert [one.changed for one in swapped] == [False, True, False]
    assert [one.differs for one in swapped] == [False, True, False]
    first = league.standings([], looks_at(true))[0]
    assert (first.p_changed, first.p_differs) == (None, None)


def test_the_p_values_of_one_model_are_as_seldom_small_as_stated() -> None:
    rng = random.Random(2)
    names, weights = list("abcdefgh"), [9, 5, 4, 3, 2, 1, 1, 1]

    def sample() -> list[dict[str, int]]:
        return [dict(Counter(rng.choices(names, weights, k=25))) for _ in range(2)]

    small = sum(league.apart(sample(), sample(), i, 1e-3) <= 0.05 for i in range(30))
    assert small <= 7  # of 30 at 5 %: more comes by chance 8 times in 10,000


def counted(*words: str) -> list[league.ProviderLook]:
    """A look at each of the providers a, b, c …, whose every reply begins with its word."""
    facts = {"version": league.VERSION, "time": "", "model": "toy", "spoils": []}
    return [
        league.ProviderLook(address=name, draws=[{word: 25}] * len(league.PROMPTS), **facts)  # type: ignore[arg-type]
        for name, word in zip("abcdefgh", words, strict=False)
    ]


def test_a_look_that_could_find_no_change_is_not_called_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def outcomes(k: int) -> tuple[bool | None, bool | None]:
        changed, *_ = league.standings(counted("x", "x", "x") * (k - 1), counted("x", "x", "x"))
        return changed.changed, changed.differs

    # The numbers of docs/probe.md for three providers.
    assert [outcomes(k) for k in (40, 41, 42)] == [(False, False), (False, None), (None, None)]
    monkeypatch.setattr(league, "MAX_SIMULATED", 9_999)
    fourth, fifth = (league.standings(counted("x", "x", "x") * (k - 1), counted("x", "y", "x")) for k in (4, 5))
    assert [provider.changed for provider in fourth] == [False, True, False], "the last look that is judged"
    assert [provider.changed for provider in fifth] == [None, None, None]
    cells = [row[2] for row in standing_table(fifth).rows]
    assert all(cell.startswith("not judged, begin a new history (p = ") for cell in cells)
    assert "look 5 of this history cannot be judged" in str(league.worn_out(fifth))
    second = league.standings(counted("x", "x", "x"), counted("x", "y", "x"))
    assert league.worn_out(second) is None
    assert [row[2].split()[0] for row in standing_table(second).rows] == ["the", "CHANGED", "the"]


def test_the_memory_of_a_comparison_does_not_grow_with_its_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = [{"a": 5, "b": 12}], [{"a": 16, "b": 18}]
    p = league.apart(ours, theirs, 1, 1e-3)
    assert 0.05 < p < 0.5
    many = {f"w{i}": 1 for i in range(300)}
    tracemalloc.start()
    try:
        league.apart([{"w1": 25}], [many], 1, 1e-3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16_000_000, "the numbers of 9,999 draws of 300 words take 24 MB"
    monkeypatch.setattr(league, "MAX_CELLS", 20)
    assert league.apart(ours, theirs, 1, 1e-3) == p, "slices of ten draws give the counts of all"


def test_a_history_is_read_back_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "days.jsonl"
    assert league.read(path) == []
    looks = looks_at(Toy(), Toy())
    league.append(path, looks[:1])
    league.append(path, looks[1:])
    assert league.read(path) == looks
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(UsageError, match="line 3"):
        league.read(path)
