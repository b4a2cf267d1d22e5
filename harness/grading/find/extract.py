r"""Finding the answer in a response: after the reasoning, from the end, in linear time.

The first form of this list that occurs in the text gives the answer. The search never looks for a form that would make
the answer right: it does not know the reference.

    1  the last complete box, or the statement behind it that overrides it       `box`, `boxes`, `phrase`
    2  a last box without its closing brace                        not truncated  `open box`
    3  the option letter stated in words                            choices only  `letter`
    4  the last explicit phrase: "the answer is", "####", "A:", 答案是, JSON        `phrase`
    5  the last line, if it is nothing but an answer               not truncated  `line`
    6  the last formula, then the last number                      not truncated  `formula`, `number`
       the same in a sentence of no known form, see `sentences`                   `sentence`

A response that the token budget cut off (truncated) may end in the middle of a calculation, so that only forms 1, 3 and
4 count. A response with a broken box has no forms 5 and 6 either. Most patterns below are lists of words by which
writers introduce, deny or take back a value; each says which. Positions are characters of the text.

Long: the forms share their patterns, and each form passes a text without an answer on to the next form.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from harness.answers.boxed import Box, boxes_from_end, has_box, is_broken, unclosed_box, without_boxes
from harness.answers.grammar.numerals import IN_WORDS, number_in_words
from harness.answers.grammar.spellings import is_own_spelling
from harness.answers.grammar.units import changes_number, makes_bound
from harness.answers.grammar.vocabulary import is_command
from harness.answers.letters import letter_of, letters_of
from harness.grading.bounds import MAX_EXTRACTED_CHARS, TAIL_CHARS
from harness.grading.find.answer_heading import with_label_for_heading
from harness.grading.find.behind import values_behind
from harness.grading.find.beside_box import beside_box, end_of_unit, formula_around, labelled_unit_behind, unit_behind
from harness.grading.find.box_clause import clause_behind, is_denied, word_behind
from harness.grading.find.box_words import name_behind
from harness.grading.find.chinese import (
    ENDS,
    chinese_statement,
    is_condition_in_chinese,
    is_limited,
    judgement,
    judgement_with_reason,
    unstated_value,
    yes_or_no,
)
from harness.grading.find.chinese_answers import agrees, answering_weekday, stated_quantity, unread_conclusion
from harness.grading.find.chinese_forms import BOUND
from harness.grading.find.markup import without_markup
from harness.grading.find.opened import opening_sentence, stating_sentence
from harness.grading.find.qualifiers import condition_before, condition_behind, conditional_sentence, is_strict_bound
from harness.grading.find.reasoning import final_part
from harness.grading.find.refusals import (
    gives_up,
    is_echo,
    is_refusal,
    is_refused,
    is_refused_before,
    is_stated_in_chinese,
    is_unstated,
)
from harness.grading.find.rest_of_sentence import adds_nothing
from harness.grading.find.sentences import MAX_CHARS, concludes_relation, statement_end
from harness.grading.find.several import join_boxes, with_box_before
from harness.grading.find.surroundings import is_left_standing, is_supposed

Method = Literal["box", "boxes", "open box", "phrase", "formula", "number", "letter", "line", "sentence", "reply"]

UNSTATED: Method = "sentence"
"""Method of an answer whose sentence has no form that states an answer; the answer is always undecided."""


class Extraction(NamedTuple):
    """The answer as it stands in the text: its characters, where they begin and end, and the form that gave it.

    opened_by: the sentence behind the answer that leaves it open; empty if none does. behind: further values that the
    text behind it states as an answer; each must get the same verdict (`as_stated`). stated_in: the last sentence that
    states one of them. before: quantities that its sentence states before it; one of them may be the asked one.
    opposite: the negative of the answer, if a word before it may mean that; it must get the same verdict, too.
    """

    answer: str
    start: int
    end: int
    method: Method
    opened_by: str = ""
    behind: tuple[str, ...] = ()
    stated_in: str = ""
    before: tuple[str, ...] = ()
    opposite: str = ""

    @property
    def agreeing(self) -> tuple[str, ...]:
        """The further values that must get the verdict of the answer."""
        return (*self.behind, self.opposite) if self.opposite else self.behind

    @property
    def beside(self) -> tuple[str, ...]:
        """The further values on which the verdict depends, as `as_stated` takes them."""
        return (*self.agreeing, *self.before)


_PHRASE = re.compile(
    r"""(?x)
    \#{4}[ \t]*
    | (?i:final\s+answer)\s*(?:\*\*|__)?\s*(?i:is|are|:|：|=|\n)+ \s*
    | (?i:(?<![A-Za-z0-9])answer(?:\s+in\s+(?:chinese|english|mandarin))?)s?\s*(?:\*\*|__)?\s*
      (?i:,\s*(?:therefore|thus|hence|then),\s*)?
      (?i:(?:is|are|equals)\b(?:\s+(?:therefore|thus|hence|then|simply|indeed|clearly|obviously|exactly)\b)?\s*[:：]?|[:：=]|[-–—](?=\s))\s*(?:\*\*|__)?\s*
    | (?i:(?<![A-Za-z0-9])answer)\s*(?=\$|\\\(|\\\[)
    | (?:^|\n)[ \t]*A\s*[:：]\s*
    | (?:最终答案|答案|结果)\s*(?:\*\*|__)?\s*(?:应?[是为](?![ \t*_]*(?:[。.！!\n]|\Z))|[:：])+\s*
    | <answer>\s*
    | (?i:ответ|정답|답|答え|解答|回答|réponse|respuesta|antwort|lösung|risposta|resposta|odpowiedź|cevap|đáp\ án)\s*+
      (?:\*\*)?\s*+[:：]\s*
    | (?:答え|解答|回答|정답|답)\s*(?:は|은|는)\s*
    | (?:故选|应选|故答案[是为]|所以选)\s*(?:\*\*|__)?\s*[:：]?\s* | 答\s*(?:\*\*|__)?\s*[:：]\s*
    """
)
"""Phrases that announce the answer, which follows them."""

_MATH = re.compile(
    r"\$\$(.{1,2000}?)\$\$|(?<!\\)\$((?:[^$\n\\]|\\[^\n])++)\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]", re.DOTALL
)
r"""A formula between $, $$, \( \) or \[ \]."""

_JSON = re.compile(r"(?i)[\"'](?:final[_ ]?)?answer[\"']\s*:\s*")
_JSON_TEXT = re.compile(r'"((?:[^"\\]|\\.){0,4000})"|\'([^\'\n]{0,4000})\'')
_BACKSLASHED_NAME = re.compile(r"(?<!\\)(?:\\\\)*\\([A-Za-z]+)")
_JSON_VALUE = re.compile(r"\[[^\[\]]{0,2000}\]|[^\s,}\]]{1,400}")
_ANNOUNCEMENT_CHARS = 60
"""A phrase that announces a box stands at most this many characters before it."""

_ASIDE = re.compile(
    r"(?i)\(\s*(?:about|approximately|approx\.?|roughly|≈|~)[^()\n]{0,40}\)"
    r"|(?<=[\d%})$])\s*,?\s*(?:or\s+)?(?:about|approximately|roughly|≈)\s*\d[\d.]*+%?+(?!\s*[百千万亿\d])"
)
"""A rounded form of the value before it: "(about 0.8)", ", approximately 0.8"."""

_TOTAL = re.compile(
    r"(?<!\s)\s*\(\s*(?:see|as\s+(?:shown|computed|found|derived)|shown|from)\s+[A-Za-z ]{1,40}\)\Z|"
    r"(?<!\s)\s*[,，]\s*(?:not|rather\s+than|instead\s+of)\s[^,\n]*\Z"
    r"|(?<![\s.,;。，；])[\s.,;。，；]{1,6}(?:Check|Verification|检验|验证|验算)[ ]?[:：]"
    r"[\s\d.()+\-−*/·×÷=^:：✓√，,]{0,200}+(?:正确|成立)?[.。]?\Z"
    r"|(?<!\s)\s*[,，]\s*(?:altogether|overall|exactly|respectively|in\s+(?:total|all|the\s+end)"
    r"|as\s+(?:required|desired|expected|claimed|asked|requested|stated|before|above))\s*\.?\Z"
)
"""Words behind a number that add nothing: "72, in total", "72, not 73", and a check of nothing but numbers."""

_INSTEAD = re.compile(r"(?i)not\s+(?:\$[^$\n]{1,60}\$|[^\s,]{0,40}\d[^\s,]{0,40})\s*,?\s+but\s+(?:rather\s+)?")
"""A value that is denied before the right one: "not 5 but 6"."""

_STRUCK_OUT = re.compile(
    r"(?is)<(s|del|strike)>.{0,400}?</\1>|(?<![^\s*_(（:：,，.。;；、\u3400-\u9fff])~~(?!\s)[^~\n]{1,400}(?<!\s)~~"
)
r"""Text that is struck out; ~~ opens it at the beginning of a word only, for `1~~\text{or}~~2` has spaces."""

_ASIDE_BEFORE = re.compile(r"(?i)(?:\b(?:for|all|any|every|each|real|integers?|where|than|from|over|variable)\s+)\Z")
"""Words before a formula that is no answer: "for all real $x$", "larger than $1$"."""

_LIST_LINK = re.compile(r"\s*(?:[,，、;]\s*(?:and|or)?|and|or|和|或)\s*")
_TUPLE = re.compile(r"[(\[][^()\[\]\n]{1,120},[^()\[\]\n]{1,120}[)\]]")
_SPOKEN_ANSWER = re.compile(
    r"(?i)(?:\A|\n)\s*(yes|no|true|false)\b(?=\s*(?:[*_.,;:!—–-]|\Z)|\s+(?:it|they|there|this|that|he|she|we|the)\b)"
    r"(?![^\n]*\b(?:yes|no|true|false)\b)[^\n]*\Z|\b(?:is|are|was|(?:must|has\s+to)\s+be)\s+([^\s.][^.\n]{0,60}?)[.!]?\s*\Z"
)

_UNIT_BEHIND_FORMULA = re.compile(r"[ ]?(?:%|°|\\%|degrees?\b|percent\b)")
_FORMULA_LINK = re.compile(
    r"(?:\s?[A-Za-z°%\u3400-\u9fff²³]{1,3}(?=\s?(?:或|和|and\b|or\b)))?[\s,;、，；]*+(?:and|or|和|或者?|并?且)?[\s,]*+(?=\$|\\\()"
)
"""The text between two formulas of one answer, if it is only a link; a unit may stand there only before a word."""

_SENTENCE_END = re.compile(
    r"""(?x) \n | </answer> | (?<!\.)[.!?](?=\s|$|["'*]) | です | 입니다 | [。！？] | [;；](?=\s)
    | (?<!\s)\s+(?i:because|since|which|where\s+we|as\s+(?:the|we|it)|so\s+(?:the|we)|hence|therefore|i\s+hope)\b
    | [,，]\s*(?i:because|since|which|so|hence|therefore|and\s+we)\b"""
)
"""Where a statement ends: the line, the sentence, or a clause that gives a reason or a consequence."""

NUMBER = re.compile(
    r"""(?x) (?<![A-Za-z0-9_.]) (?:[-−–](?=[\d.$]))? [$€£¥￥＄]? [-−]?
    (?: \d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d) | \d+/\d+ | \d+(?:\.\d+)? | \.\d+ ) (?:[eE][+-]?\d+)? %?
    (?:\s+(?i:hundred|thousand|million|billion|trillion|dozen)\b
      | (?:[万亿]零?\d{1,9}(?:千(?![米克瓦]))?)*[万亿萬億])* """
)
"""A number in a text, with its sign, currency, exponent, percent sign and numeral of scale."""

_SIGN_IN_WORDS = re.compile(r"(?i)\b(?:minus|negative)\s+\Z")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
MAX_CHINESE_SIGNS = 8
"""Largest number of Chinese characters of a line that is nothing but an answer; more are a sentence."""

_HEADING = re.compile(r"(?m)^#{1,3}(?=[ \t])")
"""The marks of a heading. Four marks, ####, are a phrase that announces an answer."""

_EMPTY = re.compile(r"[\s.$…_?]*+(?:\\[lc]?dots)?[\s.$…_?]*+")
"""The content of an empty box, which only repeats the form of the answer that the prompt asked for."""

_SENTENCE_IN_BOX = re.compile(r"\s*(?:\\(?:text|mbox|mathrm)\s*\{)?([^{}\\$]{1,200})\}?\s*")
_WORD = re.compile(r"[A-Za-z]{2,}")
_TERM = (
    r"(?:[^A-Za-z\u3400-\u9fff\n<>≤≥≠≈=＝,，;；?？]|(?<![A-Za-z])[A-Za-z](?![A-Za-z])"
    r"|\\(?:[dt]?frac|sqrt|times|div|pi)(?![a-z])){1,200}"
)
_GOES_ON = re.compile(
    rf"(?:\A|\n)(?=[^\n]*[\da-z原])(?:[ \t]*原式|{_TERM})(?:[=＝]{_TERM})*(?:\n[ \t]*[=＝]{_TERM})*"
    rf"\n[ \t]*[=＝](?:{_TERM}[=＝])*(?P<value>{_TERM})\Z"
)
"""Formulas without words whose equation goes on from line to line: 1/2+1/3, =3/6+2/6, =5/6."""

_ANSWER_LABEL = re.compile(r"(?:\A|[。！？\n])[\s*]{0,8}答(?:案)?[\s*]{0,8}[:：][\s*]{0,8}\Z")
_BOUND_ALONE = re.compile(rf"{BOUND}(?:\s+or\s+{BOUND})?[.\s]*")
_IS_BEFORE = re.compile(r"(?i)\b(?:is|are|was|be)\s+(?:the|our|my|its|your)\s+(?:final\s+|correct\s+)?\Z")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u052f\u0590-\u06ff\u0900-\u0e7f]{2}")
"""Words of Cyrillic, Hebrew, Arabic, Indic and Thai scripts; no form of `sentences` knows their sentences."""

_DATE = re.compile(
    r"(?i)(?:on\s+)?(?:\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?)?(?:january|february|march|april|may|june|july|august|september"
    r"|october|november|december)(?:\s+\d{1,2}(?:st|nd|rd|th)?)?(?:,?\s+\d{4})?"
)
_ABOUT = re.compile(r"(?i)(?:\b(?:about|approximately|roughly|around)\s+|≈\s*)\Z")
_TILDE = re.compile(r"\A[~～](?=\s*[-−]?\d)")
_AROUND_UNIT = re.compile(
    r"\\(?:text|mathrm|mbox|textrm|rm|q?quad)(?![a-zA-Z])|\\[,;:!]|[\s\\{}$~()（）:：]|(?i:\bunits?\b)|单位[是为]?"
)
"""Commands of LaTeX, brackets, signs, spaces and the label "unit", which may stand around the name of a unit."""

_ABOUT_IN_CHINESE = re.compile("大?约")
_ALTERNATIVE = re.compile(r"\s*(?:or\b|或)\s*\d")
_LINK = re.compile(r"\b(?:is|are|equals)\s+(?:therefore\s+|thus\s+|then\s+)?(?=\S)")
_PLAIN_FORMULA = re.compile(
    r"(?:(?:sqrt|sin|cos|tan|ln|log|exp|pi)(?![A-Za-z])|[A-Za-z](?![A-Za-z])|\d+(?:\.\d+)?|[-−+*/^()√π·×÷²³]"
    r"|\s(?=[-−+*/×÷·]\s)|(?<=[-−+*/×÷·])\s)+"
)
"""A formula without LaTeX: numbers, single letters, functions and operators, with spaces only beside an operator."""

_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-z]+\*?\}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_CODE_OPENING = re.compile(r"```[A-Za-z]*\s*\n\s*|`")
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_ONLY_CODE = re.compile(r"\s*```[A-Za-z]*\s*\n[ \t]*([^\n`]{1,200}?)[ \t]*\n\s*```\s*")
"""A response that is a code block of a single line."""

_QUOTE_MARK = re.compile(r">\s+(?=\S)")
_LEAD = re.compile(
    r"""(?xi) (?: (?:
        (?:so|therefore|thus|hence|then|now|and|finally|indeed|clearly|consequently|okay|ok|well|since)\b
      | ∴ | \\(?:therefore|implies|Rightarrow)(?![a-z])
      | (?:i|we|you|one|this|that|it|which|they)\s+(?:\w+ly\s+)?
        (?:get|got|gets|have|has|had|find|found|obtain|obtained|gives?|gave|yields?|conclude|think|believe|see|equals?
          |is|was|makes?|means?|know|compute|calculate|need)(?:\s+that)?\b
      | (?:it|that|there)['’]s\b | there\s+(?:is|are)\b
      | (?:the\s+)?(?:final\s+)?(?:answer|ans|result|value|total|sum)
        (?:['’]s\b|\s+(?:is|equals|was|(?:should|must|will)\s+be)\b|\s*[.:=]|(?=\s*[-−\d$\\]))
      | (?-i:[a-zA-Z])\s+(?:equals|is|(?:must|has\s+to)\s+be)\b
      | the\s+(?:coordinates|point|vertex)\s+(?:is|are)\b
      | (?:解(?=\s*+[:：])|所以|因此|因而|故|即|解得|求得|得|综上(?:所述)?) (?=\s*+[,，:：、]?\s*+[-−(（√$\\A-Za-z\d])
    ) \s*+[,，:：、]?\s*+ )+"""
)
"""Words before an answer that stands on a line of its own: "so 5", "we get 5", "it's 5"."""

_HTML = re.compile(
    r"(?i)</?(?:b|strong|i|em|u|p|span|div|center|font|code|h[1-6]|br|hr)(?:\s+[a-z-]+=[^<>]{0,80})?\s*/?>"
)
_COMMA = re.compile("[,，;；]")
_CHINESE_HEADING = re.compile("【((?:正确|参考|标准|最终)?答案|解析|分析|解答|详解|点评|点拨|解|答)】")
"""A heading of Chinese textbooks, read as the beginning of a line: 【答案】C is 答案：C."""

_HTML_BREAK = re.compile(r"(?i)</?(?:br|p|div|hr|h[1-6])\b")
_SPECIAL = re.compile(r"<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>")


def extract(
    text: str | None,
    *,
    kind: str = "expression",
    parts: int | None = None,
    truncated: bool = False,
    last: str = "Z",
    is_bare: bool = False,
) -> Extraction | None:
    """Return the answer that a response gives; None if it gives none, or if its reasoning never ended.

    parts: how many values the reference has, if boxes side by side are one answer, else None. truncated: the token
    budget cut the response off. last: the last option letter of a choice. is_bare: the reference is a number without
    a unit.
    """
    if not text:
        return None
    part = final_part(text)
    if part is None:
        return None
    extraction = extract_from(text, *part, kind=kind, parts=parts, truncated=truncated, last=last, is_bare=is_bare)
    return None if extraction is None else extraction._replace(answer=shorten_answer(extraction.answer))


_DELIMITERS = re.compile(r"\\[()\[\]]|\$")
_EMPTY_SET = re.compile(r"\s*\\?\{\s*\\?\}\s*")
_STATING = frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Sm", "Sc", "So", "Pd", "Cs", "Co", "Cn"])
"""Categories of Unicode whose characters may be an answer: letters, digits, signs of mathematics and of money, dashes;
and characters without a known meaning.
"""


def states_something(answer: str) -> bool:
    r"""Whether an answer of mathematics has a letter, a digit or a sign of mathematics, or is an empty set.

    `\` and `…` state nothing; they begin what a reply that was cut off did not write.
    """
    # Of full-width signs, the usual ones stand here.
    bare = unicodedata.normalize("NFKC", _DELIMITERS.sub("", answer))
    return bool(_EMPTY_SET.fullmatch(bare)) or any(
        unicodedata.category(sign) in _STATING or sign in "*/%‰^·" for sign in bare
    )


def shorten_answer(answer: str, limit: int = MAX_EXTRACTED_CHARS) -> str:
    """Shorten an answer longer than `limit` characters: squeeze white space, then cut and mark the cut if need be."""
    if len(answer) <= limit:
        return answer
    # White space is squeezed first: layout may fill most of a long matrix.
    answer = " ".join(answer.split())
    return answer if len(answer) <= limit else f"{answer[:limit]} …[cut"


def extract_from(
    text: str, lo: int, hi: int, *, kind: str, parts: int | None, truncated: bool, last: str, is_bare: bool
) -> Extraction | None:
    """Return the one answer of text[lo:hi], which holds no reasoning; None if it gives none.

    last: the last option letter of a choice. parts: number of values of the reference, if boxes side by side are one
    answer, else None. truncated: max_tokens cut the reply. is_bare: the reference is a number without a unit.
    """
    text = _without_struck_out(text, lo, hi)
    if kind not in ("text", "choice"):
        # One character for another keeps all positions. The patterns of sentences and of units know / alone.
        text = text.replace("／", "/")
    boxes = boxes_from_end(text, lo, hi)
    box, end = _last_filled_box(boxes, hi)
    if box is not None:
        if is_broken(text, box, lo, end):
            return None
        return _of_box(text, box, boxes, lo, hi, kind, parts, last, is_bare)
    # Only the tail is searched, so that the patterns below see a bounded text.
    lo = max(lo, hi - TAIL_CHARS)
    tail = _without_html(text[lo:hi])
    tail = _with_labels_for_headings(tail)
    # A cut-off response may have lost more than a brace, so its open box is no answer.
    if not truncated and end == hi and (broken := unclosed_box(text, lo, hi)) is not None:
        return Extraction(broken.content, broken.start, broken.end, "open box")
    if kind == "choice" and (letter := _choice_in_prose(tail, last)) is not None:
        return letter._replace(start=lo + letter.start, end=lo + letter.end)
    extraction = _after_phrase(tail, kind)
    # A broken box announced an answer that is lost; a number before it would be a guess.
    if extraction is None and not truncated and not has_box(text, lo, hi):
        if gives_up(tail):
            return None
        if (block := _ONLY_CODE.fullmatch(tail)) is not None:
            return Extraction(block[1], lo + block.start(1), lo + block.end(1), "line")
        # 8.996 ≈ 9.00 as a whole reply is a chain, whose parts are compared.
        chain = _whole_line(tail, kind) if "≈" in tail and not _COMMA.search(tail) else None
        # A code block may compute with numbers, and an aside repeats a rounded number: neither is the answer.
        for ignored in (_CODE_BLOCK, _ASIDE):
            tail = ignored.sub(lambda match: " " * len(match.group()), tail)
        joins_parts = parts is not None
        extraction = (
            _chinese(tail, kind)
            or chain
            or _whole_line(tail, kind)
            or _equation_over_lines(tail, kind)
            or _stated_in_words(tail, kind)
            or _plain_formula(tail, kind)
            or _last_formula(tail, joins_parts)
            or _last_number(tail, joins_parts)
            or (_last_words(tail) if kind == "text" else None)
            or _unstated_in_chinese(tail, kind)
        )
    if extraction is None or not without_boxes(extraction.answer).strip():
        return None  # an empty box behind a phrase states nothing
    if extraction.method in ("formula", "number"):
        finish = statement_end(tail, extraction.start, extraction.end)
        if finish is None:
            extraction = extraction._replace(method=UNSTATED)
        elif extraction.method == "number":
            extraction = extraction._replace(answer=tail[extraction.start : finish], end=finish)
        extraction = _with_condition(extraction, tail, extraction.end, len(tail), 0, -1)
    if extraction.method in ("formula", "number", "line") and kind != "choice":
        stands = concludes_relation(tail, extraction.answer, extraction.start)
        supposed = is_supposed(tail, extraction.start)
        extraction = extraction if stands and not supposed else extraction._replace(method=UNSTATED)
    # Only outside of LaTeX, where a tilde is a space, is ~3 about 3.
    extraction = extraction._replace(answer=_TILDE.sub("≈", extraction.answer))
    extraction = _with_unit(extraction, tail, len(tail), kind)
    return extraction._replace(start=lo + extraction.start, end=lo + extraction.end)


def _of_box(
    text: str, box: Box, boxes: Iterator[Box], lo: int, hi: int, kind: str, parts: int | None, last: str, is_bare: bool
) -> Extraction | None:
    """Return the answer of a reply whose last filled box is `box`: the box, or a statement that replaces it.

    boxes: the boxes before it. The other parameters are those of `extract_from`.
    """
    statement = _final_formula_behind(text, box.outer_end, hi)
    if statement is None and kind == "choice" and not _names_options(box.content, last):
        statement = _choice_beside(text, box, lo, hi, last)
    if statement is not None:
        return _with_unit(statement, text, hi, kind)
    states = True
    if kind == "choice":
        joined = join_boxes(text, box, boxes, 2)
        whole = box if letters_of(joined.content) is None else joined
    elif parts is None:
        whole, states = with_box_before(text, box, boxes)
    else:
        whole = join_boxes(text, box, boxes, parts)
    answer = _answer_of_boxes(text, box, whole, lo, hi, kind, is_bare)
    if not states:
        return answer._replace(method=UNSTATED)
    end = end_of_unit(text, box.outer_end, hi)
    if end < hi and (behind := values_behind(text, end, hi, answer.answer, is_boxed=True)) != ():
        statement = _stated_behind(text, end, hi, kind)
        if statement is not None and hi - statement.end <= MAX_CHARS:
            return statement
        answer = _without_unit(_with_behind(answer, behind, text, end, hi), answer.answer.removeprefix(box.content))
        if answer.opened_by:
            return answer
    return _with_condition(answer, text, box.outer_end, hi, lo, _announcement_of_box(text, lo, box))


def _with_behind(answer: Extraction, behind: tuple[str, ...] | None, text: str, end: int, hi: int) -> Extraction:
    """Return an answer with the values that text[end:hi] behind it states, or with the sentence that leaves it open.

    behind: the result of `values_behind`.
    """
    if behind is None:
        return answer._replace(method=UNSTATED, opened_by=opening_sentence(text, end, hi, answer.answer))
    return answer._replace(behind=behind, stated_in=stating_sentence(text, end, hi, behind)) if behind else answer


def _without_unit(answer: Extraction, unit: str) -> Extraction:
    """Leave out values behind an answer that are only words of the unit, which the answer has taken from there."""
    taken = _AROUND_UNIT.sub("", unit)
    behind = tuple(value for value in answer.behind if not _is_within(_AROUND_UNIT.sub("", value), taken))
    return answer._replace(behind=behind, stated_in=answer.stated_in if behind else "")


def _is_within(words: str, unit: str) -> bool:
    """Whether words without a digit are a part of a unit's name."""
    return bool(words) and words in unit and re.search(r"\d", words) is None


def _answer_of_boxes(text: str, box: Box, whole: Box, lo: int, hi: int, kind: str, is_bare: bool) -> Extraction:
    """Return the answer of the last box of text[lo:hi], with what belongs to it beside the box.

    whole: the box joined with earlier ones, or the box itself. is_bare: the reference is a number without a unit.
    """
    answer = Extraction(whole.content, whole.start, whole.end, "box" if whole is box else "boxes")
    # Most replies have no sign of Chinese, and cost nothing here.
    is_plain = text.isascii()
    if not is_plain and is_denied(text, whole.outer_start, lo):
        return answer._replace(method=UNSTATED)
    clause = "" if is_plain or kind == "choice" else clause_behind(box.content, text, box.outer_end, hi)
    word = word_behind(box.content, clause) if clause else ""
    if word is None:
        return answer._replace(method=UNSTATED, opened_by=clause)
    if whole is not box or kind not in ("integer", "number", "expression"):
        return answer
    if is_strict_bound(text, box.outer_start, lo):
        return answer._replace(method=UNSTATED)
    # Nothing stands behind most boxes.
    if text[box.outer_end : hi].strip():
        word = word or name_behind(box.content, text, box.outer_end, hi, is_bare=is_bare)
    value = beside_box(text, box, lo, hi, word)
    return answer._replace(method=UNSTATED) if value is None else answer._replace(answer=value)


def _with_unit(answer: Extraction, text: str, hi: int, kind: str) -> Extraction:
    """Add the unit that stands directly behind an answer that is one formula, "$12$ cm" is 12 cm, or that a label
    announces behind a number: 答案是12。单位是厘米。
    """
    if kind not in ("integer", "number", "expression"):
        return answer
    formula = _MATH.fullmatch(answer.answer)
    if formula is None or formula.lastindex is None:
        unit = labelled_unit_behind(answer.answer, text[answer.end : hi])
        return _without_unit(answer._replace(answer=f"{answer.answer}{unit}"), unit) if unit else answer
    value = formula[formula.lastindex].strip()
    unit = unit_behind(value, text[answer.end : hi])
    return _without_unit(answer._replace(answer=f"${value}{unit}$"), unit) if unit else answer


def _last_filled_box(boxes: Iterator[Box], hi: int) -> tuple[Box | None, int]:
    """Return (the last box that is not empty, or None; where the empty boxes behind it begin, or `hi` without such).

    An empty box only repeats the instruction to give the answer in a box.
    """
    end = hi
    for box in boxes:
        if _EMPTY.fullmatch(box.content) is None:
            return box, end
        end = box.outer_start
    return None, end


def _without_struck_out(text: str, lo: int, hi: int) -> str:
    r"""Replace struck-out text of the end of text[lo:hi] by spaces of the same length: `~~\boxed{5}~~` states nothing.

    Inside a formula or braces ~~ is two spaces. <s> and </s> around the whole text are a model's signs of its ends.
    """
    lo = max(lo, hi - TAIL_CHARS)
    # A plain text search, which is faster than a pattern: this runs for each response.
    if text.find("~~", lo, hi) < 0 and text.find("</", lo, hi) < 0:
        return text
    tail = text[lo:hi]
    struck_out = [struck for struck in _STRUCK_OUT.finditer(tail) if not _is_layout(tail, struck)]
    if not struck_out:
        return text
    pieces, position = [text[:lo]], 0
    for struck in struck_out:
        pieces += [tail[position : struck.start()], " " * len(struck.group())]
        position = struck.end()
    return "".join((*pieces, tail[position:], text[hi:]))


def _is_layout(tail: str, struck: re.Match[str]) -> bool:
    """Whether signs that may strike out text are spaces of a formula, or a model's signs of both ends of `tail`."""
    start, end = struck.span()
    if struck[1] is None:
        line = tail[tail.rfind("\n", 0, start) + 1 : start]
        return formula_around(tail, start, 0) is not None or line.count("{") > line.count("}")
    return struck[1].lower() == "s" and not tail[:start].strip() and not tail[end:].strip()


def _without_html(tail: str) -> str:
    """Replace HTML tags by spaces or line breaks of the same length, so that positions stay.

    A text with no closing tag and no <br> keeps its tags, for `a<b>c` may be mathematics.
    """
    if "</" not in tail and "<br" not in tail and "<BR" not in tail:
        return tail
    return _HTML.sub(lambda tag: ("\n" if _HTML_BREAK.match(tag.group()) else " ") + " " * (len(tag.group()) - 1), tail)


def _with_labels_for_headings(tail: str) -> str:
    """Replace headings by labels and spaces, of the same length, so that positions stay."""
    tail = with_label_for_heading(tail)
    # The cheap test first: most replies have no such sign, and the search would read the whole tail.
    if "#" in tail:
        tail = _HEADING.sub(lambda marks: " " * len(marks.group()), tail)
    if "【" in tail:
        tail = _CHINESE_HEADING.sub(lambda heading: f"\n{heading[1]}：", tail)
    return tail


def _choice_in_prose(tail: str, last: str) -> Extraction | None:
    """Return the option letter that `tail` states or marks; None if it does neither."""
    # Its patterns take long to compile.
    from harness.grading.find.choice import behind_rejected_options, choice_in_prose

    choice = choice_in_prose(tail, last)
    if choice is None:
        return None
    stands = choice.stands and not is_supposed(tail, choice.start)
    end = behind_rejected_options(tail, choice.end, choice.answer)
    letter = Extraction(choice.answer, choice.start, choice.end, "letter" if stands else UNSTATED)
    behind = values_behind(tail, end, len(tail), choice.answer)
    return _with_behind(letter, behind, tail, end, len(tail))


def _names_options(content: str, last: str) -> bool:
    """Whether a box names an option, or several."""
    return letter_of(content, last, any_case=True) is not None or letters_of(content) is not None


def _choice_beside(text: str, box: Box, lo: int, hi: int, last: str) -> Extraction | None:
    """Return the option letter stated after a box that holds none, or else the one stated before the box.

    lo, hi: the part of the text that is searched. last: the last letter of a choice.
    """
    from harness.grading.find.choice import stated_choice

    for begin, end in ((box.outer_end, hi), (lo, box.outer_start)):
        begin = max(begin, end - TAIL_CHARS)
        if (choice := stated_choice(text[begin:end], last)) is not None:
            method: Method = "letter" if choice.stands else UNSTATED
            return Extraction(choice.answer, begin + choice.start, begin + choice.end, method)
    return None


def _stated_behind(text: str, lo: int, hi: int, kind: str) -> Extraction | None:
    """Return the answer that a phrase of text[lo:hi] states; None without one. The box before `lo` was taken back."""
    lo = max(lo, hi - TAIL_CHARS)
    statement = _after_phrase(text[lo:hi], kind, takes_back=True)
    return None if statement is None else statement._replace(start=lo + statement.start, end=lo + statement.end)


def candidates(text: str, limit: int) -> list[str]:
    """Return the contents of the last `limit` boxes anywhere in the text, reasoning included, the last first."""
    contents = []
    for box in boxes_from_end(text):
        contents.append(shorten_answer(box.content))
        if len(contents) == limit:
            break
    return contents


def _final_formula_behind(text: str, lo: int, hi: int) -> Extraction | None:
    """Return the formula of "The final answer is $…$" or "the answer is $…$" in text[lo:hi], behind the last box.

    None without such a formula, or if text[lo:hi] is longer than `TAIL_CHARS`.
    """
    # A plain text search, which is faster than a pattern: this runs for each response with a box.
    if hi - lo > TAIL_CHARS or (phrase := text.rfind("answer is", lo, hi)) < 0:
        return None
    formula = _MATH.match(text, phrase + len("answer is "), hi)
    if formula is None or is_unstated(text[lo:hi], phrase - lo):
        return None
    return Extraction(formula.group(), formula.start(), formula.end(), "phrase")


def _in_json(tail: str) -> Extraction | None:
    """Return the value of the last JSON field "answer" in `tail`, the end of the response; None without such a value.

    A JSON string is returned without its escapes.
    """
    field = _last(_JSON, tail)
    if field is None:
        return None
    if (text_value := _JSON_TEXT.match(tail, field.end())) is not None:
        group = text_value.lastindex or 1
        return Extraction(_unescape(text_value), text_value.start(group), text_value.end(group), "phrase")
    value = _JSON_VALUE.match(tail, field.end())
    # `{` opens a nested object, whose first characters are no value.
    if value is None or value.group() in ("null", "{"):
        return None
    return Extraction(value.group().removeprefix("[").removesuffix("]"), value.start(), value.end(), "phrase")


def _unescape(literal: re.Match[str]) -> str:
    """Return the text of a JSON string; unchanged if it has LaTeX with single backslashes, or is no JSON."""
    content = literal[literal.lastindex or 1]
    # JSON would read \frac as a form feed and \theta as a tab.
    if any(is_command(name) for name in _BACKSLASHED_NAME.findall(content)):
        return content
    try:
        return str(json.loads(f'"{content}"'))
    except ValueError:
        return content


def _after_phrase(tail: str, kind: str, *, takes_back: bool = False) -> Extraction | None:
    """Return the answer that the last explicit phrase, or else the last JSON field "answer", states.

    tail: the end of the response. takes_back: the tail begins by taking back a box.
    """
    if (in_json := _in_json(tail)) is not None:
        return in_json
    phrase = None
    for match in _PHRASE.finditer(tail):
        # A phrase at the very end announces nothing, as in a response that was cut off.
        if tail[match.end() : match.end() + 1].strip() and not _is_no_statement(tail, match):
            phrase = match
    if phrase is None:
        return None
    statement = _statement(tail, phrase.end(), "phrase", kind)
    if statement is None:
        return None
    behind = values_behind(tail, statement.end, len(tail), statement.answer)
    statement = _with_behind(statement, behind, tail, statement.end, len(tail))
    if statement.opened_by:
        return statement
    begin = phrase.end() - len(phrase.group().lstrip())
    stands = kind == "choice" or takes_back or is_left_standing(tail, begin, phrase.group())
    answer = _with_condition(statement, tail, statement.end, len(tail), 0, begin)
    # A condition in the same sentence is compared; one in another sentence belongs to the question or to a case.
    return answer if stands or answer is not statement else statement._replace(method=UNSTATED)


def _with_condition(answer: Extraction, text: str, end: int, hi: int, lo: int, phrase: int) -> Extraction:
    """Return the answer with the condition that its sentence states, `12 if n is even`; without one, the answer.

    end: where the answer ends, with its box. lo, hi: the part of the text that is searched. phrase: where "the answer
    is" begins, which states the answer; negative if no such phrase does.
    """
    if (behind := condition_behind(text, end, hi)) is not None:
        return answer._replace(answer=f"{answer.answer} {behind}")
    before = condition_before(text, lo, phrase) if phrase >= 0 else None
    return answer if before is None else answer._replace(answer=f"{answer.answer} if {before[0]}", start=before[1])


def _announcement_of_box(text: str, lo: int, box: Box) -> int:
    r"""Return where "answer is" begins in "if …, the answer is \boxed{…}"; -1 without such a phrase or condition."""
    near = max(lo, box.outer_start - _ANNOUNCEMENT_CHARS)
    # The cheap tests first: this runs for each response with a box.
    if text.rfind("nswer", near, box.outer_start) < 0 and text.rfind("答案", near, box.outer_start) < 0:
        return -1
    if conditional_sentence(text, lo, box.outer_start) < 0:
        return -1
    for phrase in _PHRASE.finditer(text, near, box.outer_start):
        if not text[phrase.end() : box.outer_start].strip(" \t\n$*_\\([{"):
            return phrase.end() - len(phrase.group().lstrip())
    return -1


def _is_no_statement(tail: str, phrase: re.Match[str]) -> bool:
    """Whether a phrase states no answer: "the wrong answer is 5", or the question "The answer is 5? No, 6."."""
    in_chinese = phrase.group()[:1] in "最答结" and phrase.group()[:2] != "答え"  # 答え is Japanese
    if in_chinese and not is_stated_in_chinese(tail, phrase.start()):
        return True
    word_at = phrase.group().lower().find("answer")  # -1 in other languages
    if (
        word_at >= 0
        and not phrase.group()[word_at + len("answer") :].strip(" s*_")
        and _IS_BEFORE.search(tail, max(0, phrase.start() - 40), phrase.start() + word_at)
    ):
        return True  # "only if n is even is the answer $5$"
    if word_at >= 0 and is_unstated(tail, phrase.start() + word_at):
        begin = phrase.end() - len(phrase.group().lstrip())
        return condition_before(tail, 0, begin) is None  # "when n is even the answer is 5" states one
    # "The answer is 5? No, 6." asks; a question mark at the end of the text may only be a habit.
    stop = _SENTENCE_END.search(tail, phrase.end(), phrase.end() + 400)
    return stop is not None and stop.group() in "?？" and bool(tail[stop.end() :].strip())


def _statement(tail: str, start: int, method: Method, kind: str) -> Extraction | None:
    """Return the answer of the sentence that begins at `start`; None if it states none.

    The answer is the first of these that the sentence has: the formulas that it begins with; a number before a
    condition; the number or last formula of a sentence with formulas; the only number of a longer sentence; all its
    words.

    method: the form to record in the result. tail: the end of the response.
    """
    while start < len(tail) and tail[start] in " \t*_:：":
        start += 1
    if (code := _CODE_OPENING.match(tail, start)) is not None:
        start = code.end()
    if (formula := _MATH.match(tail, start)) is not None:
        end = _end_of_formulas(tail, formula)
        return Extraction(tail[start:end], start, end, method)
    stop = _SENTENCE_END.search(tail, start)
    end = stop.start() if stop else len(tail)
    special = _SPECIAL.search(tail, start, end)
    end = special.start() if special else end
    if (instead := _INSTEAD.match(tail, start, end)) is not None:  # "not 5 but 6"
        start = instead.end()
    sentence = tail[start:end].strip().strip("*_`").rstrip(".。 ").strip()
    sentence = _TOTAL.sub("", sentence)
    value = NUMBER.match(sentence)
    if value is not None and condition_behind(sentence, value.end(), len(sentence)) is not None:
        # Formulas behind the number belong to its condition.
        return _at(tail.find(value.group(), start), value.group(), method)
    if value is not None and kind not in ("text", "choice") and adds_nothing(sentence[value.end() :]):
        return _at(tail.find(value.group(), start), value.group(), method)
    inner = None if kind == "choice" or sentence.isascii() else _stated_in_chinese(sentence, kind, announced=True)
    formulas = [] if inner is not None else list(_MATH.finditer(sentence))
    if formulas and len(sentence) - sum(len(match.group()) for match in formulas) > 3:
        return _beside_words(tail, start, end, sentence, formulas[-1], method)
    # Words may be the answer of a text; in other kinds more than three words make a sentence.
    numbers = list(NUMBER.finditer(sentence)) if kind != "text" and len(_WORD.findall(sentence)) > 3 else []
    alone = len(numbers) == 1 and not makes_bound(sentence[: numbers[0].start()])
    if alone and not is_refused(sentence, *numbers[0].span()):  # "Jane started 3 hours ago"
        return _at(tail.find(numbers[0].group(), start), numbers[0].group(), method)
    if not sentence:
        return None
    begin = tail.find(sentence, start)
    if begin >= 0 and inner is not None:
        return inner.extraction(begin, method)
    limited = kind not in ("text", "choice") and is_limited(sentence)
    return _at(begin, sentence, UNSTATED if limited else method)


def _at(begin: int, answer: str, method: Method) -> Extraction:
    """Return the extraction of `answer`, which begins at position `begin` of the text."""
    return Extraction(answer, begin, begin + len(answer), method)


def _end_of_formulas(tail: str, first: re.Match[str]) -> int:
    """Return the end of an answer that begins with the formula `first`: behind the formulas linked to it and the unit.

    If "or" and a number follow, the answer goes on to the end of the sentence.
    """
    end = first.end()
    while (link := _FORMULA_LINK.match(tail, end)) and (following := _MATH.match(tail, link.end())):
        end = following.end()
    if _ALTERNATIVE.match(tail, end) is not None:  # "$5$ or 6" is no single value
        stop = _SENTENCE_END.search(tail, end)
        end = stop.start() if stop is not None else len(tail)
    unit = _UNIT_BEHIND_FORMULA.match(tail, end)
    return unit.end() if unit else end


def _beside_words(
    tail: str, start: int, end: int, sentence: str, formula: re.Match[str], method: Method
) -> Extraction | None:
    """Return the answer of a sentence of words and formulas: a number behind its last formula, else that formula.

    "the largest $n$ is 34" states 34. None if the sentence refuses the formula. sentence: the sentence tail[start:end],
    without decoration. formula: its last formula.
    """
    after = sentence[formula.end() :].strip()
    number = _last_number(after) if re.search(r"(?:is|=|are|：|为)\s*\S", after) else None
    if number is not None:
        return _at(tail.rfind(number.answer, start, end), number.answer, method)
    if is_refused_before(sentence, formula.start()):
        return None
    return _at(start + formula.start(), formula.group(), method)


def _chinese(tail: str, kind: str) -> Extraction | None:
    """Return the answer that the last sentence states in Chinese; None if it states none.

    A conclusion behind a calculation that is not read is UNSTATED: else its sentence would be taken for a list.
    """
    if kind == "choice" or tail.isascii():
        return None
    begin, sentence = last_sentence(tail)
    if (stated := _stated_in_chinese(sentence, kind, earlier=tail[:begin])) is not None:
        return stated.extraction(begin, "line")
    if kind == "text" and (span := judgement_with_reason(tail)) is not None:
        judged = _at(span[0], tail[slice(*span)], "line")
        return _with_behind(judged, values_behind(tail, span[1], len(tail), judged.answer), tail, span[1], len(tail))
    unread = None if kind == "text" else unread_conclusion(sentence)
    return None if unread is None else _at(begin + unread[0], sentence[slice(*unread)], UNSTATED)


class StatedInChinese(NamedTuple):
    """The answer that a sentence states, without markup, and its span in the sentence."""

    answer: str
    start: int
    end: int

    def extraction(self, begin: int, method: Method) -> Extraction:
        """Return the extraction of the answer of a sentence that begins at position `begin` of the text."""
        return Extraction(self.answer, begin + self.start, begin + self.end, method)


def _stated_in_chinese(
    sentence: str, kind: str, *, announced: bool = False, earlier: str = ""
) -> StatedInChinese | None:
    """Return the answer that a Chinese sentence states; None if it states none.

    announced: a label such as 答： stands before it. earlier: the text before it, where there is no label.
    """
    plain = without_markup(sentence)
    if kind == "text":
        is_whole = announced or not earlier.strip()
        span = (
            judgement(plain.text, earlier)
            or answering_weekday(plain.text)
            or (yes_or_no(plain.text) if is_whole else None)
        )
    else:
        span = stated_quantity(plain.text, announced=announced, earlier=earlier)
    return None if span is None else StatedInChinese(plain.answer(*span), *plain.source(*span))


def limits_box(content: str) -> bool:
    """Whether a Chinese sentence in a box limits what it states: 小明说概率是1/2. The comparison reads 约 itself."""
    sentence = None if content.isascii() else _SENTENCE_IN_BOX.fullmatch(content)
    if sentence is None or is_own_spelling(sentence[1]):
        return False  # x大于等于3
    return is_limited(_ABOUT_IN_CHINESE.sub("", sentence[1]))


def stated_in_box(content: str, kind: str) -> StatedInChinese | None:
    """Return the word or the quantity that a Chinese sentence in a box states, read as behind 答：. None for any other
    content: 是的 of 是的，7是质数, 160元 of 现价160元.
    """
    sentence = None if content.isascii() else _SENTENCE_IN_BOX.fullmatch(content)
    stated = None if sentence is None else _stated_in_chinese(sentence[1], kind, announced=True)
    if sentence is None or stated is None or (stated.answer == sentence[1].strip()):
        return None
    return StatedInChinese(stated.answer, stated.start + sentence.start(1), stated.end + sentence.start(1))


def _unstated_in_chinese(tail: str, kind: str) -> Extraction | None:
    """Return the number in words, or the judgement, of a last sentence in Chinese that has no form of a statement."""
    if kind == "choice" or tail.isascii():
        return None
    begin, sentence = last_sentence(tail)
    span = unstated_value(sentence, kind)
    return None if span is None else _at(begin + span[0], sentence[slice(*span)], UNSTATED)


def same_text(text: str, lo: int, hi: int, references: Sequence[str]) -> Extraction | None:
    """Return the reference that is all of text[lo:hi], or all that stands behind 答： in its last line; else None."""
    end = lo + len(text[lo:hi].rstrip(ENDS))
    if has_box(text, lo, hi):
        return None
    for reference in references:
        begin = end - len(reference)
        if reference and begin >= lo and text.startswith(reference, begin):
            label = _ANSWER_LABEL.search(text, max(lo, begin - MAX_CHARS), begin)
            if not text[lo:begin].strip() or (label is not None and agrees(text[lo : label.start()], reference)):
                return Extraction(reference, begin, end, "line")
    return None


def last_sentence(tail: str) -> tuple[int, str]:
    """Return where the last sentence begins, and the sentence; empty if it is longer than `MAX_CHARS`."""
    end = len(tail.rstrip())
    last = len(tail.rstrip(" \t\r\n*_"))  # a bold mark may stand behind the stop
    begin = 1 + max(tail.rfind(stop, 0, max(0, last - 1)) for stop in ("。", "！", "？", "\n", ". "))
    return begin, tail[begin:end] if end - begin <= MAX_CHARS else ""


def _whole_line(tail: str, kind: str) -> Extraction | None:
    """Return the answer of a response that is nothing but a short answer, perhaps with words that lead to it; else
    None.
    """
    answer = _SPECIAL.sub("", tail).strip().strip("*_`").strip()
    if (quote := _QUOTE_MARK.match(answer)) is not None:
        answer = answer[quote.end() :]
    # In a text or a choice the leading words, as "this is", may be the answer.
    if kind not in ("text", "choice") and (lead := _LEAD.match(answer)) is not None and answer[lead.end() :].strip():
        answer = answer[lead.end() :].rstrip(". ").strip("*_` ")
    answer = _TOTAL.sub("", answer)
    if is_refusal(answer):
        return None
    line = answer
    if kind in ("integer", "number") and (number := _ending_number(answer)) is not None:
        answer = number
    if not answer or len(answer) > 200 or "\n" in answer:
        return None
    if len(_WORD.findall(_COMMAND.sub("", answer))) > 2 and (kind == "text" or number_in_words(answer) is None):
        return None
    words_beside_formula = _MATH.search(answer) is not None and _WORD.search(_MATH.sub("", answer)) is not None
    if words_beside_formula or len(_CHINESE.findall(answer)) > MAX_CHINESE_SIGNS:
        return None  # a sentence
    # If words were cut out of the middle of the answer, it has no position in the text.
    begin = tail.find(answer)
    if begin < 0:
        return None
    # This test comes last, since it takes longest.
    states = kind in ("text", "choice") or _line_states(tail, line)
    return Extraction(answer, begin, begin + len(answer), "line" if states else UNSTATED)


def _equation_over_lines(tail: str, kind: str) -> Extraction | None:
    """Return the last side of an equation that goes on from line to line up to the end; None without one."""
    end = len(tail.rstrip(" \n。."))
    lines = _GOES_ON.search(tail, max(0, end - MAX_CHARS), end) if kind not in ("text", "choice") else None
    return (
        None
        if lines is None or not lines["value"].strip()
        else _at(lines.start("value"), lines["value"].strip(), "line")
    )


def _line_states(tail: str, line: str) -> bool:
    """Whether a line states its value: it has no words, or the form of a statement.

    line: without the words that lead to the value ("so", "we get").
    """
    numbers = list(NUMBER.finditer(line)) or list(IN_WORDS.finditer(line))
    if _DATE.fullmatch(line) is not None or is_own_spelling(line):
        return True
    if _OTHER_SCRIPT.search(line) is not None:
        return False
    if len(_CHINESE.findall(line[: numbers[0].start()] if numbers else "")) > 1:
        return chinese_statement(line) is not None
    if is_condition_in_chinese(line):
        return False
    begin = tail.rfind(line)
    if begin < 0 or _WORD.search(_COMMAND.sub("", _ENVIRONMENT.sub("", tail))) is None:
        return True
    if _BOUND_ALONE.fullmatch(line) is not None:
        return True  # `concludes_relation` reads what stands before it
    formulas = list(_MATH.finditer(tail))
    if len(formulas) == 1:
        return statement_end(tail, formulas[0].start(), formulas[0].end()) is not None
    if len(numbers) != 1:
        return True
    value = begin + numbers[0].start()
    # "about" belongs to the answer of a line, and is compared with it.
    rounded = _ABOUT.search(tail, max(0, value - 20), value)
    value = value if rounded is None else rounded.start()
    sign = _SIGN_IN_WORDS.search(tail, max(0, value - 12), value)
    value = value if sign is None else sign.start()
    return statement_end(tail, value, begin + numbers[0].end()) is not None


def _ending_number(line: str) -> str | None:
    """Return the only number of a line such as "She earned 42", which it ends; None if its words compute with the
    number or deny it, and for any other line.
    """
    numbers = list(NUMBER.finditer(line))
    if len(numbers) != 1 or line[numbers[0].end() :].strip(" .") or is_echo(line, *numbers[0].span()):
        return None
    if is_refused_before(line, numbers[0].start()):
        return None
    words = line[: numbers[0].start()].rstrip(" \\")
    plain = words.replace(" ", "").isalpha() and not changes_number(words)
    return numbers[0].group() if plain else None


def _plain_formula(tail: str, kind: str) -> Extraction | None:
    """Return the formula that the last sentence states without dollar signs: "The side is 2√5 units."; else None."""
    if kind in ("text", "choice"):
        return None
    begin = max(tail.rstrip().rfind("\n"), len(tail) - MAX_CHARS) + 1
    link = _last(_LINK, tail[begin:])
    formula = None if link is None else _PLAIN_FORMULA.match(tail, begin + link.end())
    # A lone number or letter has no need of this form.
    if formula is None or formula.group().strip().replace(".", "").replace(",", "").isalnum():
        return None
    start, end = formula.start(), formula.start() + len(formula.group().rstrip(" ,."))
    if is_refused(tail, start, end) or is_echo(tail, start, end) or statement_end(tail, start, end) is None:
        return None
    return Extraction(tail[start:end], start, end, "formula")


def _last_formula(tail: str, joins_parts: bool) -> Extraction | None:
    """Return the last formula that may be an answer, or a number stated behind it; None if there is none, or if the
    words beside it deny it or repeat the question.

    joins_parts: formulas before it that commas, "and" or "or" join to it belong to the answer. tail: the end of the
    response.
    """
    formulas = list(_MATH.finditer(tail))
    # A formula in "for all real $x$" says for what the answer holds.
    while len(formulas) > 1 and _ASIDE_BEFORE.search(tail, max(0, formulas[-1].start() - 20), formulas[-1].start()):
        formulas.pop()
    if not formulas:
        return None
    last = formulas[-1]
    if joins_parts and (first := _first_of_chain(formulas, tail)) is not last:
        return Extraction(tail[first.start() : last.end()], first.start(), last.end(), "formula")
    if (number := _last_number(tail[last.end() :])) is not None and re.search(r"\bis\b|=", tail[last.end() :]):
        return number._replace(start=last.end() + number.start, end=last.end() + number.end)
    if is_refused(tail, last.start(), last.end()) or is_echo(tail, last.start(), last.end()):
        return None
    return Extraction(last.group(), last.start(), last.end(), "formula")


def _last(pattern: re.Pattern[str], tail: str) -> re.Match[str] | None:
    """Return the last match of `pattern`; None if it has none."""
    match = None
    for match in pattern.finditer(tail):  # noqa: B007  only the last one is wanted
        pass
    return match


def _last_number(tail: str, joins_parts: bool = False) -> Extraction | None:
    """Return the last number, or the point in brackets that holds it: 4, or (3, 4).

    joins_parts: numbers that commas, "and" or "or" join to the last one belong to the answer. None if there is no
    number, or if the words beside the last one deny it.
    """
    numbers = [number for number in NUMBER.finditer(tail) if not _is_exponent(tail, number.start())]
    if not numbers:
        return None
    first = _first_of_chain(numbers, tail) if joins_parts else numbers[-1]
    start, end = first.start(), numbers[-1].end()
    if (sign := _SIGN_IN_WORDS.search(tail, max(0, start - 12), start)) is not None:
        start = sign.start()
    if is_refused(tail, start, end) or is_echo(tail, start, end):
        return None
    # The search begins 240 characters before the number, about the longest that `_TUPLE` can match.
    for point in _TUPLE.finditer(tail, max(0, start - 240)):
        if point.start() < start and point.end() > end and len(_WORD.findall(point.group())) == 0:
            start, end = point.span()
    return Extraction(tail[start:end], start, end, "number")


def _is_exponent(tail: str, start: int) -> bool:
    """Whether the number at `start` is the exponent of a unit: the 2 of "36 cm^2"."""
    return tail[start - 1 : start] == "^" and _UNIT_BEFORE.search(tail, max(0, start - 8), start) is not None


_UNIT_BEFORE = re.compile(r"(?<![A-Za-z])(?:[kdcm]?m|in|ft|yd|mi)\^\Z")


def _stated_in_words(tail: str, kind: str) -> Extraction | None:
    """Return the number in English words that the last sentence states: "There are four triangles."; else None."""
    if kind in ("text", "choice"):
        return None
    end = len(tail.rstrip())
    begin = 1 + max(tail.rfind(stop, max(0, end - MAX_CHARS), end - 1) for stop in ("\n", ". ", "! ", "? "))
    sentence = tail[begin:end]
    if any(sign.isdigit() or sign in "$\\" for sign in sentence):
        return None
    numerals = list(IN_WORDS.finditer(sentence))
    if len(numerals) != 1 or number_in_words(numerals[0].group()) is None:
        return None
    start, finish = begin + numerals[0].start(), begin + numerals[0].end()
    if (sign := _SIGN_IN_WORDS.search(tail, max(0, start - 12), start)) is not None:
        start = sign.start()
    # "no one" is no number.
    if (
        tail[begin:start].lower().split()[-1:] == ["no"]
        or is_refused(tail, start, finish)
        or is_echo(tail, start, finish)
    ):
        return None
    states = statement_end(tail, start, finish) is not None
    return Extraction(tail[start:finish], start, finish, "number") if states else None


def _first_of_chain(matches: list[re.Match[str]], tail: str) -> re.Match[str]:
    """Return the first of the matches that are joined to the last one by nothing but commas, "and" and "or"."""
    first = len(matches) - 1
    while first > 0 and _LIST_LINK.fullmatch(tail, matches[first - 1].end(), matches[first].start()):
        first -= 1
    return matches[first]


def _last_words(tail: str) -> Extraction | None:
    """Return the answer of a reply in words: "Yes, it is.", "The day is Tuesday."; None if it has no such form."""
    spoken = _SPOKEN_ANSWER.search(tail.rstrip())
    if spoken is None:
        return None
    group = spoken.lastindex or 0
    return Extraction(spoken[group], spoken.start(group), spoken.end(group), "line")


__all__ = [
    "NUMBER",
    "Extraction",
    "Method",
    "candidates",
    "extract",
    "extract_from",
    "limits_box",
    "stated_in_box",
    "states_something",
]
