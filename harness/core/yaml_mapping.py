"""The base class of mappings that people write in YAML (cards, presets, sweeps), and the forms of texts in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Part(BaseModel):
    """A mapping in a YAML file: frozen, and unknown keys are rejected."""

    # defer_build: pydantic compiles a class's check at its first use, so a start pays only for what it uses.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@dataclass(frozen=True)
class TextForm:
    r"""The form of a text: `Annotated[str, TextForm(r"https://\S+", "an address that begins with https://")]`.

    pattern: matches the whole text. words: describes the form in the error for any other text, after "expected".
    """

    pattern: str
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def check(text: str) -> str:
            """Return `text`. Raises `ValueError` if it has a different form."""
            if re.fullmatch(self.pattern, text) is None:
                raise ValueError(f"expected {self.words}")
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^({self.pattern})$"}


SHORT_NAME = TextForm(
    r"[a-z0-9][a-z0-9._-]{0,79}", "at most 80 lowercase letters, digits, or . _ -, starting with a letter or digit"
)
"""A name from which a folder name is made."""

HTTPS = TextForm(r"https://.+", "a URL that begins with https://")
