"""Bugs to plant in a copy of the dispatcher, each a change of a few characters, and the rule that must speak."""

from __future__ import annotations

import builtins
import importlib
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from harness.generation.dispatch.dispatcher import Dispatcher

DISPATCH = Path(__file__).resolve().parents[2] / "harness" / "generation" / "dispatch"
PACKAGE = "harness.generation.dispatch"
SHARED = "actions"
"""The one module that is not copied: the simulator tells actions apart by their class."""


class Bug(NamedTuple):
    """In `file` of the dispatcher, `right` becomes `wrong`; `rule` must speak, or one of several ("a|b").

    rare: more than 100 seeds may pass before one shows it.
    """

    file: str
    right: str
    wrong: str
    rule: str
    rare: bool = False


PLANTED = {
    "a Retry-After is not obeyed": Bug("lanes", "lane.until = max(lane.until, until)", "pass", "retry-after"),
    "the test request after a 429 goes out before the Retry-After is over": Bug(
        "lanes",
        "and not self.set_aside and now >= self.asked_until",
        "and not self.set_aside",
        "retry-after",
        rare=True,
    ),
    "the Retry-After of a continuation is not obeyed": Bug(
        "dispatcher",
        "self._lanes.obey_retry_after(ticket.lane_number, failure.retry_after)\n"
        "            self._lanes.cancelled(ticket)\n",
        "self._lanes.cancelled(ticket)\n",
        "retry-after",
        rare=True,
    ),
    "no backoff": Bug(
        "retry", "Decision(self._jitter(0.0, self.policy.ceiling(attempts.failures)))", "Decision(0.0)", "backoff"
    ),
    "a backoff that never grows": Bug(
        "retry", "self.policy.ceiling(attempts.failures)", "self.policy.ceiling(1)", "backoff"
    ),
    "backoffs end five seconds early": Bug(
        "retry", "self._later[0][0] <= now:", "self._later[0][0] <= now + 5:", "backoff"
    ),
    "twice the requests and tokens a minute": Bug(
        "budget",
        "self.per_second = spread / MINUTE_S",
        "self.per_second = 2 * spread / MINUTE_S",
        "requests a minute|tokens a minute",
    ),
    "twice the tokens a minute": Bug("budget", "_Bucket(tokens, now)", "_Bucket(2 * tokens, now)", "tokens a minute"),
    "what a reply cost is not charged": Bug(
        "budget", "+ expected_tokens - tokens)", "+ expected_tokens)", "tokens a minute"
    ),
    "a reply is charged in addition to the tokens that were expected of it": Bug(
        "budget", "self._tokens.level + expected_tokens - tokens", "self._tokens.level - tokens", "idle"
    ),
    "tokens that were kept are counted again": Bug(
        "snapshot",
        "self.tokens += max(0, completion_tokens(sample) - n_before)",
        "self.tokens += completion_tokens(sample)",
        "accounts",
    ),
    "money: what was kept is no part of the prompt": Bug(
        "budget", "Billed(prompt + n_before", "Billed(prompt", "accounts|budget"
    ),
    "truncated replies are not counted": Bug("snapshot", "self.truncated += sample.truncated", "pass", "accounts"),
    "weights are ignored": Bug("lanes", " / self._lanes[i].endpoint.weight)", ")", "weights"),
    "work goes to the fullest endpoint": Bug(
        "lanes", "/ self._lanes[i].endpoint.weight)", "/ self._lanes[i].endpoint.weight, reverse=True)", "weights"
    ),
    "a sample goes back to the endpoint that failed it": Bug(
        "dispatcher", "self._scheduler.steer_away(task)", "pass", "elsewhere"
    ),
    "elsewhere is forgotten when the sample comes back": Bug(
        "schedule", "if endpoint not in failed_by or (", "if endpoint not in failed_by or (True or ", "elsewhere"
    ),
    "one attempt too many": Bug(
        "retry", "attempts.failures >= self.policy.attempts", "attempts.failures > self.policy.attempts", "elsewhere"
    ),
    "failures with the same message do not use up the attempts": Bug(
        "retry", "attempts.alike >= self.policy.alike", "False", "elsewhere", rare=True
    ),
    "samples that failed three times are asked before all others": Bug(
        "schedule", "return self._n_returned.get(task, 0) >= WORN or", "return False and", "turns", rare=True
    ),
    "a round too many for the budget": Bug("budget", "return not self.holds_round", "return True", "budget"),
    "a first round that the budget may not cover": Bug(
        "budget",
        "is_unbounded = not self._run.n_begun and self._max_tokens is None",
        "is_unbounded = not self._run.n_begun",
        "budget",
    ),
    "the next session of a command has a budget of its own": Bug(
        "budget", "self._account = account", "self._account = Account()", "budget", rare=True
    ),
    "a request that the budget may not cover": Bug(
        "budget",
        "self._exceeded_by(self._in_flight + 1, self._reserve)",
        "self._exceeded_by(1, self._reserve)",
        "budget",
    ),
    "the first replies, the short ones, pass for all lengths": Bug(
        "budget", "run.n_finished >= KNOWN and not self._first", "run.n_finished >= 1", "budget", rare=True
    ),
    "the longest reply so far passes for the longest possible": Bug(
        "budget",
        "most = limit.cost(prompt, self._max_tokens)",
        "most = limit.cost(prompt, min(self._run.longest or self._max_tokens, self._max_tokens))",
        "budget",
        rare=True,
    ),
    "the budget counts failed requests as still in flight": Bug(
        "budget",
        "self._in_flight -= 1\n        self.holds_round = False\n        if billed",
        "self.holds_round = False\n        if billed",
        "budget|crash",
        rare=True,
    ),
    "an endpoint that left is asked": Bug(
        "lanes", "lane.left = True\n                left.append(url)", "left.append(url)", "list of endpoints"
    ),
    "an endpoint that answered stays set aside": Bug(
        "lanes", "            lane.set_aside = False\n", "            pass\n", "answered"
    ),
    "two requests at a time for an endpoint that is down": Bug(
        "lanes", "1 if self.set_aside else", "2 if self.set_aside else", "probes"
    ),
    "an endpoint set aside is never asked again": Bug(
        "lanes", "1 if self.set_aside else", "0 if self.set_aside else", "probes|wake-up"
    ),
    "pauses between probes do not grow": Bug(
        "lanes", "self._patience.first_wait * 2.0 ** min(lane.waits, 30)", "self._patience.first_wait", "probes"
    ),
    "patience runs on during a pause": Bug(
        "lanes",
        'pause of the run, in which no endpoint could answer."""\n        self._down_since = None',
        'pause."""',
        "patience",
    ),
    "patience ends while a probe is under way": Bug(
        "lanes", "lane.try_owed or lane.in_flight", "lane.try_owed", "patience"
    ),
    "a slot stays idle": Bug(
        "dispatcher", "if len(self._flights) >= limit or", "if len(self._flights) >= max(1, limit - 1) or", "idle"
    ),
    "the shortest go first": Bug(
        "schedule",
        "return -self._urgency(row),",
        "return self._urgency(row),",
        "order",
        rare=True,
    ),
    "known questions before those of which nothing is known": Bug(
        "schedule", "[q for q in self._questions if q.prior is None and q.waiting]", "[]", "order"
    ),
    "rounds in the wrong order": Bug(
        "schedule",
        "number = min(q.waiting[0] for q in pending)",
        "number = max(q.waiting[0] for q in pending)",
        "order",
    ),
    "nobody wakes for a sample that waits to be asked again": Bug(
        "dispatcher", "(due := self._retries.next_due) is not None", "(due := 0.0) is None", "wake-up|idle|end"
    ),
    "what is given back is handed out twice": Bug(
        "schedule",
        "self._returned.append(task)",
        "self._returned.extend([task, task])",
        "one request a sample|owed|places|crash",
    ),
    "an in-flight count leaks where a request is cancelled": Bug(
        "lanes",
        "self._lanes[ticket.lane_number].pace.ended(ticket)\n\n    def answered_by",
        "pass\n\n    def answered_by",
        "places|idle",
    ),
    "a give-up forgets its key": Bug(
        "dispatcher",
        "self.causes.gave_up(task, kind, message, status)\n\n    def _leave_out",
        "pass\n\n    def _leave_out",
        "causes|places|order",
    ),
    "the budget of retries is counted and not obeyed": Bug(
        "retry", "if not self.budget.take():", "if not (self.budget.take() or True):", "retry budget"
    ),
    "one sample too many on its way to the disk": Bug(
        "dispatcher", " and self._n_unwritten <= limit and", " and", "concurrency"
    ),
    "a paused session asks": Bug(
        "dispatcher", 'if self.ending.phase == "asking" and not self._paused:', "if self.ending.asking:", "pause"
    ),
    "a continuation that fails is tried for ever": Bug(
        "retry", "self._failures[lane_number].get(task, 0) < TRIES", "True", "continuations"
    ),
    "the end comes before the disk has all": Bug(
        "dispatcher", "if self._flights or self._n_unwritten:", "if self._flights:", "end"
    ),
    "a server that says 429 for ever is never taken for down": Bug(
        "lanes", "lane.failures_in_row += lane.in_flight == 1", "pass", "patience|end", rare=True
    ),
    "a request that fails while the user cancels its sample ends the session": Bug(
        "dispatcher", "self._flights[task].given_up = True", "pass", "crash"
    ),
    "the grace after a drain is not kept": Bug(
        "dispatcher", "now >= ending.grace_ends:", "False:", "grace|end", rare=True
    ),
    "the grace after a drain is over at once": Bug("dispatcher", "self._clock() + grace)", "self._clock())", "grace"),
    "sixteen truncated replies stop nobody": Bug(
        "canary", 'if reply.finish_reason == "length":', "if False:", "signs", rare=True
    ),
    "fifteen bad replies are enough": Bug(
        "canary", "if self._n < FIRST_SAMPLES:", "if self._n < FIRST_SAMPLES - 1:", "signs"
    ),
    "greedy replies count as repeated": Bug(
        "dispatcher", ".temperature != 0:", ".temperature != 9:", "accounts", rare=True
    ),
    "replies that end in a loop count as repeated": Bug(
        "canary", "< MIN_DUPLICATE_CHARS or ends_in_loop(reply):", "< MIN_DUPLICATE_CHARS:", "accounts", rare=True
    ),
    "replies to two questions count as repeated": Bug(
        "canary", 'f"{task.benchmark}\\0{task.question_id}\\0"', '""', "accounts", rare=True
    ),
    "a new build is forgotten": Bug(
        "canary", "(*self.seen.get(base_url, ()), build)", "(build,)", "accounts", rare=True
    ),
    "a request that is lost keeps its place": Bug(
        "dispatcher", "self._lanes.cancelled(self._landed(task).ticket)", "self._landed(task)", "places", rare=True
    ),
    "the outlook forgets postponed samples": Bug(
        "dispatcher",
        "waiting_by_question(), self._retries.postponed)",
        "waiting_by_question(), ())",
        "outlook",
        rare=True,
    ),
    "another model's samples are stored": Bug("canary", "if self.name == name:", "if True:", "one model|accounts"),
    "what a reply used is not counted": Bug(
        "budget",
        "self._first.discard(task)\n        self._run.n_finished += 1",
        "self._first.discard(task)\n        self._run.n_finished += 1\n        return",
        "budget",
    ),
    "a request that broke off is free": Bug(
        "dispatcher", "if failure is None or not failure.free:", "if False:", "budget|accounts"
    ),
    "a request that broke off costs what came of it": Bug(
        "budget", "new = max(most or 0, n_events)", "new = n_events", "budget|accounts"
    ),
    "a prompt that no reply has stated yet is reserved as the longest stated": Bug(
        "budget", "if not self._unstated:", "if True:", "budget", rare=True
    ),
    "a prompt without stated usage is free": Bug(
        "budget", "else self._bounds.most(question, n_bytes)", "else 0", "budget|accounts"
    ),
    "a reply without stated usage is as long as its text": Bug(
        "budget", "else most or completion_tokens(sample)", "else completion_tokens(sample)", "budget|accounts"
    ),
    "requests are not counted at the limit": Bug("budget", "self._requests.level -= 1.0", "pass", "requests a minute"),
    "a full disk goes unnoticed": Bug(
        "dispatcher",
        "self.fail(error if isinstance(error, HarnessError) else StoreError(str(error)))",
        "pass",
        "causes|places",
    ),
    "a record that the disk refuses is forgotten": Bug(
        "dispatcher", 'self.causes.gave_up(task, "malformed", str(error))', "pass", "causes|places"
    ),
    "a cancelled sample comes back after its backoff": Bug(
        "dispatcher", "self._retries.drop(cancelled)", "pass", "places|owed|crash", rare=True
    ),
    "failures are not counted": Bug("snapshot", "self.failures += 1", "pass", "accounts"),
    "a lowered concurrency is not obeyed": Bug(
        "dispatcher", "self._concurrency = number\n", "pass\n", "concurrency|idle|descriptors"
    ),
    "missing descriptors lower nothing": Bug("dispatcher", "if fewer < self._concurrency:", "if False:", "descriptors"),
    "a machine without descriptors is asked for ever": Bug(
        "dispatcher", "elif now - self._starved_since > self._lanes.patience:", "elif False:", "patience"
    ),
    "an endpoint that joined is unknown to the order": Bug(
        "dispatcher", "for _ in joined:\n            self._scheduler.add_endpoint()", "", "crash|idle"
    ),
    "a written sample is still on its way": Bug("dispatcher", "self._n_unwritten -= 1", "pass", "wake-up|end|places"),
}


def copy_with(bug: Bug) -> type[Dispatcher]:
    """The dispatcher of a copy of its package in which `bug` is planted."""
    copies: dict[str, ModuleType] = {}

    def copied(name: str) -> ModuleType:
        if name not in copies:
            module = copies[name] = ModuleType(f"{PACKAGE}.{name}")
            vars(module)["__builtins__"] = {**vars(builtins), "__import__": imported}
            exec(_planted(bug) if name == bug.file else _compiled(name), vars(module))
        return copies[name]

    def imported(name: str, *rest: Any) -> Any:
        package, _, last = name.rpartition(".")
        return copied(last) if package == PACKAGE and last != SHARED else importlib.__import__(name, *rest)

    dispatcher: type[Dispatcher] = vars(copied("dispatcher"))["Dispatcher"]
    return dispatcher


@cache
def _compiled(name: str) -> CodeType:
    path = DISPATCH / f"{name}.py"
    return compile(path.read_text("utf-8"), path, "exec")


def _planted(bug: Bug) -> CodeType:
    source = (DISPATCH / f"{bug.file}.py").read_text("utf-8")
    assert source.count(bug.right) == 1, (
        f"{bug.file}.py holds {bug.right!r} {source.count(bug.right)} times, expected once"
    )
    return compile(source.replace(bug.right, bug.wrong), f"<{bug.file} with a bug>", "exec")
