r"""Sentences that state an answer without a box: a closed list of forms. In any other sentence the answer is undecided.

The last number or formula of a reply is its answer only if the last sentence has one of these forms (V is the value):

    V · V units · V is the answer                                         "42", "36 cm", "12 is our answer"
    quantity is V           the quantity: a noun of `QUANTITIES`, or a letter     "the area of the square is V"
    we get V · this gives V · there are V things                          "so there are 18 such numbers"
    since CLAUSE, form · CLAUSE, so form · by RULE, form                  "since n is even, the total is V"
    somebody has V things, behind "so", or as the whole reply             "So he has 18 marbles left"

Sentences in Chinese are read by `chinese`.
Words in the open places of a form are nouns and adjectives: no word of `FUNCTION_WORDS` except a few, since English
states conditions, bounds and denials by these, and no participle behind a noun ("the number of ways assuming").
"""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS, changes_number, unit_of
from harness.grading.find.plain_words import DETERMINERS, LIMITING, are_plain, has_condition
from harness.grading.find.rest_of_sentence import PERCENT, leaves_value
from harness.grading.find.surroundings import OTHER_LEADS

QUANTITIES = names(
    "answer ans result value values total sum number product quotient difference area perimeter circumference volume "
    "probability chance length width height depth distance radius diameter side slope minimum maximum mean median "
    "average mode range ratio percentage fraction cost price profit revenue time age speed velocity rate weight mass "
    "degree angle measure remainder digit digits count coefficient constant solution solutions root roots zeros limit "
    "integral derivative determinant rank period amplitude vertex point coordinates center centre intersection pair "
    "equation function expression polynomial matrix term interval domain set expectation variance dimension amount "
    "balance population temperature power energy force salary interest tax discount day sequence integer integers "
    "prime primes triple triples quadruple pairs orthocenter orthocentre incenter circumcenter centroid hypotenuse "
    "year ph acceleration output score scores"
)
"""Nouns that name what a question asks for."""

_ADJECTIVES = names(
    "final correct right exact required desired total least greatest smallest largest minimum maximum minimal maximal "
    "overall only unique common square cube average positive new ordered simplified numerical last surface zero "
    "expected such highest lowest longest shortest polar"
)
_OF_WHOLE_QUESTION = names("answer ans result value values solution solutions number sum total root roots digit digits")
"""Nouns of an answer, or of a step of the work, before which only the adjectives of `_ADJECTIVES` stand."""

_MAX_ADJECTIVES = 3

_NO_QUANTITY = frozenset((("expected", "answer"), ("expected", "result"), ("last", "answer")))
"""Pairs (adjective, noun) that name an answer which the reply does not give as its own."""

_INSIDE = names(
    "of in to the a an and that which who on at from by its their his her our this these between both all it them"
)
"""Function words inside the name of a quantity. Not "for", "with" and "when", which begin conditions."""

_OF_QUESTION = names("to of the this your our question problem exercise puzzle calculation sum above")
"""Words behind "answer" which say that the whole question is answered."""

_SUPERLATIVES = names(
    "least greatest smallest largest minimum maximum minimal maximal highest lowest longest shortest only"
)
"""Adjectives that name a single value: behind them "possible" is no guess, and a letter may stand for the noun."""

_LEAD_WORDS = (
    r"so|therefore|thus|hence|then|now|finally|indeed|clearly|consequently|okay|ok|well|overall|altogether|and"
    r"|in\s+(?:total|all|conclusion|summary)|as\s+a\s+result|it\s+follows\s+that"
    r"|(?:we|i)\s+conclude\s+that|this\s+(?:means|shows|implies)\s+that|in\s+the\s+end|(?:no|yes)(?=\s*[,:])"
    r"|after\s+(?:(?:all\s+)?(?:this|that)|[^,]{2,40}(?=,)|[a-z]+(?=,))"
    rf"|∴|\\(?:therefore|implies|Rightarrow)(?![a-z])|{OTHER_LEADS}"
)
_LEAD = re.compile(rf"(?i)(?:(?:{_LEAD_WORDS})(?![a-z])\s*[,:]?\s*)+")
_REASON = re.compile(
    r"""(?xi) (?:
      (?: (?:since|because|there\s+(?:is|are)|the|an?|we|this|these|its?|each|every|both|all)\b | \$ ) [^?]{1,200}
        [,;]\s* (?= (?:and\s+)? (?:so|thus|hence|therefore)\b )
      | (?:since|because|as(?=\s+(?:the|it|they|there|we|this|these|each|every|both|all|its?)\b)) \b [^,?;]{1,200} ,\s*
      | by\s+(?:the\s+)? (?:[A-Za-z'’]+\s+){0,3}?
        (?:theorem|formula|rule|law|laws|principle|inequality|identity|symmetry|induction|lemma|pythagoras|telescoping
        |substitution|linearity) \s* ,\s*
    )"""
)
"""A clause before what follows from it: "There are not enough, so …", "Since n is even, …", "By symmetry, …"."""

_LINK = (
    r"(?:(?:['’]s|is|are|was|equals?|to\s+be|comes?\s+to|amounts?\s+to|becomes)\b|(?:(?:must|has\s+to|will|should)\s+)?be\b"
    r"|[=:：])"
    r"(?:\s+(?:equal\s+to|given\s+by|therefore|thus|hence|then|exactly|indeed|simply|just|at)\b)?(?:\s+the\s+number\b)?"
)
_ASSERTS = re.compile(
    r"(?ix)(?:i|we|you|one|this|that|it|they)(?:\s+(?:finally|clearly|simply|easily|directly|eventually|exactly|also|then|now))?\s+(?:get|got|gets|have|find|found|obtain"
    r"|obtained|calculated?|computed?|determined?|gives?|gave|yields?|conclude|see|need|equals?|is|makes?|leaves?)(?:\s+(?:that|exactly|precisely|therefore))?\s*:?"
    r"|[A-Z]\w+['’]s?\s+(?:rule|theorem|formula|law)\s+(?:says|gives|yields)"
    r"|it['’]s|that['’]s|there\s+(?:is|are|was|were)(?:\s+(?:exactly|only|a\s+total\s+of|in\s+total))?"
    r"|(?:la\s+respuesta(?:\s+final|\s+correcta)?|el\s+resultado|a\s+resposta|o\s+resultado)\s+[eé]s?|(?:la\s+réponse|le\s+résultat)\s+est"
    r"|(?:die\s+antwort|das\s+ergebnis)\s+(?:ist|lautet|beträgt)|(?:ist|lautet)\s+(?:die\s+antwort|das\s+ergebnis)\s*:?|(?:la\s+risposta|il\s+risultato)\s+è"
)
_ASSERTED = re.compile(
    rf"(?ix)(?:(?:i\s+think|i\s+believe)(?:\s+that)?\s+)?(?:{_ASSERTS.pattern.removeprefix('(?ix)')})"
)
_NAME = (
    r"(?:\\?[A-Za-z]{1,2}(?:_\{?\w{1,8}\}?)?'*(?:\([^()]{0,30}\))?|\$[^$]{1,60}\$|\\\([^()]{1,60}\\\)"
    r"|[a-zA-Z](?:\s*[-+*/]\s*[a-zA-Z0-9]+)+)"
)
_NAMED = re.compile(rf"{_NAME}\s*{_LINK}")
_QUANTITY_IS = re.compile(rf"(?i)(?P<quantity>[^,;?]{{2,200}}?)\s*{_LINK}")
_VERBS = (
    r"has|have|had|earns?|earned|needs?|needed|pays?|paid|gets?|spends?|spent|takes?|travels?|travell?ed|costs?|sold|bought"
    r"|makes?|made(?:\s+a\s+profit\s+of)?|received|requires?|contains?|weighs?|owes?|saved?|wins?|won|lasts?"
)
_SOMEBODY = re.compile(
    rf"(?i)(?P<subject>(?:[A-Za-z'’]+\s+){{1,4}}?)(?:{_VERBS})(?:\s+(?:a\s+total\s+of|exactly|only|just))?"
)
_PRONOUNS = names("he she it they we i")
_ARTICLES = names("the his her their our my a an each")
_CALCULATION = re.compile(r"(?:(?:[\d\s.,+*/×÷·^()%$−-]|\\(?:times|cdot|div)(?![a-z]))++=)+\s*")
_TOKEN = re.compile(r"\$[^$]*\$|\\\([^()]*\\\)|[A-Za-z'’]+|[^\sA-Za-z]+")

_CLOSING = re.compile(
    r"(?i)(?:[\s$*_`\"'’”)\]}.|>~✓∎■□✔✅🎉]|\\[)\]]|<\|[^|<>\n]{1,40}\|>(?:\w+)?|</?\w+>|(?:q\.?e\.?d|i\s+hope[^.\n]*+|thanks?[^.\n]*+"
    r"|let\s+me\s+know[^.\n]*+)\.?)*+"
)
"""Marks of layout and closing words, which may follow the sentence of an answer."""

_MAX_LABEL_WORDS = 4
"""Words of a label before a colon, at most: "the final result: 5"."""

MAX_CHARS = 240
"""A sentence is looked at this far on either side of its value, in characters."""

_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[a-z]+\*?\}|&")
_UNIT_BEHIND = re.compile(
    r"[ ]?[A-Za-z²³°/^0-9]+(?:[ ](?:per|[a-z]+)){0,3}?(?=[ \t.,]*\Z|[ ](?:apart|long|wide|high|tall|deep|old|away|in"
    r"|altogether)\b)"
)
_STOP = re.compile(r"(?<=[$)\d])[ ](?=(?:So|Therefore|Thus|Hence)\b)|[.!?](?=\s|\Z|[\"'*])|\n|[。！？]")
_MARKS = " \t*_$`\"'“([{:\\|>"


def statement_end(text: str, start: int, end: int) -> int | None:
    """Return where the value of a sentence ends, with its unit, if the sentence has a form that states an answer.

    start, end: the value, a number or a formula of `text`. The sentence must be the last of the text. None if the
    sentence has no such form.
    """
    first, last = max(0, start - MAX_CHARS), min(len(text), end + MAX_CHARS)
    stops = [stop.end() for stop in _STOP.finditer(text, first, start)]
    begin = stops[-1] if stops else first
    stop = _STOP.search(text, end, last)
    finish = stop.start() if stop is not None else last
    if finish == last < len(text):
        return None
    asks = stop is not None and stop.group() in "?？"
    if asks or (stop is not None and _CLOSING.fullmatch(text, stop.end()) is None):
        return None
    head = text[begin:start].strip().rstrip(_MARKS).lstrip("*_ #>")
    head = head.lstrip("$") if head.count("$") % 2 else head
    tail = _ENVIRONMENT.sub("", text[end:finish]).lstrip('*_$`)}\\"”').rstrip(" *_`\"'”|~")
    states_it = _before(_ENVIRONMENT.sub("", head), whole=not text[:begin].strip())
    if not states_it or not leaves_value(tail, answer=text[start:end]):
        return None
    unit = _UNIT_BEHIND.match(text, end, finish)
    return unit.end() if unit is not None and _is_unit(unit.group()) else end


_RELATION = re.compile(r"[<>≤≥]|\\(?:[lg]eq?q?|[lg]eqslant|lt|gt)(?![A-Za-z])")
_HAN = re.compile(r"[\u3400-\u9fff]")
_MUST_HAVE = re.compile(
    r"(?i)(?:(?:so|therefore|thus|hence|consequently|∴|\\(?:therefore|implies|Rightarrow))(?![a-z])\s*[,:]?\s*)+"
    r"(?:we|i|you|one)\s+(?:have|has|need|needs)(?:\s+that)?\s*:?"
)
"""Words that lead to an inequality as a result only behind "so": "we need" alone may state the question's condition."""

_LEADS_TO_RELATION = re.compile(
    r"(?i)(?:(?:so|therefore|thus|hence|consequently|finally|∴|in\s+(?:conclusion|total|summary)|\\(?:therefore|implies|Rightarrow))"
    r"(?![a-z])\s*[,:]?\s*)*(?:(?:we|i|you|one|this|that|it|which)\s+(?:finally\s+|then\s+|also\s+)?"
    r"(?:get|got|gets|obtain|obtained|find|found|conclude|gives?|yields?|means|simplifies\s+to)(?:\s+that)?\s*:?)?"
)
_WORDS_BEFORE = re.compile(r"(?:[\s*_#>]*(?:[^\W\d_]{2,}|[Ia]\b)['’,:;]*(?=[\s$*\\]|\Z))*")


def concludes_relation(text: str, answer: str, start: int) -> bool:
    """Whether an answer that is no inequality, or whose inequality is stated as a result: alone in its sentence, behind
    "so" and the like, behind "we get", or as the value of a quantity ("the domain is").

    Behind other words ("we know", "since", "we need") an inequality may be the condition of the question, which nobody
    can tell from an answer. start: where the answer begins in `text`.
    """
    if _RELATION.search(answer) is None:
        return True
    begin = max((stop.end() for stop in _STOP.finditer(text, max(0, start - MAX_CHARS), start)), default=0)
    if _HAN.search(text, begin, start + len(answer)) is not None:
        return True  # `chinese_answers` reads these
    words = _WORDS_BEFORE.match(text, begin)
    head = text[begin : max(start, words.end() if words is not None else start)].strip(_MARKS).lstrip("*_ #>")
    lead = _MUST_HAVE.match(head) or _LEADS_TO_RELATION.match(head)
    rest = (head if lead is None else head[lead.end() :]).strip(_MARKS)
    quantity = _QUANTITY_IS.fullmatch(rest)
    return not rest or (quantity is not None and is_quantity(quantity["quantity"])) or is_quantity(rest.rstrip(":"))


def _before(head: str, *, whole: bool) -> bool:
    """Whether `head`, the words before a value in its sentence, begins one of the forms at the top of the module.

    whole: no sentence stands before this one.
    """
    head = re.sub(r"\$[^$\n]{1,80}\$", "$x$", head)  # a comma in a formula parts no clauses
    reason = _REASON.match(head)
    if reason is not None and not has_condition(reason.group()):
        head = head[reason.end() :]
    lead = _LEAD.match(head)
    rest = head[lead.end() :].strip().lstrip(_MARKS) if lead is not None else head
    # The separators between the words of a form, and a calculation `720 ÷ 2 =` that ends in the value.
    calculation = re.search(rf"(?:^|(?<=\s))(?:{_CALCULATION.pattern})\Z", rest + (" " if rest else ""))
    if calculation is not None and calculation.group().strip():
        rest = rest[: calculation.start()].rstrip()
    rest = rest.rstrip(_MARKS)
    asserted = _ASSERTED.match(rest)
    if asserted is not None and rest[asserted.end() :].strip():
        rest = rest[asserted.end() :].strip()  # "this gives n ="
    if not rest or _ASSERTED.fullmatch(rest) or _NAMED.fullmatch(rest):
        return True
    quantity = _QUANTITY_IS.fullmatch(rest)
    if (
        rest.lower().split()[-1].rstrip(".:") in QUANTITIES
        and is_quantity(rest.rstrip(".:"))
        and len(rest.split()) <= _MAX_LABEL_WORDS
    ):
        return True  # "answer 5", "Result: 5"
    if quantity is not None and is_quantity(quantity["quantity"]):
        return True
    somebody = _SOMEBODY.fullmatch(rest)
    return somebody is not None and (lead is not None or whole) and _is_subject(somebody["subject"])


def is_quantity(words: str) -> bool:
    """Whether words name a quantity, such as "the total area of the square": perhaps an article and adjectives, a noun
    of `QUANTITIES`, and the thing to which the noun belongs.

    Behind a superlative, a letter may stand for the noun: "the largest $n$".
    """
    tokens = [token.lower() for token in _TOKEN.findall(words.replace("**", "").replace("`", ""))]
    if tokens and tokens[0] in DETERMINERS:
        tokens = tokens[1:]
    index = 0
    while index < len(tokens) - 1 and tokens[index + 1] not in ("of", "to"):
        possible = tokens[index] in ("possible", "valid") and tokens[index - 1] in _SUPERLATIVES and index > 0
        if not possible and tokens[index] not in _ADJECTIVES and not _is_adjective(tokens, index):
            break
        index += 1
    if index >= len(tokens):
        return False
    is_letter = tokens[index].startswith("$") or (len(tokens[index]) == 1 and tokens[index].isalpha())
    if tokens[index] not in QUANTITIES and not (is_letter and not _SUPERLATIVES.isdisjoint(tokens[:index])):
        return False
    if tuple(tokens[index - 1 : index + 1]) in _NO_QUANTITY:
        return False
    behind = tokens[index + 1 :]
    is_somebodys = words.lower().lstrip("*_ ").startswith(("his ", "her ", "their "))
    if tokens[index] in ("answer", "ans", "result") and (is_somebodys or not _OF_QUESTION.issuperset(behind)):
        return False  # somebody else's answer, or the answer to the first part
    return len(behind) <= 20 and "answer" not in behind and are_plain(behind, _INSIDE)


def _is_adjective(tokens: list[str], index: int) -> bool:
    """Whether a word before the noun of a quantity is a plain adjective or noun: the "sale" of "the sale price".

    Not before "answer", "result" and the like, where any word may say whose answer it is.
    """
    noun = next((token for token in tokens[index:] if token in QUANTITIES), "")
    word = tokens[index]
    return (
        noun not in _OF_WHOLE_QUESTION
        and index < _MAX_ADJECTIVES
        and word not in QUANTITIES
        and word.isalpha()
        and len(word) > 1
        and word not in LIMITING
        and are_plain([word], names(""))
        and not word.endswith(("ing", "ed", "ly"))
    )


def _is_subject(words: str) -> bool:
    """Whether words are a subject: a pronoun, a name, or an article with at most three words: "the blue train"."""
    tokens = [token.lower() for token in words.split()]
    if not QUANTITIES.isdisjoint(tokens):
        return False  # "the answer has 45 digits"
    if len(tokens) == 1:
        return tokens[0] in _PRONOUNS or tokens[0] not in FUNCTION_WORDS
    return tokens[0] in _ARTICLES and not changes_number(words) and are_plain(tokens[1:], names(""))


def _is_unit(words: str) -> bool:
    """Whether words behind a value are a unit, or say percent: cm², m^3, °C, square inches, 33.5 pct."""
    words = words.strip()
    return (
        unit_of(words.replace("²", "^2").replace("³", "^3")) is not None
        or words in ("°C", "°F")
        or words.lower() in PERCENT
    )
