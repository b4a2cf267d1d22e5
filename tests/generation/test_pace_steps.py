"""The control of an endpoint that answers 429, step by step and to the second: the limit, the pause, the opinions.

For: harness.generation.dispatch.too_many_requests.
"""

from __future__ import annotations

import pytest

from harness.generation.dispatch.too_many_requests import Pace, Ticket


class Played:
    """A pace with its clock and the requests in flight, oldest first."""

    def __init__(self, ceiling: int, n_sent: int = 0) -> None:
        self.now = 0.0
        self.pace = Pace(ceiling, lambda: self.now)
        self.tickets = self.send(n_sent)

    def send(self, n: int) -> list[Ticket]:
        return [self.pace.sent(0) for _ in range(n)]

    def limit_at(self, now: float) -> int:
        self.now = now
        self.pace.advance(now)
        return self.pace.limit

    def refuse(self, ticket: Ticket, now: float, *, names_time: bool = False) -> bool:
        self.now = now
        return self.pace.refused(ticket, names_time=names_time)

    def opinion(self, *, refused: bool, after: float = 0.25) -> None:
        """Refuse a request, then accept or refuse the second opinion on it."""
        (first,) = self.send(1)
        self.refuse(first, self.now + after)
        assert self.pace.wants_opinion
        (second,) = self.send(1)
        assert second.opinion
        if refused:
            self.refuse(second, self.now + after)
        else:
            self.pace.answered(second)


def test_a_limit_rises_by_one_two_and_four_a_second_apart_while_all_of_it_is_used() -> None:
    played = Played(40, 16)
    assert played.limit_at(0.1) == 40
    assert played.refuse(played.tickets[0], 0.25)
    assert played.limit_at(1.2) == 15
    assert played.limit_at(1.25) == 16
    assert played.limit_at(9.0) == 16  # one place is free
    played = Played(40, 16)
    played.refuse(played.tickets[0], 0.25)
    for now, limit in ((1.25, 16), (2.25, 18), (3.25, 22), (4.25, 30), (5.25, 40)):
        before = played.pace.limit
        assert played.limit_at(now - 0.01) == before
        assert played.limit_at(now) == limit
        played.send(limit - played.pace.in_flight)


def test_after_a_rise_that_was_refused_the_next_one_waits_twice_as_long_up_to_a_minute() -> None:
    played = Played(40, 3)
    played.refuse(played.tickets[0], 0.25)
    now, waits = 0.25, 1.0
    for _ in range(8):
        assert played.limit_at(now + waits - 0.01) == 2
        assert played.limit_at(now + waits) == 3
        (ticket,) = played.send(1)
        now += waits + 0.25
        played.refuse(ticket, now)
        waits = min(60.0, 2 * waits)
    assert waits == 60.0


def test_a_limit_never_falls_below_one_and_rises_from_there() -> None:
    played = Played(8, 1)
    played.refuse(played.tickets[0], 0.25)
    played.send(1)
    assert [played.limit_at(now) for now in (0.25, 1.24, 1.25)] == [1, 1, 2]


def test_a_request_that_met_the_old_limit_begins_no_new_round() -> None:
    played = Played(8, 4)
    assert played.pace.waits == 0
    played.refuse(played.tickets[0], 0.25)
    played.refuse(played.tickets[1], 0.5)
    assert (played.pace.waits, played.pace.limit) == (1, 2)
    (late,) = played.send(1)
    played.refuse(late, 0.75)
    assert played.pace.waits == 2
    for ticket in played.tickets[2:]:
        played.pace.refused(ticket, names_time=True)
    assert (played.pace.limit, played.pace.in_flight) == (1, 0)


def test_accepted_requests_take_back_rounds_once_each_and_none_below_zero() -> None:
    played = Played(8, 4)
    played.refuse(played.tickets[0], 0.25)
    played.now = 0.3
    (late,) = played.send(1)
    played.refuse(late, 0.5)
    assert played.pace.waits == 2
    played.now = 0.6
    played.pace.answered(played.tickets[1])
    assert played.pace.waits == 1
    played.limit_at(0.99)
    assert played.pace.waits == 1
    played.limit_at(1.0)  # two more count as accepted after a second
    assert played.pace.waits == 0
    played.pace.answered(played.tickets[2])
    assert played.pace.waits == 0


def test_requests_count_as_accepted_after_twice_the_time_of_the_slowest_refusal_at_most_a_minute() -> None:
    for took, settled in ((5.0, 10.0), (100.0, 60.0), (0.1, 1.0)):
        played = Played(8, 1)
        played.refuse(played.tickets[0], took)
        played.send(1)
        played.limit_at(took + settled - 0.01)
        assert played.pace.waits == 1
        played.limit_at(took + settled)
        assert played.pace.waits == 0


def test_a_cut_stream_says_nothing_about_the_pace() -> None:
    played = Played(8, 4)
    played.pace.ended(played.tickets[0])
    assert (played.limit_at(0.5), played.pace.in_flight, played.pace.waits) == (8, 3, 0)
    assert not played.pace.wants_opinion


def test_an_opinion_is_wanted_on_a_refusal_with_no_reply_in_between() -> None:
    played = Played(8, 4)
    played.now = 0.1
    played.pace.answered(played.tickets[1])
    played.refuse(played.tickets[0], 0.2)
    assert not played.pace.wants_opinion  # a reply came since it was sent
    (ticket,) = played.send(1)
    assert not ticket.opinion
    played.refuse(ticket, 0.3)
    assert played.pace.wants_opinion
    played.pace.answered(played.tickets[2])
    (ticket,) = played.send(1)
    assert not ticket.opinion  # a reply came since the refusal
    assert not played.pace.wants_opinion


def test_a_refusal_that_names_a_time_wants_no_opinion() -> None:
    played = Played(8, 2)
    assert played.refuse(played.tickets[0], 0.1, names_time=True)
    assert not played.pace.wants_opinion


def test_one_opinion_is_asked_at_a_time_and_refused_ones_come_at_growing_distances() -> None:
    played = Played(8, 8)
    played.refuse(played.tickets[0], 0.1)
    (opinion,) = played.send(1)
    played.refuse(played.tickets[1], 0.2)
    assert not played.pace.wants_opinion  # one is under way
    played.refuse(opinion, 0.3)
    now, pause = 0.3, 1.0
    for ticket in played.tickets[2:7]:
        for early, wants_opinion in ((0.01, False), (0.0, True)):
            (asked,) = played.send(1)
            played.refuse(asked, now + pause - early)
            assert played.pace.wants_opinion is wants_opinion, (now, pause)
        (opinion,) = played.send(1)
        now = played.now + 0.01
        played.refuse(opinion, now)
        pause *= 2
        played.pace.ended(ticket)


def test_an_opinion_whose_stream_was_cut_leaves_room_for_another() -> None:
    played = Played(8, 3)
    played.refuse(played.tickets[0], 0.1)
    (opinion,) = played.send(1)
    played.pace.ended(opinion)
    played.refuse(played.tickets[1], 0.2)
    assert played.pace.wants_opinion


def test_four_accepted_opinions_prove_a_server_that_refuses_at_random_and_lift_the_limit() -> None:
    played = Played(8, 4)
    for n in range(4):
        assert (played.pace.state, played.pace.limit < 8) == ("limited", n > 0)
        played.opinion(refused=False)
    assert (played.pace.state, played.pace.limit) == ("at random", 8)
    (ticket,) = played.send(1)
    assert not played.refuse(ticket, 9.0)  # no pause
    assert (played.pace.limit, played.pace.wants_opinion) == (8, False)
    (ticket,) = played.send(1)
    assert played.refuse(ticket, 9.1, names_time=True)
    assert (played.pace.state, played.pace.limit) == ("limited", 4)


@pytest.mark.parametrize(
    ("pattern", "state"), [("RRRA", "limited"), ("RRAA", "at random"), ("ARRRRA", "at random"), ("ARRRRRA", "limited")]
)
def test_more_than_a_third_of_the_opinions_must_be_accepted(pattern: str, state: str) -> None:
    played = Played(8, 4)
    for letter in pattern:
        played.now += 100.0  # the pause after a refused opinion is over
        played.opinion(refused=letter == "R")
    assert played.pace.state == state


def test_a_server_that_refuses_most_of_a_hundred_requests_has_a_limit_after_all() -> None:
    played = Played(200)
    for _ in range(4):
        played.opinion(refused=False)
    n_refused = 0
    while played.pace.state == "at random":
        (ticket,) = played.send(1)
        played.refuse(ticket, played.now + 0.1)
        n_refused += 1
    assert n_refused == 47  # 0.75 of half a window, where older ones fade by a hundredth
    played.pace.ended(*played.send(1))  # the opinion that the last refusal asks for
    for _ in range(4):
        assert played.pace.state == "limited"
        played.opinion(refused=False)
    assert played.pace.state == "at random"


def test_a_server_that_refuses_two_of_three_at_random_is_not_slowed_down() -> None:
    played = Played(200)
    for _ in range(4):
        played.opinion(refused=False)
    for n in range(600):
        (ticket,) = played.send(1)
        if n % 3:
            played.refuse(ticket, played.now + 0.1)
        else:
            played.pace.answered(ticket)
    assert (played.pace.state, played.pace.limit) == ("at random", 200)


def test_the_users_number_raises_a_limit_at_once_or_step_by_step_and_not_one_that_refusals_lowered() -> None:
    played = Played(4, 4)
    played.pace.set_ceiling(9, at_once=True)
    assert played.pace.limit == 9
    played.pace.set_ceiling(3)
    assert played.pace.limit == 3
    played.pace.set_ceiling(9)
    assert [played.limit_at(now) for now in (0.0, 0.99, 1.0)] == [4, 4, 6]
    lowered = Played(8, 4)
    lowered.refuse(lowered.tickets[0], 0.1)
    lowered.pace.set_ceiling(20, at_once=True)
    assert lowered.pace.limit == 3


def test_an_opinion_that_is_accepted_while_it_goes_on_leaves_room_for_another() -> None:
    played = Played(8, 3)
    played.refuse(played.tickets[0], 0.1)
    (opinion,) = played.send(1)
    played.refuse(played.tickets[1], 1.0)
    assert not played.pace.wants_opinion
    played.limit_at(2.1)  # it counts as accepted after twice the second that the last refusal took
    (ticket,) = played.send(1)
    played.refuse(ticket, 2.2)
    assert played.pace.wants_opinion
    assert not opinion.ended


def test_an_endpoint_at_its_ceiling_takes_back_rounds_too_and_remembers_no_rise() -> None:
    played = Played(1, 1)
    played.refuse(played.tickets[0], 0.1)
    played.send(1)
    assert (played.pace.limit, played.pace.waits) == (1, 1)
    played.limit_at(1.1)
    assert played.pace.waits == 0
    full = Played(4, 4)
    assert full.limit_at(5.0) == 4
    full.pace.answered(full.tickets[0])
    (late,) = full.send(1)
    full.refuse(late, 5.25)
    assert [full.limit_at(now) for now in (6.24, 6.25)] == [3, 4]  # no rise was refused


def test_a_new_ceiling_begins_the_steps_anew() -> None:
    played = Played(40, 16)
    played.refuse(played.tickets[0], 0.25)
    for now, limit in ((1.25, 16), (2.25, 18), (3.25, 22)):
        assert played.limit_at(now) == limit
        played.send(limit - played.pace.in_flight)
    played.pace.set_ceiling(100)
    assert played.limit_at(4.25) == 24


def test_a_rise_that_was_not_refused_makes_the_waits_short_again() -> None:
    played = Played(40, 16)
    played.refuse(played.tickets[0], 0.25)
    assert played.limit_at(1.25) == 16
    (late,) = played.send(1)
    played.refuse(late, 1.5)
    for now, limit in ((3.5, 16), (5.5, 18), (6.5, 22)):
        before = played.pace.limit
        assert [played.limit_at(now - 0.01), played.limit_at(now)] == [before, limit]
        played.send(limit - played.pace.in_flight)


def test_older_requests_count_as_accepted_before_a_refusal_that_comes_later() -> None:
    played = Played(8, 4)
    played.refuse(played.tickets[0], 0.25)
    played.now = 0.3
    (late,) = played.send(1)
    played.refuse(late, 1.4)
    assert played.pace.waits == 1


def test_after_an_accepted_opinion_the_next_refused_one_costs_a_second_again() -> None:
    played = Played(8, 2)
    played.opinion(refused=True)
    played.now += 1.0
    played.opinion(refused=True)
    played.now += 2.0
    played.opinion(refused=False)
    played.opinion(refused=True)
    before = played.now
    for now, wants_opinion in ((before + 0.99, False), (before + 1.0, True)):
        (ticket,) = played.send(1)
        played.refuse(ticket, now)
        assert played.pace.wants_opinion is wants_opinion


def test_a_request_that_counted_as_accepted_does_not_count_again_when_it_is_answered() -> None:
    played = Played(8, 2)
    played.refuse(played.tickets[0], 0.25)
    for now in (0.3, 0.4):
        played.now = now
        (late,) = played.send(1)
        played.refuse(late, now + 0.05)
    assert played.pace.waits == 3
    played.limit_at(1.0)
    assert played.pace.waits == 2
    played.pace.answered(played.tickets[1])
    assert played.pace.waits == 2
