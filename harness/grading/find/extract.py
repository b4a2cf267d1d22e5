r"""Finding the answer in a response: after the reasoning, from the end, in linear time.

Order of the forms: the last complete box · the last explicit phrase ("the answer is", "####", "A:", 答案是 …) ·
the last formula · the last number. The first form that is present decides; nothing is tried until it fits.
A response that the budget cut off is only searched for a box or an explicit phrase.
"""

from __future__ import annotations

import json
import re
from typing import Literal, NamedTuple

from harness.answers.boxed import Box, boxes_from_end, has_box, is_broken, open_box
from harness.answers.grammar.units import changes_number
from harness.answers.grammar.vocabulary import is_command
from harness.answers.letters import letter_of
from harness.grading.bounds import MAX_FOUND_CHARS, TAIL_CHARS
from harness.grading.find.reasoning import final_part
from harness.grading.find.several import joined, with_exact_value

Method = Literal["box", "boxes", "open box", "phrase", "formula", "number", "letter", "line"]


class Found(NamedTuple):
    """An answer as it stands in the text: its words, where they stand, and the form that gave it away."""

    answer: str
    start: int
    end: int
    method: Method


_PHRASE = re.compile(
    r"""(?x)
    \#{4}[ \t]*
    | (?i:final\s+answer)\s*(?:\*\*|__)?\s*(?i:is|are|:|：|=|\n)+ \s*
    | (?i:\banswer)s?\s*(?:\*\*|__)?\s*(?i:(?:is|are)\b\s*[:：]?|[:：=])\s*(?:\*\*|__)?\s*
    | (?i:\banswer)\s*(?=\$|\\\(|\\\[)
    | (?:^|\n)[ \t]*A\s*[:：]\s*
    | (?:最终答案|答案|结果)\s*(?:应?[是为]|[:：])+\s*
    | <answer>\s*
    | (?:故选|应选|故答案[是为]|所以选)\s*[:：]?\s* | 答\s*[:：]\s*
    """
)
_MATH = re.compile(r"\$\$(.{1,2000}?)\$\$|\$([^$\n]+)\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]", re.DOTALL)
_JSON = re.compile(r"(?i)[\"'](?:final[_ ]?)?answer[\"']\s*:\s*")
_JSON_TEXT = re.compile(r'"((?:[^"\\]|\\.){0,4000})"|\'([^\'\n]{0,4000})\'')
_BACKSLASHED = re.compile(r"(?<!\\)(?:\\\\)*\\([A-Za-z]+)")
_JSON_VALUE = re.compile(r"\[[^\[\]]{0,2000}\]|[^\s,}\]]{1,400}")
_ASIDE = re.compile(
    r"(?i)\(\s*(?:about|approximately|approx\.?|roughly|≈|~)[^()\n]{0,40}\)"
    r"|(?<=[\d%})$])\s*,?\s*(?:or\s+)?(?:about|approximately|roughly|≈)\s*[\d.]+%?"
)
"""A value told a second time, rounded."""

_TOTAL = re.compile(
    r"(?<!\s)\s*[,，]\s*(?:not|rather\s+than|instead\s+of)\s[^,\n]*\Z"
    r"|(?<=\d)\s*[,，]\s*[A-Za-z]{2,}(?:\s+[A-Za-z]{2,})*\Z|(?<!\s)\s*,\s*(?:altogether|overall|in\s+(?:total|all))\s*\.?\Z"
)
"""Words behind a number that add nothing: "72, in total", "72, not 73"."""

_NOT_BUT = re.compile(r"(?i)not\s[^,.\n]{1,80}?,?\s+but\s+(?:rather\s+)?")
_DENIED = re.compile(
    # Possessive: the white space of a long blank end must not be shared out between two groups in every way there is.
    r"(?i)[\s.,;:!$*)\]}—-]*+(?:(?:however|but|wait|actually|no|hmm|oh|sorry)\b[\s.,!]*+)*+(?:(?:that|this|it|which)\b)?\s*+"
    r"(?:['’]s|is|was)\s+(?:wrong|incorrect|false|a\s+mistake|not\s+(?:right|correct))\b"
)
"""What takes back the box that it follows."""

_REFUSED_BEFORE = re.compile(
    r"""(?xi) (?:
        (?: \b(?:not|never|cannot|neither|nor|except|excluding|hardly) | n['’]t ) \s+ (?:be\s+|equal\s+(?:to\s+)?)?
      | \b(?:impossible|unlikely)\s+to\s+(?:be|get|have|reach)\s+ | \bdiffers?(?:ent)?\s+from\s+ | \bexceeds?\s+
      | \bbetween\s+[$\\({]*-?[\d.,]+[$\\)}]*\s+and\s+
      | \b(?:squared?|cubed?|root|half|double|multiple|factor|digit|power)\s+(?:of\s+)? | \b(?:twice|divisible\s+by)\s+
      | \b(?:figure|page|section|chapter|step|table|equation|lemma|theorem|footnote)\s+
      | \b(?:wrong|incorrect)(?:\s+(?:answer|value|result|number))?(?:\s+(?:is|was|would\s+be))?\s*[:=]?\s*
    ) [$(*]*\Z"""
)
_REFUSED_BEHIND = re.compile(
    r"(?i)[$)*\s]*(?:(?:is|are|was|does|do|did|can|could|will|would|should)(?:\s*n['’]t|\s*not|\s+never)\b"
    r"|(?:is|was|are|were)\s+(?:wrong|incorrect|false|impossible|invalid|excluded|ruled\s+out|a\s+mistake|too\s)\b|fails\b)"
)
"""Words beside a number which say that it is not the answer, or only a part of it."""

_NO_ANSWER_BEFORE = re.compile(r"(?i)\b(?:wrong|incorrect|false|mistaken|worst|least\s+\w+)\s+(?:final\s+)?\Z")
"""Before "answer": the phrase states none."""

_REFUSED_WHOLE = re.compile(r"(?i)(?:wrong|incorrect)\b")
_STRUCK_OUT = re.compile(r"(?is)<(s|del|strike)>.{0,400}?</\1>|~~[^~\n]{1,400}~~")

_ASIDE_BEFORE = re.compile(r"(?i)(?:\b(?:for|all|any|every|each|real|integers?|where|than|from|over|variable)\s+)\Z")
"""Words before a formula that is no answer: "for all real $x$", "larger than $1$"."""

_LINK = re.compile(r"\s*(?:[,，、;]\s*(?:and|or)?|and|or|和|或)\s*")
_TUPLE = re.compile(r"[(\[][^()\[\]\n]{1,120},[^()\[\]\n]{1,120}[)\]]")
_SAID = re.compile(
    r"(?i)(?:\A|\n)\s*(yes|no|true|false)\b(?!\s*(?:and|or|/)\b)[^\n]*\Z|\b(?:is|are|was|be)\s+([^\s.][^.\n]{0,60}?)[.!]?\s*\Z"
)

_MATH_LIST = re.compile(r"[\s,;、，]*+(?:and|or|和|或)?[\s,]*+(?=\$|\\\()")
_SENTENCE_END = re.compile(
    r"""(?x) \n | </answer> | [.!?](?=\s|$|["'*]) | [。！？] | [;；](?=\s)
    | (?<!\s)\s+(?i:because|since|which|where\s+we|as\s+(?:the|we|it)|so\s+(?:the|we)|hence|therefore|i\s+hope)\b
    | [,，]\s*(?i:because|since|which|so|hence|therefore|and\s+we)\b"""
)
NUMBER = re.compile(
    r"""(?x) (?<![A-Za-z0-9_.]) (?:[-−–](?=[\d.$]))? [$€£¥]? [-−]?
    (?: \d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d) | \d+/\d+ | \d+(?:\.\d+)? | \.\d+ ) (?:[eE][+-]?\d+)? %?
    (?:\s+(?i:hundred|thousand|million|billion|trillion|dozen)\b|[万亿萬億])* """
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
MAX_CHINESE_SIGNS = 8
"""Chinese characters of a line that is nothing but an answer, at most."""

_WORD = re.compile(r"[A-Za-z]{2,}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_FENCE_OPEN = re.compile(r"```[A-Za-z]*\s*\n\s*|`")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LEAD = re.compile(
    r"""(?xi) (?: (?:
        (?:so|therefore|thus|hence|then|now|and|finally|indeed|clearly|consequently|okay|ok|well|since)\b
      | ∴ | \\(?:therefore|implies|Rightarrow)(?![a-z])
      | (?:i|we|you|one|this|that|it|which|they)\s+(?:\w+ly\s+)?
        (?:get|got|gets|have|has|had|find|found|obtain|obtained|gives?|gave|yields?|conclude|think|believe|see|equals?
          |is|was|makes?|means?|know|compute|calculate|need)(?:\s+that)?\b
      | (?:it|that|there)['’]s\b | there\s+(?:is|are)\b
      | (?:the\s+)?(?:final\s+)?(?:answer|ans|result|value|total|sum)
        (?:['’]s\b|\s+(?:is|equals|was|(?:would|should|could|must|will)\s+be)\b|\s*[.:=])?
      | (?-i:[a-zA-Z])\s+(?:equals|is)\b
    ) \s*[,:]?\s* )+"""
)
"""Words before an answer that stands on a line of its own: "so 5", "we get 5", "it's 5"."""

_HTML = re.compile(
    r"(?i)</?(?:b|strong|i|em|u|p|span|div|center|font|code|h[1-6]|br|hr)(?:\s+[a-z-]+=[^<>]{0,80})?\s*/?>"
)
_HTML_BREAK = re.compile(r"(?i)</?(?:br|p|div|hr|h[1-6])\b")
_SPECIAL = re.compile(r"<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>")


def extract(
    text: str | None, *, kind: str = "expression", parts: int | None = None, truncated: bool = False, last: str = "Z"
) -> Found | None:
    """The one answer of a response, or None. Positions are characters of `text`.

    parts: how many the reference has, where boxes side by side are one answer; last: the last option letter.
    """
    if not text:
        return None
    part = final_part(text)
    if part is None:
        return None
    found = extract_from(text, *part, kind=kind, parts=parts, truncated=truncated, last=last)
    return None if found is None else found._replace(answer=bounded(found.answer))


def bounded(answer: str, limit: int = MAX_FOUND_CHARS) -> str:
    """`answer` without needless white space when it is long; one that is still too long is cut and marked so."""
    if len(answer) <= limit:
        return answer
    answer = " ".join(answer.split())
    return answer if len(answer) <= limit else f"{answer[:limit]} …[cut"


def extract_from(
    text: str, lo: int, hi: int, *, kind: str, parts: int | None, truncated: bool, last: str
) -> Found | None:
    """As `extract`, within text[lo:hi] and without looking for reasoning."""
    boxes = boxes_from_end(text, lo, hi)
    box = next(boxes, None)
    if box is not None:
        if is_broken(text, box, lo, hi):
            return None
        if _DENIED.match(text, box.outer_end, hi) is not None:
            return _behind(text, box.outer_end, hi, kind)
        stated = _stated_later(text, box.outer_end, hi)
        if stated is None and kind == "choice" and letter_of(box.content, last, any_case=True) is None:
            stated = _choice_beside(text, box, lo, hi, last)
        if stated is not None:
            return stated
        whole = with_exact_value(text, box, boxes) if parts is None else joined(text, box, boxes, parts)
        return Found(whole.content, whole.start, whole.end, "box" if whole is box else "boxes")
    lo = max(lo, hi - TAIL_CHARS)
    tail = _without_html(text[lo:hi])
    if not truncated and (broken := open_box(text, lo, hi)) is not None:
        return Found(broken.content, broken.start, broken.end, "open box")
    if kind == "choice" and (letter := _choice_in_prose(tail, last)) is not None:
        return letter._replace(start=lo + letter.start, end=lo + letter.end)
    phrase = _after_phrase(tail, kind)
    if phrase is None and not truncated and not has_box(text, lo, hi):
        for aside in (_FENCE, _ASIDE):
            tail = aside.sub(lambda match: " " * len(match.group()), tail)
        several = parts is not None
        phrase = _whole_line(tail, kind) or _last_formula(tail, several) or _last_number(tail, several)
        if phrase is None and kind == "text":
            phrase = _last_words(tail)
    if phrase is None:
        return None
    return phrase._replace(start=lo + phrase.start, end=lo + phrase.end)


def _without_html(tail: str) -> str:
    """Tags that only set text become spaces or line breaks, as many as they have characters, and so does
    what is struck out; `a<b>c` stays."""
    if "~~" in tail or "</" in tail:
        tail = _STRUCK_OUT.sub(lambda struck: " " * len(struck.group()), tail)
    if "</" not in tail and "<br" not in tail and "<BR" not in tail:
        return tail
    return _HTML.sub(lambda tag: ("\n" if _HTML_BREAK.match(tag.group()) else " ") + " " * (len(tag.group()) - 1), tail)


def _choice_in_prose(tail: str, last: str) -> Found | None:
    from harness.grading.find.choice import choice_in_prose  # its patterns take long to compile

    choice = choice_in_prose(tail, last)
    return None if choice is None else Found(choice.answer, choice.start, choice.end, "letter")


def _choice_beside(text: str, box: Box, lo: int, hi: int, last: str) -> Found | None:
    """The letter that is stated beside a box that holds none: behind it, or else in front of it."""
    from harness.grading.find.choice import stated_choice

    for begin, end in ((box.outer_end, hi), (lo, box.outer_start)):
        begin = max(begin, end - TAIL_CHARS)
        if (choice := stated_choice(text[begin:end], last)) is not None:
            return Found(choice.answer, begin + choice.start, begin + choice.end, "letter")
    return None


def _behind(text: str, lo: int, hi: int, kind: str) -> Found | None:
    """The answer that is given in words behind a box which the text takes back."""
    lo = max(lo, hi - TAIL_CHARS)
    found = _after_phrase(text[lo:hi], kind)
    return None if found is None else found._replace(start=lo + found.start, end=lo + found.end)


def candidates(text: str, limit: int) -> list[str]:
    """Contents of the last `limit` boxes anywhere in the text, reasoning included."""
    contents = []
    for box in boxes_from_end(text):
        contents.append(bounded(box.content))
        if len(contents) == limit:
            break
    return contents


def _stated_later(text: str, lo: int, hi: int) -> Found | None:
    """ "The final answer is $…$." behind the last box: the sentence that few-shot prompts teach, and it comes last."""
    if hi - lo > TAIL_CHARS or (at := text.rfind("inal answer is", lo, hi)) < 0:
        return None
    formula = _MATH.match(text, at + len("inal answer is "), hi)
    if formula is None:
        return None
    return Found(formula.group(), formula.start(), formula.end(), "phrase")


def _in_json(tail: str) -> Found | None:
    """`{"answer": …}`: the value of the last field of that name, a text without its escapes."""
    field = _last(_JSON, tail)
    if field is None:
        return None
    if (quoted := _JSON_TEXT.match(tail, field.end())) is not None:
        place = quoted.lastindex or 1
        return Found(_unescaped(quoted), quoted.start(place), quoted.end(place), "phrase")
    value = _JSON_VALUE.match(tail, field.end())
    if value is None or value.group() in ("null", "{"):
        return None
    return Found(value.group().removeprefix("[").removesuffix("]"), value.start(), value.end(), "phrase")


def _unescaped(quoted: re.Match[str]) -> str:
    """The text of a JSON string; one that holds LaTeX with single backslashes, which JSON does not allow, as it is."""
    content = quoted[quoted.lastindex or 1]
    if any(is_command(name) for name in _BACKSLASHED.findall(content)):
        return content
    try:
        return str(json.loads(f'"{content}"'))
    except ValueError:
        return content


def _after_phrase(tail: str, kind: str) -> Found | None:
    if (in_json := _in_json(tail)) is not None:
        return in_json
    found = None
    for match in _PHRASE.finditer(tail):
        if tail[match.end() : match.end() + 1].strip() and not _is_no_statement(tail, match):
            found = match
    if found is None:
        return None
    return _statement(tail, found.end(), "phrase", kind)


def _is_no_statement(tail: str, phrase: re.Match[str]) -> bool:
    """ "The wrong answer is 5."; "The answer is 5? No, 6.": a question, where something is said behind it."""
    if _NO_ANSWER_BEFORE.search(tail, max(0, phrase.start() - 40), phrase.start()):
        return True
    stop = _SENTENCE_END.search(tail, phrase.end(), phrase.end() + 400)
    return stop is not None and stop.group() in "?？" and bool(tail[stop.end() :].strip())


def _is_refused(tail: str, start: int, end: int) -> bool:
    """The words beside tail[start:end] say that it is not the answer."""
    behind = _REFUSED_BEHIND.match(tail, end) or _DENIED.match(tail, end)
    return behind is not None or _is_refused_before(tail, start)


def _is_refused_before(tail: str, start: int) -> bool:
    return _REFUSED_BEFORE.search(tail, max(0, start - 60), start) is not None


def _statement(tail: str, start: int, method: Method, kind: str) -> Found | None:
    """What stands from `start` to the end of the sentence: formulas when it opens with one, else words."""
    while start < len(tail) and tail[start] in " \t*_:：":
        start += 1
    if (fence := _FENCE_OPEN.match(tail, start)) is not None:
        start = fence.end()
    formula = _MATH.match(tail, start)
    if formula is not None:
        end = formula.end()
        while (link := _MATH_LIST.match(tail, end)) is not None and (more := _MATH.match(tail, link.end())) is not None:
            end = more.end()
        unit = re.compile(r"[ ]?(?:%|°|\\%|degrees?\b|percent\b)").match(tail, end)
        return Found(tail[start : unit.end() if unit else end], start, unit.end() if unit else end, method)
    stop = _SENTENCE_END.search(tail, start)
    end = stop.start() if stop else len(tail)
    special = _SPECIAL.search(tail, start, end)
    end = special.start() if special else end
    if (replaced := _NOT_BUT.match(tail, start, end)) is not None:
        start = replaced.end()
    answer = tail[start:end].strip().strip("*_`").rstrip(".。 ").strip()
    answer = _TOTAL.sub("", answer)
    inner = list(_MATH.finditer(answer))
    if inner and len(answer) - sum(len(match.group()) for match in inner) > 3:
        # "the largest $n$ is 34": words around a formula are not part of the answer
        after = answer[inner[-1].end() :].strip()
        number = _last_number(after) if re.search(r"(?:is|=|are|：|为)\s*\S", after) else None
        if number is not None:
            at = tail.rfind(number.answer, start, end)
            return Found(number.answer, at, at + len(number.answer), method)
        if _is_refused_before(answer, inner[-1].start()):
            return None
        return Found(inner[-1].group(), start + inner[-1].start(), start + inner[-1].end(), method)
    numbers = list(NUMBER.finditer(answer)) if kind != "text" and len(_WORD.findall(answer)) > 3 else []
    if len(numbers) == 1 and not _is_refused(answer, *numbers[0].span()):
        # "Jane started 3 hours ago": one number in a sentence is what the sentence says
        at = tail.find(numbers[0].group(), start)
        return Found(numbers[0].group(), at, at + len(numbers[0].group()), method)
    if answer:
        at = tail.find(answer, start)
        return Found(answer, at, at + len(answer), method)
    return None


def _whole_line(tail: str, kind: str) -> Found | None:
    """A response that is nothing but a short answer, perhaps with words that lead to it."""
    answer = _SPECIAL.sub("", tail).strip().strip("*_`").strip()
    if kind not in ("text", "choice") and (lead := _LEAD.match(answer)) is not None and answer[lead.end() :].strip():
        answer = answer[lead.end() :].rstrip(". ").strip("*_` ")
    answer = _TOTAL.sub("", answer)
    if _REFUSED_WHOLE.match(answer):
        return None
    if kind in ("integer", "number") and (number := _ending_number(answer)) is not None:
        answer = number
    if not answer or len(answer) > 200 or "\n" in answer or len(_WORD.findall(_COMMAND.sub("", answer))) > 2:
        return None
    words_beside_formula = _MATH.search(answer) is not None and _WORD.search(_MATH.sub("", answer)) is not None
    if words_beside_formula or len(_CHINESE.findall(answer)) > MAX_CHINESE_SIGNS:
        return None  # a sentence
    at = tail.find(answer)
    return Found(answer, at, at + len(answer), "line") if at >= 0 else None


def _ending_number(line: str) -> str | None:
    """The number that a line of a few words ends with: "She earned 42"."""
    numbers = list(NUMBER.finditer(line))
    if len(numbers) != 1 or line[numbers[0].end() :].strip(" .") or _is_refused_before(line, numbers[0].start()):
        return None
    words = line[: numbers[0].start()].rstrip(" \\")
    plain = words.replace(" ", "").isalpha() and not changes_number(words)
    return numbers[0].group() if plain else None


def _last_formula(tail: str, several: bool) -> Found | None:
    formulas = list(_MATH.finditer(tail))
    while len(formulas) > 1 and _ASIDE_BEFORE.search(tail, max(0, formulas[-1].start() - 20), formulas[-1].start()):
        formulas.pop()
    if not formulas:
        return None
    found = formulas[-1]
    if several and (first := _first_of_chain(formulas, tail)) is not found:
        return Found(tail[first.start() : found.end()], first.start(), found.end(), "formula")
    if (number := _last_number(tail[found.end() :])) is not None and re.search(r"\bis\b|=", tail[found.end() :]):
        return number._replace(start=found.end() + number.start, end=found.end() + number.end)
    if _is_refused(tail, found.start(), found.end()):
        return None
    return Found(found.group(), found.start(), found.end(), "formula")


def _last(pattern: re.Pattern[str], tail: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(tail):  # noqa: B007  only the last one is wanted
        pass
    return match


def _last_number(tail: str, several: bool = False) -> Found | None:
    numbers = list(NUMBER.finditer(tail))
    if not numbers:
        return None
    start, end = _first_of_chain(numbers, tail).start() if several else numbers[-1].start(), numbers[-1].end()
    if _is_refused(tail, start, end):
        return None
    for point in _TUPLE.finditer(tail, max(0, start - 240)):
        if point.start() < start and point.end() > end and len(_WORD.findall(point.group())) == 0:
            start, end = point.span()
    return Found(tail[start:end], start, end, "number")


def _first_of_chain(found: list[re.Match[str]], tail: str) -> re.Match[str]:
    """The first of the matches that lead to the last one with nothing but commas, "and" and "or" between them."""
    at = len(found) - 1
    while at > 0 and _LINK.fullmatch(tail, found[at - 1].end(), found[at].start()):
        at -= 1
    return found[at]


def _last_words(tail: str) -> Found | None:
    """The word that a reply in words comes to: "Yes, it is.", "The day is Tuesday."."""
    said = _SAID.search(tail.rstrip())
    if said is None:
        return None
    place = said.lastindex or 0
    return Found(said[place], said.start(place), said.end(place), "line")


__all__ = ["NUMBER", "Found", "Method", "candidates", "extract", "extract_from"]
