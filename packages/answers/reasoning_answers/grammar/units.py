"""Units: what each measures and exactly how many base units it is; scale words; words for what is counted.

A unit has a dimension, which is a product of base dimensions with integer exponents (speed is length¹ time⁻¹), and a
factor: its size in base units of this dimension. Two units are convertible if their dimensions are equal. Dimensions
that physics would convert but school answers do not are kept separate: pounds from kilograms, months from seconds,
gallons from liters, currencies from one another. `reasoning_answers.compare.scalars` defines what this means for the
comparison of two answers.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from reasoning_answers.grammar.tree import names
from reasoning_answers.patterns import regex


class Unit(NamedTuple):
    """A unit. dimension: sorted pairs (base dimension, exponent), no exponent 0. factor: its size in base units.

    offset: for a temperature scale, the negated reading at absolute zero.
    """

    dimension: tuple[tuple[str, int], ...]
    factor: Fraction
    offset: Fraction = Fraction(0)


_TABLE = (
    ("metre meter 米", "1", "length"), ("gram 克", "1/1000", "mass"), ("second 秒", "1", "time"),
    ("ampere amp 安培 安", "1", "current"), ("mole", "1", "substance"), ("kelvin", "1", "temperature"),
    ("litre liter 升", "1/1000", "metre^3"), ("hertz 赫兹 赫", "1", "second^-1"),
    ("newton 牛顿 牛", "1000", "gram*metre*second^-2"), ("pascal 帕斯卡 帕", "1", "newton*metre^-2"),
    ("joule 焦耳 焦", "1", "newton*metre"), ("watt 瓦特 瓦", "1", "joule/second"), ("coulomb", "1", "ampere*second"),
    ("volt 伏特 伏", "1", "watt/ampere"), ("ohm 欧姆 欧", "1", "volt/ampere"), ("siemens", "1", "ohm^-1"),
    ("farad", "1", "coulomb/volt"), ("weber", "1", "volt*second"), ("henry", "1", "weber/ampere"),
    ("tesla", "1", "weber*metre^-2"),
    *((name, "1", name) for name in ("candela", "lumen", "becquerel", "sievert", "dalton", "steradian",
                                "bit", "byte")),
    ("lux", "1", "lumen*metre^-2"), ("gray", "1", "joule/kilogram"), ("katal", "1", "mole/second"),
    ("curie", "37000000000", "becquerel"), ("bar", "100000", "pascal"), ("hpa", "100", "pascal"),
    ("atm atmosphere", "101325", "pascal"), ("torr mmhg", "1/760", "atm"), ("calorie", "4184/1000", "joule"),
    ("dyne dyn", "1/100000", "newton"), ("lbf", "8896443230521/2000000000000", "newton"),
    ("molar", "1000", "mole*metre^-3"), ("electronvolt", "1", "electronvolt"), ("micron", "1/1000000", "metre"),
    ("angstrom", "1/10000000000", "metre"), ("erg", "1/10000000", "joule"), ("parsec", "1", "parsec"),
    *((name, "1", name) for name in ("solarm", "solarl", "solarr")), ("dm", "1/10", "metre"),
    ("公分", "1/100", "metre"), ("公里", "1000", "metre"), ("inch in inche", "254/10000", "metre"),
    ("foot ft feet", "12", "inch"), ("yard yd", "3", "foot"), ("mile mi", "1760", "yard"),
    ("nmi", "1852", "metre"), ("au", "149597870700", "metre"), ("ly light-year", "9460730472580800", "metre"),
    ("psi", "1", "lbf*inch^-2"), ("horsepower hp", "550", "foot*lbf/second"), ("公斤", "1", "kilogram"),
    ("斤", "1/2", "kilogram"), ("ton tonne 吨", "1000", "kilogram"), ("pound lb", "1", "pound"),
    ("ounce oz", "1/16", "pound"), ("sec 秒钟", "1", "second"), ("minute min 分钟 分", "60", "second"),
    ("hour h hr 小时 时 个小时", "60", "minute"), ("day 天 日", "24", "hour"), ("week wk 周 星期", "7", "day"),
    ("month 个月 月", "1", "month"), ("year yr 年", "12", "month"), ("cc", "1", "millilitre"), ("公升", "1", "litre"),
    ("gallon gal", "1", "gallon"), ("quart qt", "1/4", "gallon"), ("pint pt", "1/2", "quart"),
    ("cup", "1/2", "pint"), ("平米", "1", "metre^2"), ("hectare ha 公顷", "10000", "metre^2"), ("acre", "1", "acre"),
    ("mph", "1", "mile/hour"), ("kph kmh", "1", "kilometre/hour"), ("wh 瓦时", "1", "watt*hour"),
    ("kwh 度电 千瓦时", "1000", "watt*hour"), ("dollar usd buck 美元 美金", "1", "dollar"),
    ("cent ¢ penny pennies 美分", "1/100", "dollar"), ("euro eur 欧元", "1", "euro"),
    ("sterling gbp 英镑", "1", "sterling"), ("yen jpy 日元", "1", "yen"),
    ("yuan rmb cny 元 圆 块 元钱 块钱 人民币", "1", "yuan"), ("角 毛 角钱 毛钱", "1/10", "yuan"),
    ("分钱", "1/100", "yuan"),
    ("degree deg 度 °", "1", "degree"), ("arcminute", "1/60", "degree"), ("arcsecond", "1/3600", "degree"),
    ("radian rad 弧度", "1", "radian"), ("celsius centigrade 摄氏度", "1", "kelvin"),
    ("fahrenheit 华氏度", "5/9", "kelvin"), ("unit 单位", "1", "sided"), ("倍", "1", "metre/metre"),
)  # fmt: skip
"""Rows (names of a unit, its size in another unit, this other unit). A third entry that is not a unit from a row above
is a new dimension. Factors: SI brochure, 9th edition, tables 4, 7 and 8; the others NIST SP 811, appendix B.
"""

_SYMBOLS = {
    "m": "metre", "g": "gram", "s": "second", "A": "ampere", "mol": "mole", "K": "kelvin", "L": "litre", "l": "litre",
    "Hz": "hertz", "N": "newton", "Pa": "pascal", "J": "joule", "W": "watt", "C": "coulomb", "V": "volt", "ohm": "ohm",
    "F": "farad", "T": "tesla", "M": "molar", "eV": "electronvolt", "pc": "parsec", "S": "siemens", "Wb": "weber",
    "H": "henry", "cd": "candela", "lm": "lumen", "lx": "lux", "Bq": "becquerel", "Gy": "gray", "Sv": "sievert",
    "kat": "katal", "Ci": "curie", "bar": "bar", "cal": "calorie", "Da": "dalton", "sr": "steradian",
    "Wh": "wh", "B": "byte", "bit": "bit",
}  # fmt: skip
"""Symbols of units that take SI prefixes; they are case-sensitive (mW and MW)."""

_OFFSETS = {"celsius": Fraction("273.15"), "fahrenheit": Fraction("459.67")}
"""Temperature scale → number of its degrees between absolute zero and its own zero."""

_PREFIXES = (
    ("T", "tera", "", "1000000000000"),
    ("G", "giga", "", "1000000000"),
    ("M", "mega", "兆", "1000000"),
    ("k", "kilo", "千", "1000"),
    ("", "", "", "1"),
    ("", "deci", "分", "1/10"),
    ("c", "centi", "厘", "1/100"),
    ("m", "milli", "毫", "1/1000"),
    ("u", "micro", "微", "1/1000000"),
    ("n", "nano", "纳", "1/1000000000"),
    ("p", "pico", "皮", "1/1000000000000"),
    ("f", "femto", "飞", "1/1000000000000000"),
)
"""Rows (prefix of a symbol, of an English name, of a Chinese name, its factor); "" for none."""

_BY_SYMBOL: dict[str, Unit] = {}
"""Units by symbol, with each prefix: mW and MW."""

_BY_NAME: dict[str, Unit] = {}
"""Units by name, in lower case and singular."""

_IN_ANY_CASE: dict[str, Unit] = {}
"""Units by symbol in lower case, except for symbols that would then be ambiguous (mw)."""

_MAX_UNIT_CHARS = 60
"""Longest name of a unit that is read, in characters."""

_SQUARE = regex(r"(?i)\b(?:square|sq\.?)\s+(\w+)|(?<![一-鿿])(平方)\s*(\w+)")
_CUBIC = regex(r"(?i)\b(?:cubic|cu\.?)\s+(\w+)|(?<![一-鿿])(立方)\s*(\w+)")
"""`_SQUARE`, `_CUBIC`: 平方 and 立方 begin their unit: 千平方米 is 1,000 square meters, not 平方千米."""

_DEGREES_OF = regex(r"(?i)\bdegrees?\s+(?=(?:celsius|centigrade|fahrenheit|kelvin)\b)")
_ELECTRONVOLT = regex(r"(?i)\belectron[ -]volt(?=s?\b)")
_UNDER_SLASH = regex(r"/\s*\(([\w\s·*^-]+)\)")
"""A divisor in brackets after a slash: the mol K of J/(mol K)."""
_FACTOR = regex(r"([a-zA-Z¢°一-鿿]+)\s*(?:\^?\s*\{?\s*(-?\d)\s*\}?)?")
"""A symbol or name in a unit, with its exponent: the s^2 of m/s^2."""

_SIGNS_OF_UNIT = regex(r"[0-9a-zA-Z\s^{}/*·.¢°一-鿿\-]+")
"""A text consisting of characters that the name of a unit may have."""

_EACH_TIME = regex(r" (?:an?|each|every) (?=(?:second|minute|hour|day|week|month|year)\b)")
"""The words between a quantity and a time in "dollars a day"."""

_NO_PLURAL = frozenset(("s", "ms", "ns", "celsius", "hertz", "gas", "lens", "pennies"))
"""Words that keep their final s, although it makes most words plural."""


@lru_cache(maxsize=1_024)
def unit_of(words: str) -> Unit | None:
    """Return the unit that `words` name ("cm^2", "square inches", "m/s", "kg·m/s"); None if any part is unknown."""
    return _unit_of(words)


def _unit_of(words: str) -> Unit | None:
    """Return the unit as `unit_of` does: write words as powers, then multiply the factors on each side of a slash."""
    text = words.strip().rstrip(".").removesuffix(" old")
    if (scale := _named(_DEGREES_OF.sub("", text))) is not None and scale.offset:
        return scale  # in J/°C, as part of a unit, degrees are differences
    if not text or len(text) > _MAX_UNIT_CHARS:
        return None
    text = _ELECTRONVOLT.sub("electronvolt", _DEGREES_OF.sub("", text))
    text = _UNDER_SLASH.sub(lambda m: "/" + "/".join(re.split(r"[\s·*]+", m[1].strip())), text)
    if _SIGNS_OF_UNIT.fullmatch(text) is None:
        return None
    text = _SQUARE.sub(lambda m: f"{m[1] or m[3]}^2", with_slashes(text))
    text = _CUBIC.sub(lambda m: f"{m[1] or m[3]}^3", text).replace("squared", "^2").replace("cubed", "^3")
    exponents, factor = Counter[str](), Fraction(1)
    for n_slashes, part in enumerate(text.split("/")):
        if _FACTOR.sub("", part).strip("*·. "):
            return None
        for name, power in _FACTOR.findall(part):
            unit = _named(name)
            if unit is None:
                return None
            exponent = int(power or 1) * (-1 if n_slashes else 1)  # after a slash the exponents are negative
            for base, base_exponent in unit.dimension:
                exponents[base] += base_exponent * exponent
            factor *= unit.factor**exponent
    return Unit(tuple(sorted((base, power) for base, power in exponents.items() if power)), factor)


def _named(word: str) -> Unit | None:
    """Return the unit of one symbol or name; None if there is no such unit."""
    lower = word.lower()
    return _BY_SYMBOL.get(word) or _BY_NAME.get(lower) or _BY_NAME.get(_singular(lower)) or _IN_ANY_CASE.get(lower)


def with_slashes(words: str) -> str:
    """Return the name of a unit with a slash for each "per": 元/千克 for 元每千克, dollars/day for "dollars a day"."""
    return _EACH_TIME.sub(" per ", words).replace(" per ", "/").replace("每", "/")


def _singular(word: str) -> str:
    """Return `word` without the s of a plural."""
    return word if word in _NO_PLURAL else word.removesuffix("s")


def _fill_tables() -> None:
    """Fill `_BY_SYMBOL`, `_BY_NAME` and `_IN_ANY_CASE` from the rows, with prefixes for units that have a symbol."""
    for row, factor, other_name in _TABLE:
        other = _unit_of(other_name) or Unit(((other_name, 1),), Fraction(1))
        unit_names = row.split()
        unit = Unit(other.dimension, other.factor * Fraction(factor), _OFFSETS.get(unit_names[0], Fraction(0)))
        symbols = [symbol for symbol, name in _SYMBOLS.items() if name in unit_names]
        for short, english, chinese, size in _PREFIXES if symbols else ():
            prefixed = unit._replace(factor=unit.factor * Fraction(size))
            # A symbol takes each prefix that has a short form, and also occurs without one.
            _BY_SYMBOL.update({short + symbol: prefixed for symbol in symbols if short or size == "1"})
            prefix_and_name = [(english if name.isascii() else chinese, name) for name in unit_names]
            _BY_NAME.update({prefix + name: prefixed for prefix, name in prefix_and_name if prefix})
        _BY_NAME.update(dict.fromkeys(unit_names, unit))
    count = Counter(map(str.lower, _BY_SYMBOL))
    # In lower case, a terahenry or a picohenry would be the th of an ordinal, a pH, an "uh", and a kilobyte a kilobit.
    plain = {symbol: unit for symbol, unit in _BY_SYMBOL.items() if symbol[0] not in "Tf" and symbol[-1] not in "HB"}
    _IN_ANY_CASE.update({symbol.lower(): unit for symbol, unit in plain.items() if count[symbol.lower()] == 1})
    # Of two symbols that differ in case, the usual one: a kilometer is not Km.
    _IN_ANY_CASE.update({symbol: _BY_SYMBOL[symbol] for symbol in names("nm um mm cm km mg kg ml ns ms")})
    _BY_SYMBOL.update(d=_BY_NAME["day"], t=_BY_NAME["ton"], dL=_BY_NAME["decilitre"])


_fill_tables()


_NO_NOUN = names(
    "a all altogether different distinct each in left now of overall possible remain remaining the today total"
)
"""Words next to what was counted that do not name it: 5 apples left in all are 5 apples."""


def noun_of(words: str) -> str:
    """Return a noun after a number in lower case and singular, so that two nouns can be compared: "5 Apples"."""
    return " ".join(_singular(word) for word in re.findall(r"[^\W_]+", words.lower()) if word not in _NO_NOUN)


def same_noun(first: str, second: str) -> bool:
    """Whether two names of what was counted agree, or one of them names nothing ("left") or is longer ("of pizza")."""
    shorter, longer = sorted((first.strip(), second.strip()), key=len)
    nouns = {noun_of(first), noun_of(second)}
    return len(nouns) == 1 or "" in nouns or longer.startswith(f"{shorter} of ")


# --- numerals of scale, and what was counted ---
_SCALES = {
    "hundred": "100", "thousand": "1000", "million": "1000000", "billion": "1000000000", "trillion": "1000000000000",
    "lakh": "100000", "crore": "10000000",
    "dozen": "12", "gross": "144", "tens": "10", "halves": "1/2", "thirds": "1/3", "fourths": "1/4", "fifths": "1/5",
    "sixths": "1/6", "sevenths": "1/7", "eighths": "1/8", "ninths": "1/9", "tenths": "1/10", "hundredths": "1/100",
    "thousandths": "1/1000", "百": "100", "千": "1000", "万": "10000", "萬": "10000", "亿": "100000000",
    "億": "100000000",
}  # fmt: skip
_SCALE = regex(rf"\s*+({'|'.join(_SCALES)})(?:s\b|\b|(?=[一-鿿])|$)", re.IGNORECASE)
"""Scale words: a word after a number that multiplies the number."""

_CHINESE = regex(r"[一-鿿]+")
_CLASSIFIERS = frozenset(
    "个個人名位种種次只隻本支枝张張条條棵颗粒辆台套件岁页頁层層间間头頭匹块塊份组組对對双雙把段根朵袋箱瓶杯碗盒天项項道题題点點架艘座"
    "栋户家所班排行列轮局场場枚笔句步"
    "桶罐壶缸筐篮篓捆串束盘碟锅盆勺匙车船卷册篇幅幢株堆叠摞群批顿趟遍滴片管节首封"
)
"""Classifiers: one of them is between a Chinese number and what it counts."""

_CHANGES = regex(
    r"[不错非或多少超约近除减加乘无没上下半成折左右内外前后中之倍率若如当则几余来许整吗呢吧么]|(?<=次).|才[怪对]|平方|立方"
    r"|[零〇一二两三四五六七八九十百千万亿](?!角形|边形|位数|面体|棱|年级)"
)
"""Characters after a classifier that deny, change or continue the number: 2块五 is 2.5, 36个几 more than 36. The
numeral in 5个三角形 is part of a name. Alone, 次 means "times"; before another character, it may form a power or a
degree.
"""

_PREDICATE = regex(r"是|为|等于|属于|可以|能")
"""Chinese verbs that begin a statement about the number before them, not a unit: 7是质数, 7能整除21."""

_NOUNS_OF_ONE_SIGN = frozenset(
    "人孩娃客兵男女生羊牛马猪鸡鸭鹅鱼虾蟹兔狗猫鸟猴虎鹿蛇龟虫蜂蚕树花草苗竹叶书笔纸尺画报信梨桃杏枣瓜果菜豆蛋糖饼糕包面饭汤酒水油奶茶盐米肉药球棋牌琴鼓"
    "灯伞椅桌床柜门窗墙砖瓦车船桥路河湖井山楼房屋店厂校班组队家鞋袜帽衣裤裙布绳针线珠袋箱桶杯碗盘碟勺筷刀锅瓶盒表钟环圈点角边圆棱数根解题词字句课岛国省市县镇村"
)
"""Chinese nouns of one character that may follow a classifier; any other character may change the number: 36个强."""

_PASSED_BEHIND = regex(r"\s+(?:in\s+(?:total|all)|of\s+(?!error|them\b)[a-z]+)\Z")
"""Words after what was counted that add nothing: "apples in total", "pairs of integers"."""

FUNCTION_WORDS = names(
    "a about above across after against all along although am among an and any are around as at away be because been "
    "before behind below beneath beside besides between beyond both but by can cannot could despite did do does down "
    "during each either else ever every except few for from had has have hence he her his how however i if in inside "
    "instead into is it its just less like may might minus more most must near neither never no nor not of off on "
    "once one only onto opposite or other our out outside over past per perhaps plus rather round same she should "
    "since so some still such than that the their them then there these they this those though through thus till to "
    "too toward towards under underneath unless unlike until up upon was we were what when whenever where whereas "
    "whether which while who whom whose why will with within without would yet you your"
)
"""English function words: all prepositions, conjunctions, pronouns, articles and auxiliary verbs."""

_CONTRACTED = regex(r"n['’]t\b")
"""The end of "isn't", "doesn't"."""

_PLURALS_WITHOUT_S = names(
    "people children men women persons mice geese teeth feet fish sheep deer cattle dice oxen money homework pairs "
    "apiece each only total altogether overall exactly left remaining way noon clock"
)
"""Plurals without an s, and words that may end the counted noun phrase as a plural does: "3 apiece", "12 total"."""

_ADJECTIVES_IN_ING = names(
    "remaining matching missing winning losing increasing decreasing crossing existing working outstanding"
)
"""Adjectives that may begin what was counted; other words in -ing begin a phrase: "12 excluding reflections"."""

_SINGULAR_IN_S = names(
    "yes times vs versus equals gives fails works holds satisfies means remains makes says lies needs percents squares "
    "cubes always"
)
"""Words in -s that are not plurals."""

_DENYING_OR_COMPUTING = names(
    "is are was were be been am not no nor none neither or but wrong right correct incorrect rejected accepted invalid "
    "valid false true more less fewer greater than least most above below over under about approximately approx "
    "around roughly almost nearly squared cubed if unless when except plus minus mod modulo base factorial divided "
    "multiplied half double twice percent impossible undefined maybe possibly extraneous discarded spurious score"
)
"""Words after a number that deny it, compare it, qualify it or compute with it."""


def split_scale(words: str) -> tuple[Fraction, str]:
    """Split words after a number into (factor, remaining words): "million dollars" gives (1000000, "dollars").

    The factor is 1 if the words together are a unit, such as 千克, whose 千 is not "thousand".
    """
    factor = Fraction(1)
    while (match := _SCALE.match(words)) is not None and unit_of(words) is None:
        factor *= Fraction(_SCALES[match[1].lower()])
        words = words[match.end() :]
    return factor, words.strip()


def smaller_unit(larger: str, smaller: str) -> Fraction | None:
    """Return how many units `smaller` make up one unit `larger`: 60 for "hour" and "minutes".

    None if a unit is unknown, if the two measure different things, or if `smaller` is not the smaller one.
    """
    first, second = unit_of(larger), unit_of(smaller)
    if first is None or second is None or first.dimension != second.dimension or first.factor <= second.factor:
        return None
    return first.factor / second.factor


def is_counted(words: str, singular: bool = False) -> bool:
    """Whether words after a number only say what was counted ("apples", "possible ways", "个苹果").

    Such words may be dropped before numbers are compared. False if the words deny, qualify or change the number: "is
    wrong", "or more", "squared". singular: whether the number is 1, so that a singular noun counts too.
    """
    if _CHINESE.search(words):
        noun = words[1:]  # after the classifier
        is_noun = len(noun) != 1 or noun in _NOUNS_OF_ONE_SIGN
        return words[:1] in _CLASSIFIERS and is_noun and not _CHANGES.search(words) and len(words) <= _MAX_COUNTED_SIGNS
    parts = _PASSED_BEHIND.sub("", f" {words.lower()}").split()  # the blank lets the pattern match all of the words
    if parts and parts[0].endswith("ing") and parts[0] not in _ADJECTIVES_IN_ING:
        return False  # "12 excluding reflections"
    if not parts and words.lower().startswith("in "):
        return True  # "12 in total"
    if not parts or len(parts) > _MAX_COUNTED_WORDS or changes_number(words) or not all(map(_is_noun, parts)):
        return False
    if parts == ["times"]:
        return True  # "3 times" means how often
    if singular and parts[-1] not in _SINGULAR_IN_S:
        return True
    return any(is_plural(part) or (len(part) > 1 and unit_of(part)) for part in parts)


def changes_number(words: str) -> bool:
    """Whether words after a number deny it, qualify it, are part of a calculation with it or make a statement about it:
    "isn't", "or more", "squared", 是质数.
    """
    lower = words.lower()
    denied = _CONTRACTED.search(lower) or _CHANGES.search(words) or _PREDICATE.match(words)
    return denied is not None or not _DENYING_OR_COMPUTING.isdisjoint(re.findall(r"[a-z]+", lower))


def qualifies(words: str) -> bool:
    """Whether the words of a name make its value a bound, or do more than name a quantity: "at most", 至少是, "if n is
    even", "perhaps the sum", 可能.
    """
    if _CHINESE.search(words):
        return _CHINESE_QUALIFIERS.search(words) is not None
    inside = {word.strip(".,") for word in words.lower().split()}
    return "at least" in words.lower() or not inside.isdisjoint((FUNCTION_WORDS - _INSIDE_NAMES) | _SUPPOSING)


_INSIDE_NAMES = names(
    "a all and are at both by each every for from in is its my of on our per such the their this to total"
)
"""Function words that occur inside names of quantities: "number of ways to go from A to B"."""

_SUPPOSING = names(
    "assuming assume suppose supposing provided given maybe possibly probably wrong incorrect false guess not"
)
"""Words in the name of a value that express a supposition or a doubt."""

_CHINESE_QUALIFIERS = regex(
    r"可能(?!性)|也许|大概|如果|若|假设|除非|不是|不对|错|猜|吗|当"
    r"|(?:至少|至多|最少|最多|不|非|[大小多少高低]于|超过|不足|约|接?近)[有是为]?\s*\Z"
)
"""Chinese words in the name of a value that express a doubt or a supposition, or make it a bound."""

_MAX_COUNTED_SIGNS = 8
"""Largest number of Chinese characters in a classifier and its noun; a longer text is a sentence."""

_MAX_COUNTED_WORDS = 4
"""Largest number of words that say what was counted; a longer text is a sentence."""


def _is_noun(word: str) -> bool:
    """Whether a word may be part of what was counted: not a function word, with a few exceptions ("3 each")."""
    word = word.strip(".,")
    return (
        len(word) > 1
        and word.replace("-", "").isalpha()
        and (word not in FUNCTION_WORDS or word in _PLURALS_WITHOUT_S or word == "such")
    )


def is_plural(word: str) -> bool:
    """Whether an English word has the form of a plural, or is used as a plural: "ways", "people", "total"."""
    return word in _PLURALS_WITHOUT_S or (
        len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in _SINGULAR_IN_S
    )
