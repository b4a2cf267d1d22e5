"""What tokens cost, as the user says: `--price-in` and `--price-out`, or a file of several models' prices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.core.errors import UsageError, near_names
from harness.core.inert import quoted, visible
from harness.generation.spending import Prices

MAX_FILE_BYTES = 1024 * 1024
_EXPECTED = "expected a line `MODEL: {in: USD, out: USD}` for each model, per million tokens"


class _Price(BaseModel):
    """USD per million tokens."""

    model_config = ConfigDict(extra="forbid")

    prompt: float = Field(alias="in", ge=0, allow_inf_nan=False)
    completion: float = Field(alias="out", ge=0, allow_inf_nan=False)


def read_prices(path: Path) -> dict[str, Prices]:
    """The prices by model of a YAML (or JSON) file: `deepseek-reasoner: {in: 0.55, out: 2.19}`. Raises `UsageError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(f"--prices {path}: over {MAX_FILE_BYTES} bytes; {_EXPECTED}")
        listed = TypeAdapter(dict[str, _Price]).validate_python(yaml.safe_load(data))
    except OSError as error:
        raise UsageError(f"--prices {path}: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ": ".join(str(part) for part in first["loc"]) or "top level"
        raise UsageError(f"--prices {path}: {quoted(place)}: {quoted(first['msg'])}; {_EXPECTED}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"--prices {path}: not YAML: {quoted(str(error))}; {_EXPECTED}") from error
    return {model: Prices(price.prompt, price.completion) for model, price in listed.items()}


def prices_of(flags: dict[str, Any], model: str) -> Prices | None:
    """What `model` costs by the flags; None where they do not say. Raises `UsageError`."""
    prompt, completion, listed = flags["price_in"], flags["price_out"], flags["prices"]
    if (prompt is None) != (completion is None):
        raise UsageError("--price-in and --price-out go together: prompts and replies are both billed")
    if prompt is not None:
        if listed is not None:
            raise UsageError("--prices and --price-in both say what tokens cost: give one of them")
        return Prices(prompt, completion)
    if listed is None:
        return None
    if model not in listed:
        raise UsageError(f"--prices: the file has no price of {visible(model, 80)}.{near_names(model, listed)}")
    found: Prices = listed[model]
    return found
