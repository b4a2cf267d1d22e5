r"""The values that sentences behind an answer state as an answer: "So we get $\frac12$.", "Answer: 5", 因此，答案是3角.

    VALUE                                    a sentence that is nothing else: `$\frac12$`, "13."
    label or noun of an answer, VALUE        "Final Answer: 5", "the required value is 5", 答案是5, 答：5
    conclusion, VALUE                        "so 5", "hence the area is 5", "we get 5", "this gives 5", 所以是5, 得5
    subject "is" VALUE                       only in the last sentence with a value: "The radius is 5."

VALUE ends the sentence, but for a unit and plain nouns; behind a label it need not. An equation of the work (`x+y=5`,
`3·4=12`) states nothing; of a chain, the last member is the value. Whether a value equals the answer is decided where
answers are compared (`harness.grading.verdict`), in any notation: nothing here reads a value.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.answers.grammar.numerals import IN_WORDS, number_in_words
from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS
from harness.grading.find.beside_box import unit_behind
from harness.grading.find.chinese import CLASSIFIER, UNIT
from harness.grading.find.repeated import NUMBER, is_letter, letter_in, numbers_of, plain
from harness.grading.find.several import parts_of
from harness.grading.find.whole_clause import formula_at_end, is_judgement, judged_in, row_in


class Stated(NamedTuple):
    """A value that a sentence states. announced: by a noun or a label of an answer; such a value counts wherever it
    stands, another one only if no further value is stated behind it.
    """

    value: str
    announced: bool


_FORMULA = (
    r"(?:\$\$[^$]{1,400}\$\$|\$(?:[^$\\]|\\.){1,400}\$|\\\((?:[^\\]|\\[^)]){1,400}\\\)"
    r"|\\\[(?:[^\\]|\\[^\]]){1,400}\\\])"
)
_FORMULAS = re.compile(rf"{_FORMULA}(?:\s*(?:,\s*(?:and|or)?|and|or|[，、和或])\s*{_FORMULA}){{0,8}}")
_PLAIN = re.compile(
    r"(?:\\(?:text|mathrm|textbf|mathbf)\s*\{[^{}]{0,40}\}|\\[A-Za-z]+|\\[%$,;! {}]|[A-Za-z](?![A-Za-z])"
    r"|[-\d.,:/^_+−*×÷·=≈<>≤≥()\[\]{}%°℃℉√π∞²³!'|$€£¥\s]|(?<=\d)(?:e|x)(?=[-\d])"
    r"|(?<=[\d}])\s(?:and|or)\s(?=[-\d\\a-z]))+"
)
"""A formula without dollar signs; a word of two letters ends it."""

_HAS_VALUE = re.compile(r"\d|\\(?:d?frac|sqrt|pi|infty|emptyset|text)|[π∞√]|\A[A-Za-z]\Z")
_LETTER = re.compile(
    r"(?:[$*(\s]|\\[\[(])*(?:\\(?:text|mathrm|textbf)\{)?\(?(?P<letter>[A-J])\)?(?![A-Za-z'’])\}?(?:[$*)\s]|\\[\])])*"
)
_WORD_VALUE = re.compile(r"(?i)(?:true|false|yes|no|correct|incorrect|right|wrong)(?![A-Za-z])")
_MEMBER = re.compile(r"(?<![<>!:])=(?!=)|≈|\\approx(?![A-Za-z])")
_RELATION = re.compile(
    r"[<>≤≥≠]|\\(?:[lg]eq?q?|[lg]eqslant|lt|gt|neq?|equiv|mid|nmid|in|notin|subset\w*|pmod|bmod)(?![A-Za-z])"
)
_NAME = re.compile(
    r"[\s$(\[]*(?:\\(?:text|mathrm|operatorname|angle|overline|Delta|left|right|[a-z]+)?\s*\{?[A-Za-z ]*\}?"
    r"|[A-Za-z| ]{1,8})"
    r"(?:_\{?\w{1,8}\}?)?'*(?:\([^()=]{1,20}\))?[\s$)\]|]*"
)
"""The name of a quantity: x, P(A), AB, `\\angle ABC`. What equals it is its value."""

_AROUND = ' \t\n*_#>"“”‘’'
_VERBS = names("is are was were has have had")
_RELATIVES = names("that which who where so because since as")
_TAIL_LINKS = names("of as because since for in per such which by that so")
_ADVERBS = (
    r"(?:\s+(?:then|therefore|thus|hence|now|exactly|equal\s+to|simply|just|only|actually|really|indeed|also|still|again"
    r"|finally|clearly|about|approximately|roughly|us|me|you|that|a\s+total\s+of|in\s+fact|given\s+by|at|to|it\s+is"
    r"|the\s+(?:value|answer|result|number))(?![a-z]))*[\s:,=*]*"
)
_LINK = re.compile(
    r"(?i)(?P<concludes>\b(?:so|thus|hence|therefore|consequently|overall|altogether|finally|namely|rather|better|precisely"
    r"|exact|accordingly|in\s+(?:total|all|conclusion|summary|short|the\s+end|other\s+words|reality|fact)|as\s+a\s+result|follows\s+that|i\.e\.)\b"
    r"|\b(?:gives?|gave|yields?|makes?|giving|making|yielding|leaving|totall?ing|totals?|comes\s+to|amounts?\s+to|conclude|becomes?|changes?\s+to|leaves)\b"
    r"|∴|⇒|\\(?:therefore|implies|Rightarrow)(?![a-z]))"
    rf"{_ADVERBS}"
    r"|(?P<asserts>\b(?:get|gets|got|obtain|obtained|have|has|had|find|found|need|see|reach|know|take|arrive\s+at|end\s+up\s+with))"
    rf"(?![a-z]){_ADVERBS}"
    rf"|(?P<copula>(?:['’]s|\b(?:is|are|was|were|be|being|equals?))(?![a-z])|(?<![\d)}}\]$%π°!?'])(?<![\d)}}\]$%π°!?']\s)=|(?<!\d\s)(?:(?<!\d)[:：]|[:：](?=\s))){_ADVERBS}"
)
_PRONOUN = re.compile(
    r"(?i)(?:\A|[\s,;—–-])(?:i|we|you|one|this|that|it|these|those|which|there|they|he|she)(?:['’]ll)?(?:\s+(?:can|could|may|will|must|now|finally|then|also"
    r"|therefore|thus|hence|in\s+fact|actually|really|\w+ly))*\s*\Z"
)
_OF_ANSWER = re.compile(
    r"(?i)(?:\A|[^a-z])(?:answers?|ans|results?|solutions?|conclusion|value|total|(?:required|requested|desired|wanted|final|correct"
    r"|right|stated|actual|true|real|asked)\s+\w+)(?:\s*\([^()]{0,40}\)|\s+(?:to|of)\s+(?:the|this|our)\s+(?:question|problem|exercise))?(?:\s+(?:would|should|must|will))?[\s*_]*\Z"
)
MAY_ANNOUNCE = re.compile(
    r"(?i)answer|\bans\b|result|solution|conclusion|value|total|required|requested|desired|wanted|final|correct|right|stated"
    r"|actual|true|real|asked|[答解果论数项值选]"
)
"""A word without which no sentence announces a value: a cheap test before the search for one."""

_CONCLUDES = re.compile(
    r"(?i)\A[\s*_]*(?:so|thus|hence|therefore|consequently|finally|overall|altogether|accordingly|in\s+(?:total|all|conclusion|summary)"
    r"|as\s+a\s+result|it\s+follows|we\s+conclude|i\s+conclude)\b"
)
_CONFIDENCE = re.compile(r"(?i)confidence\b")
_NO_SUBJECT = re.compile(
    r"(?i)\b(?:would|could|might|may)\s*\Z|\b(?:if|when|where|unless)\b|\b(?:step|idea|trick|formula|rule)\s*\Z|(?<![\w.])1\s+[a-z]{2,}\s*\Z"
)
"""Words before "is" and a value that suppose something, name a step of the work, or convert a unit (1 litre is …)."""

_ABOUT = re.compile(r"(?i)\b(?:about|approximately|roughly)\b")
MAX_LINKS = 12
"""Number of verbs and signs "=" at each end of a sentence behind which a value is looked for."""

_CHECKS = re.compile(
    r"(?i)\A[\s*_]*(?:(?:sanity\s+)?check(?:ing)?|verif\w+|to\s+(?:check|verify|double)|double-?\s?check\w*|substitut\w+|plugging|trying"
    r"|test(?:ing)?|for\s+(?:example|instance|comparison)|e\.g|as\s+a\s+check|indeed|if|when|suppose|let|at|note\s+that|notice|recall|equality|numerically|conversely|back"
    r"|we\s+can\s+(?:check|verify))\b"
)
"""How a sentence begins that checks the answer, or supposes something: its values are not stated."""

IS_ANSWER = re.compile(
    rf"(?i)(?<![\w.,/$\\])(?P<value>{_FORMULA}|{NUMBER})\s+(?:works(?=\W*\Z)|(?:is|are)\s+(?:indeed\s+)?(?:(?:correct|right)(?=\W*\Z)"
    r"|(?:the|our|my)\s+(?:(?:final|correct|right|only|required|desired|exact|actual|true|real)\s+)?(?:answers?|results?|solutions?)(?![a-z])))"
)
"""A value before the verb: "4 is the answer", "4 works"."""

_SUBJECT_LETTER = re.compile(
    r"(?i)\A[\s*_(]*(?:(?:so|thus|hence|therefore|only|the\s+(?:answer|correct)?)\s*+,?\s*+)*+(?:option|choice|answer|statement)?\s*\(?(?P<letter>(?-i:[A-J]))\)?\s+(?:is|must\s+be)\s+"
    r"(?:therefore\s+|the\s+)?(?:correct|right|true|answer|best|only)\b"
)


def stated_in_english(sentence: str, answer: str, *, is_last: bool) -> Stated | None:
    """Return the value that a sentence in English states; None if it states none. is_last: no sentence behind it has a
    number or a formula.
    """
    sentence = sentence.strip(_AROUND)
    if _CONFIDENCE.match(sentence):
        return None
    if is_letter(answer) and (subject := _SUBJECT_LETTER.match(sentence)) is not None:
        return Stated(subject["letter"], announced=True)
    whole = _value_at(sentence, 0, answer, whole=True)
    if whole is not None and _is_of_kind(whole, answer):
        return Stated(whole, announced=False)
    checks = _CHECKS.match(sentence) is not None
    stated = None
    if (subject := IS_ANSWER.search(sentence)) is not None and _is_of_kind(subject["value"], answer):
        stated = Stated(subject["value"].strip("$ "), announced=True)
    links = list(_LINK.finditer(sentence))
    for link in links[:MAX_LINKS] + links[MAX_LINKS:][-MAX_LINKS:]:
        head = sentence[: link.start()]
        if head.count("$") % 2:
            continue  # a sign of a formula
        announced = link["copula"] is not None and _OF_ANSWER.search(head) is not None
        is_label = link.group().strip()[:1] in (":", "：")
        if link.group().strip()[:1] == "=" and _computes(head):
            continue  # 3x = 15
        value = _value_at(sentence, link.end(), answer, whole=False, any_tail=announced)
        if value is None:
            continue
        if announced:
            stated = Stated(value, announced=True)
            continue
        is_equation = is_label and "=" in sentence[link.end() :]
        is_rounded = _ABOUT.search(link.group()) is not None and "." in value and "." not in answer
        if checks or is_equation or is_rounded or _NO_SUBJECT.search(head) or not _is_of_kind(value, answer):
            continue
        concludes = link["concludes"] is not None or _CONCLUDES.match(sentence) is not None
        if concludes or _PRONOUN.search(head) or (is_last and link["copula"]):
            stated = Stated(value, announced=False)
    return stated


def _computes(head: str) -> bool:
    """Whether the words before "=" end in a formula that computes and is no name: the 3x of "we have 3x = 15"."""
    left = _LEFT_SIDE.search(head)
    return left is not None and _NAME.fullmatch(left.group()) is None and _COMPUTED.search(left.group()) is not None


def _is_of_kind(value: str, answer: str) -> bool:
    """Whether a value may stand in place of the answer: both have variables or neither has, and as many parts."""
    return all(kind(value) == kind(plain(answer)) for kind in (_has_variables, _n_parts))


def _has_variables(value: str) -> bool:
    """Whether a formula has a variable, a single letter that is no unit, beside what its names "x =" stand for."""
    return any(
        _VARIABLE.search(_COMMANDS.sub(" ", _MEMBER.split(part)[-1])) is not None
        for part in re.split(r"[,，、或和]|\\text|\b(?:and|or)\b", value)
    )


def _n_parts(value: str) -> int:
    """Return how many values a list has; 0 for a point, an interval or a set."""
    value = _MEMBER.split(value)[-1] if value.count("=") == 1 else value
    value = value.replace("\\left", "").replace("\\right", "").strip("\\ $")
    bracketed = value[:1] in ("(", "[", "{") and value[-1:] in (")", "]", "}") and "," in value
    return 0 if bracketed else parts_of(value)


def _value_at(sentence: str, start: int, answer: str, *, whole: bool, any_tail: bool = False) -> str | None:
    """Return the value that begins at `start` and ends its sentence; None without one.

    whole: the sentence is nothing but the value. any_tail: words of any kind may follow.
    """
    while start < len(sentence) and sentence[start] in _AROUND:
        start += 1
    if is_letter(answer):
        letter = _LETTER.match(sentence, start)
        tail = sentence[letter.end() :].strip(_AROUND) if letter is not None else ""
        if letter is None or (tail.strip(".:") if whole else not any_tail and tail[:1].isalpha()):
            return None
        return letter["letter"]
    if (formulas := _FORMULAS.match(sentence, start)) is not None:
        end = formulas.end()
        value = _member(formulas.group(), answer)
    elif (word := _WORD_VALUE.match(sentence, start)) is not None and _WORD_VALUE.fullmatch(plain(answer)):
        end, value = word.end(), word.group()
    elif (words := IN_WORDS.match(sentence, start)) is not None and number_in_words(words.group()) is not None:
        end, value = words.end(), words.group()
        any_tail = False
        if value.lower() in ("one", "half") and not whole:
            return None
    else:
        run = _PLAIN.match(sentence, start)
        if run is None:
            return None
        text = run.group().rstrip(" \t.,:;-([|*")
        end, value = start + len(text), _member(text, answer)
    if (
        value is None
        or value.count("{") != value.count("}")
        or (value.isalpha() and len(value) == 1 and len(plain(answer)) > 1)
    ):
        return None
    tail = sentence[end:]
    unit = unit_behind(value.strip("$"), tail)
    words_behind = [word.lower() for word in re.findall(r"[A-Za-z]+", _CLOSING_MARKS.sub("", tail))]
    if whole and len(words_behind) > 2 and not unit:
        return None
    if not any_tail and not _is_plain(words_behind, tail):
        return None
    return f"{value.strip('$ ')}{unit}" if unit else value


_CLOSING_MARKS = re.compile(r"\\(?:text|mathrm)|\\\w+")


def _is_plain(words: list[str], tail: str) -> bool:
    """Whether the words behind a value belong to it: a unit, at most four nouns, or a reason."""
    if not words:
        return not re.search(r"\d", tail)
    if words[0] in _TAIL_LINKS:
        is_clause = words[0] in ("of", "in", "per", "by") and not _VERBS.isdisjoint(words)
        return not (is_clause and _RELATIVES.isdisjoint(words)) and (words[0] not in ("so", "that") or len(words) > 2)
    return len(words) <= 4 and FUNCTION_WORDS.isdisjoint(set(words) - {"such", "per", "left"})


def _member(text: str, answer: str) -> str | None:
    """Return the value of a formula: itself, or the last member of a chain of equations before "≈"; None if it is a
    relation, a table or an equation of the work.
    """
    if (_RELATION.search(text) and not _RELATION.search(answer)) or text.count("|") > 2:
        return None
    if _RELATION.search(text) or ("=" in answer and plain(text) == plain(answer)):
        return text
    text = unbold(_TAG.sub("", _DELIMITERS.sub("", text))).strip("$ ").rpartition("\\\\")[2]
    members = _MEMBER.split(text)
    if len(members) > 2 and re.search(r"\b(?:and|or)\b|[或和]|[,，]", text):
        return text  # x = 1 or x = 2
    if len(members) > 1 and _APPROXIMATES.search(text):
        members.pop()
    value = members[-1].strip(" $\n")
    if not _HAS_VALUE.search(value):
        return None
    is_named = len(members) == 1 or len(members[0]) > _MAX_NAME_CHARS or _NAME.fullmatch(members[0]) is not None
    return value if is_named or not re.search(r"(?<!\\)[A-Za-z]", _COMMANDS.sub("", members[0])) else None  # x+y = 5


_MAX_NAME_CHARS = 40
# Possessive, for nested repetitions of a text without an end would be tried in every way.
_LEFT_SIDE = re.compile(r"(?:[\w\\^{}().²³]++(?:\s*+[-+−*/·×÷]\s*+)?)++\s*+\Z")
_COMPUTED = re.compile(r"(?<![\w_])\d|[-+−*/·×÷^²³]")
_DELIMITERS = re.compile(r"\A\\[\[(]|\\[\])]\Z")
_APPROXIMATES = re.compile(r"≈|\\approx(?![A-Za-z])")
_VARIABLE = re.compile(
    r"(?<![A-Za-z\\])(?<!\d)(?<!\d\s)[a-zA-Z](?![A-Za-z])|(?<=\d)\s?(?![mgshLNJWVAKFC]\b)[a-zA-Z](?![A-Za-z])"
)
_TAG = re.compile(r"\\tag\s*\{[^{}]*\}|\\(?:begin|end)\{[a-z*]+\}|&")
_BOLD = re.compile(r"\\(?:mathbf|boldsymbol|bm|textbf)\s*\{([^{}]*)\}")
_COMMANDS = re.compile(r"\\[A-Za-z]+(?:\s*\{[A-Za-z ]*\})?")

# --- Chinese ---
_NUMERAL = "零〇一二两三四五六七八九十百千万亿半"
_AMOUNT = (
    rf"(?:零下|负|每(?:{UNIT})|时速)*[¥￥$]?[-−]?(?:\d[\d,]*+(?:\.\d++)?|[{_NUMERAL}]++)"
    rf"(?:(?:又|分之|点|[/／:：比度分])[-−]?(?:\d[\d.]*+|[{_NUMERAL}]++))*+\s*[%％°℃℉]?"
)
_QUANTITY = (
    rf"{_AMOUNT}\s*(?:(?:{UNIT}|{CLASSIFIER}|分|秒|时|点|日|月|华氏度|成|折|π)(?:[/每](?:{UNIT}|分|秒|时))?)?半?"
)
_NAMED = r"(?:[A-Za-z]\s*(?:=|等于|是|为)\s*)"
_LATEX = r"(?:\\[A-Za-z]++|[A-Za-z](?![A-Za-z])|[-+\d.,:/^_=(){}\[\]\\%°π\s])++"
_VALUE_IN_CHINESE = (
    rf"(?:{_FORMULA}(?:\s*(?:{UNIT}|{CLASSIFIER}))?|(?:{_NAMED}?(?:{_QUANTITY})+(?:\s*[,，或和]\s*{_NAMED}?(?:{_QUANTITY})+){{0,3}})"
    rf"|不对|不正确|正确|错误|对|错|√|×|(?:星期|周)[一二三四五六日天]|(?<![A-Za-z])[A-J](?![A-Za-z])|(?=[^\u3400-\u9fff]*[\d\\]){_LATEX})"
)
_BOUNDARY = rf"(?<![\d.,/A-Za-z\\{_NUMERAL}^])(?<!\d[:：])"
_ENDS_IN_VALUE = re.compile(
    rf"(?P<value>{_BOUNDARY}(?!一[样起致直定切般]){_VALUE_IN_CHINESE})(?P<noun>(?:(?![是为])[\u3400-\u9fff]){{0,3}})[\s*_.。!！✓）)」”]*\Z"
)
_MAX_VALUE_CHARS = 60
"""Longest value at the end of a sentence in Chinese, in characters."""

_ANNOUNCES_IN_CHINESE = re.compile(
    r"(?:答案|正解|结果|结论|得数|选项|[方程组]+的?解|值|正确的)(?:[就便即应该就]*[是为等于]+|[：:=＝])[\s*_$]*\Z|答[：:].*\Z|选择?[：:]?\s*\Z"
)
_BEGINS_CONCLUSION = re.compile(r"所以|因此|因而|故|综上|答[：:]")
_CONCLUDES_IN_CHINESE = re.compile(
    r"\A再|所以|因此|因而|故|综上|于是|由此|从而|这样|最后|最终|可得|可知|即|也就是|总之|得到|得出|求得|算得|[解求算便就]?得|一共|总共|共|改[为成]|换[成算]|[写记]作|其实|应"
)
_IS_IN_CHINESE = re.compile(r"(?:(?<!因)[是为有剩=＝]|等于|[：:])\s*\Z")
_COMPUTES = re.compile(rf"[乘除加减×÷\d]|[{_NUMERAL}]+(?:{UNIT}|{CLASSIFIER})")
_SEVERAL = re.compile("[,，、;；或且和]")
"""Signs between two equations or values."""

_LABEL = re.compile(r"[\s*_]*[\u3400-\u9fff]{1,6}[：:][\s*_]*")
_SUPPOSES_IN_CHINESE = re.compile(r"如果|若|假设|假如|设|当(?![天年时前月日])|例如|比如|检验|验算|验证|代入|检查|再看")


def stated_in_chinese(sentence: str, answer: str, *, is_last: bool) -> Stated | None:
    """Return the value that a sentence in Chinese states; None if it states none. is_last: see `stated_in_english`."""
    sentence = sentence.strip(_AROUND)
    if (whole := _whole_clause(sentence, answer)) is not None:
        return whole
    ends_in = _ENDS_IN_VALUE.search(sentence, max(0, len(sentence) - _MAX_VALUE_CHARS))
    start = formula_at_end(sentence, answer)
    if start < (len(sentence) if ends_in is None else ends_in.start()):
        head, value, noun = sentence[:start], sentence[start:], ""  # the whole formula, and not its end
    elif ends_in is None:
        quantities = re.findall(_QUANTITY, sentence) if _BEGINS_CONCLUSION.match(sentence) else []
        return Stated(quantities[0], announced=False) if len(quantities) == 1 and not is_letter(answer) else None
    else:
        head, value, noun = sentence[: ends_in.start()], ends_in["value"], ends_in["noun"]
    value = letter_in(value) or value
    if _is_work(value, answer):
        return None
    if is_letter(answer) is not is_letter(value) or is_judgement(value) is not is_judgement(answer):
        return None
    clause = re.split("[，,；;]", head)[-1]
    if _ANNOUNCES_IN_CHINESE.search(clause):
        return Stated(_plain_value(value, answer), announced=True)
    if not head.strip(_AROUND + "$") or (_LABEL.fullmatch(head) and not _SUPPOSES_IN_CHINESE.search(head)):
        return None if noun else Stated(_plain_value(value, answer), announced=False)
    if _SUPPOSES_IN_CHINESE.search(sentence):
        return None
    concludes = _CONCLUDES_IN_CHINESE.search(clause) or _CONCLUDES_IN_CHINESE.match(sentence)
    is_statement = is_last and _IS_IN_CHINESE.search(clause) and not _COMPUTES.search(clause)
    return Stated(_plain_value(value, answer), announced=False) if concludes or is_statement else None


def _whole_clause(sentence: str, answer: str) -> Stated | None:
    """Return the judgement or the named quantities that a sentence is, beside an answer of the same kind; else None."""
    if is_judgement(answer):
        words = [word for clause in re.split("[，,；;：:]", sentence) if (word := judged_in(clause))]
        return Stated(words[-1], announced=False) if words else None
    row = row_in(sentence, answer)
    return Stated(row, announced=False) if row else None


def _is_work(value: str, answer: str) -> bool:
    """Whether a formula is nothing but equations of the work, with a computed left side: 3x=15, x-3=0或x+2=0.

    An identity, x²-4=(x+2)(x-2), states its right side beside an answer with variables, and so does a calculation
    without letters.
    """
    for part in _SEVERAL.split(value):
        left, sign, right = part.rpartition("=")
        if not sign or not _computes(left.rpartition("=")[2]) or not _has_variables(left):
            return False
        if _has_variables(right) and _has_variables(plain(answer)):
            return False
    return True


def _plain_value(value: str, answer: str) -> str:
    """Return the last member of a chain of equations: 40-4=36 is 36. Beside an answer with a name, y=2x+1 stays."""
    members = _MEMBER.split(value)
    if len(members) == 1 or _SEVERAL.search(value) is not None:
        return value
    is_named = len(members) == 2 and _NAME.fullmatch(members[0]) is not None
    return value if is_named and "=" in answer else members[-1].strip(" $")


def repeated(sentence: str, answer: str) -> Stated | None:
    """Return the value that a calculation or another sentence ends in, if it looks like the answer; else None."""
    end = sentence.strip(_AROUND + ".。$")
    own, last = plain(answer), unbold(_MEMBER.split(end)[-1].strip("$ \n"))
    # 13 does not repeat 3.
    if own and last.endswith(own) and not (own[:1].isdigit() and last[: -len(own)][-1:].isdigit()):
        return Stated(answer, announced=False)
    numbers, own_numbers = numbers_of(end), numbers_of(answer)
    if len(own_numbers) != 1 or numbers[-1:] != own_numbers:
        return None
    ends_in = _ENDS_IN_VALUE.search(end, max(0, len(end) - _MAX_VALUE_CHARS))
    if ends_in is not None and numbers_of(ends_in["value"])[-1:] == own_numbers:
        return Stated(_plain_value(ends_in["value"], answer), announced=False)
    unit = unit_behind(own_numbers[0], end[end.rfind(own_numbers[0]) + len(own_numbers[0]) :])
    return Stated(f"{own_numbers[0]}{unit}" if unit else answer, announced=False)


def unbold(formula: str) -> str:
    r"""Return a formula without bold type: `\mathbf{4 2}` is `42`."""
    return _BOLD.sub(lambda bold: bold[1].replace(" ", ""), formula)
