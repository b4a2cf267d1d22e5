r"""Sentences in English behind an answer, and whether their words deny, correct or limit it. See `behind`."""

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
_OF_ANSWER = re.compile(
    rf"(?i)(?:it|this|that|these|those|(?:the|my|our|this|that)\s+(?:\w+\s+){{0,3}}?{_ANSWER}s?(?:\s+(?:above|given|i\s+\w+))?"
    rf"|(?:the\s+)?above(?:\s+\w+)?|what\s+i\s+\w+|something|my\s+\w+|i|let\s+me|let['’]s)\b(?!\s+(?:{_ANSWER}|problem|method)s?\b)"
)
"""A subject that is the answer, what led to it, or its writer."""

_CORRECTS = re.compile(
    r"""(?xi)\b (?:
      mis(?:takes?|taken\w*|read\w*|count\w*|calculat\w+|comput\w+|typ\w+|stat\w+|interpret\w*|understood
        |understand\w*|placed|applied|spoke)
      | errors?|erroneous\w*|slips?|slipped|typos?|blunder\w*|oversights?|wrong\w*|incorrect\w*|inaccura\w+|faulty
        |flaw\w*|bogus|off\s+by|(?:is|are|was|seems?|looks?)\s+off|double[\s-]?count\w*|count\w*\s.{0,40}\btwice
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
      | doubt(?:s|ed|ful)?|guess(?:es|ed|ing)?|(?:only|just|rough)\s+(?:\w+\s+)?estimates?|unsure|uncertain
      | not\s+so\s+sure|mixed\s+up|swapped
        |needs?\s+(?:a\s+)?(?:revis|correct|fix|check)\w*
      | no\s+wait|not\s+quite|close,?\s+but|(?:replace|change)\w*\s+(?:it|this|that|to)|start\s+over
      | forget\s+(?:it|that|this)
      | extraneous|invalid|undefined|no\s+solution|skipp(?:ed|ing)|i\s+dropped|not\s+allowed|does\s+not\s+apply
      | (?<!nothing\sis\s)missing|not\s+(?:all|every\w*|the\s+same)|(?:everything|anything|nothing|all)\s+(?:but|except)
      | which\s+(?:is|are|was)\s+excluded|(?:was|were|is|are)\s+(?:missed|omitted|dropped)
      | (?:twice|half)\s+as\s+\w+|the\s+question\s+ask(?:s|ed)|(?:part|half)\s+of\s+the\s+answer
      | (?:lower|upper)\s+bound|(?:\A|maybe\s+)(?:half|twice)\s+(?:of\s+)?(?:that|this|it)
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

_ASKS_REASON = re.compile(
    r"(?i)(?:(?:but|so|and|now)\s+)?(?:why|how)(?:\s+(?:so|is|did|do|does|can|we|you|i|this|that|it|they|get|got|find|found|know|come|came|arrive|work|works"
    r"|to|at|there|about|here|solve|see))*\s*\?"
)
_TO_READER = re.compile(
    r"(?i)\byou\b|\b(?:clear|sense|understood|understand|easy|simple|explain|similar|another\s+(?:one|example|exercise|way|problem))\b"
)
_ANOTHER_EXERCISE = re.compile(
    r"(?i)\b(?:(?:an?|the|one)\s+)?(?:another|similar|next|more)\s+(?:one|example|exercise|problem|question)s?\b"
)
_ABOUT_ANSWER = re.compile(
    r"(?i)\d|\b(?:answers?|results?|values?|solutions?|units?|right|correct\w*|true|agree|sure|certain|mean|really|confident|accept\w*|trust|believe|think"
    r"|change\w*|same|spot|it|be|one|two|three|half|twice|zero)\b"
)
"""Words of a question that speaks of the answer, or of a value."""

_WILL_CHECK = re.compile(r"(?i)let\s+me\s+(?:\w+\s+)?(?:verify|(?:double-?\s?|re-?)?check)\b")
_NAMES_ANSWER = re.compile(
    r"(?i)(?:this|that|it(?=\s+(?:is|was)\s+(?:the|what|only|just)\b))\s+(?P<verb>is|was)\s+(?P<name>(?:the|an?|our|my|what|only|just)\b.*)"
)
"""A sentence directly behind the answer that says what the answer is."""

_REASON_BEHIND = re.compile(r"(?i)\b(?:because|since|as)\b.*")
_LIMITS = names("including excluding ignoring neglecting part first second intermediate careless student")
_MAY_NAME = names(
    "a an and are asks by exactly for in is it of on our that the this to we what which who with you your"
)
"""Function words with which such a sentence may name it; others limit it: "the value before rounding"."""

_CLAUSE = re.compile(
    r"(?i)[;；]|\s[–—]\s|[,:–—-]\s{0,3}(?=(?:wait|no(?=[,.!:;])|actually|sorry|oops|hmm+|i\s+mean|or\s+rather)\b)"
    r"|[,:–—-]?\s{0,3}\b(?:but|however|although|though|yet)\b"
)
"""Where a clause begins that may correct the answer in its own sentence."""

_REASON = re.compile(
    r"(?i)\b(?:because|since|as|which|where|not(?=\s+(?:option\s+)?[(（]?(?-i:[A-J])\b)|rather\s+than)\b"
    r"|(?:^|\s)[(（]?[A-HJ][)）]?\s+is\b"
)
"""The beginning of a reason, or of what is said of another option, behind an option."""


def leaves_in_english(
    sentence: str, answer: str, *, is_rest: bool, is_far: bool = False, is_first: bool = False
) -> bool:
    """Whether a sentence in English behind an answer does not deny, correct or limit it.

    is_rest: it is the rest of the answer's own sentence. is_far: it stands amid a long text. is_first: it is the first
    sentence behind the answer.
    """
    begin = sentence.lstrip(MARKS)
    if is_rest and is_letter(answer):
        begins_sentence = sentence[:1] in (".", "．") or sentence[:1].isupper() or sentence[:1].isdigit()
        is_option = _is_option(begin) if begins_sentence else _CORRECTS.search(_reasonless(begin)) is None
        return _leaves(begin, answer) or (is_option and not begins_repair(begin))
    if not is_rest or begin[:1].isupper() or begin[:1].isdigit():
        limits = _NAMES_ANSWER.match(begin) if is_first or is_rest else None
        return not begin or (_leaves(begin, answer, is_far=is_far) and (limits is None or _only_names(limits)))
    if begins_repair(begin):
        return False
    clauses = [clause.strip(MARKS) for clause in _CLAUSE.split(sentence)[1:]]
    return all(not clause or _WILL_CHECK.match(clause) or _leaves(clause, answer) for clause in clauses)


def closes_in_english(sentence: str) -> bool:
    """Whether a sentence in English closes the reply, or is only a sign such as ∎."""
    return _CLOSES_IN_ENGLISH.match(sentence) is not None or not any(map(str.isalnum, sentence))


def speaks_of_others(sentence: str, answer: str) -> bool:
    """Whether a sentence speaks of another answer than the one that stands before: "a common wrong answer is 5"."""
    lead = _LEADS.match(sentence)
    others = _OF_OTHERS.match(sentence, 0 if lead is None else lead.end())
    return others is not None and (others["letter"] is None or (is_letter(answer) and others["letter"] != answer))


def _only_names(sentence: re.Match[str]) -> bool:
    """Whether a sentence that says what the answer is does not limit it: "this is the answer to part (a) only" does."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", _REASON_BEHIND.sub("", sentence["name"]))}
    return (
        sentence["verb"].lower() == "is"
        and (words & FUNCTION_WORDS) <= _MAY_NAME
        and not any(word in _LIMITS for word in words)
    )


def _is_option(rest: str) -> bool:
    """Whether words behind "B." are the text of an option: nouns and numbers, no function word of a sentence."""
    words = [word.lower() for word in re.findall(r"[A-Za-z]+", rest)]
    others = FUNCTION_WORDS.intersection(words) - _IN_OPTIONS
    return not others and _CORRECTS.search(rest) is None and _OBLIGES.search(rest) is None and not rest.endswith("?")


def _reasonless(rest: str) -> str:
    """Return the rest of a sentence up to its reason: "because option A is wrong" corrects nothing."""
    reason = _REASON.search(rest)
    return rest if reason is None else rest[: reason.start()]


def _leaves(sentence: str, answer: str, is_far: bool = False) -> bool:
    """Whether an English sentence does not deny or correct the answer. is_far: only words of correction count."""
    if _CLOSES_IN_ENGLISH.match(sentence) is not None:
        return True
    lead = _LEADS.match(sentence)
    sentence = sentence[lead.end() :] if lead is not None else sentence
    if begins_repair(sentence):
        return False
    if sentence.endswith("?"):
        return _asks_reader(sentence)
    label = LABEL.match(sentence)
    sentence = sentence[label.end() :] if label is not None else sentence
    if speaks_of_others(sentence, answer):
        return True
    if _CORRECTS.search(sentence) is not None or _denies(sentence, answer):
        return False
    if is_far:
        return True
    if _OBLIGES.search(sentence) is not None:
        return False
    return _OF_ANSWER.match(sentence) is None or _NEGATES.search(_NOT_VALUE.sub("", sentence)) is None


def _asks_reader(question: str) -> bool:
    """Whether a question asks for the reason, or the reader something, and speaks of nothing that may be wrong."""
    if _ASKS_REASON.fullmatch(question.strip(MARKS)):
        return True
    bare = _ANOTHER_EXERCISE.sub("", question)
    doubts = (_ABOUT_ANSWER, _CORRECTS, _OBLIGES, _NEGATES)
    return _TO_READER.search(question) is not None and not any(words.search(bare) for words in doubts)


def _denies(sentence: str, answer: str) -> bool:
    """Whether a sentence denies the value of the answer: "it is not 56"."""
    if is_letter(answer):
        return any(denied["value"].strip("()") == answer for denied in _NOT_VALUE.finditer(sentence))
    return any(digits_of(denied["value"]) in numbers_of(answer) for denied in _NOT_VALUE.finditer(sentence))
