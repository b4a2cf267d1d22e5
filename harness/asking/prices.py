"""Prices of tokens from the user: two numbers, or a file with the prices of several models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from harness.core.errors import UsageError, near_names
from harness.core.inert import visible
from harness.core.money import Prices, prices_in
from harness.core.part import Part
from harness.core.validation import first_problem
from harness.core.yaml_file import read_mapping

MAX_FILE_BYTES = 1024 * 1024
MIN_USUAL_USD, MAX_USUAL_USD = 0.001, 1000.0
"""A price in USD per million tokens outside of these bounds is more likely a price of one token or of a thousand."""
_EXPECTED = "expected a line `MODEL: {in: USD, out: USD}` for each model, per million tokens"


class _Price(Part):
    """USD per million tokens."""

    prompt: float = Field(alias="in", ge=0, allow_inf_nan=False)
    completion: float = Field(alias="out", ge=0, allow_inf_nan=False)


def read_prices(path: Path) -> dict[str, Prices]:
    """The prices by model of a YAML (or JSON) file: `deepseek-reasoner: {in: 0.55, out: 2.19}`. Raises `UsageError`."""
    try:
        rows = read_mapping(path, "prices", MAX_FILE_BYTES)
        listed = TypeAdapter(dict[str, _Price]).validate_python(rows)
    except ValidationError as error:
        raise UsageError(f"{first_problem(error).sentence}; {_EXPECTED}", field="prices", value=path) from None
    except UsageError as error:
        raise UsageError(f"{error.sentence}; {_EXPECTED}", field="prices", value=path) from error
    return {model: Prices(price.prompt, price.completion) for model, price in listed.items()}


def doubtful(prices: Prices) -> str | None:
    """A warning about prices that look like USD per token, or per another number of tokens; None without doubt."""
    odd = [each for each in (prices.prompt, prices.completion) if 0 < each < MIN_USUAL_USD or each > MAX_USUAL_USD]
    if not odd:
        return None
    return (
        f"a price of {odd[0]:g} USD per million tokens is unusual ({MIN_USUAL_USD:g} to {MAX_USUAL_USD:,g}), and costs "
        "and budgets follow from it: give prices per million tokens, as on the bill, not per token"
    )


def listed_prices(given: str | None) -> dict[str, Prices] | None:
    """The prices by model of the file that the option `prices` names; None if it names none. Raises `UsageError`."""
    return None if given is None or prices_in(given) is not None else read_prices(Path(given))


def prices_of(given: str, model: str, listed: Mapping[str, Prices] | None = None) -> Prices:
    """The prices of `model` by the option `prices`. listed: those of its file, if read already. Raises `UsageError`."""
    if (stated := prices_in(given)) is not None:
        return stated
    listed = read_prices(Path(given)) if listed is None else listed
    if model not in listed:
        raise UsageError(
            f"the file has no price of {visible(model, 80)}: add a line for this model.{near_names(model, listed)}",
            field="prices",
            value=given,
        )
    return listed[model]
