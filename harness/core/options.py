"""Options: each is declared once, as an annotated field of a class, and whatever asks for it is made from that.

    class Racing(Options):
        step: Annotated[int, Option("Rounds between two looks.", least=1)] = 2

    Racing(step=0)             # UsageError: step=0: expected a number greater than or equal to 1
    options_of(Racing)         # {"step": Option(name="step", default=2, …)}

Made from a declaration: the flag with its help and the environment variable's name (`harness.cli.flags`), the typed
keyword of Python (`harness.asking.keywords`, written by `python -m tools.reference`), the key of a sweep's file with
its JSON schema (`harness.verbs.sweep.schema`), the pages of docs/reference, and the check of the value (below).

Values are checked by pydantic, which is loaded with the first value: a command line is read, and a help is printed,
without it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from harness.core import choices
from harness.core.errors import UsageError
from harness.core.wording import UNSET

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_NUMBER = 1e12
"""Largest number of any option that may be fractional; a larger one is a typing mistake."""


class Kind(NamedTuple):
    """How a wider value becomes an option's.

    accepts: the type that Python's callers may give, as source text (`FilePath` and `Texts` are
    names of `harness.asking.keywords`). parse: from such a value to the field's; raises
    `ValueError` with what was expected. schema: the type that a file may hold, for its JSON schema; None: the field's.
    """

    accepts: str
    parse: Callable[[Any], Any]
    schema: Any = None


def _listed_once(value: Any) -> Any:
    return (value,) if isinstance(value, (str, os.PathLike)) else value


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _number_once(value: Any) -> Any:
    return (value,) if isinstance(value, int) else value


def _series(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    from harness.core.series import numbers_of

    try:
        return numbers_of(value)
    except ValueError as error:
        raise ValueError("expected whole numbers such as 8,16,32 or 8,16,…,256") from error


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value or {}
    from harness.core import codec

    try:
        return codec.decode(value, dict[str, Any])
    except codec.DecodeError as error:
        raise ValueError(f"expected a JSON object such as '{{\"top_k\": 20}}' ({error})") from error


def _not_empty(value: Any) -> Any:
    if isinstance(value, str) and not value:
        raise ValueError("the path is empty")  # an unset variable of a shell must not mean the current folder
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _present(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("it is a folder; expected a file" if path.is_dir() else "there is no such file")
    return path


TEXTS = Kind("Texts", _listed_once, str | tuple[str, ...])
"""Several texts; one text stands for a list of one. Its flag may be repeated."""

COMMAS = Kind("Texts", _split, str | tuple[str, ...])
"""Several texts; a text with commas stands for a list."""

NUMBERS = Kind("int | Sequence[int]", _number_once, int | tuple[int, ...])
"""Several whole numbers; one number stands for a list of one. Its flag may be repeated."""

SERIES = Kind("str | Sequence[int]", _series, str | tuple[int, ...])
"""Several whole numbers; a text with commas stands for a list, and dots for the numbers between."""

JSON = Kind("str | Mapping[str, Any]", _decoded, str | dict[str, Any])
"""A mapping, or a text with a JSON object."""

PATH = Kind("FilePath", _not_empty)
"""A path, which is not the empty text."""

ADDRESS = Kind("FilePath", lambda value: os.fspath(value))
"""A path or an address, as text."""

MIN_POINTS = 0.05
"""A smaller number of points is taken for a fraction, the earlier spelling, and refused."""


def _points(value: Any) -> Any:
    if isinstance(value, int | float) and 0 < value < MIN_POINTS:
        points = f"{100 * value:g} point{'' if 100 * value == 1 else 's'}"
        raise ValueError(f"it is a fraction, and points are asked for: type {100 * value:g} for {points}")
    return value


POINTS = Kind("float", _points)
"""A difference or an error in points: 1 is one hundredth of an accuracy."""

SEED = Kind("int", lambda value: value)
"""A whole number; None sends none, and is no default (`none` on a command line)."""

LINES = Kind("str", lambda value: value)
"""A text in which `\\n` stands for the end of a line where it is typed into a shell."""

_KINDS: Mapping[Any, Kind] = {Path: PATH, dict: JSON, tuple[str, ...]: TEXTS, tuple[int, ...]: NUMBERS}
"""The kind that a field has by its type, unless its declaration names another."""


@dataclass(frozen=True)
class Option:
    """How a field of `Options` is asked for. `help` is shown by every verb that takes the option; a sentence names
    another option by `wording.option`, never by its flag.

    under: the heading in a command's help. flag: its word on a command line, where that is not the name.
    complete: what a shell completes, a function of `harness.cli.completing`.
    least, most, above, below: bounds of a number, or of each of several. chars: the least length of a text, or of each
    of several. items: how many there may be. strict: False: a text that reads as a number is taken too.
    file: the path is a file that is there. secret: the value is shown nowhere. argument: it has no flag, and stands
    first in Python.
    """

    help: str
    _: KW_ONLY
    under: str = ""
    flag: str | None = None
    metavar: str | None = None
    complete: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    chars: int | None = None
    items: int | None = None
    strict: bool = True
    file: bool = False
    secret: bool = False
    argument: bool = False
    kind: Kind | None = None

    name: str = ""
    """This and the rest are filled in from the field."""
    type: Any = None
    """Without None."""
    optional: bool = False
    default: Any = None
    """`...`: there is none, and a value must be given."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that the value is one of; empty: any value."""
        return get_args(self.type) if get_origin(self.type) is Literal else ()

    @property
    def accepts(self) -> str:
        """The type that Python's callers may give, as source text."""
        if self.choices:
            words = get_args(self.type)
            plain = next((name for name, choice in vars(choices).items() if get_args(choice) == words), None)
            plain = plain or f"Literal[{', '.join(json.dumps(word) for word in words)}]"
        else:
            plain = self.kind.accepts if self.kind is not None else self.type.__name__
        return f"{plain} | None" if self.optional else plain

    @property
    def annotation(self) -> Any:
        """The field's type with its bounds, for pydantic."""
        from pydantic import AfterValidator, BeforeValidator, Field

        bounds = {"ge": self.least, "le": self.most, "gt": self.above, "lt": self.below}
        is_sequence = self.type in (tuple[int, ...], tuple[str, ...])
        checked = get_args(self.type)[0] if is_sequence else self.type
        if checked is int:
            checked = Annotated[int, Field(strict=self.strict, **_set(bounds))]
        elif checked is float:
            if self.strict and self.most is None and self.below is None:
                bounds["le"] = MAX_NUMBER
            checked = Annotated[float, Field(strict=self.strict, allow_inf_nan=False, **_set(bounds))]
        elif self.chars is not None:
            checked = Annotated[checked, Field(min_length=self.chars)]
        elif self.file:
            checked = Annotated[checked, AfterValidator(_present)]
        if is_sequence:
            checked = Annotated[tuple[checked, ...], Field(max_length=self.items)]  # type: ignore[valid-type]
        if self.kind is not None:
            schema = _set({"json_schema_input_type": self.kind.schema})
            checked = Annotated[checked, BeforeValidator(self.kind.parse, **schema)]
        return checked | None if self.optional else checked


def _set(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def options_of(declared: type[Options]) -> Mapping[str, Option]:
    """The options of a class by their names: those of its bases from left to right, then its own."""
    return declared._table


def _resolved(name: str, hint: Any, default: Any) -> Option:
    stated, option = get_args(hint)
    alternatives = get_args(stated) if get_origin(stated) in (Union, UnionType) else (stated,)
    (plain,) = (alternative for alternative in alternatives if alternative is not NoneType)
    kind = option.kind or _KINDS.get(dict if get_origin(plain) is dict else plain)
    filled: Option = replace(
        option, name=name, type=plain, optional=NoneType in alternatives, default=default, kind=kind
    )
    return filled


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """A frozen value whose fields are options, made from keywords. Raises `UsageError` that names the field.

    given: the options that were set, also those set to their defaults.
    """

    _given: ClassVar[frozenset[str]] = frozenset()
    _table: ClassVar[Mapping[str, Option]] = {}
    _model: ClassVar[type[BaseModel]]

    def __init_subclass__(cls, *, strict: bool = False) -> None:
        """strict: no text is taken for a number."""
        table: dict[str, Option] = {}
        for base in cls.__bases__:
            table |= getattr(base, "_table", {})
        own = SimpleNamespace(__annotations__=vars(cls).get("__annotations__", {}))
        hints = get_type_hints(own, vars(sys.modules[cls.__module__]), include_extras=True)
        table |= {
            name: _resolved(name, hint, getattr(cls, name, ...))
            for name, hint in hints.items()
            if get_origin(hint) is Annotated
        }
        cls._table = {name: replace(option, strict=strict or option.strict) for name, option in table.items()}

    if not TYPE_CHECKING:  # checkers see the fields as keywords

        def __init__(self, **given: Any) -> None:
            vars(self).update(_checked(type(self), given))
            object.__setattr__(self, "_given", frozenset(given))
            self._check()

    @classmethod
    def of(cls, **given: Any) -> Self:
        """The options that are given; None leaves one as it is by default, but for a seed. Raises `UsageError`."""
        return cls(**cls.stated(given))

    @classmethod
    def stated(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The options of `given` that say something: None leaves one as it is by default, but for a seed."""
        seeds = {name for name, option in options_of(cls).items() if option.kind is SEED}
        return {name: value for name, value in given.items() if value is not None or name in seeds}

    def _check(self) -> None:
        """Raise `UsageError` where options do not go together."""

    @property
    def given(self) -> dict[str, Any]:
        """The options that were set, by name, in the order of the declarations."""
        return {name: value for name, value in self if name in self._given}

    @property
    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name."""
        table = options_of(type(self))
        return {name: value for name, value in self if value != table[name].default}

    @property
    def plain(self) -> dict[str, Any]:
        """The options that differ from their defaults, as values of JSON."""
        model = model_of(type(self)).model_construct(**dict(self))
        return model.model_dump(mode="json", exclude_defaults=True, fallback=str)

    def but(self, **changes: Any) -> Self:
        """The same options with these changes. Raises `UsageError`."""
        return type(self)(**{**self.given, **changes})

    def __iter__(self) -> Any:
        """Pairs of name and value, in the order of the declarations."""
        return ((name, getattr(self, name)) for name in options_of(type(self)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """How pydantic makes a field of this class from a mapping, in a card or a preset: by the same checks."""
        from pydantic_core import core_schema

        def from_mapping(value: Any, check: Callable[[Any], Any]) -> Any:
            if isinstance(value, cls):
                return value
            model = check(value)
            return cls(**{name: getattr(model, name) for name in model.model_fields_set})

        def written(value: Any, info: Any) -> dict[str, Any]:
            return value.changed if info.exclude_defaults or info.exclude_none else dict(value)

        how = core_schema.plain_serializer_function_ser_schema(written, info_arg=True)
        return core_schema.no_info_wrap_validator_function(from_mapping, handler(model_of(cls)), serialization=how)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make another with but({name}=…)")

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Options) and type(other) is type(self) else NotImplemented

    def __repr__(self) -> str:
        from harness.core.secret import without_secrets

        secrets = {name for name, option in options_of(type(self)).items() if option.secret}
        plain = {name: value for name, value in self.given.items() if name not in secrets}
        shown = (f"{name}={without_secrets(value, queries=True)!r}" for name, value in plain.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def model_of(declared: type[Options]) -> type[BaseModel]:
    """The pydantic model that checks the values of a class of options, made when it is first wanted."""
    model: type[BaseModel] | None = vars(declared).get("_model")
    if model is None:
        from pydantic import ConfigDict, create_model

        fields: Any = {name: (option.annotation, option.default) for name, option in options_of(declared).items()}
        model = declared._model = create_model(
            declared.__name__, __config__=ConfigDict(extra="forbid", defer_build=True), **fields
        )
    return model


def _checked(declared: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    from pydantic import ValidationError

    from harness.core.validation import first_problem

    model = model_of(declared)
    try:
        return dict(model.model_validate(given))
    except ValidationError as error:
        table = options_of(declared)
        problem = first_problem(error, table)
        name = problem.field.partition(".")[0]
        if name not in table:
            raise UsageError(problem.sentence) from error
        # A JSON text that cannot be read may hold a key anywhere.
        unshown = table[name].secret or (get_origin(table[name].type) is dict and isinstance(given.get(name), str))
        raise UsageError(expected(problem.complaint), field=name, value=UNSET if unshown else given.get(name)) from (
            None if unshown else error
        )


_IN_WORDS = (
    (r"^Input should be (?=(greater|less) )", "expected a number "),
    (
        r"^(?:List|Tuple) should have (at (?:least|most) \d+) items? after validation, not (\d+)",
        r"expected \1, found \2",
    ),
    (r"^String should have (at least \d+ characters?)", r"expected \1"),
    (r"Input should be", "expected"),
)
"""Pydantic's wording → the words that a person reads after the value."""


def expected(complaint: str) -> str:
    """Pydantic's complaint about one value, as it reads after the value."""
    for theirs, ours in _IN_WORDS:
        complaint = re.sub(theirs, ours, complaint)
    return complaint
