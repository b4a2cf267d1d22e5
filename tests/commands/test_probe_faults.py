"""Each fault of the toys is found by its checks and named by one; odd but sound servers are not accused.

For: harness.probes.prompts, harness.probes.sampling.
"""

from __future__ import annotations

import math
import random

import pytest

from harness.core.errors import UsageError
from harness.probes import probe, sampling
from harness.probes.findings import Finding
from harness.probes.prompts import Shift, shift_of
from harness.probes.subject import listed
from tests.commands import toy_model
from tests.commands.toy_faults import (
    FAULTS,
    MISLEADING,
    SOUND,
    deaf_to_the_tail,
    fault,
    rejects,
    silent,
    undercounts,
    unfinished,
    unlisted,
)
from tests.commands.toy_model import Fault, Toy, ToyAsker


def findings(
    fault: Fault, checks: tuple[str, ...], noise: float = 0.003, weights: int = 3, seed: int = 11
) -> dict[str, Finding]:
    toy = Toy(weights=str(weights), spread=1.0, noise=noise, chance=random.Random(5))
    report = probe.examine(ToyAsker(toy=toy, fault=fault), probe.select(checks), seed=seed)
    return {finding.check: finding for finding in report.findings}


def plain(fault: Fault, check: str) -> Finding:
    """The finding of one check about the plain toy behind this fault."""
    (finding,) = probe.examine(ToyAsker(toy=Toy(), fault=fault), probe.select([check])[:1], seed=1).findings
    return finding


def assert_named(fault: Fault, report: dict[str, Finding]) -> None:
    odd = {check: finding.received for check, finding in report.items() if finding.outcome in ("fail", "warn")}
    assert set(fault.finds) <= odd.keys(), {check: report[check].received for check in fault.finds}
    assert any(fault.says in received for received in odd.values()), odd


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(name: str) -> None:
    fault = FAULTS[name]()
    assert_named(fault, findings(fault, fault.finds))


def test_a_sound_server_passes_every_check() -> None:
    report = findings(Fault(), ())
    assert {check for check, one in report.items() if one.outcome in ("fail", "warn")} == set()
    # The toy neither thinks nor shows its prompts.
    untested = {check for check, one in report.items() if one.outcome == "untested" and one.group != "calls"}
    assert untested <= {"reasoning", "prompt"}
    assert {one.outcome for one in report.values() if one.group == "calls"} == {"untested"}, "the toy takes no tools"
    assert all(one.sent and one.received and one.why and one.fix for one in report.values())


def test_the_checks_cost_what_they_are_said_to_cost() -> None:
    assert len(probe.CHECKS) == 25
    assert sum(check.tokens for check in probe.CHECKS if check.quick) <= 6_000
    assert sum(check.tokens for check in probe.CHECKS) <= 20_000


def test_a_word_whose_effect_drowns_in_noise_is_not_called_lost() -> None:
    seen = findings(Fault(), ("context",), noise=0.5)["context"]
    assert (seen.outcome, "repeated requests vary too much" in seen.received) == ("untested", True), seen.received
    assert findings(Fault(), ("context",))["context"].outcome == "pass"


def test_a_stream_is_not_compared_with_whole_replies_that_never_come_twice() -> None:
    noisy = findings(Fault(), ("streaming",), noise=0.5)["streaming"]
    assert (noisy.outcome, "all differ" in noisy.received) == ("untested", True), noisy.received
    still = findings(FAULTS["an event of the stream dropped"](), ("streaming",), noise=0.02)["streaming"]
    assert still.outcome == "fail", still.received


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("stop sequences ignored", 22),  # the greedy story is full stops alone
        ("an event of the stream dropped", 22),
        ("a decode kernel off by 0.3", 22),  # 0.014 nats per token
    ],
)
def test_a_fault_is_named_behind_a_model_that_nearly_hides_it(name: str, weights: int) -> None:
    fault = FAULTS[name]()
    report = findings(fault, fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert_named(fault, report)
    honest = findings(Fault(), fault.finds, noise=0.003 * (weights % 2), weights=weights, seed=10_000 * weights)
    assert {check: finding.outcome for check, finding in honest.items()} == dict.fromkeys(fault.finds, "pass")


@pytest.mark.parametrize("name", SOUND)
def test_an_odd_but_sound_server_is_not_accused(name: str) -> None:
    checks = ("protocol", "messages", "added words", "later draws at 0.5", "writing and reading", "context")
    report = findings(SOUND[name](), checks, noise=0.02)
    assert {check: finding.received for check, finding in report.items() if finding.outcome == "fail"} == {}


MISLED = ("protocol", "temperature 0", "seeds")


@pytest.mark.parametrize("name", MISLEADING)
def test_a_fault_that_misleads_other_checks_is_named_and_no_other_is(name: str) -> None:
    fault = MISLEADING[name]()
    report = findings(fault, MISLED)
    assert_named(fault, report)
    accused = {check: item.received for check, item in report.items() if item.outcome in ("fail", "warn")}
    assert accused.keys() == set(fault.finds), accused


def test_no_check_reads_texts_that_did_not_come() -> None:
    report = findings(silent(), MISLED)
    assert {check for check, item in report.items() if item.outcome in ("fail", "warn")} == set()
    for check in ("temperature 0", "seeds", "streaming"):
        if check in report:
            assert (report[check].outcome, "had no text" in report[check].received) == ("untested", True), check
    assert report["reply text"].outcome == "untested"


def test_a_single_unfinished_stream_is_a_warning() -> None:
    of_checks = plain(unfinished(8), "finished streams")
    assert (of_checks.outcome, of_checks.received) == ("warn", "1 of 8 streams ended without a finish reason")
    assert plain(unfinished(4), "finished streams").outcome == "fail"


def test_a_cut_is_called_refused_only_if_the_request_without_it_is_accepted() -> None:
    hidden, cut = (plain(rejects(field), "later cuts") for field in ("logprobs", "top_k"))
    assert (hidden.outcome, "rejected even without these settings: HTTP 400: " in hidden.received) == (
        "untested",
        True,
    ), hidden.received
    assert "top_k" not in hidden.received
    assert "top_k is rejected (Unrecognized request argument supplied: top_k)" in cut.received
    assert "top_p is applied" in cut.received


def test_a_name_of_no_check_is_answered_by_near_names_or_by_all() -> None:
    with pytest.raises(UsageError, match=r"no such check\. Did you mean context\?"):
        probe.select(["contxet"])
    with pytest.raises(UsageError, match=r"The groups are protocol, .* The checks are reply text, "):
        probe.select(["xyzzy"])
    for former, instead in (("load", r"docs/load\.md"), ("prefix cache", "`context`"), ("ends", "`harness score`")):
        with pytest.raises(UsageError, match=f"this check no longer exists; .*{instead}"):
            probe.select([former])


def test_usage_is_untested_without_log_probabilities_where_the_reply_ends_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toy_model, "NATURAL", 10)
    for odd, outcome in (
        (fault(request=unlisted), "untested"),
        (Fault(), "pass"),
        (undercounts(0.5), "warn"),
        (undercounts(3, listed=False), "warn"),
        (undercounts(0.5, listed=False), "untested"),
    ):
        usage = plain(odd, "usage")
        assert usage.outcome == outcome, usage.received


def test_a_server_that_draws_at_temperature_0_is_not_accused_of_another_kernel() -> None:
    for hot in (FAULTS["temperature always 1"](), Fault()):
        seen = plain(hot, "writing and reading")
        assert (seen.outcome, "temperature 0 is not greedy" in seen.received) == (
            ("untested", True) if hot.finds else ("pass", False)
        ), seen.received


def noisy(top: dict[str, float], rng: random.Random, sd: float) -> dict[str, float]:
    return {token: value + rng.gauss(0, sd) for token, value in top.items()}


def test_an_effect_is_told_from_the_noise_of_repeats() -> None:
    rng = random.Random(2)
    top = {str(i): -0.3 * i - 1 for i in range(20)}
    moved = {token: value + rng.gauss(0, 0.3) for token, value in top.items()}
    assert shift_of([top, top], [top]).ratio == 0
    assert shift_of([top, top], [moved]).ratio == math.inf
    none = [shift_of([noisy(top, rng, 0.02) for _ in range(2)], [noisy(top, rng, 0.02)]).ratio for _ in range(200)]
    some = [shift_of([noisy(top, rng, 0.02) for _ in range(2)], [noisy(moved, rng, 0.02)]).ratio for _ in range(200)]
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
    small = findings(deaf_to_the_tail(0.003), ("context",))["context"]
    assert (small.outcome, "its tail never reached" in small.received) == ("fail", True), small.received
    large = findings(deaf_to_the_tail(), ("context",))["context"]
    assert (large.outcome, "words at the tail" in large.received) == ("untested", True), large.received


def test_log_probabilities_at_a_floor_are_left_out() -> None:
    assert listed({"a": -0.5, "b": -2.0, "c": -5.0, "d": -5.0, "e": -5.0}) == {"a": -0.5, "b": -2.0}
    assert len(listed({"a": -0.5, "b": -2.0, "c": -2.0})) == 3
    assert listed({}) == {}


def test_the_first_token_shows_of_which_temperature_log_probabilities_are() -> None:
    warm = {str(i): -0.5 * i - 1 for i in range(6)}
    cold = {name: 2 * value for name, value in warm.items()}
    assert sampling.stated_at(warm, warm, 0.5) == 1.0
    assert [sampling.stated_at(dict([*cold.items()][:n]), warm, 0.5) for n in (1, 2, 6)] == [None, 0.5, 0.5]
    assert sampling.stated_at({name: 5 * value for name, value in warm.items()}, warm, 0.5) is None
