"""Whether a reference and an answer, both given as text, are the same answer, and which rule decided.

The rules that need only the text come first: integers, option letters, equal text, words. Otherwise both texts are read
into trees, which `structures.same` compares. The result has three values. True: equal. False: both were read and shown
to differ. None: no rule can tell, for example because a side cannot be parsed.

Long: the rules are tried in order, and each leaves what it cannot tell to the next.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec.structs import replace

from reasoning_answers.bounds import LAST_LETTER, MIN_ROUNDED
from reasoning_answers.boxed import without_boxes
from reasoning_answers.compare.conventions import allows
from reasoning_answers.compare.exact import exact
from reasoning_answers.compare.families import same_with_constant
from reasoning_answers.compare.literal_forms import (
    are_signs,
    are_times,
    is_date,
    same_dates,
    same_formulas,
    same_literals,
    same_orders,
    same_times,
)
from reasoning_answers.compare.plain_numbers import plain_number
from reasoning_answers.compare.scalars import Comparison
from reasoning_answers.compare.structures import same
from reasoning_answers.grammar.notation import escape_prices
from reasoning_answers.grammar.numerals import Unreadable
from reasoning_answers.grammar.parse import connectives, parse
from reasoning_answers.grammar.parser import WITH_UNIT
from reasoning_answers.grammar.tree import Node, num, sym
from reasoning_answers.items import items_of
from reasoning_answers.letters import is_one_of_letters, letter_of, letters_of
from reasoning_answers.records import GradeRules, NearMiss
from reasoning_answers.words import (
    as_compared,
    exclude_each_other,
    is_words,
    numeral_as_digits,
    stands_for_value,
    without_layout,
    without_text_commands,
    words_of,
)

_INTEGER = re.compile(r"\s*(?P<formula>\$)?\s*(?P<sign>[-+]?)0*(?P<digits>\d{1,400})\s*(?(formula)\$)\s*")
"""An integer, perhaps between dollar signs."""

_VALUE_UNDER_LETTER = re.compile(
    r"[\s{]*(?:\([A-J]\)|[A-J]\)|[A-J][.、:](?=\s))[\s}~]*(?:\\[ ,;])*(\S.*)|\(?[a-j]\)\s+([-\d.\\$].*)", re.DOTALL
)
"""An option letter and the value after it, as in `(B) 12`. If the other side has no letter, the value is compared."""

_ALL_REALS = words_of("all real numbers")
"""The words for ℝ, as `words_of` writes them."""

_THOUSANDS_OR_LIST = re.compile(r"\d,\s?\d{3}(?!\d)")
"""A comma that groups the digits of a number or separates two numbers: 1,234."""

_TEXT_IN_BRACKETS = re.compile(r"\\text\s*\{\s*\(([^(){}]{1,60})\}([^(){}]{1,60})\\text\s*\{([^(){}]{0,60})\)\s*\}\Z")
"""Brackets at the end whose content begins and ends with words: `\\text{(about }18.9\\text{ cards)}`."""

_REASON = re.compile(r"(?i)(?<!\s)\s*+\((?:since|because|as)\b[^()]*\)\Z")
"""A reason in brackets at the end."""

# Possessive quantifiers and limits, so that no answer can make the match backtrack for long.
_SAID_TWICE = re.compile(
    r"(?s)\s*+(?P<value>.{1,200})\(\s*+(?:\\text\{\s*)?"
    r"(?P<sign>(?:or|i\.e\.,?|that\s+is,?|about|approximately|approx\.?|roughly)(?![a-z])|=|≈|~|\\approx(?![a-z]))?"
    r"\s*\}?\s*(?P<again>[^()]{1,200})\)\s*"
)
"""A value with another form of it in brackets: `3/5 (or 0.6)`, `14 (2*7)`."""

_SAID_AGAIN = re.compile(
    r"(?si)(?P<value>\S.{0,200}?)\s*+,?\s*+(?:or\s|i\.e\.,?|that\s+is,?)?\s*+(?<!\\)(?:about|approximately|approx\.?|roughly)(?![a-z])"
    r"\s*+(?P<again>[-\d.,]+%?)\s*"
)
"""A value with its rounded form behind it: `148/13, or about 11.38`."""

_ROUGHLY = re.compile(r"[a≈~\\]|roughly")
"""The beginning of a sign or word in `_SAID_TWICE` that marks the other form as rounded."""

_NUMBER_COMMANDS = re.compile(r"\\(?:[dt]?frac|sqrt|pi|cdot|times|,|;|quad)(?![a-z])")
"""LaTeX commands that a value without letters may contain."""

_LETTER_OR_LAST_DIGIT = re.compile(r"[A-Za-z]|\d\Z")
"""The end of a text to which a bracket may belong as an argument or factor: the f of f(2), the 4 of 14(2)."""

_MULTIPLIES = re.compile(r"(?:[-+*/×÷·:]|\\(?:cdot|times|div|pi))\s*\Z|[^\s]\Z")
"""The end of a value that makes the content of the following brackets a factor or summand, not a restatement."""
_WORKING = re.compile(r"\d\s*(?:[-+*/×÷·]|\\(?:cdot|times|div))\s*\d|%")
_DECIMAL = re.compile(r"-?\d*\.\d+\s*")
"""A value in another form: `_WORKING` is its calculation or percentage, and `_DECIMAL` the decimal of a fraction."""

_ORDER_COUNTS = re.compile(
    r"\\(?:vec|overrightarrow|mathbf|boldsymbol|bm)(?![a-zA-Z])[\s{]*[A-Za-z]{1,2}[\s}]*\\(?:times|cdot)(?![a-zA-Z])"
    r"|\\nabla\s*\\(?:times|cdot)|(?<![A-Za-z])[A-Z]\s*\^\s*\{?\s*(?:-\s*1|T|\\top)\s*\}?\s*[A-Z](?![a-z])"
)
r"""A product of vectors (`\vec a \times \vec b`), or of an inverted or transposed matrix: the order counts."""

_OR = re.compile("or|或|∨")
"""Text that may join alternatives."""

_LETTER_AND_TEXT = re.compile(r"\s*(?P<letter>[A-J])(?:\s*[、．:：,，)）]|(?=\s))\s*(?P<text>\S.*)", re.DOTALL)
"""An option letter with the text of an option after it."""

_DECIMAL_COMMA = re.compile(
    r"((?:[^,(){}\[\]|]|\\(?:text|mathrm)\{[^{},]*\})*\d),(?:(?<=\b0,)|(?!\d{3}(?!\d)|\d*,))(\d(?:[^,(){}\[\]|]"
    r"|\\(?:text|mathrm)\{[^{},]*\})*)"
)
"""A text whose only comma may be a decimal comma, `12,5`: it is not a thousands separator; the text has no brackets."""

_DIGIT = re.compile(r"-?\d")

_MAX_WORDS = 6
"""A reference with more words than this is prose. An answer may mean the same in other words, so it is never wrong."""

_MAX_CHINESE_SIGNS = 12
"""A reference with more Chinese characters than this is prose."""


def equal(reference: str, answer: str, kind: str, rules: GradeRules, choices: tuple[str, ...] = ()) -> Comparison:
    """Compare an extracted answer with a reference by value; the answer may have any form.

    choices: the texts of the options of a choice question, A first.
    """
    return _equal(reference, answer, kind, rules, choices if kind in ("choice", "text") else ())


def near_miss(reference: str, answer: str, kind: str, rules: GradeRules) -> NearMiss | None:
    """Return how a wrong `answer` narrowly misses the reference; None if it is not a near miss."""
    # Two plain numbers have no units that could differ, and without a decimal nothing is rounded.
    plain = "." not in reference and all(_INTEGER.fullmatch(text) or plain_number(text) for text in (reference, answer))
    if plain or kind in ("choice", "text"):
        return None
    rounding = replace(rules, round_to_reference=True)
    if "." in reference and rules != rounding and _equal(reference, answer, kind, rounding, ()).equal:
        return "rounded"
    left, right = _read(without_boxes(reference), False), _read(without_boxes(answer), False)
    if isinstance(left, str) or isinstance(right, str) or not {left.op, right.op} <= {*WITH_UNIT}:
        return None
    # Two percentages, or two angles in degrees, differ in their values; only two quantities may differ in their units.
    may_differ_in_unit = left.op != right.op or left.op == "quantity"
    return "unit" if may_differ_in_unit and same(left.args[0], right.args[0], rules).equal else None


def _equal(reference: str, answer: str, kind: str, rules: GradeRules, choices: tuple[str, ...]) -> Comparison:
    """Compare as `equal` does, including an answer that rejects values.

    In this order: integers and plain numbers, option letters, the text, words, dates, trees; then trees with a decimal
    comma, or without the option letter before a value. The parameters are those of `equal`.
    """
    reference, answer = escape_prices(reference), escape_prices(answer)
    if kind != "choice":
        reference_digits, answer_digits = _INTEGER.fullmatch(reference), _INTEGER.fullmatch(answer)
        # With a tolerance, 100 may equal 101, which only the trees decide.
        if reference_digits and answer_digits and not (rules.relative_tolerance or rules.absolute_tolerance):
            return Comparison(_integer(reference_digits) == _integer(answer_digits), "integer")
        if (result := _without_trees(reference, answer, kind, rules)) is not None:
            return result
    reference, stated = _without_remark(without_boxes(reference)), without_boxes(answer)
    answer = _without_remark(stated)
    if r"\approx" in answer and answer != stated:
        exact_forms = [text.partition(r"\approx")[0] or text for text in (reference, answer)]
        by_exact = _equal(exact_forms[0], exact_forms[1], kind, rules, choices)
        if by_exact.equal is not None:
            return _with_rounded_form(by_exact, exact_forms[1], answer, kind, rules, in_brackets="(" in stated)
    if kind != "choice":
        reference, answer = numeral_as_digits(reference), numeral_as_digits(answer)
    if kind == "choice" or _names_choice(reference):
        choice = _same_choice(reference, answer, choices, rules)
        # The reference `C. 1-i` states the value of its option, which an answer without a letter may give.
        if choice is not None and choice.equal is None and (value := _value_under_letter(reference)) is not None:
            return _compare_trees(value, answer, kind, rules)
        # A reference C may also be a variable, so a different letter decides only for multiple choice.
        if choice is not None and (choice.equal or kind == "choice"):
            return choice
    if (by_letters := _by_letters(reference, answer, rules)) is not None:
        return by_letters
    signs = without_layout(reference)
    # `nan` is not a value, so two of these texts are not equal.
    if (
        signs
        and signs in (without_layout(answer), without_layout(stated))
        and signs.lower() not in ("nan", "\\text{nan}")
    ):
        return Comparison(True, "text")
    if (literals := same_literals(reference, answer)) is not None:
        return Comparison(literals, "literal")
    if (in_order := same_orders(reference, answer)) is not None:
        return Comparison(in_order, "ordering")
    if is_date(reference) or is_date(answer):
        return Comparison(same_dates(reference, answer), "date")
    if (by_items := _same_items(reference, answer, kind, rules, choices)) is not None:
        return by_items
    if is_words(reference) or is_words(answer) or kind == "text":
        by_words = _same_words(reference, answer, rules)
        if by_words.equal is not None:
            return by_words
        # A text that begins with a digit may be a number, which is compared below.
        if kind == "text" and not _DIGIT.match(reference):
            return _undecided_words(reference)
    values = {plain_number(text) is not None for text in (reference, answer)}
    if len(values) == 2 and "does not exist" in (words_of(reference), words_of(answer)):
        return Comparison(False, "words")
    if (written := _as_written(reference, answer)) is not None:
        return written
    result = _compare_trees(reference, answer, kind, rules)
    if result.equal is False and _equal_by_decimal_comma(reference, answer, rules):
        return Comparison(None, "decimal comma")
    # The value alone is tried last, since (B) 12 can also be a product.
    if not result.equal and (value := _value_under_letter(answer)) is not None and not _names_choice(reference):
        return _compare_trees(reference, value, kind, rules)
    return result


def _same_items(
    reference: str, answer: str, kind: str, rules: GradeRules, choices: tuple[str, ...]
) -> Comparison | None:
    """Compare answers, at least one of which has several items (`items`); None if none has."""
    (values, mark), (answered, answer_mark) = items_of(reference), items_of(answer)
    if not values and not answered:
        return None
    right, stated = ", ".join(values) or reference, ", ".join(answered) or answer
    in_order = replace(rules, ordered=True)
    compared = _equal(right, stated, kind, in_order if mark.isalnum() else rules, choices)
    if compared.equal is False and not mark and not answered:
        return None  # the lines of the reference may be those of one value
    if compared.equal and answer_mark.isalpha() and not mark.isalnum():
        # (a) and (b) are parts of the question, whose order the reference may not keep.
        return compared if _equal(right, stated, kind, in_order, choices).equal else Comparison(None, "parts")
    if compared.equal is False and answer_mark in ("-", "–"):  # bullets, or signs
        signed = ", ".join(f"-{value}" for value in answered)
        return compared if _equal(right, signed, kind, rules, choices).equal is False else Comparison(None, "parts")
    return compared


def _as_written(reference: str, answer: str) -> Comparison | None:
    """Compare answers that are not numbers (`literal_forms`); None if they must be parsed into trees."""
    if are_times(reference, answer):
        return Comparison(same_times(reference, answer), "time of day")
    if (formulas := same_formulas(reference, answer)) is not None:
        return Comparison(formulas, "formula")
    return Comparison(False, "signs") if are_signs(reference, answer) else None


def _by_letters(reference: str, answer: str, rules: GradeRules) -> Comparison | None:
    """Compare two answers that are each several letters of options; None if one of them is not."""
    reference_letters, answer_letters = letters_of(reference), letters_of(answer)
    if reference_letters is not None and is_one_of_letters(answer, in_doubt=True):
        return Comparison(False, "choices")
    if answer_letters is not None and is_one_of_letters(reference):
        return Comparison(None, "choices")  # either of them may be enough
    if reference_letters is not None and answer_letters is not None:
        if rules.ordered:
            first, second = (re.findall(r"[A-J]", without_text_commands(text)) for text in (reference, answer))
            return Comparison(first == second, "choices")
        return Comparison(reference_letters == answer_letters, "choices")
    return None


def _with_rounded_form(
    by_exact: Comparison, exact_form: str, answer: str, kind: str, rules: GradeRules, *, in_brackets: bool
) -> Comparison:
    """Return the comparison of an answer's exact form, with which its rounded form must agree."""
    chain = _compare_trees(exact_form, answer, kind, rules)
    if chain.equal or not by_exact.equal:
        return by_exact
    return chain if in_brackets else Comparison(None, "chain")


def _without_remark(answer: str) -> str:
    r"""Return a value that is stated twice as a chain whose parts must agree: `14 (2*7)` as `14 = 2*7`,
    `2\sqrt3 (\approx 3.46)` as `2\sqrt3 \approx 3.46`; any other answer as it is.
    """
    if "(" not in answer:
        said = _SAID_AGAIN.fullmatch(answer.strip("$ "))
        return answer if said is None else rf"{said['value']} \approx {said['again']}"
    answer = _TEXT_IN_BRACKETS.sub(lambda m: f"({m[1]}{m[2]}" + (f"\\text{{{m[3]}}})" if m[3].strip() else ")"), answer)
    if (plain := _REASON.sub("", answer)) != answer:
        return plain
    twice = _SAID_TWICE.fullmatch(answer.strip("$ ").removeprefix(r"\(").removesuffix(r"\)"))
    if twice is None:
        return answer
    sign = twice["sign"] or ""
    value, again = twice["value"], twice["again"]
    if not sign and (
        "(" in value
        or ("%" not in again and _MULTIPLIES.search(value))
        or _LETTER_OR_LAST_DIGIT.search(_NUMBER_COMMANDS.sub("", value))
        or not (_WORKING.search(again) or (("frac" in value or "/" in value) and _DECIMAL.fullmatch(again)))
    ):
        return answer  # a product, or a function of what is in the brackets
    link = r"\approx" if _ROUGHLY.match(sign) else "="
    return f"{value} {link} {again}"


def _equal_by_decimal_comma(reference: str, answer: str, rules: GradeRules) -> bool:
    """Whether two answers are equal if a comma between digits is a decimal comma, as in 12,5 compared with 12.5."""
    with_point = _with_decimal_point(reference), _with_decimal_point(answer)
    return with_point != (reference, answer) and _compare_trees(*with_point, "expression", rules).equal is True


def _with_decimal_point(text: str) -> str:
    """Return `12.5` for `12,5`; any other text unchanged."""
    match = _DECIMAL_COMMA.fullmatch(text) if "," in text else None
    return text if match is None else f"{match[1]}.{match[2]}"


@lru_cache(maxsize=8_192)
def _read(source: str, list_commas: bool) -> Node | str:
    """Return the tree of an answer, or the reason why it cannot be parsed.

    list_commas: a comma separates the parts of a list, never the thousands of a number.
    """
    # The cheap test first, since `words_of` splits the whole text.
    if "real" in source and words_of(source) == _ALL_REALS:
        return sym("R")
    try:
        return parse(source, list_commas=list_commas)
    except Unreadable as error:
        return str(error)
    except RecursionError:
        return "nested too deeply"


def _compare_trees(reference: str, answer: str, kind: str, rules: GradeRules) -> Comparison:
    """Compare two texts by their trees."""
    listed = kind == "multiple"
    reference_node, answer_node = _read(reference, listed), _read(answer, listed)
    if isinstance(reference_node, str):
        return _undecided_words(reference)
    if isinstance(answer_node, str):
        return Comparison(None, "unreadable", (f"the answer is not a mathematical expression: {answer_node}",))
    answer_node = _without_repetition(answer, answer_node)
    result = same(reference_node, answer_node, rules)
    if not result.equal:
        result = same_with_constant(reference_node, answer_node, rules) or result
    # A plain search first: few answers have such a word.
    if result.equal and _OR.search(reference + answer):
        joins = connectives(reference), connectives(answer)
        is_one_sided = ("or" in joins[0]) != ("or" in joins[1])
        if is_one_sided and any(map(_holds_together, joins, (reference_node, answer_node))):
            return Comparison(None, "alternatives")
    if result.equal and (_ORDER_COUNTS.search(reference) or _ORDER_COUNTS.search(answer)):
        return Comparison(None, "order of factors")
    if not result.equal and (_THOUSANDS_OR_LIST.search(reference) or _THOUSANDS_OR_LIST.search(answer)):
        # "1,234" can be a number or a list of two numbers; both sides are also read the other way.
        reference_node, answer_node = _read(reference, not listed), _read(answer, not listed)
        if not isinstance(reference_node, str) and not isinstance(answer_node, str):
            again = same(reference_node, answer_node, rules)
            result = again if again.equal else result
    return result


def _holds_together(joins: frozenset[str], node: Node) -> bool:
    """Whether the parts of an answer hold together, so that the same parts joined by "or" mean something else.

    They do if they are relations joined by "and", a point, values of several letters, or bounds beside an excluded
    point. joins: from `connectives`.
    """
    relations = [item for item in node.args if item.op == "rel"] if node.op == "list" else []
    joined = len(relations) == len(node.args) and "and" in joins
    names = {str(relation.args[0][0]).split("_")[0] for relation in relations}
    return any("!=" in relation.args[1] for relation in relations) or (
        "or" not in joins and (joined or node.op == "tuple" or len(names) > 1)
    )


def _without_repetition(text: str, node: Node) -> Node:
    """Return the value of `2/5, or 40%`, which states one number twice; any other answer as it is. node: its tree."""
    if node.op == "list" and len(node.args) == 2 and connectives(text) <= {"or", ","} and "or" in text:
        first: Node
        first, second = node.args
        values = [exact(Node("div", (x.args[0], num(100))) if x.op == "pct" else x) for x in (first, second)]
        if values[0] is not None and values[0] == values[1]:
            return first
    return node


def _without_trees(reference: str, answer: str, kind: str, rules: GradeRules) -> Comparison | None:
    """Compare two plain numbers, with the same verdict as `_compare_trees`; None for any other pair.

    Most answers are numbers or words, and trees take ten to fifty times as long.
    """
    if kind == "text" or rules.relative_tolerance or rules.absolute_tolerance or rules.round_to_reference:
        return None
    left, right = plain_number(reference), plain_number(answer)
    if left is None or right is None:
        return None
    # The rule names are the ones that the trees would give, since they are stored in records.
    if reference.replace("tfrac", "dfrac") == answer.replace("tfrac", "dfrac"):
        return Comparison(True, "text")
    if left.is_fraction and left == right:
        return Comparison(True, "identical")
    same_value = left.top * right.bottom == right.top * left.bottom
    # A decimal of three digits or more may be a rounded value, which only the trees compare.
    if not same_value and left.is_decimal and abs(left.top) >= MIN_ROUNDED:
        return None
    return Comparison(same_value, "exact")


def _integer(match: re.Match[str]) -> int:
    """Return the value of a match of `_INTEGER`."""
    return int(match["sign"] + match["digits"])


def is_unread(reference: str) -> bool:
    """Whether no rule finds a value in a reference that has more than words, such as a solution that ends in
    `#### 18`: a reply that does not repeat its text stays undecided.
    """
    text = numeral_as_digits(without_boxes(reference))
    if is_words(text) or stands_for_value(text):
        return False
    return isinstance(_read(text, False), str)


def _same_words(reference: str, answer: str, rules: GradeRules) -> Comparison:
    """Compare two answers in words; with the convention `text_case` off, case matters.

    Case matters in a product of letters: mgh is not MGH. Different words are undecided, since they may mean the
    same. They are wrong only if both are on a closed list of words that cannot both be right, such as yes and no. 对
    and 错 are true and false, not 是 and 否: as answers to 小明算错了吗？ they may refer to the calculation. A question
    ("yes?") states nothing.
    """
    if answer.rstrip().endswith(("?", "？")):
        return Comparison(None, "words")
    if allows(rules, "text_case"):
        first, second = as_compared(reference), as_compared(answer)
        if first == second:
            return Comparison(True, "words")
        return Comparison(False if exclude_each_other(first, second) else None, "words")
    first, second = (without_layout(without_text_commands(text)) for text in (reference, answer))
    return Comparison(True if first == second else None, "words")


def _undecided_words(reference: str) -> Comparison:
    """Return "undecided" for an answer that does not repeat the reference's words but may mean the same in other words.

    The rule is "prose" for a long reference, otherwise "words".
    """
    words = words_of(reference)
    prose = len(words.split()) > _MAX_WORDS or len(re.findall(r"[\u3400-\u9fff]", words)) > _MAX_CHINESE_SIGNS
    return Comparison(None, "prose" if prose else "words")


# --- multiple choice ---
def _value_under_letter(answer: str) -> str | None:
    """Return the value after an option letter, the 12 of `(B) 12`; None if there is no letter or no value."""
    plain = without_text_commands(answer).strip()
    match = _VALUE_UNDER_LETTER.fullmatch(plain)
    return match[1] or match[2] if match else None


def _names_choice(reference: str) -> bool:
    """Whether the reference names an option: `C`, `(C)`, `C. 1-i`; not the ratio `A:B`."""
    letter = letter_of(reference)
    return letter is not None and letter <= LAST_LETTER


def _same_choice(reference: str, answer: str, choices: tuple[str, ...], rules: GradeRules) -> Comparison | None:
    """Compare option letters, or the answer with the texts of the options; None if the reference has no letter."""
    last = chr(ord("A") + len(choices) - 1) if choices else "Z"
    # A model may write its letter in lower case; a lower-case letter as reference is a variable.
    reference_letter, answer_letter = letter_of(reference, last), letter_of(answer, last, any_case=True)
    if reference_letter is None:
        return None
    if answer_letter is not None:
        return Comparison(reference_letter == answer_letter, "choice")
    labeled = _LETTER_AND_TEXT.fullmatch(answer) if choices else None
    option = option_of(labeled["text"] if labeled else answer, choices, rules) if choices else None
    if option is None and (letters_of(answer) or is_one_of_letters(answer)):
        return Comparison(False, "choices")  # several letters, where one is right
    # A letter with the text of another option does not show which of the two was chosen.
    if option is None or (labeled is not None and option != labeled["letter"]):
        return Comparison(None, "choice")
    return Comparison(option == reference_letter, "choice text")


def option_of(answer: str, choices: tuple[str, ...], rules: GradeRules) -> str | None:
    """Return the letter of the option whose text or value the answer equals; None if no option or several options fit.

    A value counts only if the options are values: 1/4 is the option `\\frac{1}{4}`.
    """
    signs, words = without_layout(answer), words_of(answer)
    fitting = [index for index, text in enumerate(choices) if without_layout(text) == signs or words_of(text) == words]
    if not fitting and not is_words(answer):
        digits = numeral_as_digits(answer)
        fitting = [
            index
            for index, text in enumerate(choices)
            if _compare_trees(numeral_as_digits(text), digits, "expression", rules).equal
        ]
    return chr(ord("A") + fitting[0]) if len(fitting) == 1 else None
