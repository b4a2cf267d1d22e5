r"""What may follow a stated answer before its sentence ends: a closed list; behind any other words the answer is open.

    "The answer is 3 dollars in total, since 12 / 4 = 3."       a name, a total, a reason
    "The answer is $3$ dollars and fifty cents."                undecided: the quantity goes on

The rest of the sentence is read from its beginning, a part at a time, and every part must be of this list:

    a name           a unit, or nouns that end in a plural: "square inches", "red marbles left"; then what it belongs to
                     ("of the cake") and, behind a plural, a clause that says what was counted ("that sum to 7")
                     or what it is for ("ways to choose the cards")
    a total          "in total", "altogether", "exactly"; a form: "in simplest form", "rounded to the nearest cent"
    approval         "as required", "which is what we wanted", "and we are done", "is the answer", ✓
    a source         "by symmetry", "using the formula", "found by adding both parts"
    a contrast       "not 13", "rather than $x+1$": nothing but a value
    a reason         "because …", "since …" up to the end, without a word of conditions and guesses
    a restatement    "or 0.75", "which equals $\frac34$": nothing but a value, which must get the same verdict
    a rounded form   "≈ 0.33", "or about 0.33": a decimal number to which the answer rounds, compared exactly

None of these adds to the value, limits, doubts or replaces it. A condition ("if n is even") is compared with it. Words
of correction leave the answer open in any part (`behind_english`). German, Spanish and French have the same parts in
fewer words. Text in other scripts is not read here. A box may stand amid a sentence; what stands behind a box is read
by `beside_box` and `box_words`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from harness.answers.grammar.numerals import multiplies, numeral
from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS, changes_number, is_plural, unit_of
from harness.grading.find.behind_english import leaves_in_english
from harness.grading.find.behind_values import IS_ANSWER
from harness.grading.find.plain_words import LIMITING, are_plain, has_condition
from harness.grading.find.qualifiers import condition_behind

MAX_REST_CHARS = 1_200
"""A longer rest of a sentence is not read, and leaves the answer open, in characters."""

_VALUE = (
    r"(?:\$[^$\n]{1,120}\$|\\\((?:[^\\\n]|\\[^)]){1,120}\\\)|[-−]?[$€£]?\d[\d.,/:]*\d%?|[-−]?\d%?|\(?[A-J]\)?(?![A-Za-z])"
    r"|[-−]?\\d?frac\{[^{}]{1,20}\}\{[^{}]{1,20}\})"
)
_ADJECTIVE = r"(?:(?:final|correct|right|desired|required|exact|same|complete|wanted|expected)\s+){0,2}"
_ANSWER = r"(?:answers?|results?|solutions?|values?|total|number|amount|count)"
_THING = r"(?:problem|question|exercise|task|puzzle|equation)"
_APPROVED = (
    r"(?:required|desired|claimed|expected|stated|asked|requested|wanted|needed|given|shown|computed|found|derived"
    r"|calculated|before|above|well|announced)"
)
_METHOD = (
    r"(?:theorem|formulas?|rules?|laws?|principle|inequality|identity|symmetry|induction|lemma|pythagoras|telescoping"
    r"|substitution|linearity|computation|calculation|inspection|definition|counting|algebra|construction|enumeration)"
)
_PARTS = re.compile(
    rf"""(?xi) \s*+ [,–—]? \s*+ (?:(?:and|so|hence|thus|therefore)\s+)? (?:
      (?:in\s+(?:total|all|the\s+end)|altogether|overall|exactly|precisely|respectively|insgesamt|zusammen|genau
        |en\s+total|au\s+total|exactement|exactamente)(?![a-z])
    | in\s+(?:its\s+|the\s+)?(?:simplest|lowest|reduced|exact|standard|decimal|simplified|interval|fully\s+reduced)
        \s+(?:form|terms|notation)\b
    | (?:(?:when\s+|if\s+)?rounded\s+(?:off\s+)?)?to\s+(?:the\s+nearest\s+[a-z]+(?:\s+(?:number|place|percent))?
        |[a-z\d]+\s+(?:decimal\s+(?:places?|digits?)|significant\s+(?:figures?|digits?)))\b
    | as\s+(?:(?:can\s+be|is|was)\s+seen|(?:we|one|you)\s+(?:can\s+)?see|shown|seen)\s+(?:from|in|on|by)
        \s+(?:the|this|our)\s+(?:table|graph|figure|diagram|picture|drawing|list|chart|sketch)(?=\s*[.,)]?\s*\Z)
    | (?:exactly\s+|just\s+)?as\s+(?:(?:we|it\s+was|was)\s+)?{_APPROVED}(?:\s+(?:above|before|earlier|for))?(?![a-z])
    | see\s+above | wie\s+(?:gefordert|verlangt|gewünscht|erwartet) | como\s+se\s+(?:pedía|pide|quería)
    | comme\s+(?:demandé|voulu|prévu) | was\s+zu\s+(?:zeigen|beweisen)\s+war
    | (?:we|i)(?:\s+are|['’]re)\s+(?:done|finished)
    | the\s+(?:{_THING}|proof|claim)\s+is\s+(?:complete|solved|proved|proven|answered)(?=\s*[.,)]?\s*\Z)
    | (?:(?:and|which|this|that)\s+)?(?:is|are)\s+(?:indeed\s+)?(?:(?:exactly|just|precisely)\s+)?what\s+
        (?:(?:we|you|i|the\s+{_THING}|was)\s+)?(?:wanted|asked|required|needed|had\s+to|were\s+asked|were\s+to|is\s+asked
        |were\s+looking|asks|to)(?:\s+(?:to\s+(?:find|show|prove|be\s+shown|determine|compute)|for))?(?![a-z])
    | works(?=\s*[.,)]?\s*\Z)
    | (?:which|this|that)\s+makes\s+sense(?=\s*[.,)]?\s*\Z)
    | (?:which|this|that)\s+(?:is|corresponds\s+to|matches)\s+(?:(?:option|choice|answer)\s+\(?[A-J]\)?|\([A-J]\)?)
        (?=\s*[.,)]?\s*\Z)
    | here(?=\s*[.,)]?\s*\Z)
    | that['’]s\s+(?:the|our|my)\s+{_ADJECTIVE}{_ANSWER}(?![a-z])(?!\s+[a-z])
    | (?:(?:which|this|that)\s+)?(?:is|are)\s+(?:indeed\s+|therefore\s+|also\s+)?(?:the|our|my)\s+{_ADJECTIVE}{_ANSWER}
        (?:\s+(?:to|of)\s+(?:this|the|your)\s+{_THING})?(?![a-z])(?!\s+[a-z])
    | (?:which|this|that)\s+(?:completes|finishes|concludes|solves|answers|proves|confirms|matches
        |agrees\s+with|satisfies)
        (?:\s+(?:the|our|this|both|all|every|each|that|of|given|original|earlier|condition|conditions|equation|equations
        |{_THING}|solution|proof|check|claim|estimate|statement|calculation|constraints?|requirements?))+(?![a-z])
    | (?:(?:(?:which|this|that)\s+)?(?:is|are)\s+)?(?:correct|right)(?=\s*\Z) | no\s+more(?=\s*\Z)
    | (?:as|for|to|of)\s+(?:the|our|my|this|your)\s+{_ADJECTIVE}(?:{_ANSWER}|{_THING})
        (?:\s+(?:to|of)\s+(?:this|the|your)\s+{_THING})?(?![a-z])(?!\s+[a-z])
    | (?:not|rather\s+than|instead\s+of)\s+{_VALUE}(?=\s*(?:[,.)]|\Z))
    | (?:(?:found|obtained|computed|calculated|derived|given)\s+)?(?:by|using|via|from|through)\s+(?:(?:the|a|an|our
        |direct|simple|plain|pythagorean|[A-Z][a-z]+['’]s?|quadratic|given|this)\s+){{0,3}}{_METHOD}
        (?:\s+and\s+(?:then\s+)?(?:simplifying|solving|factoring|factorising|expanding|rearranging|substituting|evaluating
        |cancell?ing|counting|checking)(?=\s*[.,)]?\s*\Z))?(?![a-z])
    | (?:found|obtained|computed|calculated|derived)\s+by\s+[a-z]+ing(?:\s+(?:the|both|all|up|two|these|them
        |parts?|terms?|numbers?|values?|cases?|sides?|results?|amounts?|sums?|and|of|out|together))*(?![a-z])
    | for\s+(?:all|any|every|each)\s+(?:(?:real|positive|complex|integers?|numbers?|values?|of)\s+)*
        \$?[a-z]?\$?(?![a-z])
    | where\s+\$?[A-Za-z]\$?\s+(?:is|denotes)\s+(?:an?|the|any|some)\s+(?:arbitrary\s+|real\s+|integration\s+)?
        (?:constant|number|integer|parameter)(?:\s+of\s+integration)?(?![a-z])
    | [✓✔✅∎□■🎉]+ | q\.?e\.?d\b
    )"""
)
"""A part that leaves the value as it is."""

_RESTATES = re.compile(
    rf"(?i)\s*[,(–—]?\s*(?:=|or(?:\s+equivalently|\s+simply)?|i\.e\.,?|that\s+is,?|namely|(?:which|this)\s+(?:is|equals|gives)"
    rf"|or|equivalently,?|das\s+heißt|oder|also|es\s+decir|o|c['’]est-à-dire|soit|ou)\s+(?P<value>{_VALUE}|\$[^$\n]{{1,120}})\s*[.)]?\s*\Z"
)
"""Nothing but another value, which may be the same one in another notation."""

_BOUND = re.compile(
    rf"(?i)\s*,?\s*(?:which|this|that)\s+is\s+(?:(?P<below>less|smaller)|more|greater|larger|bigger)\s+than\s+(?P<value>{_VALUE}|\$[^$\n]{{1,120}})(?=\s*[.)]?\s*\Z)"
)
_MONEY = re.compile(r"\$\d[\d.,/:]*%?")
_ROUNDED = re.compile(
    r"(?i)\s*[,(]?\s*(?:or\s+|which\s+is\s+)?(?:≈|~|about|approximately|approx\.?|roughly)\s*\$?(?P<value>[-−]?\d*\.\d+%?)\$?\s*\)?"
)
"""A rounded form of the value."""

_MAX_DIGITS = 40
_MAX_ROUNDED_CHARS = 200
"""A longer answer is compared with no rounded form, in characters."""

_NUMBER = re.compile(
    rf"(?P<sign>[-−]?)(?:(?P<top>\d{{1,{_MAX_DIGITS}}})/(?P<bottom>\d{{1,{_MAX_DIGITS}}})"
    rf"|\\[dt]?frac\s*(?:\{{(?P<above>\d{{1,{_MAX_DIGITS}}})\}}|(?P<above1>\d))\s*(?:\{{(?P<below>\d{{1,{_MAX_DIGITS}}})\}}|(?P<below1>\d))"
    rf"|(?P<decimal>\d{{1,{_MAX_DIGITS}}}(?:\.\d{{0,{_MAX_DIGITS}}})?|\.\d{{1,{_MAX_DIGITS}}}))(?P<percent>%?)"
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_IN_WORDS = re.compile(r"\\(?:text|mathrm|mbox|textrm)\s*\{[^{}]*\}|(?<=[\d}])\s+[A-Za-z]{2}[^\\]*\Z|\\[()]|\\[,;:! ]")
_IRRATIONAL = re.compile(
    r"\\(?:sqrt|pi|log|ln|sin|cos|tan|exp|arc[a-z]+)(?![A-Za-z])|[√π]|(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])"
)

_REASON = re.compile(
    r"(?i)\s*[,;–—(]?\s*(?:because|since|as\s+(?:the|it|there|we|all|every|each|both)\b|due\s+to)(?P<reason>\s[^?]*)\Z"
)
_OTHER_REASON = re.compile(
    r"(?i)\s*[,;–—(]?\s*(?:weil|da|denn|porque|ya\s+que|puesto\s+que|car|puisque|parce\s+que)(?P<reason>\s[^?]*)\Z"
)
_DENIES_ELSEWHERE = names(
    "nicht kein keine falsch aber sondern wenn falls vielleicht ungefähr no falso incorrecto pero sino si quizás "
    "ne pas faux fausse mais peut incorrect sauf"
)
_CONCLUDES = re.compile(
    r"(?i)(?:\s*[,;–—]\s*(?:and\s+)?(?:so|hence|thus|therefore)\b|\s*(?:so|hence|thus|therefore)\s+(?=the\b|we\b|it\b|there\b|this\b))"
    r"(?P<conclusion>[^?]*)\Z"
)
_WORDS = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_NAME_WORD = r"[^\W\d_](?:[^\W\d_]|[-/^²³·](?=[^\W\d_]|\d)|(?<=\^)\d|[²³])*+"
_NAME = re.compile(rf"\s*(?:°[CF]?|{_NAME_WORD})(?:\s+{_NAME_WORD}){{0,5}}")
_BELONGS = re.compile(r"(?i)\s*(?P<link>of|in|on|at|from|for|after)\s+(?P<name>[^\d,;.?()$\\]{2,80})(?=\Z|[,;.(])")
_OF_COUNTED = re.compile(
    r"(?i)\s*(?:that|which|who|whose|such\s+that|satisfying|(?:is|are)\s+(?:needed|required|left|used|possible))\b(?P<clause>[^?]*)\Z"
)
_PURPOSE = re.compile(
    r"(?i)\s*to\s+(?:arrange|assign|build|choose|climb|clean|colou?r|complete|cover|cross|dig|distribute|draw|fill|finish"
    r"|form|order|pack|paint|place|pick|print|read|repair|seat|select|sit|solve|tile|travel|visit|wash|write)\b"
    r"(?P<clause>[^\d,;:.?!()$\\]{0,80})\Z"
)
"""A purpose of the counted things: "ways to choose the cards". None of the verbs computes."""

_HAS_LEFT = re.compile(r"(?i)\s*(?:he|she|it|they|we|i|you)\s+(?:has|have|had)\s+(?:left|remaining)(?=\s*[.,)]?\s*\Z)")
_ON_SIDES = re.compile(r"(?i)\s*(?:on|along)\s+(?:each|every)\s+side(?=\s*[.,)]?\s*\Z)")
"""Behind a length: the side of a square, say."""

_QUANTITY_WORDS = names(
    "answer answers result results solution solutions value values total sum difference product rest remainder amount "
    "one two three four five six seven eight nine ten eleven twelve third thirds quarter quarters fourth fifth sixth "
    "seventh eighth ninth tenth last final again more percent target goal"
)
_GIVEN = re.compile(r"(?i)\bgiven\b")
_SIGNS = re.compile(r"\A(?:[\s*_`$}\])]|\\[)\]]|\\?%|°|\\(?:[,;:! ]|q?quad(?![a-z])))+")
_DETERMINERS = names("the a an this these his her their our all its")
_LIMITS = LIMITING | names(
    "part case cases base debt best worst average most least guess estimate bound friend only half twice except "
    "excluding what step not without would could should might may can cannot must opposite negative first mind "
    "doubt off tax"
)
_BESIDE_NOUNS = names("such per")
_IN_UNITS = names("per a an such")
PERCENT = frozenset(("percent", "per cent", "pct", "percentage"))
"""Words for %, which are a part of the answer."""

_OF = re.compile(r"(?i)\s+of\b")
_PRONOUNS = names("them these those that it")
_LEFT = names("left remaining altogether total apart long wide high tall deep old away ago")
_NUMERALS_OF_SCALE = names(
    "hundred thousand million billion trillion dozen dozens million millionen milliarde milliarden "
    "dutzend prozent cent cien"
)
_NUMBER_ELSEWHERE = re.compile(
    r"""(?xi)
      [^\W\d_]*(?:zwei|drei|vier|fünf|sechs|sieben|neun|zehn|zwölf|zig|ßig|hundert|tausend|million(?:en)?)
        |(?:[^\W\d_]*und)?acht|eins|elf|null
    | cero|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|trece|catorce|quince|dieci[^\W\d_]+
        |veinti?[^\W\d_]*|treinta|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa|cien|ciento|[^\W\d_]*cient[oa]s|quinient[oa]s|mil
    | zéro|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|[^\W\d_]*vingts?|trente
        |quarante|cinquante|soixante|cents?|mille
    """
)
"""A numeral in words in German, Spanish or French."""

_FUNCTION_WORDS_ELSEWHERE = names(
    "und oder aber mal minus plus zum zur pro je wenn falls glaube vielleicht nein also höchstens mindestens "
    "ungefähr vor nach ohne im in bis von außer weniger mehr zu y o pero por más menos al como si creo quizás a "
    "antes sin en es no cada salvo de que et ou mais fois moins au par si avant sans dans est sur à sauf chacun "
    "chaque"
)


def restatement(rest: str) -> str | None:
    """Return the value that the rest of a sentence states in place of the answer: 0.75 of "or 0.75"; else None."""
    rest = _SIGNS.sub("", _on_one_line(rest))
    if len(rest) > MAX_REST_CHARS:
        return None
    match = _RESTATES.match(rest, _end_of_name(rest))
    if match is None:
        return None
    is_half = match["value"].startswith("$") and _MONEY.fullmatch(match["value"]) is None  # "$1+2" of "$1+2$."
    return f"{match['value']}$" if is_half and match["value"].count("$") == 1 else match["value"]


def adds_nothing(rest: str) -> bool:
    """Whether the rest of a sentence behind a number only approves of it or says how it was found: "as required"."""
    rest = _on_one_line(rest)
    plain = _SIGNS.sub("", rest)
    if len(rest) > MAX_REST_CHARS:
        return False
    return bool(plain.strip()) and plain == rest.lstrip() and _end_of_name(plain) == 0 and leaves_value(plain)


def leaves_value(rest: str, *, answer: str = "", states: bool = False) -> bool:
    """Whether the rest of a sentence behind a stated answer is of the parts at the top of the module.

    answer: the stated answer, with which a rounded form is compared; without it a rounded form leaves no value.
    states: a value that the rest states is compared with the reference.
    """
    rest = _on_one_line(rest)
    if len(rest) > MAX_REST_CHARS:
        return False
    if condition_behind(rest, 0, len(rest)) is not None:
        return True
    rest = _SIGNS.sub("", rest.rstrip(' .*_`"”’)'))
    name = _end_of_name(rest)
    position, has_name, unit = name, name > 0, rest[:name]
    if rest[:name].strip().lower() in PERCENT and _OF.match(rest, name):
        return False  # "12 percent of it" is a part of a quantity that nobody knows
    while True:
        rest = rest[position:].lstrip(" )*_`")
        if not rest.strip(" ,;(.[{|~"):
            return True
        part = _PARTS.match(rest.lstrip("("))
        if part is None and (rounded := _ROUNDED.match(rest)) is not None:
            part = rounded if _is_rounded(answer, rounded["value"]) else None
        if part is not None and part.end():
            rest, position = rest.lstrip("(") if part.re is _PARTS else rest, part.end()
            continue
        if (bound := _BOUND.match(rest)) is not None:
            exact, limit = _exact_value(answer), _exact_value(bound["value"])
            return exact is not None and limit is not None and (exact < limit if bound["below"] else exact > limit)
        belongs = _BELONGS.match(rest)
        if belongs is not None and _is_place(belongs, has_name, answer):
            position = belongs.end()
            continue
        if has_name and _ON_SIDES.match(rest) is not None and unit_of(unit) is not None:
            return True
        return _is_clause(rest, has_name=has_name, states=states)


def _is_rounded(answer: str, rounded: str) -> bool:
    """Whether a decimal number is the rounding of an answer to its own digits: 0.33 of 1/3.

    Of an answer with a root, π or a letter, whose size is not known here, any decimal number may be the rounding.
    """
    exact = _exact_value(answer)
    if exact is None:
        return len(answer) <= _MAX_ROUNDED_CHARS and _IRRATIONAL.search(answer) is not None
    nearby = _fraction_of(rounded.replace("−", "-"))
    digits = len(rounded.rstrip("%").partition(".")[2]) + 2 * rounded.endswith("%")
    return nearby is not None and abs(exact - nearby) * 2 <= Fraction(1, 10**digits)


def _exact_value(answer: str) -> Fraction | None:
    """Return the number that an answer is, perhaps with a name or a unit; None of any other and of a long answer."""
    if len(answer) > _MAX_ROUNDED_CHARS:
        return None
    answer = _THOUSANDS.sub("", answer.replace("−", "-"))
    answer = _IN_WORDS.sub("", answer.replace("\\%", "%").strip(" $*_`.")).rpartition("=")[2].strip(" $*_`()")
    return _fraction_of(answer)


def _fraction_of(text: str) -> Fraction | None:
    """Return the number that a text is, exactly: 12, 0.75, 3/4, \\frac34, 35%; None of any other text."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    top = number["top"] or number["above"] or number["above1"]
    bottom = int(number["bottom"] or number["below"] or number["below1"] or 1)
    if not bottom:
        return None
    size = Fraction(int(top), bottom) if top else Fraction(number["decimal"].rstrip("."))
    return size * (-1 if number["sign"] else 1) / (100 if number["percent"] else 1)


def _is_clause(rest: str, *, has_name: bool, states: bool) -> bool:
    """Whether the last part of a rest is a reason, a conclusion, a restatement or a clause of what was counted."""
    if restatement(rest) is not None:
        return states
    if (reason := _REASON.match(rest)) is not None:
        clause = reason["reason"]
        corrects = has_condition(clause) or not leaves_in_english(clause, "", is_rest=False)
        return not corrects and (states or IS_ANSWER.search(clause) is None)
    if (reason := _OTHER_REASON.match(rest)) is not None:
        words = _words_of(reason["reason"])
        return _DENIES_ELSEWHERE.isdisjoint(words) and not any(
            _NUMBER_ELSEWHERE.fullmatch(part) or multiplies(part) for word in words for part in word.split("-")
        )
    if (concluded := _CONCLUDES.match(rest)) is not None:
        return states and not has_condition(concluded["conclusion"])
    counted = _OF_COUNTED.match(rest) if has_name else None
    if counted is None:
        return has_name and _is_purpose(rest)
    return not has_condition(_GIVEN.sub("", counted["clause"])) and _LIMITS.isdisjoint(_words_of(counted["clause"]))


def _is_purpose(rest: str) -> bool:
    """Whether the last part of a rest behind counted nouns says what these are for, without a number."""
    if (purpose := _PURPOSE.match(rest)) is None:
        return _HAS_LEFT.match(rest) is not None
    words = _words_of(purpose["clause"])
    computes = any(changes_number(f" {word}") or not _NUMERALS_OF_SCALE.isdisjoint((word,)) for word in words)
    return (
        not computes
        and (_LIMITS | _LEFT | _QUANTITY_WORDS).isdisjoint(words)
        and not has_condition(purpose["clause"])
        and are_plain(words, _PLAIN_IN_PURPOSE)
    )


def _end_of_name(rest: str) -> int:
    """Return where the unit or the counted nouns end that begin the rest of a sentence; 0 without such."""
    run = _NAME.match(rest)
    if run is None:
        return 0
    ends = [word.end() for word in re.finditer(r"\S+", rest[: run.end()])]
    # "in" is a unit only alone: "12 in total".
    if rest[: ends[0]].lower() in FUNCTION_WORDS - _BESIDE_NOUNS and rest[ends[0] :].strip(" ."):
        return 0
    for end in reversed(ends):
        words = rest[:end].split()
        last = len(words)
        while last > 1 and words[last - 1].lower() in _LEFT:
            last -= 1
        if _names(words[:last]):
            return end
    return 0


def _names(words: list[str]) -> bool:
    """Whether words are a unit, or nouns and adjectives that end in a plural, or one German noun."""
    text = " ".join(words)
    if text.lower() in PERCENT:
        return True
    # "in" is no unit behind another word: "dollars in all".
    if not (FUNCTION_WORDS - _IN_UNITS).isdisjoint(word.lower() for word in words[1:]):
        return False
    if unit_of(text.replace("²", "^2").replace("³", "^3")) is not None:
        return True
    plain = [word.lower() for word in words]
    if changes_number(f" {text}") or not _NUMERALS_OF_SCALE.isdisjoint(plain) or len(plain) > 5:
        return False
    if any(multiplies(word) or _NUMBER_ELSEWHERE.fullmatch(word) for word in plain):
        return False
    others = (FUNCTION_WORDS - _BESIDE_NOUNS) | _FUNCTION_WORDS_ELSEWHERE | _LIMITS
    if not others.isdisjoint(plain) or not are_plain(plain, _BESIDE_NOUNS):
        return False
    if plain[0] == "such":
        return True  # "one such triangle"
    is_german_noun = len(words) == 1 and words[0][:1].isupper()
    return is_german_noun or (
        is_plural(plain[-1]) and plain[-1] not in _LEFT and plain[-1] not in ("each", "apiece", "only")
    )


def _is_place(belongs: re.Match[str], has_name: bool, answer: str) -> bool:
    """Whether "of the cake" or, behind a name, "in the bag" says only to what a quantity belongs.

    Without a name, only whole things are some of several: 3 of the balls; not 3 of a kind, 1/3 of the balls.
    """
    words, is_of = _words_of(belongs["name"]), belongs["link"].lower() == "of"
    if not words or not (_LIMITS | _LEFT).isdisjoint(words) or (words[0] in _PRONOUNS and len(words) > 1):
        return False
    number, last = answer.strip(" $*_`").replace(",", ""), words[-1]
    is_several = is_plural(last) or last in ("them", "these", "those") or (last.endswith("s") and last[-2:] != "ss")
    if not has_name and not (is_of and is_several and (number.isdigit() or numeral(number) is not None)):
        return False
    return (is_of or words[0] in _DETERMINERS) and are_plain(words, _PLAIN_INSIDE)


_PLAIN_IN_PURPOSE = names("of in the a an on at his her their our this these all both it them its from up")
_PLAIN_INSIDE = names("of in to the a an and on at his her their our this these all both it them its")


def _on_one_line(rest: str) -> str:
    """Return a rest with one space for each run of blanks, in which no two `\\s*` of a pattern share a long run."""
    return " ".join(rest.split()) if rest[:1].strip() else f" {' '.join(rest.split())}"


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
