r"""Finding the answer in a response: after the reasoning, from the end, in linear time.

The first form in this list that occurs in the text gives the answer. The search never prefers a form that would make
the answer right: it does not know the reference.

    1  the last complete box, or a formula after it that "the answer is" states      `box`, `boxes`, `phrase`
    2  a last box without its closing brace                           not truncated  `open box`
    3  the option letter stated in words                               choices only  `letter`
    4  the last label: "the answer is", "####", "A:", 答案是, JSON, <answer>            `phrase`
    5  the last line, if it is nothing but an answer                  not truncated  `line`
    6  the last formula, then the last number                         not truncated  `formula`, `number`

An answer *stands* unless a guard word touches it (`find.guards`), it is only part of a larger expression
(`find.box_context`), no sentence states it (`find.statements`), or the text after it retracts it; otherwise its method
is `sentence`, which leaves it undecided. If the text after it states another value as an answer, that value must get
the same verdict.

A response that the token budget cut off (truncated) may end in the middle of a calculation, so only forms 1, 3 and 4
count. A response with a broken box has no forms 5 and 6 either. Positions are characters of the text.

Long: the forms share their patterns, and each form passes a text without an answer on to the next form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain

from reasoning_answers.bounds import MAX_EXTRACTED_CHARS, TAIL_CHARS
from reasoning_answers.boxed import Box, boxes_from_end, has_box, opening_behind, unclosed_box, without_boxes
from reasoning_answers.find.box_context import around_box, is_one_of_two, join_boxes, parts_of, unit_behind
from reasoning_answers.find.guards import correction, guards_box, is_guarded_in_prose
from reasoning_answers.find.statements import concluded, in_json, is_doubted, is_refused, labels, statement_end
from reasoning_answers.find.values import (
    COMMAND,
    FORMULA,
    NUMBER,
    UNSTATED,
    WORD,
    Extraction,
    Method,
    sentence_around,
)
from reasoning_answers.grammar.notation import has_only_prices
from reasoning_answers.grammar.numerals import IN_WORDS, number_in_words
from reasoning_answers.items import BOLD, items_in, items_of
from reasoning_answers.letters import letter_of, letters_of
from reasoning_answers.patterns import regex
from reasoning_answers.text import visible

_HOLDERS = {"box": "a box contains", "boxes": "boxes contain", "phrase": "a label states", "letter": "the reply picks"}
"""Method of an answer that is left open → the words for its location."""

_TAKEN_BACK = "the text that follows retracts it"
_NOT_STATED = "neither a box nor “the answer is” confirms it"
_MAX_QUOTED_CHARS = 160
"""Longest passage of a reply that a reason quotes, in characters."""

_MAX_REST_CHARS = 200
"""Number of characters after a labeled answer that may state its other values."""

_MAX_BEHIND_CHARS = 6_000
"""Number of characters read at the end of the text after an answer."""

MAX_LINE_CHARS = 200
"""Longest line that is nothing but an answer, in characters; a longer one is a sentence."""

_MAX_CHINESE_SIGNS = 8
"""Largest number of Chinese characters in such a line."""

_LIST_LINK = regex(r"\s*(?:[,，、;]\s*(?:and|or)?|and|or|和|或)\s*(?:[a-z]\s*=\s*)?")
"""A link that joins two numbers or formulas into one answer, perhaps with a name: the and of 2 and 3."""

_NAME_BEFORE = regex(r"(?<![A-Za-z])[a-z]\s*=\s*\Z")
"""The x = before a value."""

_FORMULA_LINK = regex(
    r"(?:\s?[A-Za-z°%²³]{1,3}(?=\s?(?:或|和|and\b|or\b)))?[\s,;、，；]*+(?:and|or|和|或者?|并?且)?[\s,]*+(?=\$|\\\()"
)
"""A link that joins two formulas of a labeled answer; a unit may follow the first."""

_UNIT_BEHIND_FORMULA = regex(r"[ ]?(?:%|°|\\%|degrees?\b|percent\b)")
_ALTERNATIVE = regex(r"\s*+(?:,\s*+)?(?:or\b|或)\s*+\d")
""""or" and a number after a formula."""

_TUPLE = regex(r"[(\[][^()\[\]\n]{1,120},[^()\[\]\n]{1,120}[)\]]")
"""A point or interval in brackets, with two or more parts."""

_MAX_TUPLE_CHARS = 240
"""Approximate length of the longest text that `_TUPLE` can match, in characters."""

_SPOKEN_ANSWER = regex(
    r"(?i)(?:\A|\n)[ \t*_`>]*+(yes|no|true|false)(?![A-Za-z])"
    r"(?=\s*(?:[*_`.,;:!—–-]|\Z)|\s+(?:it|they|there|this|that|he|she|we|the)\b)"
    r"(?![^\n]*\b(?:yes|no|true|false)\b)[^\n]*\Z|\b(?:is|are|was|(?:must"
    r"|has\s+to)\s+be)\s+([^\s.][^.\n]{0,60}?)[.!]?\s*\Z"
)
"""An answer in words: "Yes, it is.", "The day is Tuesday."."""

_STATEMENT_END = regex(
    r"""(?x) \n | (?i:</?answer>|</final_answer>) | \[/ANSWER\] | <\|end_of_box\|>
    | (?<!\.)(?<!i\.e)(?<!approx)[.!?](?=\s|$|["'*]) | です | 입니다 | [。！？]
    | [;；](?=\s)(?!\s+\(?[A-J]\)?[ \t*_]*(?:[;；.\n]|\Z))
    | (?<!\s)\s+(?i:because|since|which|where\s+we|as\s+(?:the|we|it)|so\s+(?:the|we)|hence|therefore|i\s+hope)\b
    | [,，]\s*(?i:because|since|which|so|hence|therefore|and\s+we)\b"""
)
"""Where a labeled answer ends: the line, the sentence, or a clause that gives a reason or a consequence."""

_BRACKET = regex(r"\\?([(\[{]|(?<=\\)begin\b)|\\?(?:[)\]}]|(?<=\\)end\b)")
"""A bracket, or the beginning or end of a LaTeX environment; the group matches an opening one."""

_PARAGRAPH_END = regex(r"\n[ \t]*(?:\n|\Z)")

_BOLD_END = regex(r"\*\*(?=\S)([^*\n]{1,60})\*\*[\s.!。]*\Z")
"""Bold text that ends a reply."""

_MARKS = regex(r"(?:[ \t*_:：\"“]|\\\")*")
"""Marks between a label and its answer."""

_QUOTES = ('"', "“", "”")
"""Quotation marks around a labeled answer."""

_REMARK = regex(
    r"(?<!\s)\s*\(\s*(?:see|as\s+(?:shown|computed|found|derived)|shown|from)\s+[A-Za-z ]{1,40}\)\Z|"
    r"(?<!\s)\s*[,，]\s*(?:not|rather\s+than|instead\s+of)\s[^,\n]*\Z"
    r"|(?<!\s)\s*[,，]\s*(?:altogether|overall|exactly|respectively|in\s+(?:total|all|the\s+end)"
    r"|as\s+(?:required|desired|expected|claimed|asked|requested|stated|before|above))\s*\.?\Z"
)
"""Words after a value that add nothing: "72, in total", "72, not 73"."""

_ASIDE = regex(
    r"(?i)\(\s*(?:about|approximately|approx\.?|roughly|≈|~)[^()\n]{0,40}\)"
    r"|(?<=[\d%})$])\s{0,4},?\s{0,4}(?:or\s+)?(?:about|approximately|roughly|≈)\s*\d[\d.]*+%?+(?!\s*[百千万亿\d])"
)
"""A rounded form of the value before it: "(about 0.8)", ", approximately 0.8"."""

_ASIDE_BEFORE = regex(r"(?i)(?:\b(?:for|all|any|every|each|real|integers?|where|than|from|over|variable)\s+)\Z")
"""Words before a formula that is not an answer: "for all real $x$", "larger than $1$"."""

_EMPTY = regex(r"[\s.$…_?]*+(?:\\[lc]?dots)?[\s.$…_?]*+")
"""The content of an empty box, which only repeats the form of the answer that the prompt asked for."""

_CODE_OPENING = regex(r"```[A-Za-z]*\s*\n\s*|`")
"""The beginning of a code block, or of code in a line."""

_CODE_BLOCK = regex(r"```.*?(?:```|\Z)", re.DOTALL)
_ONLY_CODE = regex(r"\s*```[A-Za-z]*\s*\n[ \t]*([^\n`]{1,200}?)[ \t]*\n\s*```\s*")
"""A reply that is a code block of one line."""

_OUTPUT = regex(
    r"(?i)\b(?:output|result|answer|returns?|prints?)\b[^\n`]{0,40}?:?\s*"
    r"(?:`(?=[^`])|```[A-Za-z]*\s*\n[ \t]*)([^\n`]{1,200}?)[ \t]*(?:\n\s*```|`)[\s.]*\Z"
)
"""Code of one line at the end that words announce: "The function returns `True`."."""

_QUOTE_MARK = regex(r">\s+(?=\S)")
_LEAD = regex(
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
      | (?:解(?=\s*+[:：])|所以|因此|因而|故|即|解得|求得|得|综上(?:所述)?) (?=\s*+[,，:：、]?\s*+[-−(（√$\\A-Za-z\d])
    ) \s*+[,，:：、]?\s*+ )+"""
)
"""Words before an answer on its own line: "so 5", "we get 5", "it's 5"."""

_ENVIRONMENT = regex(r"\\(?:begin|end)\s*\{[a-z]+\*?\}")
"""The beginning or end of a LaTeX environment."""

_CHINESE = regex(r"[\u3400-\u9fff]")
_FORMULA_BEFORE = regex(
    r"(?:(?<![A-Za-z\d])(?:sqrt|sin|cos|tan|ln|log|exp|pi|[A-Za-z]|\d{1,9})(?![A-Za-z])|[√π)])"
    r"(?:[-+*/^()√π·×÷]|\s(?=[-+*/×÷·]\s)|(?<=[-+*/×÷·])\s|(?<![A-Za-z])[a-z](?![A-Za-z])|\d){0,60}(?<=[√^+*/×÷·(-])\s?\Z"
)
"""The rest of a formula without LaTeX before its last number: 3x^2 + 1, 2√5."""

_BEFORE_COMMA = regex(r"(?<![\d.,])[-−]?\d{1,9},\Z")
"""The digits before a comma with no space after it, which may be a decimal comma."""

_ABOUT = regex(r"(?i)\b(?:about|approximately|roughly|around)\s+\Z")
"""A word before a rounded value."""

_SPECIAL = regex(r"<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>")
"""A special token of a model, printed as text."""

_STRUCK_OUT = regex(r"(?is)<(s|del|strike)>.{0,400}?</\1>|(?<![^\s*_(（])~~(?!\s)[^~\n]{1,400}(?<!\s)~~")
"""Text between HTML tags, or between ~~, that is struck out."""

_HEADING = regex(r"(?m)^#{1,3}[ \t]+")
_ANSWER_HEADING = regex(
    r"(?im)^[ \t]*(?:#{1,4}|\*\*|【)[ \t]*(final[ \t]+answer|answer|(?:正确|参考|标准"
    r"|最终)?答案)[ \t]*[:：]?[ \t]*(?:\*\*|】)?[ \t]*[:：]?(?:\*\*)?[ \t]*\n?[ \t\n]*(?=\S)"
)
"""A heading 答案 or Answer, read as the label of the next line."""

_FINAL_LABEL = regex(
    r"(?i)(?:\A|[.!?\n])[\s*_#}$)]{0,8}(?:final answer:[\s*_]{0,8})?(?:(?:so|thus|hence|therefore),?\s+)?"
    r"the\s+(?:final\s+)?answer\s+is:?\s{0,8}"
)
_AND_FINAL = regex(r"(?i)[\s$)]{0,4},\s{1,4}(?:and|so)\s{1,4}the\s+(?:final\s+)?answer\s+is:?\s{0,8}")
"""The words that join the final answer to the sentence of the box before it."""
_REPLY_END = regex(r"(?i)[\s.*_]{0,80}(?:I hope it is correct[\s.]{0,80})?\Z")
"""The beginning of a sentence that states the final answer, and what may follow it to the end of the reply."""

_ANSWER_ROW = regex(
    r"(?im)^[ \t]*\|[ \t*_]*((?:final[ \t]+)?answer|答案)[ \t*_:：]*\|[ \t]*([^|\n]{1,200}?)[ \t]{0,200}\|[ \t]*$"
)
"""A row of a table whose first column says that the second has the answer."""

_HTML = regex(r"(?i)</?(?:b|strong|i|em|u|p|span|div|center|font|code|h[1-6]|br|hr)(?:\s+[a-z-]+=[^<>]{0,80})?\s*/?>")
"""An HTML tag that changes the typeface or layout of text."""

_HTML_BREAK = regex(r"(?i)</?(?:br|p|div|hr|h[1-6])\b")
_GIVES_UP = regex(
    r"(?i)\b(?:i|we)\s+(?:(?:am|are|was|were)\s+)?(?:can\s*not|can['’]t|could\s*n['’]t|could\s+not"
    r"|unable\s+to|not\s+able\s+to"
    r"|do\s*n['’]t|do\s+not|did\s+not|am\s+not\s+sure|['’]m\s+not\s+sure)\s+(?:\w+\s+)?"
    r"(?:solve|answer|determine|know|find|compute|decide|provide|sure|say|tell|finish|help|assist|comply)\b"
)
"""A sentence in which a reply says that it has no answer."""

_OPENINGS = regex(r"\\(?:[([]|boxed|fbox|framebox)|[{$*]")
"""The characters that begin an answer, which is all that is left of an answer that was cut off."""

_DELIMITERS = regex(r"\\[()\[\]]|\$")
_EMPTY_SET = regex(r"\s*\\?\{\s*\\?\}\s*")
"""{ } is an answer without letters and digits."""

_STATING = frozenset(["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Sm", "Sc", "So", "Pd", "Cs", "Co", "Cn"])
"""Unicode categories whose characters may form an answer: letters, digits, mathematical and currency symbols, dashes,
and characters without a known meaning.
"""


def states_something(answer: str) -> bool:
    r"""Whether a mathematical answer has a letter, a digit or a mathematical symbol, or is an empty set.

    `\` and `…` state nothing; they begin something that a truncated reply did not finish.
    """
    bare = unicodedata.normalize("NFKC", _DELIMITERS.sub("", answer))
    return bool(_EMPTY_SET.fullmatch(bare)) or any(
        unicodedata.category(sign) in _STATING or sign in "*/%‰^·" for sign in bare
    )


def shorten_answer(answer: str, limit: int = MAX_EXTRACTED_CHARS) -> str:
    """Shorten an answer longer than `limit` characters: collapse white space, then cut it if need be."""
    if len(answer) <= limit:
        return answer
    # White space is collapsed first: layout may fill most of a long matrix.
    answer = " ".join(answer.split())
    return answer if len(answer) <= limit else f"{answer[:limit]} …[cut"


def candidates(text: str, limit: int) -> list[str]:
    """Return the contents of the last `limit` boxes anywhere in the text, reasoning included, the last first."""
    contents = []
    for box in boxes_from_end(text):
        contents.append(shorten_answer(box.content))
        if len(contents) == limit:
            break
    return contents


def extract_from(
    text: str, lo: int, hi: int, *, kind: str, parts: int | None, truncated: bool, last: str
) -> Extraction | None:
    """Return the single answer in text[lo:hi], which contains no reasoning; None if it has none. Positions: in `text`.

    kind: how the answer is compared (`AnswerKind`). last: the last option letter of a choice. parts: number of values
    in the reference if several boxes may form one answer, otherwise None. truncated: whether max_tokens cut the reply.
    """
    text = _without_struck_out(text, lo, hi)
    boxes = boxes_from_end(text, lo, hi)
    box, end = _last_filled_box(boxes, hi)
    if box is not None:
        answer = _of_box(text, box, boxes, lo, hi, kind, parts, last)
        if (opening := opening_behind(text, box, end)) is not None:
            around = sentence_around(text, opening, opening, box.outer_end, hi)
            return _opened(answer, text, *around, "a later box is never closed")
        return answer
    # All boxes are empty. Only the tail is searched, so that the patterns below see a text of limited length.
    lo = max(lo, hi - TAIL_CHARS)
    # A cut-off response may have lost more than a brace, so its open box is not an answer.
    if not truncated and end == hi and (broken := unclosed_box(text, lo, hi)) is not None:
        return Extraction(broken.content, broken.start, broken.end, "open box")
    tail = _plain_tail(text[lo:hi])  # from here on, positions are those in the tail
    extraction = _choice_in_prose(tail, last) if kind == "choice" else None
    extraction = extraction or _after_label(tail, 0, len(tail), kind, parts)
    # A broken box announced an answer that is lost; a number before it would be a guess.
    if extraction is None and not truncated and not has_box(text, lo, hi):
        # A dollar sign of a price does not open a formula.
        money = "＄" if has_only_prices(tail) else "$"
        extraction = _without_label(tail.replace("$", money), kind, joins_parts=parts is not None)
        if extraction is not None:
            extraction = extraction._replace(answer=extraction.answer.replace(money, "$"))
    if extraction is None or not _OPENINGS.sub("", without_boxes(extraction.answer)).strip():
        return None  # an empty or open box after a label states nothing
    if parts is not None and _lacks_values(extraction, parts, tail):
        extraction = extraction._replace(method=UNSTATED)
    extraction = _with_unit(extraction, tail, kind)
    return extraction._replace(start=lo + extraction.start, end=lo + extraction.end)


def _lacks_values(extraction: Extraction, parts: int, tail: str) -> bool:
    """Whether an answer without a box has fewer than `parts` values, so that other lines may contain the rest: those
    after a label, or any if there is no label.
    """
    answer, is_labeled = extraction.answer, extraction.method == "phrase"
    n_values = max(parts_of(answer), len(items_of(answer)[0]))
    if extraction.method == "letter" or letters_of(answer) is not None or n_values >= parts:
        return False
    behind = tail[extraction.end : extraction.end + _MAX_REST_CHARS]
    return not is_labeled or NUMBER.search(behind) is not None


# --- boxes ---
def _of_box(
    text: str, box: Box, boxes: Iterator[Box], lo: int, hi: int, kind: str, parts: int | None, last: str
) -> Extraction:
    """Return the answer of a reply whose last filled box is `box`: the box, or a statement that replaces it.

    boxes: the boxes before it, the last one first. The other parameters are those of `extract_from`.
    """
    statement = None
    if kind != "choice":
        statement = _final_formula_behind(text, box.outer_end, hi)
    elif not _names_options(box.content, last):
        statement = _choice_beside(text, box, lo, hi, last)
    if statement is not None:
        return statement
    whole, states = box, True  # the boxes of the answer as one, and whether they state it
    if kind == "choice":
        joined = join_boxes(text, box, boxes, parts=2)
        whole = box if letters_of(joined.content) is None else joined
    elif parts is None:
        states = not is_one_of_two(text, box, boxes)
    else:
        whole = join_boxes(text, box, boxes, parts)
    answer = Extraction(whole.content, whole.start, whole.end, "box" if whole is box else "boxes")
    if parts is not None and parts_of(whole.content) < parts:
        n_before = text.count("boxed", lo, box.start - len("boxed{"))
        states = states and n_before < parts - 1  # otherwise the other values may be in the boxes before
    value: str | None = whole.content
    if whole is box and kind in ("integer", "number", "expression"):
        value = around_box(text, box, lo, hi)
    why = "it is part of a larger expression" if value is None else "" if states else "other boxes may contain the rest"
    if not why and guards_box(text, whole.outer_start, box.outer_end, lo, hi):
        why = "the surrounding words do not settle it"
    if value is None or why:
        return _opened(answer, text, *sentence_around(text, box.outer_start, box.outer_end, lo, hi), why)
    answer = answer if value == answer.answer else answer._replace(answer=value)
    return _with_text_behind(answer, text, box.outer_end, hi, kind, last)


def _opened(answer: Extraction, text: str, begin: int, finish: int, why: str) -> Extraction:
    """Return `answer` marked as undecided because of the words text[begin:finish]. why: what they do to it."""
    holder = _HOLDERS.get(answer.method, "the last sentence contains")
    quote = visible(" ".join(text[begin:finish].split()), _MAX_QUOTED_CHARS)
    words = f"{holder} {visible(answer.answer, _MAX_QUOTED_CHARS)}, but {why}: “{quote}”"
    return answer._replace(method=UNSTATED, opened_by=answer.opened_by or words)


def _with_text_behind(answer: Extraction, text: str, end: int, hi: int, kind: str, last: str) -> Extraction:
    """Return an answer updated by text[end:hi], the text after it.

    Words that retract it leave it open, unless a label after them states another answer, which replaces it. A value
    that is stated as an answer must get the same verdict.
    """
    lo = max(end, hi - _MAX_BEHIND_CHARS)
    # Nothing follows most boxes.
    if len(text[end:hi].strip(" \t\n$.。*)}]\\")) < 2:
        return answer
    if (taken_back := correction(text, lo, hi)) is not None:
        corrected = _after_label(text, taken_back[0], hi, kind) if kind != "choice" else None
        if corrected is not None and corrected.method != UNSTATED:
            return corrected
        return _opened(answer, text, *sentence_around(text, *taken_back, lo, hi), _TAKEN_BACK)
    if kind == "choice":
        stated = _choice_in_prose(text[lo:hi], last, only_stated=True)
    else:
        stated = _after_label(text, lo, hi, kind) or _concluded(text, lo, hi)
    if stated is None or stated.answer == answer.answer:
        return answer
    return answer._replace(behind=(stated.answer,))


def _final_formula_behind(text: str, lo: int, hi: int) -> Extraction | None:
    """Return the formula of "the answer is $…$" if text[lo:hi], after the last box, ends with this; otherwise None."""
    # A plain text search, which is faster than a pattern: this runs for each response with a box.
    if hi - lo > TAIL_CHARS or text.rfind("answer is", lo, hi) < 0:
        return None
    *_, label = (_AND_FINAL.match(text, lo, hi), *_FINAL_LABEL.finditer(text, lo, hi))
    formula = None if label is None else FORMULA.match(text, label.end(), hi)
    if formula is None or _REPLY_END.match(text, formula.end(), hi) is None:
        return None
    return Extraction(formula.group(), *formula.span(), "phrase")


def _concluded(text: str, lo: int, hi: int) -> Extraction | None:
    """Return the value that the last concluding sentence of text[lo:hi] states; None if there is none."""
    span = concluded(text, lo, hi)
    return None if span is None else Extraction(text[slice(*span)], *span, "formula")


def _last_filled_box(boxes: Iterator[Box], hi: int) -> tuple[Box | None, int]:
    """Return (the last box that is not empty, or None; where the empty boxes after it begin, or `hi` if there are
    none).

    An empty box only repeats the instruction to give the answer in a box.
    """
    end = hi
    for box in boxes:
        if _EMPTY.fullmatch(box.content) is None:
            return box, end
        end = box.outer_start
    return None, end


def _names_options(content: str, last: str) -> bool:
    """Whether a box names one or more options."""
    return letter_of(content, last, any_case=True) is not None or letters_of(content) is not None


def _choice_beside(text: str, box: Box, lo: int, hi: int, last: str) -> Extraction | None:
    """Return the option letter stated after a box that has none, or otherwise the letter stated before the box."""
    for begin, end in ((box.outer_end, hi), (lo, box.outer_start)):
        begin = max(begin, end - TAIL_CHARS)
        choice = _choice_in_prose(text[begin:end], last, only_stated=True)
        if choice is not None:
            return choice._replace(start=begin + choice.start, end=begin + choice.end)
    return None


# --- labels and choices ---
def _choice_in_prose(text: str, last: str, *, only_stated: bool = False) -> Extraction | None:
    """Return the option letter that a text states or, unless `only_stated`, marks; None if it does neither."""
    # Its patterns take a long time to compile.
    from reasoning_answers.find.choice import choice_in_prose, stated_choice

    letter = stated_choice(text, last) if only_stated else choice_in_prose(text, last)
    if letter is None:
        return None
    if (taken_back := correction(text, letter.end, len(text))) is None:
        return letter
    return _opened(letter, text, *sentence_around(text, *taken_back, lo=0, hi=len(text)), _TAKEN_BACK)


def _after_label(text: str, lo: int, hi: int, kind: str, parts: int | None = None) -> Extraction | None:
    """Return the answer of the last JSON field "answer" in text[lo:hi], or otherwise of its last label, or None.

    parts: as in `extract_from`.
    """
    if (field := in_json(text[:hi], lo)) is not None:
        return field
    *_, label = (None, *labels(text, lo, hi))  # the last one; None if there is none
    answer = None if label is None else _labeled(text, label.end, hi, kind, parts)
    if label is None or answer is None:
        return None
    if kind != "choice" and is_doubted(text, label, answer.end, lo, hi):
        return _opened(
            answer, text, *sentence_around(text, label.start, answer.end, lo, hi), "the sentence expresses doubt"
        )
    if (taken_back := correction(text, answer.end, hi)) is not None:
        return _opened(answer, text, *sentence_around(text, *taken_back, lo, hi), _TAKEN_BACK)
    behind = _concluded(text, answer.end, hi) if kind not in ("choice", "text") else None
    return answer if behind is None else answer._replace(behind=(behind.answer,))


def _labeled(text: str, start: int, hi: int, kind: str, parts: int | None) -> Extraction | None:
    """Return the answer of the sentence that begins at `start`, after a label; None if it states none.

    The answer is the first of the following: the items of an answer with several values; in the sentence, the formulas
    that begin it; the number that begins it; the number or last formula of a sentence with formulas; the only number of
    a longer sentence; all its words.
    """
    if parts is not None and (items := items_in(text, start, hi))[0]:
        return Extraction(text[start : items[1]], start, items[1], "phrase")
    start = _MARKS.match(text, start, hi).end()  # type: ignore[union-attr]  # it may be empty
    if (code := _CODE_OPENING.match(text, start, hi)) is not None:
        start = code.end()
    if (formula := FORMULA.match(text, start, hi)) is not None:
        end = _end_of_formulas(text, formula)
        return Extraction(text[start:end], start, end, "phrase")
    end = _end_of_statement(text, start, hi)
    special = _SPECIAL.search(text, start, end)
    end = special.start() if special else end
    sentence = _REMARK.sub("", text[start:end].strip().strip("*_`").rstrip(".。 ").strip())
    if text[start - 1 : start] in _QUOTES and sentence[-1:] in _QUOTES:
        sentence = sentence[:-1]
    formulas = list(FORMULA.finditer(sentence))
    if formulas and len(sentence) - sum(len(match.group()) for match in formulas) > 3:
        return _beside_words(text, start, end, sentence, formulas[-1])
    # Words may be the answer of a text; in other kinds more than three words make a sentence.
    numbers = list(NUMBER.finditer(sentence)) if kind != "text" and len(WORD.findall(sentence)) > 3 else []
    if len(numbers) == 1 and not is_refused(sentence, *numbers[0].span()):  # "Jane started 3 hours ago"
        return _at(text.find(numbers[0].group(), start), numbers[0].group(), "phrase")
    return _at(text.find(sentence, start), sentence, "phrase") if sentence else None


def _end_of_statement(text: str, start: int, hi: int) -> int:
    """Return where the statement that begins at `start` ends: at its first stop outside brackets and environments.

    A bracket that is not closed in its paragraph is ignored, and the first stop counts.
    """
    first: int | None = None
    depth, position = 0, start
    stops = _STATEMENT_END.finditer(text, start, min(hi, start + _MAX_BEHIND_CHARS))
    for end in chain((stop.start() for stop in stops), (hi,)):
        for bracket in _BRACKET.finditer(text, position, end):
            depth = max(0, depth + (1 if bracket[1] else -1))
        position, first = end, end if first is None else first
        if not depth:
            return end
        if _PARAGRAPH_END.match(text, end, hi) is not None:
            break
    return hi if first is None else first


def _at(begin: int, answer: str, method: Method) -> Extraction:
    """Return the extraction of `answer`, which begins at position `begin` of the text."""
    return Extraction(answer, begin, begin + len(answer), method)


def _end_of_formulas(text: str, first: re.Match[str]) -> int:
    """Return the end of an answer that begins with the formula `first`: after the formulas linked to it and the unit.

    If "or" and a number follow, the answer extends to the end of the sentence.
    """
    end = first.end()
    while (link := _FORMULA_LINK.match(text, end)) and (following := FORMULA.match(text, link.end())):
        end = following.end()
    if _ALTERNATIVE.match(text, end) is not None:  # "$5$ or 6" is not a single value
        stop = _STATEMENT_END.search(text, end)
        end = stop.start() if stop is not None else len(text)
    unit = _UNIT_BEHIND_FORMULA.match(text, end)
    return unit.end() if unit else end


def _beside_words(text: str, start: int, end: int, sentence: str, formula: re.Match[str]) -> Extraction | None:
    """Return the answer of a sentence of words and formulas: a number after its last formula, otherwise that formula.

    "the largest $n$ is 34" states 34. None if the sentence rejects the formula. sentence: the sentence text[start:end],
    without decoration. formula: its last formula.
    """
    after = sentence[formula.end() :].strip()
    number = _last_number(after) if re.search(r"(?:is|=|are|：|为)\s*\S", after) else None
    if number is not None:
        return _at(text.rfind(number.answer, start, end), number.answer, "phrase")
    if is_refused(sentence, formula.start(), len(sentence)):
        return None
    return _at(start + formula.start(), formula.group(), "phrase")


def _with_unit(answer: Extraction, text: str, kind: str) -> Extraction:
    """Add the unit that directly follows an answer consisting of one formula: "$12$ cm" is 12 cm."""
    formula = FORMULA.fullmatch(answer.answer) if kind in ("integer", "number", "expression") else None
    if formula is None or formula.lastindex is None:
        return answer
    value = formula[formula.lastindex].strip()
    unit = unit_behind(value, text[answer.end :])
    return answer._replace(answer=f"${value}{unit}$") if unit else answer


# --- neither box nor label ---
def _without_label(tail: str, kind: str, *, joins_parts: bool) -> Extraction | None:
    """Return the answer of the last line or the last sentence; None if the reply gives up or states nothing.

    joins_parts: whether several adjacent values may form one answer.
    """
    if _GIVES_UP.search(tail) is not None:
        return None
    bold = _BOLD_END.search(tail) if kind == "text" else None
    if bold is not None:
        begin, _ = sentence_around(tail, bold.start(), bold.start(), lo=0, hi=len(tail))
        if not is_guarded_in_prose(tail[begin : bold.start()], ""):
            return Extraction(bold[1], *bold.span(1), "line")
    tail = BOLD.sub("  ", tail)
    if (block := _ONLY_CODE.fullmatch(tail)) is not None:
        return Extraction(block[1], *block.span(1), "line")
    if (output := _OUTPUT.search(tail)) is not None:
        begin, _ = sentence_around(tail, output.start(), output.start(), lo=0, hi=len(tail))
        if not is_guarded_in_prose(tail[begin : output.start(1)].strip("`"), ""):
            return Extraction(output[1], *output.span(1), "line")
    # 8.996 ≈ 9.00 as a whole reply is a chain, whose parts are compared.
    chain = _whole_line(tail, kind) if "≈" in tail and "," not in tail else None
    # A code block may compute with numbers, and an aside repeats a rounded number: neither is the answer.
    for ignored in (_CODE_BLOCK, _ASIDE):
        tail = ignored.sub(lambda match: " " * len(match.group()), tail)
    extraction = chain or _whole_line(tail, kind) or _last_value(tail, kind, joins_parts)
    if extraction is None or extraction.method not in ("formula", "number"):
        return extraction
    finish = statement_end(tail, extraction.start, extraction.end)
    if finish is None:
        return _opened(
            extraction, tail, *sentence_around(tail, extraction.start, extraction.end, lo=0, hi=len(tail)), _NOT_STATED
        )
    if extraction.method == "formula":
        return extraction
    return extraction._replace(answer=tail[extraction.start : finish], end=finish)


def _last_value(tail: str, kind: str, joins_parts: bool) -> Extraction | None:
    """Return the last formula of a text, or its last number, or what its last sentence states in words."""
    joins_parts = joins_parts and kind not in ("text", "choice")
    value = _last_formula(tail, joins_parts) or _last_number(tail, joins_parts)
    if value is not None or kind == "choice":
        return value
    return _last_words(tail) if kind == "text" else _in_words(tail)


def _whole_line(tail: str, kind: str) -> Extraction | None:
    """Return the answer of a response that is nothing but a short answer, perhaps with words around it: the 72 of
    `**So the answer is 72, in total.**</s>`. None for any other response.

    The method is `UNSTATED` if those words leave the answer open.
    """
    answer = _SPECIAL.sub("", tail).strip().strip("*_`").strip()
    if (quote := _QUOTE_MARK.match(answer)) is not None:
        answer = answer[quote.end() :]
    # In a text or a choice the leading words, such as "this is", may be the answer.
    if kind not in ("text", "choice") and (lead := _LEAD.match(answer)) is not None:
        answer = answer[lead.end() :].rstrip(". ").strip("*_` ")
    answer = _REMARK.sub("", answer)
    if not answer or len(answer) > MAX_LINE_CHARS or "\n" in answer or _is_sentence(answer, kind):
        return None
    # If words were cut out of the middle of the answer, it has no position in the text.
    begin = tail.find(answer)
    if begin < 0:
        return None
    states = kind in ("text", "choice") or _line_states(tail, answer, begin)
    return Extraction(answer, begin, begin + len(answer), "line" if states else UNSTATED)


def _is_sentence(line: str, kind: str) -> bool:
    """Whether a line is more than an answer: it has words in addition to a formula or a number, or too many of them."""
    words = WORD.findall(COMMAND.sub("", _ENVIRONMENT.sub("", line)))
    if len(words) > 2 and (kind == "text" or number_in_words(line) is None):
        return True
    numbers = list(NUMBER.finditer(line)) if kind not in ("text", "choice") else []
    if numbers and kind in ("integer", "number") and words:
        return True
    if len(numbers) == 1 and len(_CHINESE.findall(line[: numbers[0].start()])) > 1:
        return True
    words_beside_formula = FORMULA.search(line) is not None and WORD.search(FORMULA.sub("", line)) is not None
    return words_beside_formula or len(_CHINESE.findall(line)) > _MAX_CHINESE_SIGNS


def _line_states(tail: str, line: str, begin: int) -> bool:
    """Whether a line states its value: it has no words, or the words around its only number state it."""
    if FORMULA.fullmatch(line):
        return statement_end(tail, begin, begin + len(line)) is not None
    numbers = list(NUMBER.finditer(line)) or list(IN_WORDS.finditer(line))
    words = set(WORD.findall(COMMAND.sub("", _ENVIRONMENT.sub("", tail)))) - {"or"}  # 2/5, or 40%
    if len(numbers) != 1 or not words:
        return True
    return statement_end(tail, begin + numbers[0].start(), begin + numbers[0].end()) is not None


def _last_formula(tail: str, joins_parts: bool) -> Extraction | None:
    """Return the last formula that may be an answer, or a number stated after it; None if there is neither.

    joins_parts: whether preceding formulas joined to it by commas, "and" or "or" belong to the answer.
    """
    formulas = list(FORMULA.finditer(tail))
    # A formula in "for all real $x$" specifies where the answer is valid.
    while len(formulas) > 1 and _ASIDE_BEFORE.search(tail, max(0, formulas[-1].start() - 20), formulas[-1].start()):
        formulas.pop()
    if not formulas:
        return None
    last = formulas[-1]
    if joins_parts and (first := _first_of_chain(formulas, tail)) is not last:
        return Extraction(tail[first.start() : last.end()], first.start(), last.end(), "formula")
    if (number := _last_number(tail[last.end() :])) is not None and re.search(r"\bis\b|=", tail[last.end() :]):
        return number._replace(start=last.end() + number.start, end=last.end() + number.end)
    return Extraction(last.group(), last.start(), last.end(), "formula")


def _last_number(tail: str, joins_parts: bool = False) -> Extraction | None:
    """Return the last number with its context: 4, 2√5, about 4, x = 4, or the point (3, 4); None if there is none.

    joins_parts: whether numbers joined to the last one by commas, "and" or "or" belong to the answer; they always do if
    the last one has a name.
    """
    numbers = [number for number in NUMBER.finditer(tail) if tail[number.start() - 1 : number.start()] != "^"]
    if not numbers:
        return None
    last = numbers[-1]
    joins_parts = joins_parts or _NAME_BEFORE.search(tail, max(0, last.start() - 8), last.start()) is not None
    start, end = (_first_of_chain(numbers, tail) if joins_parts else last).start(), last.end()
    if "," not in last.group() and (whole := _BEFORE_COMMA.search(tail, max(0, start - 12), start)) is not None:
        start = whole.start()  # 4,5 may be 4.5
    if (formula := _FORMULA_BEFORE.search(tail, max(0, start - 60), start)) is not None:
        start = formula.start()
    if (rounded := _ABOUT.search(tail, max(0, start - 20), start)) is not None:
        start = rounded.start()
    if start < last.start() and (name := _NAME_BEFORE.search(tail, max(0, start - 8), start)) is not None:
        start = name.start()
    for point in _TUPLE.finditer(tail, max(0, start - _MAX_TUPLE_CHARS)):
        if point.start() < start and point.end() > end and not WORD.search(point.group()):
            start, end = point.span()
    return Extraction(tail[start:end], start, end, "number")


def _in_words(tail: str) -> Extraction | None:
    """Return the number in English words that the last sentence states: "There are four triangles."; otherwise None."""
    end = len(tail.rstrip(" \n.!"))
    begin, _ = sentence_around(tail, end, end, lo=0, hi=len(tail))
    numerals = [match for match in IN_WORDS.finditer(tail, begin, end) if number_in_words(match.group()) is not None]
    return None if len(numerals) != 1 else _at(numerals[0].start(), numerals[0].group(), "number")


def _first_of_chain(matches: list[re.Match[str]], tail: str) -> re.Match[str]:
    """Return the first match that is joined to the last one by nothing but commas, "and" and "or"."""
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


# --- layout ---
def _without_struck_out(text: str, lo: int, hi: int) -> str:
    r"""Return `text` with spaces for what is struck out at the end of text[lo:hi]: `~~\boxed{5}~~` states nothing."""
    lo = max(lo, hi - TAIL_CHARS)
    # A plain text search, which is faster than a pattern: this runs for each response.
    if text.find("~~", lo, hi) < 0 and text.find("</", lo, hi) < 0:
        return text
    tail = text[lo:hi]

    def blank(struck: re.Match[str]) -> str:
        return struck.group() if _is_layout(tail, struck) else " " * len(struck.group())

    return text[:lo] + _STRUCK_OUT.sub(blank, tail) + text[hi:]


def _is_layout(text: str, struck: re.Match[str]) -> bool:
    """Whether the marks in a match of `_STRUCK_OUT` strike nothing out.

    ~~ in a formula is a wide space; <s> and </s> around the whole text are a model's start and end tokens.
    """
    if struck[1] is None:  # ~~
        line = text[text.rfind("\n", 0, struck.start()) + 1 : struck.start()]
        return line.count("{") > line.count("}") or line.count("$") % 2 == 1
    is_whole = not text[: struck.start()].strip() and not text[struck.end() :].strip()
    return struck[1].lower() == "s" and is_whole


def _plain_tail(tail: str) -> str:
    """Replace headings and HTML tags by labels, spaces or line breaks of the same length, so that positions stay.

    A text with no closing tag and no <br> keeps its tags, since `a<b>c` may be mathematics.
    """
    if "#" in tail or "**" in tail or "【" in tail:
        tail = _ANSWER_HEADING.sub(lambda heading: f"{heading[1]}:".ljust(len(heading.group())), tail)
        tail = _HEADING.sub(lambda marks: " " * len(marks.group()), tail)
    if "|" in tail:
        tail = _ANSWER_ROW.sub(
            lambda row: f"{row[1]}:".ljust(row.start(2) - row.start()) + row[2].ljust(row.end() - row.start(2)), tail
        )
    if "</" not in tail and "<br" not in tail and "<BR" not in tail:
        return tail

    def blank(tag: re.Match[str]) -> str:
        first = "\n" if _HTML_BREAK.match(tag.group()) else " "
        return first.ljust(len(tag.group()))

    return _HTML.sub(blank, tail)
