"""Programs in C++: each way to be right or wrong, beside its twin, in the real sandbox with the real compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.benchmarks import catalogue, questions
from harness.core.errors import UsageError
from harness.extensions.answers.program import ANSWER, bubblewrap, compilers, decide, tests_of
from harness.extensions.answers.program.cells import SandboxCell
from harness.extensions.answers.program.decide import ProgramDecision
from harness.extensions.answers.program.inside import compiling
from harness.extensions.answers.program.tests_of import Case, ProgramLimits, QuestionTests
from tests.programs.sandboxed import cell, needs_sandbox
from tests.system.command import harness

needs_compiler = pytest.mark.skipif(compilers.compiler() is None, reason="no g++ here")
__all__ = ["cell"]

HEAD = "#include <cstdio>\n"
SLOW = "constexpr long f(long n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"


def written(cell: SandboxCell, code: str, seconds: float = 1.0) -> ProgramDecision:
    cases = (Case("21\n", "42\n"), Case("4\n", "8\n"))
    tests = QuestionTests(style="stdin", language="cpp", cases=cases, limits=ProgramLimits(seconds, 256))
    return decide.decide(cell, tests, code)


@needs_sandbox
@needs_compiler
@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('int main() { int n; scanf("%d", &n); printf("%d\\n", 2 * n); }', "all tests"),
        ('int main() { int n; scanf("%d", &n); printf("%d\\n", n); }', "wrong output"),
        ('int main() { puts("42"); }', "wrong output"),
        ('int main() { puts("42"); return 3; }', "exception"),
        ("int main() { volatile int *p = 0; *p = 1; }", "exception"),
        ("int main() { for (volatile int n = 0;; ) n++; }", "time limit"),
        (f'int main() {{ for (;;) puts("{"x" * 400}"); }}', "output limit"),
        ("char *volatile p;\nint main() { for (;;) p = new char[1 << 20]; }", "memory limit"),
        ("int f(int n) { volatile char room[999]; room[0] = n; return n ? f(n - 1) + room[0] * 0 : 0; }\n"
         'int main() { int n; scanf("%d", &n); printf("%d\\n", 2 * n + f(99999)); }', "all tests"),
        ("#include <unistd.h>\nint main() { if (fork() >= 0) puts(\"42\"); }", "wrong output"),
        ('int main() { printf("%d\\n", x); }', "compile error"),
        ('#include "/etc/passwd"\nint main() {}', "compile error"),
        ("", "compile error"),
        ('#include <stdexcept>\nint main() { throw std::runtime_error("out of memory"; }', "compile error"),
    ],
)  # fmt: skip
def test_a_program_in_cpp(cell: SandboxCell, code: str, rule: str) -> None:
    decision = written(cell, HEAD + code if code else "")
    assert decision.rule == rule, decision
    assert decision.outcome == ("correct" if rule == "all tests" else "wrong")
    if "x);" in code:
        assert decision.failure is not None
        assert decision.failure.message.startswith("program.cpp:2:29: error: 'x' was not declared in this scope")


ERROR = "program.cpp:1:2: error: 'x' was not declared in this scope\n"
FAILED = "compiler failed"
SPENT = "compile limit"


@pytest.mark.parametrize(
    ("complaints", "end"),
    [
        (ERROR, "compile error"),
        (ERROR + '    1 | throw "out of memory; memory exhausted"; // g++: fatal error: Killed\n', "compile error"),
        (ERROR + '    1 | throw "\x0cg++: fatal error: Killed\u2028g++: fatal error: Killed\n', "compile error"),
        ("program.cpp:1:2: error: #error g++: fatal error: Cannot allocate memory\n", "compile error"),
        ("g++:1:2: error: #error fatal error: Killed signal terminated program cc1plus\n", "compile error"),
        ("/usr/bin/ld: a.o: in function `main':\na.cpp:(.text+0x2): undefined reference to `memory exhausted'\n"
         "collect2: error: ld returned 1 exit status\n", "compile error"),
        (ERROR + "g++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n", FAILED),
        (ERROR + "g++: internal compiler error: Segmentation fault signal terminated program cc1plus\n", FAILED),
        (ERROR + "\ncc1plus: out of memory allocating 65536 bytes after a total of 1024 bytes\n", FAILED),
        (ERROR + "virtual memory exhausted: Cannot allocate memory\n", FAILED),
        ("/usr/bin/ld: final link failed: memory exhausted\ncollect2: error: ld returned 1 exit status\n", FAILED),
        (ERROR + "collect2: fatal error: ld terminated with signal 9 [Killed]\n", FAILED),
        ("", FAILED),
        (ERROR + "g++: internal compiler error: CPU time limit exceeded signal terminated program cc1plus\n", SPENT),
        ("g++: fatal error: CPU time limit exceeded signal terminated program as\n", SPENT),
        ("collect2: fatal error: ld terminated with signal 24 [CPU time limit exceeded]\n", SPENT),
        (ERROR + '    1 | throw "g++: fatal error: CPU time limit exceeded"\n', "compile error"),
        ("g++:1:2: error: #error fatal error: CPU time limit exceeded\n", "compile error"),
    ],
)  # fmt: skip
def test_only_what_the_compiler_says_of_itself_is_its_failure(complaints: str, end: str) -> None:
    assert compiling.end_without_binary(complaints)["end"] == end


@needs_sandbox
@needs_compiler
def test_a_compiler_beyond_its_time_is_wrong_and_one_without_memory_undecided(
    cell: SandboxCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = SLOW + "int main() { constexpr long x = f(60); return x; }"
    monkeypatch.setattr(decide, "_COMPILER_CPU_SECONDS", 1.0)
    assert written(cell, endless).rule == "compile limit"
    monkeypatch.setattr(decide, "_COMPILER_MEMORY_MB", 40)
    decision = written(cell, HEAD + "int main() {}")
    assert (decision.outcome, decision.rule) == ("undecided", "sandbox")


@needs_sandbox
def test_without_a_compiler_nothing_is_run_and_the_doctor_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "none.yaml").write_text(CARD.format(format="tests"), "utf-8")
    (tmp_path / "rows.jsonl").write_text(ROW, "utf-8")
    monkeypatch.setattr(compilers, "PROGRAM", "no-such-g++")
    monkeypatch.setattr(compilers, "compiler", compilers.compiler.__wrapped__)
    with pytest.raises(UsageError, match="the programs are in C\\+\\+, and no-such-g\\+\\+ is not installed"):
        written(SandboxCell(bubblewrap), "int main() {}")
    printed = harness(tmp_path, "doctor", "--benchmark", "none.yaml")
    assert "programs run in bwrap python3" in printed.out
    assert "no C++ (no-such-g++ is not installed" in printed.out


CARD = """
title: Doubles
source: {{kind: file, path: rows.jsonl}}
columns: {{question: question}}
kind: program
program: {{format: {format}, language: cpp, seconds: 1}}
prompt: none
"""
ROW = (
    '{"question": "Double.", "tests": [{"input": "1", "output": "2"}], '
    '"solution": "#include <cstdio>\\nint main() { puts(\\"2\\"); }"}\n'
)


def test_a_card_says_that_its_programs_are_in_cpp(tmp_path: Path) -> None:
    (tmp_path / "doubles.yaml").write_text(CARD.format(format="tests"), "utf-8")
    (tmp_path / "rows.jsonl").write_text(ROW, "utf-8")
    (question,) = questions.build(catalogue.load(str(tmp_path / "doubles.yaml"))).questions
    assert tests_of.tests_of(question.references[0]).language == "cpp"
    examples = ANSWER.examples(question.references[0])
    assert examples is not None
    assert examples[0].startswith("```cpp\n#include")
    assert examples[1] == "```cpp\nint main() {}\n```"
    (tmp_path / "doubles.yaml").write_text(CARD.format(format="humaneval"), "utf-8")
    with pytest.raises(UsageError, match="`format: humaneval` has tests of programs in Python"):
        catalogue.load(str(tmp_path / "doubles.yaml"))


def test_tests_of_a_function_need_python(tmp_path: Path) -> None:
    (tmp_path / "doubles.yaml").write_text(CARD.format(format="tests"), "utf-8")
    row = ROW.replace('"question"', '"function": "double", "question"', 1)
    (tmp_path / "rows.jsonl").write_text(row, "utf-8")
    with pytest.raises(UsageError, match="has tests of a function, which need Python; the card's language is cpp"):
        questions.build(catalogue.load(str(tmp_path / "doubles.yaml")))
