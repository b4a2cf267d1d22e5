"""Options: each is declared once, as an annotated field of a class; its flag, keyword and check derive from that.

    class Showing(Options):
        rows: Annotated[int, Option(least=1)] = 2
        "Rows to show."

    Showing(rows=0)            # UsageError: rows=0: expected a number greater than or equal to 1
    options_of(Showing)        # {"rows": Option(name="rows", default=2, …)}

Made from a declaration: the flag with its help (`harness.cli.flags`), the typed Python keyword
(`harness.options.keywords`, written by `python -m tools.reference`), the key in a sweep file with its JSON schema
(`harness.sweeps.schema`), the pages of docs/reference, and the check of the value (below).

A value that is plainly valid (`_is_plain`) needs no further check. All others are checked by pydantic, which is only
imported for the first of them, so that help and most commands never wait for it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from harness.core import literals
from harness.core.errors import UNSET, UsageError
from harness.core.field_docs import field_docs
from harness.core.option_kinds import COMMAS, JSON, NUMBERS, PATH, PATHS, SEED, TEXTS, Kind, text_as_tuple
from harness.core.secret import Secret, seal_secrets

if TYPE_CHECKING:
    from pydantic import BaseModel

Narrower = TypeVar("Narrower", bound="Options")

MAX_NUMBER = 1e12
"""Limit for a fractional option that declares none; a larger number is a typo."""


_KINDS: Mapping[Any, Kind] = {
    Path: PATH,
    dict: JSON,
    tuple[str, ...]: TEXTS,
    tuple[int, ...]: NUMBERS,
    tuple[Path, ...]: PATHS,
}
"""A field's type → the kind of an option whose declaration names none."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of one option: its help, its limits, and how the command line and Python accept it.

    The help, which every command with the option shows, is the first paragraph of the docstring below the field;
    computed: a generated help text that replaces that docstring. A help text refers to another option by its name, as
    in `errors.as_keyword`, never by a flag.
    under: the heading in a command's help. flag: the word on the command line, if it is not the name. metavar: the
    value's placeholder in the help.
    least, most, above, below: limits of the number, or of each number in a list. chars: smallest length of the text,
    or of each text in a list. items: largest number of items in a list. strict: whether the text "8" is rejected as a
    number. secret: whether the value is hidden everywhere. argument: whether the option has no flag, but is a
    positional argument on the command line and in Python. newest: whether that argument is a run and, if it is missing
    on a command line, the newest one. prints: for the option that prints a result as JSON,
    MODULE:TYPE of the result, or list[MODULE:TYPE].
    """

    computed: str = ""
    under: str = ""
    flag: str | None = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    chars: int | None = None
    items: int | None = None
    strict: bool = True
    secret: bool = False
    argument: bool = False
    newest: bool = False
    prints: str = ""
    kind: Kind | None = None

    name: str = ""
    """The field's name. This and the four below are filled in by `Options`, from the field."""
    owner: str = ""
    """Module and name of the class, such as `harness.options.run:Limits`."""
    type: Any = None
    """The field's type, without None."""
    optional: bool = False
    """Whether the field's type allows None."""
    default: Any = None
    """The field's default; `...` if a value must be given."""

    @property
    def help(self) -> str:
        """What the option does, as one line of text."""
        module, _, owner = self.owner.partition(":")
        return self.computed or field_docs(module, owner)[self.name]

    @property
    def flag_word(self) -> str:
        """The flag on a command line; for a switch that is on by default, the flag that turns it off."""
        plain = self.flag or self.name.replace("_", "-")
        return f"--no-{plain}" if self.type is bool and self.default is True else f"--{plain}"

    def arguments(self, value: Any) -> list[str]:
        """The words of a command line that give the option this value; none for a switch with its default value."""
        if self.type is bool:
            plain = self.flag or self.name.replace("_", "-")
            return [] if value == self.default else [f"--{'' if value else 'no-'}{plain}"]
        if isinstance(value, Mapping):
            pairs = [f"{name}={text}" for name, text in value.items()]
            texts = pairs if self.metavar == "NAME=VALUE" else [json.dumps(value)]
        elif isinstance(value, list | tuple):
            texts = [",".join(map(str, value))] if self.kind is COMMAS else [*map(str, value)]
        else:
            texts = ["none" if value is None else str(value)]
        return [word for text in texts for word in (self.flag_word, text)]

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that are allowed as the value or in a list; empty if the option has no fixed choices."""
        return get_args(self.item_type) if get_origin(self.item_type) is Literal else ()

    def example(self, usual: float) -> float:
        """A number that the option accepts: the usual one if it is within the limits."""
        within = [value for value in (usual, self.least, self.most, 1) if value is not None and self.holds(value)]
        return within[0]

    def holds(self, value: float) -> bool:
        """Whether a number is within the option's limits."""
        least = -MAX_NUMBER if self.least is None else self.least
        most = MAX_NUMBER if self.most is None else self.most
        inside = (self.above is None or self.above < value) and (self.below is None or value < self.below)
        return least <= value <= most and inside

    @property
    def is_list(self) -> bool:
        """Whether the value is a tuple of any length."""
        return get_origin(self.type) is tuple

    @property
    def item_type(self) -> Any:
        """The type of an item if the option is a list, otherwise the field's type."""
        return get_args(self.type)[0] if self.is_list else self.type

    @property
    def accepts(self) -> str:
        """The type that Python callers may pass, as source text."""
        if self.choices:
            # A Literal that has a name in `core.literals` is written as that name.
            words = self.choices
            plain = next((name for name, choice in vars(literals).items() if get_args(choice) == words), None)
            plain = plain or f"Literal[{', '.join(json.dumps(word) for word in words)}]"
            plain = f"{plain} | Sequence[{plain}]" if self.is_list else plain
        else:
            plain = self.kind.accepts if self.kind is not None else self.type.__name__
        return f"{plain} | None" if self.optional else plain

    def may_show(self, value: Any) -> bool:
        """Whether a message may show a rejected value: a number, a path or a text, or a list of them, if the option's
        declaration allows no keys and no request fields; a text only if no key is found in it.
        """
        if self.secret or get_origin(self.type) is dict:
            return False
        if isinstance(value, (list, tuple)):
            return self.type is not Path and all(map(self.may_show, value))
        if isinstance(value, str) and self.type is not Path:
            return not isinstance(seal_secrets(value, self.name), Secret)
        return value is None or isinstance(value, (int, float, str, os.PathLike))

    @property
    def annotation(self) -> Any:
        """The field's type with its limits and its `Kind.parse`, in pydantic's form."""
        from pydantic import BeforeValidator, Field

        bounds = {"ge": self.least, "le": self.most, "gt": self.above, "lt": self.below}
        checked = self.item_type
        if checked is int:
            checked = Annotated[int, Field(strict=self.strict, **_without_none(bounds))]
        elif checked is float:
            if self.strict and self.most is None and self.below is None:
                bounds["le"] = MAX_NUMBER
            checked = Annotated[float, Field(strict=self.strict, allow_inf_nan=False, **_without_none(bounds))]
        elif self.chars is not None:
            checked = Annotated[checked, Field(min_length=self.chars)]
        if self.is_list:
            checked = Annotated[tuple[checked, ...], Field(max_length=self.items)]  # type: ignore[valid-type]
        if self.kind is not None:
            schema = _without_none({"json_schema_input_type": self.kind.schema})
            checked = Annotated[checked, BeforeValidator(self.kind.parse, **schema)]
        return checked | None if self.optional else checked


def _without_none(given: Mapping[str, Any]) -> dict[str, Any]:
    """The entries whose value is not None."""
    return {name: value for name, value in given.items() if value is not None}


def options_of(declared: type[Options]) -> Mapping[str, Option]:
    """Name → declaration of each option of a class: those of its bases from left to right, then its own."""
    return declared._table


def _complete_option(name: str, hint: Any, default: Any, owner: str) -> Option:
    """The declaration in a field's annotation, completed with the field's name, type, default and class.

    hint: the field's annotation, such as Annotated[int, Option(…)].
    """
    stated, option = get_args(hint)
    # `int | None` means the type int, optional.
    alternatives = get_args(stated) if get_origin(stated) in (Union, UnionType) else (stated,)
    (plain,) = (alternative for alternative in alternatives if alternative is not NoneType)
    kind = option.kind or _KINDS.get(dict if get_origin(plain) is dict else plain)
    filled: Option = replace(
        option, name=name, owner=owner, type=plain, optional=NoneType in alternatives, default=default, kind=kind
    )
    # A list of fixed words: a caller may pass a single word.
    if kind is None and filled.is_list and filled.choices:
        word = filled.item_type
        schema = word | tuple[word, ...]  # type: ignore[valid-type]
        filled = replace(filled, kind=Kind(filled.accepts, text_as_tuple, schema))
    return filled


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Base class of a set of options: a frozen value, made from keywords, that remembers which of them were set.

    `explicit` has the options that were set, even to their defaults; `changed` has those that differ from the
    defaults. Creating an instance raises a `UsageError` that names an invalid option.
    """

    _given: ClassVar[frozenset[str]] = frozenset()
    _table: ClassVar[Mapping[str, Option]] = {}
    _model: ClassVar[type[BaseModel]]

    def __init_subclass__(cls, *, strict: bool = False, without: Iterable[str] = ()) -> None:
        """Build the class's table of options.

        strict: whether no option of this class accepts a text as a number. without: options of the bases that this
        class does not accept; they keep their defaults.
        """
        table: dict[str, Option] = {}
        for base in cls.__bases__:
            table |= getattr(base, "_table", {})
        stated = vars(cls).get("__annotations__", {})
        own = {name: hint for name, hint in stated.items() if hint.startswith("Annotated[")}
        hints = get_type_hints(
            SimpleNamespace(__annotations__=own), vars(sys.modules[cls.__module__]), include_extras=True
        )
        owner = f"{cls.__module__}:{cls.__name__}"
        table |= {name: _complete_option(name, hint, getattr(cls, name, ...), owner) for name, hint in hints.items()}
        left_out = set(without)
        cls._table = {
            name: replace(option, strict=True) if strict and not option.strict else option
            for name, option in table.items()
            if name not in left_out
        }

    if not TYPE_CHECKING:  # checkers see the fields as keywords

        def __init__(self, **given: Any) -> None:
            vars(self).update(_check_values(type(self), given))
            # The class rejects ordinary assignments, including these.
            object.__setattr__(self, "_given", frozenset(given))
            self._check()

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Make the options from keywords in which None means "not set". Raises `UsageError`.

        A command line and a Python function pass on every keyword, even those that the user left out.
        """
        return cls(**cls.without_unset(given))

    @classmethod
    def without_unset(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """`given` without the options that are None, except a seed, for which None is a valid value."""
        seeds = {name for name, option in options_of(cls).items() if option.kind is SEED}
        return {name: value for name, value in given.items() if value is not None or name in seeds}

    def _check(self) -> None:
        """Raise `UsageError` if options contradict each other. Subclasses override it."""

    @property
    def explicit(self) -> dict[str, Any]:
        """The options that were set, by name, in the order of the declarations."""
        return {name: value for name, value in self if name in self._given}

    @property
    def changed(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name."""
        table = options_of(type(self))
        return {name: value for name, value in self if value != table[name].default}

    @property
    def plain(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name, as JSON values."""
        model = model_of(type(self)).model_construct(**dict(self))
        return model.model_dump(mode="json", exclude_defaults=True, fallback=str)

    def replace(self, **changes: Any) -> Self:
        """A copy with these options changed. Raises `UsageError`."""
        return type(self)(**{**self.explicit, **changes})

    def narrow(self, declared: type[Narrower]) -> Narrower:
        """An instance of `declared` with the options that were set and that it has. Raises `UsageError`."""
        return declared(**{name: value for name, value in self.explicit.items() if name in options_of(declared)})

    def __iter__(self) -> Any:
        """Pairs of name and value, in the order of the declarations."""
        return ((name, getattr(self, name)) for name in options_of(type(self)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Allow fields of this class in pydantic models: a mapping in a card or a preset is checked like keywords."""
        from pydantic_core import core_schema

        def from_mapping(value: Any, check: Callable[[Any], Any]) -> Any:
            """The options in a mapping that the model `check` accepts; an instance of the class is unchanged."""
            if isinstance(value, cls):
                return value
            model = check(value)
            return cls(**{name: getattr(model, name) for name in model.model_fields_set})

        def to_mapping(value: Any, info: Any) -> dict[str, Any]:
            """The value as a mapping, without the defaults if defaults or None are to be excluded."""
            return value.changed if info.exclude_defaults or info.exclude_none else dict(value)

        return core_schema.no_info_wrap_validator_function(
            from_mapping,
            handler(model_of(cls)),
            serialization=core_schema.plain_serializer_function_ser_schema(to_mapping, info_arg=True),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use `replace({name}=…)` to make a modified copy")

    def __eq__(self, value: object) -> bool:
        return dict(self) == dict(value) if isinstance(value, Options) and type(value) is type(self) else NotImplemented

    def __repr__(self) -> str:
        from harness.core.secret import without_secrets

        secrets = {name for name, option in options_of(type(self)).items() if option.secret}
        plain = {name: value for name, value in self.explicit.items() if name not in secrets}
        shown = (f"{name}={without_secrets(value, queries=True)!r}" for name, value in plain.items())
        return f"{type(self).__name__}({', '.join(shown)})"


def model_of(declared: type[Options]) -> type[BaseModel]:
    """The pydantic model that checks the values of a class of options; created on the first call, then cached."""
    model: type[BaseModel] | None = vars(declared).get("_model")
    if model is None:
        from pydantic import ConfigDict, create_model

        fields: Any = {name: (option.annotation, option.default) for name, option in options_of(declared).items()}
        # Built at the first check: building every model would delay the start of each command.
        model = declared._model = create_model(
            declared.__name__, __config__=ConfigDict(extra="forbid", defer_build=True), **fields
        )
    return model


def _is_plain(option: Option, value: Any) -> bool:
    """Whether a value certainly passes its check unchanged: a word, a number within its limits, a boolean."""
    if value is None:
        return option.optional
    if type(value) is not option.type or option.kind is not None:
        return False
    if isinstance(value, str):
        return option.chars is None and value.isascii()
    if isinstance(value, (int, float)):
        return option.holds(value)
    return False


def _check_values(declared: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Check all values, and return every option by name, with defaults filled in. Raises `UsageError` for the first
    problem.
    """
    options = options_of(declared)
    defaults = {name: option.default for name, option in options.items() if name not in given}
    # A required option, and a mapping that must not be shared, are left to pydantic.
    if (
        given.keys() <= options.keys()
        and all(_is_plain(options[name], value) for name, value in given.items())
        and not any(default is ... or isinstance(default, dict) for default in defaults.values())
    ):
        return {name: given[name] if name in given else defaults[name] for name in options}
    from pydantic import ValidationError

    from harness.core.validation import first_problem

    try:
        return dict(model_of(declared).model_validate(given))
    except ValidationError as error:
        problem = first_problem(error, [*options])
    # Raised outside the handler: a traceback would also print pydantic's error, which repeats the values and any keys.
    name = problem.field.partition(".")[0]
    if name not in options:
        raise UsageError(problem.sentence)
    value = given.get(name)
    raise UsageError(problem.complaint, field=name, value=value if options[name].may_show(value) else UNSET)
