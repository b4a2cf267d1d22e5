"""Units: what they measure and how many of the base unit they are. Exact factors only.

A unit named on one side only is dropped. Named on both sides, the two must measure the same thing, and the values
are compared in the base unit.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """What is measured (a product of base dimensions) and the factor to the base unit."""

    dimension: tuple[tuple[str, int], ...]
    factor: Fraction


_F = Fraction
_BASE: dict[str, tuple[str, Fraction]] = {}


def _define(dimension: str, factor: Fraction | int | str, names: str) -> None:
    for name in names.split():
        _BASE[name.replace("_", " ")] = (dimension, Fraction(factor))


for _dimension, _factor, _names in (
    ("length", "1/1000000000", "nm nanometer nanometre"),
    ("length", "1/1000000", "um micrometer micrometre micron"),
    ("length", "1/1000", "mm millimeter millimetre 毫米"),
    ("length", "1/100", "cm centimeter centimetre 厘米"),
    ("length", "1/10", "dm decimeter decimetre 分米"),
    ("length", 1, "m meter metre 米"),
    ("length", 1000, "km kilometer kilometre 千米 公里"),
    ("length", "254/10000", "in inch inche"),
    ("length", "3048/10000", "ft foot feet"),
    ("length", "9144/10000", "yd yard"),
    ("length", "1609344/1000", "mi mile"),
    ("mass", "1/1000000", "mg milligram 毫克"),
    ("mass", "1/1000", "g gram 克"),
    ("mass", 1, "kg kilogram 千克 公斤"),
    ("mass", 1000, "ton tonne 吨"),
    ("pound", 1, "lb pound"),
    ("pound", "1/16", "oz ounce"),
    ("time", "1/1000000000", "ns nanosecond"),
    ("time", "1/1000", "ms millisecond"),
    ("time", 1, "s sec second 秒 秒钟"),
    ("time", 60, "min minute 分钟 分"),
    ("time", 3600, "h hr hour 小时 时"),
    ("time", 86400, "day 天 日"),
    ("time", 604800, "week wk 周 星期"),
    ("month", 1, "month 个月 月"),
    ("month", 12, "year yr 年"),
    ("volume", "1/1000000", "ml milliliter millilitre cc 毫升"),
    ("volume", "1/1000", "l liter litre 升"),
    ("gallon", 1, "gallon gal"),
    ("gallon", "1/4", "quart qt"),
    ("gallon", "1/8", "pint pt"),
    ("gallon", "1/16", "cup"),
    ("area", 10000, "hectare ha 公顷"),
    ("acre", 1, "acre"),
    ("speed", "44704/100000", "mph"),
    ("speed", "1000/3600", "kph kmh"),
    ("dollar", 1, "dollar usd buck"),
    ("dollar", "1/100", "cent ¢ penny pennies nickel_cents"),
    ("euro", 1, "euro eur"),
    ("sterling", 1, "pounds_sterling gbp"),
    ("yuan", 1, "yuan rmb 元 圆 块"),
    ("yuan", "1/10", "角 毛"),
    ("degree", 1, "degree deg 度 °"),
    ("degree", "1/60", "arcminute"),
    ("radian", 1, "radian rad 弧度"),
    ("celsius", 1, "celsius"),
    ("force", 1, "newton"),
    ("energy", 1, "j joule"),
    ("energy", 1000, "kj kilojoule"),
    ("power", 1, "w watt"),
    ("power", 1000, "kw kilowatt"),
    ("charge", 1, "coulomb"),
    ("potential", 1, "v volt"),
    ("resistance", 1, "ohm"),
    ("frequency", 1, "hz hertz"),
    ("pressure", 1, "pa pascal"),
    ("temperature", 1, "k kelvin"),
    ("substance", 1, "mol mole"),
    ("energy_ev", 1, "ev"),
    ("sided", 1, "unit 单位"),
):
    _define(_dimension, _factor, _names)

_SQUARE = re.compile(r"\b(?:square|sq\.?)\s+(\w+)|(平方)\s*(\w+)")
_CUBIC = re.compile(r"\b(?:cubic|cu\.?)\s+(\w+)|(立方)\s*(\w+)")
_FACTOR = re.compile(r"\s*([a-z¢°一-鿿]+)\s*(?:\^?\s*\{?\s*(-?\d)\s*\}?)?\s*")
_PURE = re.compile(r"[0-9a-zA-Z\s^{}/*·.¢°一-鿿\-]+")
_NO_PLURAL = frozenset(("s", "ms", "ns", "celsius", "hertz", "gas", "lens", "pennies"))


def unit_of(words: str) -> Unit | None:
    """The unit that `words` name ("cm^2", "square inches", "m/s", "kg·m/s"); None when one of them is unknown."""
    text = words.strip().rstrip(".").lower()
    if not text or len(text) > 60 or _PURE.fullmatch(text) is None:
        return None
    text = _SQUARE.sub(lambda m: f"{m[1] or m[3]}^2", text)
    text = _CUBIC.sub(lambda m: f"{m[1] or m[3]}^3", text)
    text = text.replace("squared", "^2").replace("cubed", "^3").replace(" per ", "/").replace("每", "/")
    dimension: dict[str, int] = {}
    factor = Fraction(1)
    for place, part in enumerate(text.split("/")):
        sign = -1 if place else 1
        at = 0
        while at < len(part):
            match = _FACTOR.match(part, at) if part[at] not in "*·. " else None
            if match is None:
                if part[at] in "*·. ":
                    at += 1
                    continue
                return None
            known = _BASE.get(match[1]) or _BASE.get(_singular(match[1]))
            if known is None:
                return None
            power = sign * int(match[2] or 1)
            name, size = known
            if name == "volume":
                name, power_of = "length", 3
            elif name == "area":
                name, power_of = "length", 2
            elif name == "speed":
                dimension["time"] = dimension.get("time", 0) - power
                name, power_of = "length", 1
            else:
                power_of = 1
            dimension[name] = dimension.get(name, 0) + power * power_of
            factor *= size**power
            at = match.end()
    left = tuple(sorted((name, power) for name, power in dimension.items() if power))
    return Unit(left, factor)


def _singular(word: str) -> str:
    if word in _NO_PLURAL or not word.endswith("s"):
        return word
    return word[:-1]


def noun_of(words: str) -> str:
    """Unknown words behind a number, reduced for comparison: lower case, singular."""
    return " ".join(
        _singular(word) for word in re.findall(r"[a-z一-鿿]+", words.lower()) if word not in ("the", "of", "a")
    )
