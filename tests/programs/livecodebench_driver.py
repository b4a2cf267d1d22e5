"""Grades submissions by LiveCodeBench's own testing_util.py, each in a forked process; a list of verdicts in JSON.

Usage: livecodebench_driver.py TESTING_UTIL < submissions > verdicts. A verdict is true if all tests passed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys


def main() -> None:
    spec = importlib.util.spec_from_file_location("testing_util", sys.argv[1])
    assert spec is not None
    assert spec.loader is not None
    testing_util = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(testing_util)
    verdicts = []
    for code, cases, function, seconds in json.load(sys.stdin):
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            tests = {"inputs": [case[0] for case in cases], "outputs": [case[1] for case in cases]}
            sample = {"input_output": json.dumps(tests | {"fn_name": function or None})}
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(null, 2)
            passed = False
            try:
                results, _ = testing_util.run_test(sample, test=code, timeout=seconds)
                # As compute_code_generation_metrics.py does: comparing a number of numpy's gives a truth of numpy's.
                results = [bool(result) if type(result).__module__ == "numpy" else result for result in results]
                passed = len(results) == len(cases) and all(result is True for result in results)
            finally:
                os.write(writes, b"1" if passed else b"0")
                os._exit(0)
        os.close(writes)
        verdicts.append(os.read(reads, 1) == b"1")
        os.close(reads)
        os.waitpid(pid, 0)
    json.dump(verdicts, sys.stdout)


if __name__ == "__main__":
    main()
