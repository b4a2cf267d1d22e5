"""The JSON of a reply beside JSONTestSuite: what it accepts is read, what it refuses is no reply.

Restated, by its classes, from the cases of github.com/nst/JSONTestSuite (Nicolas Seriot, MIT) and the grammar of RFC
8259. Of the suite itself (1ef36fa) all 95 cases to accept are read and 185 of 188 to refuse are refused, as a body and
as an event; the other three are `ON_PURPOSE`.

For: harness.client.protocol.sse, harness.core.codec.
"""

from __future__ import annotations

import pytest

from harness.client.protocol.reply import RequestFailed
from harness.client.protocol.sse import ReplyParser

ACCEPTED = [
    # arrays
    "[]", "[[] ]", '[""]', '["a"]', "[false]", "[null]", '[null, 1, "1", {}]', "[1\n]", " [1]", "[1,null,null,null,2]",
    "[2] ",
    # numbers
    "[123e65]", "[0e+1]", "[0e1]", "[ 4]", "[-0.000000000000000000000000000000000000000000000000000000000000001]",
    "[20e1]", "[-0]", "[-123]", "[-1]", "[1E22]", "[1E-2]", "[1E+2]", "[123e45]", "[123.456e78]", "[1e-2]", "[1e+2]",
    "[123.456789]", "42", "-0.1",
    # objects
    '{"asd":"sdf", "dfg":"fgh"}', '{"asd":"sdf"}', '{"a":"b","a":"c"}', '{"a":"b","a":"b"}', "{}", '{"":0}',
    r'{"foo\u0000bar": 42}', '{"min": -1.0e+28, "max": 1.0e+28}', '{"x":[{"id": "xxx"}], "id": "xxx"}', '{"a":[]}',
    r'{"title":"\u041f\u043e\u043b"}', '{\n"a": "b"\n}',
    # strings
    r'["\u0060\u012a\u12AB"]', r'["\uD801\udc37"]', r'["\ud83d\ude39\ud83d\udc8d"]', r'["\"\\\/\b\f\n\r\t"]',
    r'["\\u0000"]', r'["\""]', '["a/*b*/c/*d//e"]', r'["\\a"]', r'["\\n"]', r'["\u0012"]', r'["\uFFFF"]', '["asd"]',
    '[ "asd"]', '["\U0010ffff"]', '["￿"]', r'["\u0000"]', r'["\u002c"]', '["π"]', '["asd "]', '" "',
    r'["\uD834\uDd1e"]', r'["\u0821"]', r'["\u0123"]', '["\u2028"]', '["\u2029"]', r'["\u0061\u30af\u30EA\u30b9"]',
    '["new\u00a0line"]', '["\x7f"]', r'["\uA66D"]', '["⍂㈴⍂"]', r'["\u0022"]', r'["\uDBFF\uDFFE"]', r'["\u200B"]',
    '["€𝄞"]', '["a\x7fa"]',
    # whole values and blanks
    "false", "null", "true", '"asd"', '""', '["a"]\n', "[true]", " [] ",
]  # fmt: skip

REFUSED = [
    # arrays
    "[1 true]", '["": 1]', "[,1]", "[1,,2]", '["x",,]', '["x"]]', '["",]', '["x"', "[x", "[3[4]]", "[1:2]", "[,]",
    "[-]", "[   , \"\"]", '["a",\n4\n,1,', "[1,]", "[1,,]", '["\va"\\f]', "[*]", '[""', "[1,", "[1,\n1\n,1", "[{}",
    # words
    "[fals]", "[nul]", "[tru]", "[True]", "nan", "[truth]",
    # numbers
    "[++1234]", "[+1]", "[+Inf]", "[-01]", "[-1.0.]", "[-2.]", "[-NaN]", "[.-1]", "[.2e-3]", "[0.1.2]", "[0.3e+]",
    "[0.3e]", "[0.e1]", "[0e+]", "[0e]", "[0E+]", "[0E]", "[1.0e+]", "[1.0e-]", "[1.0e]", "[1 000.0]", "[1eE2]",
    "[2.e+3]", "[2.e-3]", "[2.e3]", "[9.e+]", "[Inf]", "[１]", "[1+2]", "[0x1]", "[0x42]", "[0e+-1]", "[-foo]", "[- 1]",
    "[-012]", "[-.123]", "[-1x]", "[1ea]", "[1.]", "[.123]", "[1.2a-3]", "[1.8011670033376514H-308]", "[012]",
    # objects
    '["x", truth]', '{[: "x"}\n', '{"x", null}', '{"x"::"b"}', '{🇨🇭}', '{"a":"a" 123}', "{key: 'value'}", '{"a" b}',
    '{:"b"}', '{"a" "b"}', '{"a":', '{"a"', "{1:1}", "{9999E9999:1}", "{null:null,null:null}", '{"id":0,,,,,}',
    "{'a':0}", '{"id":0,}', '{"a":"b"}/**/', '{"a":"b"}/**//', '{"a":"b"}//', '{"a":"b"}/', '{"a":"b",,"c":"d"}',
    '{a: "b"}', '{"a":"a', '{ "foo" : "bar", "a" }', '{"a":"b"}#',
    # strings
    r'["\uD800\"]', r'["\uD800\u"]', r'["\uD800\u1"]', r'["\uD800\u1x"]', "[é]", '["\\\0"]', r'["\\\"]', r'["\x00"]',
    '["\\\t"]', '["\\🌀"]', '["\\"]', r'["\u00A"]', r'["\uD834\uDd"]', r'["\uD800\uD800\x"]', r'["\a"]', r'["\uqqqq"]',
    r'[\u0020"asd"]', r"[\n]", '"', "['single quote']", "abc", '["\\', '["a\0a"]', '["new\nline"]', '["\t"]',
    r'"\UA66D"', '""x',
    # whole values
    "<.>", "[<null>]", "[1]x", "[1]]", '["asd]', "aå", "[True]", "1]", '{"x": true,', "[][]", "]", "[", "",
    '2@', "{}}", '{"":', '{"a":/*comment*/"b"}', '{"a": true} "x"', "['", '["a', "[,", '{"', "{", "*", '{"a":"b"}#{}',
    r"[\u000A\"\"]", '["asd', "å", "[\u2060]", "\ufeff",
]  # fmt: skip

ON_PURPOSE = ["[NaN]", "[Infinity]", "[-Infinity]"]
"""SGLang and vLLM write log-probabilities that way: such a number is unknown, and costs no reply."""


def streamed(body: bytes) -> bytes:
    """The body as an event, each of its lines behind a `data:`."""
    return b"".join(b"data: " + line + b"\n" for line in body.split(b"\n")) + b"\ndata: [DONE]\n\n"


def outcome(value: str, *, as_event: bool, size: int) -> str:
    """The text of a reply in which the value stands beside what counts, or the kind of its failure."""
    kind = "delta" if as_event else "message"
    body = f'{{"choices":[{{"index":0,"{kind}":{{"content":"4"}},"finish_reason":"stop"}}],"x":{value}}}'.encode()
    sent = streamed(body) if as_event else body
    parser = ReplyParser(started=0.0, started_utc=0.0, max_body_bytes=1 << 20)
    try:
        for at in range(0, len(sent), size):
            parser.feed(sent[at : at + size], 1.0)
        return parser.finish(2.0).text or ""
    except RequestFailed as failure:
        return failure.kind


@pytest.mark.parametrize("as_event", [False, True], ids=["body", "event"])
def test_a_reply_is_read_whatever_json_stands_beside_its_text(as_event: bool) -> None:
    for size in (7, 4096):
        outcomes = {value: outcome(value, as_event=as_event, size=size) for value in (*ACCEPTED, *ON_PURPOSE)}
        assert {value: text for value, text in outcomes.items() if text != "4"} == {}


@pytest.mark.parametrize("as_event", [False, True], ids=["body", "event"])
def test_what_is_no_json_is_no_reply(as_event: bool) -> None:
    for size in (7, 4096):
        outcomes = {value: outcome(value, as_event=as_event, size=size) for value in REFUSED}
        assert {value: kind for value, kind in outcomes.items() if kind != "malformed"} == {}


@pytest.mark.parametrize("opening", ["[", '{"":'])
def test_a_hundred_thousand_levels_are_refused_and_stop_nothing(opening: str) -> None:
    for as_event in (False, True):
        assert outcome(opening * 100_000, as_event=as_event, size=1 << 20) == "malformed"
