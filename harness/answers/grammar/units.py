"""Units: what each measures and how many base units it is, exactly; numerals of scale; words for what is counted.

A unit has a dimension, which is a product of base dimensions with integer exponents (speed is length¹ time⁻¹), and a
factor: how many base units of this dimension it is. Two units are convertible if their dimensions are equal. Dimensions
that physics would convert and school answers do not are kept apart: pounds from kilograms, months from seconds, gallons
from litres, currencies from one another. `harness.grading.compare.scalars` says what follows for two answers.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import cache, lru_cache
from typing import NamedTuple

from harness.answers.grammar.tree import names
from harness.core.patterns import regex


class Unit(NamedTuple):
    """A unit. dimension: sorted pairs (base dimension, exponent), no exponent 0. factor: how many base units it is."""

    dimension: tuple[tuple[str, int], ...]
    factor: Fraction


_F = Fraction
_UNIT_TABLE: tuple[tuple[str, str | int, str], ...] = (
    ("length", "1/1000000000", "nm nanometer nanometre"),
    ("length", "1/1000000", "um micrometer micrometre micron"),
    ("length", "1/1000", "mm millimeter millimetre 毫米"),
    ("length", "1/100", "cm centimeter centimetre 厘米 公分"),
    ("length", "1/10", "dm decimeter decimetre 分米"),
    ("length", 1, "meter metre 米"),
    ("length", 1000, "km kilometer kilometre 千米 公里"),
    ("length", "254/10000", "in inch inche"),
    ("length", "3048/10000", "ft foot feet"),
    ("length", "9144/10000", "yd yard"),
    ("length", "1609344/1000", "mi mile"),
    ("mass", "1/1000000", "mg milligram 毫克"),
    ("mass", "1/1000", "gram 克"),
    ("mass", 1, "kg kilogram 千克 公斤"),
    ("mass", "1/2", "斤"),
    ("mass", 1000, "ton tonne 吨"),
    ("pound", 1, "lb pound"),
    ("pound", "1/16", "oz ounce"),
    ("time", "1/1000000000", "ns nanosecond"),
    ("time", "1/1000", "ms millisecond"),
    ("time", 1, "sec second 秒 秒钟"),
    ("time", 60, "min minute 分钟 分"),
    ("time", 3600, "h hr hour 小时 时 个小时"),
    ("time", 86400, "day 天 日"),
    ("time", 604800, "week wk 周 星期"),
    ("month", 1, "month 个月 月"),
    ("month", 12, "year yr 年"),
    ("volume", "1/1000000", "ml milliliter millilitre cc 毫升"),
    ("volume", "1/1000", "liter litre 升 公升"),
    ("gallon", 1, "gallon gal"),
    ("gallon", "1/4", "quart qt"),
    ("gallon", "1/8", "pint pt"),
    ("gallon", "1/16", "cup"),
    ("area", 1, "平米"),
    ("area", 10000, "hectare ha 公顷"),
    ("acre", 1, "acre"),
    ("speed", "44704/100000", "mph"),
    ("speed", "1000/3600", "kph kmh"),
    ("dollar", 1, "dollar usd buck 美元 美金"),
    ("dollar", "1/100", "cent ¢ penny pennies nickel_cents 美分"),
    ("euro", 1, "euro eur 欧元"),
    ("sterling", 1, "pounds_sterling gbp sterling 英镑"),
    ("yen", 1, "yen jpy 日元"),
    ("yuan", 1, "yuan rmb cny 元 圆 块 元钱 块钱 人民币"),
    ("yuan", "1/10", "角 毛 角钱 毛钱"),
    ("yuan", "1/100", "分钱"),
    ("degree", 1, "degree deg 度 °"),
    ("degree", "1/60", "arcminute"),
    ("radian", 1, "radian rad 弧度"),
    ("celsius", 1, "celsius centigrade 摄氏度"),
    ("fahrenheit", "5/9", "fahrenheit 华氏度"),
    ("force", 1, "newton 牛 牛顿"),
    ("energy", 1, "joule 焦 焦耳"),
    ("energy", 3600, "wh 瓦时"),
    ("energy", 3600_000, "kwh 度电"),
    ("power", 1, "watt 瓦 瓦特"),
    ("current", 1, "ampere amp 安 安培"),
    ("charge", 1, "coulomb"),
    ("potential", 1, "volt 伏 伏特"),
    ("resistance", 1, "ohm 欧 欧姆"),
    ("frequency", 1, "hertz 赫 赫兹"),
    ("pressure", 1, "pascal 帕 帕斯卡"),
    ("temperature", 1, "kelvin"),
    ("substance", 1, "mole"),
    ("energy_ev", 1, "electronvolt"),
    ("sided", 1, "unit 单位"),
    ("ratio", 1, "倍"),
)
"""Rows (what the unit measures, its factor to the base unit, its names); `_` in a name stands for a space."""

_BY_NAME = {
    name.replace("_", " "): (dimension, Fraction(factor))
    for dimension, factor, names_of_unit in _UNIT_TABLE
    for name in names_of_unit.split()
}
_BY_NAME |= {
    prefix + name: (dimension, factor * Fraction(size))
    for name, (dimension, factor) in [*_BY_NAME.items()]
    if dimension in names("force energy power current potential resistance frequency pressure")
    for prefix, size in (
        ("giga", 10**9), ("mega", 10**6), ("kilo", 1000), ("milli", "1/1000"),
        ("兆", 10**6), ("千", 1000), ("毫", "1/1000"), ("微", "1/1000000"),
    )
    if prefix.isascii() == name.isascii()
}  # fmt: skip

_DERIVED: dict[str, dict[str, int]] = {
    "area": {"length": 2},
    "volume": {"length": 3},
    "ratio": {},
    "speed": {"length": 1, "time": -1},
    "frequency": {"time": -1},
    "force": {"mass": 1, "length": 1, "time": -2},
    "pressure": {"mass": 1, "length": -1, "time": -2},
    "energy": {"mass": 1, "length": 2, "time": -2},
    "power": {"mass": 1, "length": 2, "time": -3},
    "charge": {"current": 1, "time": 1},
    "potential": {"mass": 1, "length": 2, "time": -3, "current": -1},
    "resistance": {"mass": 1, "length": 2, "time": -3, "current": -2},
    "capacitance": {"mass": -1, "length": -2, "time": 4, "current": 2},
    "flux density": {"mass": 1, "time": -2, "current": -1},
    "concentration": {"substance": 1, "length": -3},
}
"""Dimensions that are a product of base dimensions, with their exponents."""

_PREFIXES = {
    "G": _F(10**9), "M": _F(10**6), "k": _F(10**3), "": _F(1), "c": _F(1, 100), "m": _F(1, 10**3), "u": _F(1, 10**6),
    "n": _F(1, 10**9), "p": _F(1, 10**12),
}  # fmt: skip
_SYMBOLS: dict[str, tuple[str, Fraction]] = {
    prefix + symbol: (dimension, _F(factor) * size)
    for symbol, dimension, factor in (
        ("m", "length", "1"), ("g", "mass", "1/1000"), ("s", "time", "1"), ("A", "current", "1"), ("C", "charge", "1"),
        ("mol", "substance", "1"), ("L", "volume", "1/1000"), ("l", "volume", "1/1000"), ("N", "force", "1"),
        ("J", "energy", "1"), ("W", "power", "1"), ("Pa", "pressure", "1"), ("Hz", "frequency", "1"),
        ("V", "potential", "1"), ("F", "capacitance", "1"), ("T", "flux density", "1"), ("ohm", "resistance", "1"),
        ("eV", "energy_ev", "1"),
        ("M", "concentration", "1000"), ("K", "temperature", "1"),
    )
    for prefix, size in _PREFIXES.items()
} | {"d": ("time", _F(86400)), "t": ("mass", _F(1000))}  # fmt: skip
"""Symbols of the international system with their prefixes; capitals count (mW and MW)."""

_SPELLINGS = Counter(map(str.lower, _SYMBOLS))
_IN_ANY_CASE = {
    symbol.lower(): unit for symbol, unit in _SYMBOLS.items() if _SPELLINGS[symbol.lower()] == 1 and symbol != "d"
}
"""Symbols by their lower case, without those that would then be ambiguous (mw)."""

_SQUARE = regex(r"(?i)\b(?:square|sq\.?)\s+(\w+)|(?<![一-鿿])(平方)\s*(\w+)")
_CUBIC = regex(r"(?i)\b(?:cubic|cu\.?)\s+(\w+)|(?<![一-鿿])(立方)\s*(\w+)")
"""Nothing stands before 平方 and 立方 in their unit: 千平方米 is a thousand square metres, no 平方千米."""
_DEGREES_OF = regex(r"(?i)\bdegrees?\s+(?=(?:celsius|centigrade|fahrenheit|kelvin)\b)")
_ELECTRONVOLT = regex(r"(?i)\belectron[ -]volt(?=s?\b)")
_FACTOR = regex(r"\s*([a-zA-Z¢°一-鿿]+)\s*(?:\^?\s*\{?\s*(-?\d)\s*\}?)?\s*")
_PURE = regex(r"[0-9a-zA-Z\s^{}/*·.¢°一-鿿\-]+")
_EACH_TIME = regex(r" (?:an?|each|every) (?=(?:second|minute|hour|day|week|month|year)\b)")
_NO_PLURAL = frozenset(("s", "ms", "ns", "celsius", "hertz", "gas", "lens", "pennies"))


@lru_cache(maxsize=1_024)
def unit_of(words: str) -> Unit | None:
    """Return the unit that `words` name ("cm^2", "square inches", "m/s", "kg·m/s"); None if a part is no known unit."""
    text = words.strip().rstrip(".").removesuffix(" old")
    if not text or len(text) > 60 or _PURE.fullmatch(text) is None:
        return None
    text = _ELECTRONVOLT.sub("electronvolt", _DEGREES_OF.sub("", text))
    text = _SQUARE.sub(lambda m: f"{m[1] or m[3]}^2", with_slashes(text))
    text = _CUBIC.sub(lambda m: f"{m[1] or m[3]}^3", text).replace("squared", "^2").replace("cubed", "^3")
    dimension: dict[str, int] = {}
    factor = Fraction(1)
    for index, part in enumerate(text.split("/")):
        sign = -1 if index else 1  # the exponents behind a slash are negative
        start = 0
        while start < len(part):
            if part[start] in "*·. ":
                start += 1
                continue
            match = _FACTOR.match(part, start)
            base = _measure_of(match[1]) if match is not None else None
            if match is None or base is None:
                return None
            power = sign * int(match[2] or 1)
            measured, size = base
            for name, times in _DERIVED.get(measured, {measured: 1}).items():
                dimension[name] = dimension.get(name, 0) + power * times
            factor *= size**power
            start = match.end()
    exponents = tuple(sorted((name, power) for name, power in dimension.items() if power))
    return Unit(exponents, factor)


def with_slashes(words: str) -> str:
    """Return the name of a unit with a slash for each "per": 元/千克 for 元每千克."""
    return with_per(words).replace(" per ", "/").replace("每", "/")


def with_per(words: str) -> str:
    """Return English words with "per" in each rate: "dollars per day" for "dollars a day" and "dollars every day"."""
    return _EACH_TIME.sub(" per ", words)


def _measure_of(word: str) -> tuple[str, Fraction] | None:
    """Return (what a unit measures, factor to the base unit), by its symbol or name; None if there is no such unit."""
    lower = word.lower()
    return _SYMBOLS.get(word) or _BY_NAME.get(lower) or _BY_NAME.get(_singular(lower)) or _IN_ANY_CASE.get(lower)


def _singular(word: str) -> str:
    return word if word in _NO_PLURAL else word.removesuffix("s")


def noun_of(words: str) -> str:
    """Return a noun behind a number in lower case and singular, so that two of them can be compared: "5 Apples"."""
    return " ".join(_singular(word) for word in re.findall(r"[^\W_]+", words.lower()) if word not in _NO_NOUN)


_NO_NOUN = names(
    "a all altogether different distinct each in left now of overall possible remain remaining the today total"
)
"""Words beside what was counted that do not name it: 5 apples left in all are 5 apples."""


def same_noun(first: str, second: str) -> bool:
    """Whether two names of what was counted agree, or one of them names nothing ("left") or goes on ("of pizza")."""
    shorter, longer = sorted((first.strip(), second.strip()), key=len)
    nouns = {noun_of(first), noun_of(second)}
    return len(nouns) == 1 or "" in nouns or longer.startswith(f"{shorter} of ")


# --- numerals of scale, and what was counted ---
_SCALES: dict[str, int | Fraction] = {
    "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12,
    "gross": 144, "tens": 10,
    "halves": _F(1, 2), "thirds": _F(1, 3), "fourths": _F(1, 4), "fifths": _F(1, 5), "sixths": _F(1, 6),
    "sevenths": _F(1, 7), "eighths": _F(1, 8), "ninths": _F(1, 9), "tenths": _F(1, 10), "hundredths": _F(1, 100),
    "thousandths": _F(1, 1000),
    "百": 100, "千": 1_000, "万": 10**4, "亿": 10**8, "萬": 10**4, "億": 10**8,
}  # fmt: skip
_SCALE = regex(rf"\s*+({'|'.join(_SCALES)})(?:s\b|\b|(?=[一-鿿])|$)", re.IGNORECASE)
"""Numerals of scale: a word behind a number that multiplies it."""

_CHINESE = regex(r"[一-鿿]+")
_CLASSIFIERS = frozenset(
    "个個人名位种種次只隻本支枝张張条條棵颗粒辆台套件岁页頁层層间間头頭匹块塊份组組对對双雙把段根朵袋箱瓶杯碗盒天项項道题題点點架艘座"
    "栋户家所班排行列轮局场場枚笔句步"
    "桶罐壶缸筐篮篓捆串束盘碟锅盆勺匙车船卷册篇幅幢株堆叠摞群批顿趟遍滴片管节首封"
)
"""Classifiers, one of which stands between a Chinese number and what it counts."""

_NOT_COUNTED = regex(r"[不错非或多少超约近除减加乘无没上下半成折左右内外前后中之方倍次率若如当则]|才[怪对]")
_PREDICATE = regex(r"是|为|等于|属于|可以|能")
"""Chinese verbs that begin a statement about the number before them, and no unit: 7是质数, 7能整除21."""

_NUMERAL_SIGN = regex(r"[零〇一二两三四五六七八九十百千万亿几余来许整吗呢吧么]")
"""Signs that count on behind a classifier: 2块五 is 2.5, 36个几 is more than 36."""

_NOUNS_OF_ONE_SIGN = frozenset(
    "人孩娃客兵男女生羊牛马猪鸡鸭鹅鱼虾蟹兔狗猫鸟猴虎鹿蛇龟虫蜂蚕树花草苗竹叶书笔纸尺画报信梨桃杏枣瓜果菜豆蛋糖饼糕包面饭汤酒水油奶茶盐米肉药球棋牌琴鼓"
    "灯伞椅桌床柜门窗墙砖瓦车船桥路河湖井山楼房屋店厂校班组队家鞋袜帽衣裤裙布绳针线珠袋箱桶杯碗盘碟勺筷刀锅瓶盒表钟环圈点角边圆棱数根解题词字句课岛国省市县镇村"
)
"""Chinese nouns of one sign that may stand behind a classifier; any other sign may change the number: 36个强."""

_PART_OF_NOUN = regex(
    r"[一二两三四五六七八九十]{1,2}(?=角形|边形|位数|面体|棱柱|棱锥|棱台|年级)|方[法案式格形体块程向阵砖]"
    r"|[初高]?中学?生|[加减乘除]法|次品|成人|零[件食]"
)
"""Signs of `_NOT_COUNTED` or numerals inside the name of what was counted: 5个三角形, 24个三位数, 36种方法."""

_DIFFERENT = regex(r"不同的?|可能的?")
_PASSED_BEHIND = regex(r"\s+(?:in\s+(?:total|all)|of\s+(?!error|them\b)[a-z]+)\Z")
"""Words behind what was counted that add nothing: "apples in total", "pairs of integers"."""

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
"""The words of English that link others: all prepositions, conjunctions, pronouns, articles and auxiliary verbs."""

_CONTRACTED = regex(r"n['’]t\b")
_PLURALS_WITHOUT_S = names(
    "people children men women persons mice geese teeth feet fish sheep deer cattle dice oxen money homework pairs "
    "apiece each only total altogether overall exactly left remaining way noon clock"
)
_ADJECTIVES_IN_ING = names(
    "remaining matching missing winning losing increasing decreasing crossing existing working outstanding"
)
_SINGULAR_IN_S = names(
    "is was has does this his its us yes plus minus times thus less as vs versus equals gives fails works holds "
    "satisfies means remains makes says lies needs percents dozens hundreds thousands millions billions halves thirds "
    "fourths quarters fifths sixths sevenths eighths ninths tenths hundredths thousandths squares cubes perhaps "
    "always "
    "besides across"
)
_DENYING_OR_COMPUTING = names(
    "is are was were be been am not no nor none neither or but wrong right correct incorrect rejected accepted invalid "
    "valid false true more less fewer greater than least most above below over under about approximately approx "
    "around roughly almost nearly squared cubed if unless when except plus minus mod modulo base factorial divided "
    "multiplied half double twice percent impossible undefined maybe possibly extraneous discarded spurious score"
)


def split_scale(words: str) -> tuple[Fraction, str]:
    """Split words behind a number into (factor, remaining words): "million dollars" gives (1000000, "dollars").

    The factor is 1 if all words together are a unit, as in 千克, whose 千 is no "thousand".
    """
    factor = Fraction(1)
    while (match := _SCALE.match(words)) is not None and unit_of(words) is None:
        factor *= _SCALES[match[1].lower()]
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


def is_unit(unit: Unit) -> bool:
    """Whether a unit of this dimension and size has a name."""
    return unit in _named_units()


@cache
def _named_units() -> frozenset[Unit | None]:
    return frozenset(map(unit_of, _BY_NAME))


def is_counted(words: str, singular: bool = False) -> bool:
    """Whether words behind a number only say what was counted ("apples", "possible ways", "个苹果").

    Such words may be dropped before numbers are compared. False if the words deny, qualify or change the number: "is
    wrong", "or more", "squared". singular: the number is 1, so a noun in the singular counts too.
    """
    if _CHINESE.search(words):
        words = _DIFFERENT.sub("", words)
        noun, plain = words[1:], _PART_OF_NOUN.sub("", words)
        # Alone, 次 counts times; before a further sign it may make a power or a degree, 2次方 and 2次函数.
        adds = words != "次" and (_NOT_COUNTED.search(plain) or _NUMERAL_SIGN.search(plain))
        is_noun = len(noun) != 1 or noun in _NOUNS_OF_ONE_SIGN
        return words[:1] in _CLASSIFIERS and not adds and is_noun and len(words) <= _MAX_COUNTED_SIGNS
    parts = _PASSED_BEHIND.sub("", f" {words.lower()}").split()
    if parts and parts[0].endswith("ing") and parts[0] not in _ADJECTIVES_IN_ING:
        return False  # "12 excluding reflections"
    if not parts and words.lower().startswith("in "):
        return True  # "12 in total"
    if not parts or len(parts) > _MAX_COUNTED_WORDS or changes_number(words) or not all(map(_is_noun, parts)):
        return False
    if parts == ["times"]:
        return True  # "3 times" says how often
    if singular and parts[-1] not in _SINGULAR_IN_S:
        return True
    return any(is_plural(part) or (len(part) > 1 and unit_of(part)) for part in parts)


def share_classifier(first: str, second: str) -> bool:
    """Whether one of two words behind numbers is a Chinese classifier, and the other is the same classifier with what
    was counted: 个 and 个苹果. All classifiers of persons are one: 人, 名, 位 and 个人.
    """
    shorter, longer = sorted((first.strip(), second.strip()), key=len)
    if shorter in _OF_PERSONS:
        return longer in _OF_PERSONS or (longer[0] in "名位人" and is_counted(longer))
    return shorter in _CLASSIFIERS and longer.startswith(shorter) and is_counted(longer)


_OF_PERSONS = frozenset(("人", "名", "位", "个人"))
"""Classifiers by which persons are counted, without a noun that says which persons."""


def changes_number(words: str) -> bool:
    """Whether words behind a number deny it, qualify it, compute with it or are a statement about it: "isn't", "or
    more", "squared", 是质数.
    """
    lower = words.lower()
    denied = _CONTRACTED.search(lower) or _NOT_COUNTED.search(words) or _PREDICATE.match(words)
    return denied is not None or not _DENYING_OR_COMPUTING.isdisjoint(re.findall(r"[a-z]+", lower))


def makes_bound(words: str) -> bool:
    """Whether words just before a number make it a bound or a rounded value: "at most", "is more than", 至少是."""
    if _CHINESE.search(words):
        return _CHINESE_BOUND.search(words) is not None
    return changes_number(" ".join(word for word in words.split()[-2:] if word.lower() not in _FORMS_OF_BE))


def qualifies(words: str) -> bool:
    """Whether the words of a name say more than what is named: "if n is even", "perhaps the sum", 可能."""
    if _CHINESE.search(words):
        return _CHINESE_QUALIFIERS.search(words) is not None
    inside = {word.strip(".,") for word in words.lower().split()}
    return not inside.isdisjoint((FUNCTION_WORDS - _INSIDE_NAMES) | _SUPPOSING)


_INSIDE_NAMES = names(
    "a all and are at both by each every for from in is its my of on our per such the their this to total"
)
"""Function words that stand inside names of quantities: "number of ways to go from A to B"."""

_SUPPOSING = names(
    "assuming assume suppose supposing provided given maybe possibly probably wrong incorrect false guess not"
)
_CHINESE_QUALIFIERS = regex(r"可能(?!性)|也许|大概|如果|若|假设|除非|不是|不对|错|猜|吗|当")
_CHINESE_BOUND = regex(r"(?:至少|至多|最少|最多|不|非|[大小多少高低]于|超过|不足|约|接?近)[有是为]?\s*\Z")
_FORMS_OF_BE = names("is are was were be")


_MAX_COUNTED_SIGNS = 8
"""Largest number of Chinese characters of a classifier and its noun; more are a sentence."""

_MAX_COUNTED_WORDS = 4
"""Largest number of words that say what was counted; more are a sentence."""


def _is_noun(word: str) -> bool:
    """Whether a word may be part of what was counted: it is no function word, but for a few ("3 each")."""
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
