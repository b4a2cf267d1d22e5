"""A call that the server left in a reply's text is seen by its form, whatever the model's family; an answer is none.

For: harness.core.reply_notes.
"""

from __future__ import annotations

import json

import pytest

from harness.core.reply_notes import lost_call

FAMILIES = {
    # NAME: of the tool; CODE: the code; ARGS: an object with it in JSON
    "hermes": '<tool_call>\n{"name": "NAME", "arguments": ARGS}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=NAME>\n<parameter=code>\nCODE\n</parameter>\n</function>\n</tool_call>",
    "seed_oss": "<seed:tool_call>\n<function=NAME>\n<parameter=code>CODE</parameter>\n</function>\n</seed:tool_call>",
    "deepseek_v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nARGS\n```",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGS<｜tool▁call▁end｜>",
    "deepseek_v32": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="NAME">\n<｜DSML｜parameter name="code">'
    "CODE</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "gpt-oss, its own tool": "<|channel|>analysis to=NAME code<|message|>CODE<|call|>",
    "gpt-oss, a function": "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>ARGS<|call|>",
    "gpt-oss without its tokens": "analysis to=NAME codeCODE",
    "gpt-oss, a function, without": "commentary to=functions.NAME jsonARGS",
    "mistral": '[TOOL_CALLS][{"name": "NAME", "arguments": ARGS}]',
    "mistral, new": "[TOOL_CALLS]NAME[ARGS]ARGS",
    "mistral without its tokens": '[{"name": "NAME", "arguments": ARGS, "id": "VvvODy9mT"}]',
    "llama3_json": '{"name": "NAME", "parameters": ARGS}',
    "llama3, its own tool": "<|NAME_tag|>CODE",
    "llama4_pythonic": "<|python_start|>[NAME(code=QUOTED)]<|python_end|>",
    "pythonic": "[NAME(code=QUOTED)]",
    "lfm2": "<|tool_call_start|>[NAME(code=QUOTED)]<|tool_call_end|>",
    "olmo3": "<function_calls>\nNAME(code=QUOTED)\n</function_calls>",
    "glm45": "<tool_call>NAME\n<arg_key>code</arg_key>\n<arg_value>CODE</arg_value>\n</tool_call>",
    "longcat": "<longcat_tool_call>NAME\n<longcat_arg_key>code</longcat_arg_key>\n</longcat_tool_call>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>ARGS",
    "minimax_m1": '<tool_calls>\n{"name": "NAME", "arguments": ARGS}\n</tool_calls>',
    "minimax_m2": '<minimax:tool_call>\n<invoke name="NAME">\n<parameter name="code">CODE</parameter>\n</invoke>',
    "step3": '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="NAME">'
    '<steptml:parameter name="code">CODE</steptml:parameter></steptml:invoke>',
    "step3 without its tokens": 'function<steptml:invoke name="NAME"><steptml:parameter name="code">CODE',
    "xlam": '```json\n[{"name": "NAME", "arguments": ARGS}]\n```',
    "internlm": '<|action_start|><|plugin|>\n{"name": "NAME", "parameters": ARGS}<|action_end|>',
    "granite": '<|tool_call|>[{"name": "NAME", "arguments": ARGS}]',
    "granite-20b": '<function_call> {"name": "NAME", "arguments": ARGS}',
    "phi4mini": 'functools[{"name": "NAME", "arguments": ARGS}]',
    "gemma": "```tool_code\nprint(NAME(code=QUOTED))\n```",
    "gemma, code": "```tool_code\nCODE\n```",
    "functiongemma": "<start_function_call>call:NAME{code:<escape>CODE<escape>}<end_function_call>",
    "gemma4": '<|tool_call>call:NAME{code:<|"|>CODE<|"|>}<tool_call|>',
    "gigachat3": 'function call<|role_sep|>\n{"name": "NAME", "arguments": ARGS}',
    "command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "NAME", "parameters": ARGS}]<|END_ACTION|>',
    "command without its tokens": '[{"tool_call_id": "0", "tool_name": "NAME", "parameters": ARGS}]',
    "functionary": "<function=NAME>ARGS</function>",
    "claude": '<function_calls>\n<invoke name="NAME">\n<parameter name="code">CODE</parameter>\n</invoke>',
    "apertus": '<|tools_prefix|>[{"NAME": ARGS}]<|tools_suffix|>',
    "apertus without its tokens": '[{"NAME": ARGS}]',
    "seed": '<|FunctionCallBegin|>[{"name": "NAME", "parameters": ARGS}]<|FunctionCallEnd|>',
    "the API's own": '{"tool_calls": [{"type": "function", "function": {"name": "NAME", "arguments": ARGS}}]}',
    "arguments first": '{"arguments": ARGS, "name": "NAME"}',
    "lm studio": '[TOOL_REQUEST]{"name": "NAME", "arguments": ARGS}[END_TOOL_REQUEST]',
    "react": "Thought: compute.\nAction: NAME\nAction Input: CODE",
    "react in JSON": '{"action": "NAME", "action_input": ARGS}',
    "a tag of its name": "<NAME>\nCODE\n</NAME>",
    "a function": "NAME(QUOTED)",
    "a function with code": "NAME(print(6*7))",
    "a plain block": "```NAME\nCODE\n```",
    "a block that was not closed": "```NAME\nCODE\n",
}
"""What each family writes, as the parsers of vLLM and SGLang read it, or as it stands without special tokens."""

ANSWERS = {
    "a number": "So \\boxed{42}.",
    "a program": "```python\ndef solve(n):\n    return n\n```",
    "a program with words behind it": "```python\nprint(6*7)\n```\nIt prints 42, so \\boxed{42}.",
    "a program's words": "The function `solve` calls `python` (3.11), [1]python-like code, to=1, and Tool: Python.",
    "a box token": "<|begin_of_box|>42<|end_of_box|>",
    "tokens of the end": "\\boxed{42}<|im_end|><|endoftext|>",
    "C++": "```cpp\n#include <functional>\nstd::function<int(int)> f; vector<Action> a; if (a<call && b>c) f(1);\n```",
    "HTML": '<a href="x">call</a><b>python</b><code class="language-python">x</code><button name="tool">',
    "JSON": '{"name": "Ann", "age": 3, "language": "python", "version": {"python": "3.11"}}',
    "a shebang": "#!/usr/bin/env python\nprint(f(call=1), tool(2))\npython solve.py",
    "mathematics": "f: A -> B, <x, y>, [1, 2], {a: b}, $\\langle f|g \\rangle$, [CALL] is a put, a<|b|>c",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_call_of_every_family_is_lost_wherever_it_stands(family: str) -> None:
    for name in ("python", "calculator", "my.tool-2"):
        for code in ("print(6*7)", "import math\nfor i in range(3):\n    print('{}', \"a\", i < 2 > 1)"):
            values = {"CODE": code, "ARGS": json.dumps({"code": code}), "QUOTED": repr(code)}
            call = FAMILIES[family].replace("[ARGS]", "[\0]")
            for word, value in values.items():
                call = call.replace(word, value)
            call = call.replace("[\0]", "[ARGS]").replace("NAME", name)
            for text, reasoning in ((call, None), (f"I compute it.\n\n{call}\n", "So."), ("", f"I see.\n{call}")):
                is_thought = not text and "block" in family
                lost = lost_call(text, reasoning, "stop", (name,), asks_program=False)
                assert bool(lost) is not is_thought, (text, reasoning)


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_is_no_lost_call(case: str) -> None:
    for text, reasoning in ((ANSWERS[case], "I could ask python(code='1')."), (ANSWERS[case], None)):
        assert not lost_call(text, reasoning, "stop", ("python",), asks_program=case == "a program")
    assert lost_call(ANSWERS[case], None, "tool_calls", ("python",), asks_program=True)
