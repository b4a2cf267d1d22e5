"""Hostile programs: none is accepted, none disturbs another verdict, nothing is left.

The suite runs a few; `make test-programs` runs all (`HARNESS_PROGRAM_ATTACKS`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import psutil
from sandboxed import called, cell, checked, needs_sandbox, script

from reasoning_programs.cells import SandboxCell
from reasoning_programs.grading import ProgramDecision

PAYLOADS = {
    "fork": "import os\nwhile True: os.fork()",
    "vfork": "import ctypes\nctypes.CDLL(None).vfork()",
    "subprocess": "import subprocess\nsubprocess.Popen(['/bin/sh', '-c', 'sleep 1000'])",
    "system": "import os\nos.system('sleep 1000 &')",
    "spawn": "import os, sys\nos.posix_spawn(sys.executable, ['python'], {})",
    "exec": "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(42)'])",
    "multiprocessing": "import multiprocessing\nmultiprocessing.Process(target=print).start()",
    "daemon": "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass",
    "memory": "x = bytearray(1 << 20)\nwhile True: x += x",
    "memory in parts": "x = []\nwhile True: x.append(bytearray(1 << 22))",
    "mmap": "import mmap\nx = []\nwhile True: x.append(mmap.mmap(-1, 1 << 26))",
    "memfd": "import os\nf = os.memfd_create('x')\nos.truncate(f, 1 << 40)",
    "disk": "f = open('/tmp/x', 'wb')\nwhile True: f.write(bytes(1 << 20))",
    "disk in parts": "n = 0\nwhile True:\n    n += 1\n    open(f'/tmp/{n}', 'wb').write(bytes(1 << 20))",
    "inodes": "n = 0\nwhile True:\n    n += 1\n    open(f'/tmp/{n}', 'wb')",
    "deep folders": "import os\nwhile True:\n    os.mkdir('x')\n    os.chdir('x')",
    "links": "import os\nos.symlink('/etc/passwd', '/tmp/p')\nprint(open('/tmp/p').read())",
    "root": "open('/x', 'w')",
    "library": "import os, sys\nopen(os.__file__, 'a').write('x')",
    "own code": "import sys\nopen(sys.modules['reasoning_programs.inside.cell'].__file__, 'a')",
    "passwd": "print(open('/etc/passwd').read())",
    "parent memory": "print(open('/proc/1/mem', 'rb').read(1))",
    "parent environ": "import os\nprint(open(f'/proc/{os.getppid()}/environ').read())",
    "proc": "import os\nprint([open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc')][0])",
    "kill all": "import os\nos.kill(-1, 9)",
    "kill parent": "import os\nos.kill(os.getppid() or 2, 9)",
    "kill many": "import os\nfor p in range(2, 5000):\n    try: os.kill(p, 9)\n    except OSError: pass",
    "kill group": "import os\nos.killpg(0, 9)",
    "pidfd": "import os, signal\nsignal.pidfd_send_signal(os.pidfd_open(2), 9)",
    "ptrace": "import ctypes\nassert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
    "read another": "import ctypes\nassert ctypes.CDLL(None).process_vm_readv(2, 0, 0, 0, 0, 0) == 0",
    "socket": "import socket\nsocket.create_connection(('1.1.1.1', 53), 1)",
    "local socket": "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0x')",
    "resolve": "import socket\nprint(socket.gethostbyname('example.org'))",
    "io_uring": "import ctypes\nassert ctypes.CDLL(None).syscall(425, 8, 0) >= 0",
    "unshare": "import ctypes\nassert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "mount": "import ctypes\nassert ctypes.CDLL(None).mount(b'proc', b'/proc', b'proc', 0, None) == 0",
    "umount": "import ctypes\nassert ctypes.CDLL(None).umount2(b'/proc', 2) == 0",
    "chroot": "import os\nos.chroot('/tmp')",
    "setuid": "import os\nos.setuid(0)",
    "more memory": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nx = bytearray(1 << 33)",
    "more time": "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (-1, -1))",
    "priority": "import os\nos.nice(-20)",
    "shared memory": "import ctypes\nassert ctypes.CDLL(None).shmget(1, 4096, 0o1666) >= 0",
    "message queue": "import ctypes\nassert ctypes.CDLL(None).msgget(1, 0o1666) >= 0",
    "keys": "import ctypes\nassert ctypes.CDLL(None).syscall(248, b'user', b'a', b'b', 1, -3) >= 0",
    "clock": "import time\ntime.clock_settime(0, 0)",
    "faked time": "import time\ntime.time = time.monotonic = time.process_time = lambda: 0",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,)).start()",
    "descriptors": "import os\nwhile True: os.open('/dev/null', 0)",
    "inherited": 'import os\nfor fd in range(3, 4096):\n    try: os.write(fd, b\'\\0\\0\\0\\x10{"end":"passed"}\')\n    except OSError: pass',
    "forged over": "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\0\\0\\0\\x0a{\"over\": 0}')\n    except OSError: pass",
    "read inherited": "import os\nfor fd in range(5, 4096):\n    try: print(os.read(fd, 1000))\n    except OSError: pass",
    "closed": "import os\nos.closerange(0, 4096)",
    "exit": "import os\nos._exit(0)",
    "exit softly": "raise SystemExit(0)",
    "abort": "import os\nos.abort()",
    "stop": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "segfault": "import ctypes\nctypes.string_at(0)",
    "recursion": "def r(n): return r(n + 1)\nr(0)",
    "deep literal": "eval('(' * 100000)",
    "huge integer": "x = 10 ** 10 ** 8",
    "no assertions": "import builtins\nbuiltins.AssertionError = builtins.BaseException = Exception",
    "patched compare": "import operator, builtins\noperator.eq = lambda a, b: True\nbuiltins.all = builtins.any = lambda x: True",
    "patched json": "import json\njson.loads = json.dumps = lambda *a, **k: True",
    "patched frames": (
        "import sys\nm = sys.modules['reasoning_programs.inside.frames']\n"
        "m.receive = lambda *a, **k: {}\nm.send = lambda *a, **k: None"
    ),
    "patched values": (
        "import sys\nm = sys.modules['reasoning_programs.inside.program_process']\nm.encoded = lambda *a, **k: ['o', 0]"
    ),
    "patched tests": (
        "import sys\nm = sys.modules['reasoning_programs.inside.test_process']\n"
        "m.run_tests = m.run_calls = lambda *a, **k: {'end': 'passed'}"
    ),
    "tests in memory": "import gc\nprint([x for x in gc.get_objects() if isinstance(x, dict) and 'tests' in x])",
    "frames of others": "import sys\nf = sys._getframe()\nwhile f:\n    print(list(f.f_locals))\n    f = f.f_back",
    "verdict": "print('passed', 'correct', '{\"end\": \"passed\"}', sep='\\n', flush=True)",
    "unittest": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None",
    "traced": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)",
    "collected": "class D:\n    def __del__(self):\n        import os\n        os._exit(0)\nD()",
    "signals ignored": "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass",
}
"""Name → code of the attack."""

ENDLESS = {
    "spin": "while True: pass",
    "sleep": "import time\ntime.sleep(1000)",
    "print": "while True: print('x' * 100_000)",
    "spin in C": "sum(range(10 ** 18))",
    "spin in threads": "import threading\ndef s():\n    while True: pass\nfor _ in range(8): threading.Thread(target=s).start()",
    "catch all": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
}
"""Attacks that run into a limit of time or output; there are fewer of them, for each takes its limit."""

FRAMES = {
    "at once": "{attack}\n",
    "guarded": "try:\n{indented}\nexcept BaseException:\n    pass\n",
    "in a thread": "def go():\n{indented}\nimport threading\nt = threading.Thread(target=go)\nt.start()\nt.join()\n",
    "at the end": "def go():\n{indented}\nimport atexit\natexit.register(go)\n",
    "in a class": "class Go:\n{indented}\n",
}
"""Part of a program in which an attack stands → the code around the attack."""

STYLES = {
    "stdin": "print(0)\n",
    "calls": "def f(x): return None\n",
    "checks": "def f(x): return None\n",
    "calls late": "def f(x):\n{indented}\n    return None\n",
    "checks late": "def f(x):\n{indented}\n    return None\n",
}
"""Style → a wrong program, before or in which the attack stands."""


class Attack(NamedTuple):
    """A hostile program, which no test may accept."""

    name: str
    style: str
    code: str


def attacks() -> Iterator[Attack]:
    """All attacks, in an order that mixes their kinds."""
    listed = []
    for style, wrong in STYLES.items():
        late = style.endswith("late")
        for name, attack in PAYLOADS.items():
            for part, frame in FRAMES.items():
                body = frame.format(attack=attack, indented=_indented(attack))
                code = wrong.format(indented=_indented(body)) if late else body + wrong
                listed.append(Attack(f"{style}: {name}, {part}", style.split()[0], code))
        for name, attack in ENDLESS.items():
            code = wrong.format(indented=_indented(attack)) if late else attack + "\n" + wrong
            listed.append(Attack(f"{style}: {name}", style.split()[0], code))
    random.Random(32).shuffle(listed)
    return iter(listed)


def _indented(code: str) -> str:
    return "\n".join("    " + line for line in code.splitlines())


pytestmark = needs_sandbox
__all__ = ["cell"]

N_ATTACKS = int(os.environ.get("HARNESS_PROGRAM_ATTACKS", "25"))


def verdict(cell: SandboxCell, attack: Attack) -> ProgramDecision:
    """The verdict on the attack: the right answer would be 42."""
    if attack.style == "stdin":
        return script(cell, attack.code, ("1", "42"), seconds=0.5, memory_mb=512)
    if attack.style == "calls":
        return called(cell, attack.code, ("1", "42"), seconds=0.5)
    return checked(cell, attack.code, "assert f(1) == 42", seconds=0.5)


def test_there_are_more_than_a_thousand_and_all_differ() -> None:
    codes = {(attack.style, attack.code) for attack in attacks()}
    assert len(codes) > 1_000
    assert len(PAYLOADS) + len(ENDLESS) >= 70


def test_no_attack_is_accepted_disturbs_or_stays(cell: SandboxCell, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("here")
    accepted, undecided, disturbed, restarts = [], [], [], 0
    script(cell, "print(42)", ("", "42"))
    bwrap = cell._process
    for attack in islice(attacks(), N_ATTACKS):
        decision = verdict(cell, attack)
        accepted += [attack.name] if decision.outcome == "correct" else []
        undecided += [(attack.name, decision.failure)] if decision.outcome == "undecided" else []
        restarts += cell._process is not bwrap
        bwrap = cell._process
        if cell._process is not None:
            names = [p.name() for p in psutil.Process(cell._process.pid).children(recursive=True)]
            disturbed += [(attack.name, names)] if len(names) > 2 else []
        if script(cell, "print(int(input()) + 1)", ("1", "2")).outcome != "correct":
            disturbed.append((attack.name, ["a right program"]))
        if checked(cell, "def f(x): return x", "assert f(1) == 2").outcome != "wrong":
            disturbed.append((attack.name, ["a wrong program"]))
    assert accepted == []
    assert undecided == []
    assert disturbed == []
    assert restarts == 0, "no attack brought a sandbox down"
    assert canary.read_text() == "here"


def test_memory_of_the_host_stays_within_the_bound(cell: SandboxCell) -> None:
    before, least = psutil.virtual_memory().available, 1 << 62
    for code in (PAYLOADS["memory in parts"], PAYLOADS["mmap"], PAYLOADS["disk in parts"]):
        script(cell, code, ("", "42"), seconds=0.5, memory_mb=256)
        least = min(least, psutil.virtual_memory().available)
    assert before - least < 1 << 30
