"""How conversations are carried on: the option `turns`, such as `live,history=reasoning,delay=2s,max=10`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from harness.core.errors import misspelled

History = Literal["answer", "reasoning"]
"""The parts of a reply that go back with the next turn: its answer, or its reasoning, too."""

MAX_TURNS = 1000
"""Largest number of turns of a conversation."""

_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(ms|s)")
_NUMBER = re.compile(r"[1-9]\d{0,3}")


class TurnSettings(NamedTuple):
    """How conversations are carried on.

    live: the model writes every reply; replies in the data are not sent. history: what goes back of a reply. delay:
    seconds between a reply and the next turn; None: as the data state. most: number of turns that are asked; None: all.
    """

    live: bool = False
    history: History = "answer"
    delay: float | None = None
    most: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """The settings on which replies depend."""
        return {"live": self.live, "history": self.history, **({} if self.most is None else {"max": self.most})}


def turns_in(text: str | None) -> TurnSettings:
    """The settings in the option's text; the defaults for None. Raises `ValueError` with what was expected."""
    given: dict[str, Any] = {}
    for part in filter(None, (text or "").split(",")):
        name, _, value = (each.strip() for each in part.partition("="))
        if name == "live" and not value:
            given["live"] = True
        elif name == "history" and value in get_args(History):
            given["history"] = value
        elif name == "max" and _NUMBER.fullmatch(value) and int(value) <= MAX_TURNS:
            given["most"] = int(value)
        elif name == "delay" and (time := _SECONDS.fullmatch(value)):
            given["delay"] = float(time[1]) / (1000 if time[2] == "ms" else 1)
        else:
            near = misspelled(name, ("live", "history", "delay", "max"))
            raise ValueError(
                f"expected live, history=answer, history=reasoning, delay=2s or max=1 to {MAX_TURNS}{near}"
            )
    return TurnSettings(**given)


def text_of_turns(value: Any) -> Any:
    """The option as text, also if given as a mapping; None is unchanged. Raises `ValueError`."""
    if isinstance(value, Mapping):
        value = ",".join(
            name if each is True else f"{name}={each}" for name, each in value.items() if each is not False
        )
    if isinstance(value, str):
        turns_in(value)
    return value
