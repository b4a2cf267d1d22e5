r"""Sentences in English behind an answer, and whether they leave it standing. See `behind`."""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names
from harness.answers.grammar.units import FUNCTION_WORDS
from harness.grading.find.refusals import begins_repair
from harness.grading.find.repeated import NUMBER, digits_of, is_letter, numbers_of

MARKS = " \t*_#>`$\"“”'()[]{}|\\.,，:：-–—✓✔✅🎉"
"""Signs that may stand around a sentence."""

_IN_OPTIONS = names("a an the of and in on to at by for with none all both neither above below")
"""Function words that may stand in the text of an option."""

_LEADS = re.compile(
    r"(?i)(?:(?:so|and|but|however|well|now|then|therefore|thus|hence|also|finally|yes|indeed|okay|ok|although"
    r"|though|yet)"
    r"\b[\s,]*)+"
)
LABEL = re.compile(
    r"(?i)(?:(?P<remark>remarks?|notes?|explanation|reasoning|reason|hint)|check|checking|verification|solution"
    r"|steps?(?:\s+\d+)?|proof|summary|details"
    r"|recap)\b[\s*_]*:[\s*_]*"
)
"""A heading of what explains or checks the answer. A remark goes on to the end of the reply."""

_ANSWER = (
    r"(?:answer|result|value|solution|calculation|computation|arithmetic|reasoning|work|working|total|response|figure"
    r"|statement|conclusion|reply)"
)
_IT = re.compile(r"(?i)it\s+(?!is\b|was\b|should\b|must\b)")
_OF_ANSWER = re.compile(
    rf"(?i)it\b|(?:this|that|these|those|(?:the|my|our|this|that)\s+(?:\w+\s+){{0,3}}?{_ANSWER}s?(?:\s+(?:above"
    rf"|given|i\s+\w+))?|(?:the\s+)?above|what\s+i\s+\w+"
    r"|something|my\s+\w+)(?=['’]s\b|\s+(?:is|was|are|were|has|have|had|does|do|did|should|must|would|will|can"
    r"|could|may|might|ought|cannot"
    r"|seems?|looks?|appears?|needs?)\b|\s*[,:=]|\s*\Z)|(?:the\s+)?above\b"
)
"""A subject that is the answer, or what led to it, and the beginning of what is said of it."""

_SAID_OF_RIGHT = re.compile(
    rf"""(?xi) [\s,]* (?:
      (?:is|was|are|['’]s)\s+ (?:indeed\s+|also\s+|therefore\s+|thus\s+|clearly\s+|exactly\s+)?
        (?: right|correct|true|valid|because|since|why|clear|easy|consistent|reasonable|exact|verified|confirmed
          |unique|due|given|obtained
          |found|as|what|how|where|when|in|the\s+(?:final\s+|correct\s+|same\s+|required\s+|desired\s+|total\s+
            |only\s+)*\w+
          |equivalent|equal\s+to|an?|not\s+{NUMBER} ) \b
      | (?:may|might|can|could|will)\s+(?:also\s+)?(?:seem|look|be\s+(?:written|checked|verified|seen|used
        |expressed|simplified|shown|found
          |confirmed|rounded|left|explained|understood|interpreted|solved|computed|calculated))\b
      | (?:means|shows|implies|gives|follows|matches|agrees|makes|completes|can|represents|comes|satisfies|satisfy
        |works|holds
          |checks|corresponds|confirms|proves|uses|equals|assumes|applies|includes|accounts|counts|lets|allows
            |leads|tells|explains|takes
          |needs|has|have|helps|helped|costs|contains|leaves|will|also|depends|provided|finishes|ends|concludes
            |solves|fits|depend|takes?|took|costs?|would)\b
      | (?=[,:=]) | \Z )"""
)
"""A predicate of a right answer; the words behind it must not correct it, see `_CORRECTS`."""

_WRITER = re.compile(r"(?i)(?:(?-i:I)(?:['’](?:m|ve|d|ll))?|i(?=\s+[a-z]{2,})|let\s+me|let['’]s|let\s+us)\b")
_LEAVES_ANSWER = re.compile(
    r"""(?xi) (?:
      i\s+ (?: hope|trust|used?|check(?:ed)?|verif(?:y|ied)|comput(?:e|ed)|calculat(?:e|ed)|count(?:ed)?|added
        |multiplied|divided|solved?
        |drew|listed|applied
          |made\s+an?\s+(?:table|list|drawing|sketch|diagram|tree|graph|chart) |(?:have|can
            |will)\s+(?:also\s+)?(?:used|use|checked|check|verified
          |verify|shown|show|explained|explain|provided|provide|help) |(?:am|['’]m)\s+(?:happy|glad|here) )
      | i['’]m\s+(?:happy|glad|here|confident)
      | (?:let\s+me|let['’]s|let\s+us)\s+(?:also\s+|now\s+|quickly\s+)?
        (?:know|explain|show|verify|(?:double|re)?-?\s?check|confirm|walk|break|summari[sz]e|illustrate|see|look
          |substitute|plug|test|go\s+through|calculate|compute|find|add|consider|use|call|denote)
    )\b"""
)
_CORRECTS = re.compile(
    r"""(?xi)\b (?:
      mis(?:takes?|taken\w*|read\w*|count\w*|calculat\w+|comput\w+|typ\w+|stat\w+|interpret\w*|understood
        |understand\w*|placed|applied|spoke)
      | errors?|erroneous\w*|slips?|slipped|typos?|blunder\w*|oversights?|wrong\w*|incorrect\w*|inaccura\w+|faulty
        |flaw\w*|bogus|off\s+by|(?:is|are|was)\s+off|double[\s-]?count\w*|count\w*\s.{0,40}\btwice
      | (?:not|n['’]t|hardly|never)\s+(?:\w+\s+)?(?:right|correct|true|valid|sure|certain|the\s+answer|convinced
        |possible|make\s+sense|add\s+up)
      | (?:can|could|ca|must)\s*(?:not|n['’]t)\s+be|cannot\s+be | (?:does|do|did)(?:\s+not|n['’]t)\s+(?:look|seem
        |match|fit|work|check|agree|hold|satisfy)
      | too\s+(?:large|big|small|high|low|much|many|few|little)
      | re-?(?:do|doing|done|did|check\w*|comput\w+|calculat\w+|count\w*|consider\w*|think\w*|thought|evaluat\w+
        |examin\w+|work\w*|visit\w*|vis(?:e|ed|ion)\w*)
      | (?:comput|calculat|count|check|do|try|start|look|think|add)\w*\s+(?:\w+\s+){0,3}again|contradict\w*
        |inconsistent
      | corrections?|corrected|correcting|fix(?:ed|es|ing)?\s+(?:it|that|this|my|the)|amend\w*|instead|(?:or
        |but)\s+rather|rather,|should\s+(?:\w+\s+)?(?:be|have|read|equal)|ought
      | i\s+(?:meant|mean|forgot|missed|overlooked|omitted|swapped|doubt|was|take)|forgot|forgotten|overlooked
      | scratch\s+that|strike\s+that|ignore|disregard|discard|retract\w*|withdraw\w*|never\s?mind|make\s+(?:that|it)
      | oops|whoops|sorry|apologi[sz]e\w*|apolog(?:y|ies)|hmm+|hold\s+on|hang\s+on|wait(?=\s*[,!.…—:])
        |on\s+second\s+thoughts?
      | doubt(?:s|ed|ful)?|guess(?:es|ed|ing)?|estimates?|unsure|uncertain|not\s+so\s+sure|mixed\s+up|swapped
        |needs?\s+(?:a\s+)?(?:revis|correct|fix|check)\w*
      | no\s+wait|not\s+quite|close,?\s+but|(?:replace|change)\w*\s+(?:it|this|that|to)|start\s+over
      | forget\s+(?:it|that|this)
      | extraneous|invalid|undefined|no\s+solution|skipp(?:ed|ing)|i\s+dropped|not\s+allowed|does\s+not\s+apply
      | (?:is|are|was)\s+excluded|the\s+question\s+ask(?:s|ed)|(?:part|half)\s+of\s+the\s+answer
      | (?:lower|upper)\s+bound|(?:half|twice)\s+(?:of\s+)?(?:that|this|it)
    ) (?!\w)"""
)
"""Words by which a text corrects, doubts or replaces what stands before."""

_OF_OTHERS = re.compile(
    r"(?i)(?:(?:it|this|that)\s+is\s+)?(?:an?|another|one|some|many)\s+(?:common|typical|frequent|popular|tempting"
    r"|classic|naive|usual|possible)\b"
    r"|(?:the\s+)?(?:other|wrong|incorrect|false)\s+(?:options?|choices?|answers?|values?|statements?)\b|no\s+other\b"
    r"|(?:(?:the\s+)?(?:options?|choices?|answers?|statements?)\s+)?\(?(?P<letter>(?-i:[A-HJ]))\)?"
    r"(?:\s*(?:,|and|or|&)\s*\(?(?-i:[A-HJ])\)?)*\s+(?:is|are|was|would|fails?|ignores?|confuses?|has|have|gives?"
    r"|contradicts?)\b"
)
"""A subject that is another answer than the one that stands before: "A common wrong answer is 5.", "A is incorrect"."""

_VALUE = rf"(?P<value>{NUMBER}|\(?\b[A-J]\b\)?)"
_STATES_IT = (
    r"(?i:\A|[:：]|[,，](?!\d)|['’]s\s|\b(?:is|are|was|were|be|been|equals?|(?:we|i)\s+get|giving|gives?|becomes|makes?|so"
    r"|thus|hence|therefore|rather|instead|exactly|actually"
    r"|really|only|is\s+then|that|it|value|answer|total|result|option|choice|letter)\b)[\s$*(]*"
)
_ENDS_IN_NUMBER = re.compile(rf"{_STATES_IT}(?P<value>{NUMBER})[\s$*%°}}]*(?:[a-z²³/]+\s?){{0,2}}\Z")
_ENDS_IN_LETTER = re.compile(rf"{_STATES_IT}(?P<value>\(?[A-J]\)?)[\s$*}}]*\Z")
_EQUALS = re.compile(
    rf"(?i)[\s$*]*(?:(?:the|new|final|correct|so|thus|hence)\s+)*(?:answer|result|value|total|sum"
    rf"|[a-z])\s*=[\s$*(]*(?:{NUMBER}|[A-J]\b).{{0,20}}"
)
_NOT_VALUE = re.compile(rf"(?i)\b(?:not|n['’]t\s+be|never)\s+(?:equal\s+(?:to\s+)?)?[$*]*(?-i:{_VALUE})")

_CLOSES_IN_ENGLISH = re.compile(
    r"(?i)(?:i\s+hope|hope\s+(?:this|that|it)|thanks?\b|thank\s+you|let\s+me\s+know|feel\s+free|please\s+(?:let"
    r"|feel|note|ask|rate)|good\s+luck"
    r"|great\b|done\b|happy\s+to\s+help|do\s+you\s+have|would\s+you\s+like|any\s+(?:other\s+)?questions"
    r"|if\s+you\s+(?:have|need|want|would)"
    r"|rate\s+me|q\.?e\.?d|hooray|have\s+a\b|confidence\b|as\s+(?:required|desired|asked|requested|claimed|expected))"
)
"""Words that close a reply."""

_OBLIGES = re.compile(
    r"(?i)\b(?:we|i|it|this|that)\s+(?:\w+\s+)?(?:must|should|ought|needs?\s+to|ha(?:s|ve)\s+to)\b(?!\s+(?:show"
    r"|prove|check|find|count|consider|note|verify"
    r"|know|use|look|solve)\b)"
    r"|\b(?:it|this|that|which|check\w*|verification|result|answer|value)\s+(?:\w+\s+)?(?:fails?|failed|ignores?"
    r"|violates?|misses|breaks|disagrees?)\b"
    r"|\b(?:add|subtract|multiply|divide|double|halve|reduce|increase)\w*\b.{0,80}\b(?:to|from|by|with)\s+(?:it"
    r"|this|that)\b|\b(?:halve|double)\s+(?:it|this|that)\b|\bno\Z"
    r"|\b(?:remember|forget|sure|note)\s+to\s+(?:add|subtract|multiply|divide|include|exclude|double|halve)\b|\A\s*fails?\b"
)
"""Words of duties, failures and back-references: what they say may change the answer."""

_NEGATES = re.compile(
    r"(?i)\b(?:not|no|never|none|nothing|neither|nor|without|cannot|impossible|unlikely|uncertain|too|else|before|different"
    r"|chang\w+|hasty|premature)\b|n['’]t\b"
)
"""The words of denial of English, and some of doubt. What they deny may be what led to the answer."""

_CLAUSE = re.compile(
    r"(?i)[;；]|\s[–—]\s|[,:–—-]\s{0,3}(?=(?:wait|no(?=[,.!:;])|actually|sorry|oops|hmm+|i\s+mean|or\s+rather)\b)"
    r"|[,:–—-]?\s{0,3}\b(?:but|however|although|though|yet)\b"
)
"""Where a clause begins that may correct the answer in its own sentence."""

_REASON = re.compile(r"(?i)\b(?:because|since|as|which|where|not|rather\s+than)\b|(?:^|\s)[(（]?[A-HJ][)）]?\s+is\b")
"""The beginning of a reason, or of what is said of another option, behind an option."""


def leaves_in_english(sentence: str, answer: str, *, is_rest: bool, in_remark: bool, is_far: bool = False) -> bool:
    """Whether a sentence in English behind an answer cannot correct it.

    is_rest: it is the rest of the answer's own sentence. in_remark: a heading "Note:" stands before it. is_far: it
    stands amid a long text.
    """
    begin = sentence.lstrip(MARKS)
    if is_rest and is_letter(answer):
        begins_sentence = sentence[:1] in (".", "．") or sentence[:1].isupper() or sentence[:1].isdigit()
        is_option = _is_option(begin) if begins_sentence else _CORRECTS.search(_reasonless(begin)) is None
        return _leaves(begin, answer) or (is_option and not begins_repair(begin) and not _replaces(begin, answer))
    if not is_rest or begin[:1].isupper() or begin[:1].isdigit():
        return not begin or _leaves(begin, answer, is_clause=in_remark, is_far=is_far)
    if begins_repair(begin) or (sentence[:1] != "(" and _EQUALS.fullmatch(begin) and _replaces(begin, answer)):
        return False
    clauses = [clause.strip(MARKS) for clause in _CLAUSE.split(sentence)[1:]]
    return all(not clause or _leaves(clause, answer, is_clause=True) for clause in clauses)


def _is_option(rest: str) -> bool:
    """Whether words behind "B." are the text of an option: nouns and numbers, no function word of a sentence."""
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", rest)]
    others = FUNCTION_WORDS.intersection(words) - _IN_OPTIONS
    return not others and _CORRECTS.search(rest) is None and _OBLIGES.search(rest) is None and not rest.endswith("?")


def _reasonless(rest: str) -> str:
    """Return the rest of a sentence up to its reason: "because option A is wrong" corrects nothing."""
    reason = _REASON.search(rest)
    return rest if reason is None else rest[: reason.start()]


def _leaves(sentence: str, answer: str, is_clause: bool = False, is_far: bool = False) -> bool:
    """Whether an English sentence leaves the answer before it standing, by its subject; see the top of the module.

    is_clause: it is a clause of the answer's own sentence, or part of a remark. is_far: it stands amid a long text,
    where only words of correction count.
    """
    if _CLOSES_IN_ENGLISH.match(sentence) is not None:
        return True
    lead = _LEADS.match(sentence)
    sentence = sentence[lead.end() :] if lead is not None else sentence
    if is_clause and _LEAVES_ANSWER.match(sentence) is not None:
        return True
    if begins_repair(sentence) or sentence.endswith("?"):
        return False
    label = LABEL.match(sentence)
    sentence = sentence[label.end() :] if label is not None else sentence
    others = _OF_OTHERS.match(sentence)
    if others is not None and (others["letter"] is None or (is_letter(answer) and others["letter"] != answer)):
        return True
    if _CORRECTS.search(sentence) is not None or _denies(sentence, answer):
        return False
    if is_far:
        return True
    if _replaces(sentence, answer) or _OBLIGES.search(sentence) is not None:
        return False
    if repeats_answer(sentence, answer):
        return True
    if _WRITER.match(sentence) is not None:
        leaves = _LEAVES_ANSWER.match(sentence)
    elif (subject := _OF_ANSWER.match(sentence)) is not None and not (_IT.match(sentence) and "=" in sentence):
        leaves = _SAID_OF_RIGHT.match(sentence, subject.end())
    else:
        return True
    # What is said of the answer, or by the writer, and is not known to leave the answer: at least nothing is denied.
    return leaves is not None or _NEGATES.search(_NOT_VALUE.sub("", sentence)) is None


def _denies(sentence: str, answer: str) -> bool:
    """Whether a sentence denies the value of the answer: "it is not 56"."""
    return any(_same(denied, answer) for denied in _NOT_VALUE.finditer(sentence))


def _replaces(sentence: str, answer: str) -> bool:
    """Whether a sentence ends in another value of the answer's kind, number or letter, that no calculation gives."""
    of_letter, of_number = is_letter(answer), bool(numbers_of(answer))
    stated = _ENDS_IN_LETTER.search(sentence) if of_letter else _ENDS_IN_NUMBER.search(sentence)
    if _EQUALS.fullmatch(sentence) is not None:
        stated = re.search(_VALUE, sentence.rpartition("=")[2])
    if stated is None or not (of_number or of_letter) or _same(stated, answer):
        return False
    if "=" in sentence and _EQUALS.fullmatch(sentence) is None:
        return False  # a calculation
    return not any(denied.end("value") == stated.end("value") for denied in _NOT_VALUE.finditer(sentence))


def _same(stated: re.Match[str] | None, answer: str) -> bool:
    """Whether the value of a match is the letter of the answer, or one of its numbers."""
    if stated is None:
        return False
    if is_letter(answer):
        return stated["value"].strip("()") == answer
    return digits_of(stated["value"]) in numbers_of(answer)


def repeats_answer(sentence: str, answer: str) -> bool:
    """Whether a sentence ends in the answer once more, and no word in English denies or doubts it."""
    if begins_repair(sentence) or _CORRECTS.search(sentence) or _denies(sentence, answer) or sentence.endswith("?"):
        return False
    numbers, mine = numbers_of(sentence), numbers_of(answer)
    if numbers and mine:
        return numbers[-1] == mine[-1]
    plain = answer.strip(MARKS)
    return bool(plain) and re.search(rf"(?<![A-Za-z]){re.escape(plain)}(?![A-Za-z])", sentence) is not None
