# Everything below works on a machine that has only Python ≥ 3.11, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# The tests start hundreds of processes. Cached bytecode saves a third of each start.
unexport PYTHONDONTWRITEBYTECODE
# Budget of `make fuzz`: random inputs per test, and processes started and killed per test.
EXAMPLES ?= 20000
ROUNDS ?= 200
# Number of storms in `make storms`, runs in `make simulate WHAT=runs`, and Ray clusters in `make test-ray`.
SEEDS ?= 200
# Repetitions per cell in `make simulate`.
REPEATS ?= 4000
# Processes of the test suite: five more than cores, because tests also wait.
JOBS ?= $(shell expr 5 + `getconf _NPROCESSORS_ONLN`)
PARALLEL = --processes $(JOBS)
# Test folders of `make test-quick`.
QUICK = $(addprefix tests/, test_house.py core presets preparing benchmarks foreign runs client grading scoring deciding progress) packages/answers/tests

.PHONY: demo help test test-cost test-wide test-quick test-pythons lowest check coverage fuzz mutants storms simulate bench flags docs \
  release clean

## demo: start the embedded server, run the demo benchmark, score it, print the table
demo: $(VENV)/.installed-demo
	@$(BIN)/harness doctor --demo

## help: show this list
help:
	@sed -n 's/^## \([a-zA-Z-]*\): /\1\t/p' Makefile | awk -F '\t' '{ printf "%-18s%s\n", $$1, $$2 }'

## test: run the whole test suite with the embedded server, then list the 20 slowest tests
test: $(VENV)/.installed-test
	@tools/suite.sh $(BIN)/python $(PARALLEL)

## test-cost: run `make test`, then print CPU seconds and (as root) processes started, by test, fixture and test file
test-cost: $(VENV)/.installed-test
	@$(BIN)/python tools/cost.py $(MAKE) --no-print-directory test

## test-wide: run all cases of the generated tests (`make test` runs an eighth), and the tests marked wide
test-wide: $(VENV)/.installed-test
	@HARNESS_TEST_EXAMPLES=all tools/suite.sh $(BIN)/python --wide $(PARALLEL)

## test-quick: run the unit tests that need no server or process, on every save (about a minute on two cores)
test-quick: JOBS = $(shell expr 1 + `getconf _NPROCESSORS_ONLN`)
test-quick: $(VENV)/.installed-test
	@$(BIN)/python -m pytest $(PARALLEL) -q -m "not server and not fuzz and not slow" $(QUICK)

## test-pythons: run test-quick with each other Python from 3.11 to 3.13 on PATH, and the system's Python
test-pythons: $(VENV)/.installed-test
	@tools/other_pythons.sh $(BIN)/python

## lowest: run the demo and most of test-quick with the lowest version of each dependency that pyproject.toml allows
lowest:
	@tools/lowest_versions.sh $(QUICK)

## check: check format, lint, types and import contracts
check: $(VENV)/.installed-check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --config-file tests/mypy.ini & tests=$$!; $(BIN)/mypy && $(BIN)/mypy tests/typing; code=$$?; wait $$tests && exit $$code
	@$(BIN)/lint-imports --no-cache

## coverage: run the test suite and report lines and branches that it never reached (twice as slow)
coverage: $(VENV)/.installed-check
	@rm -rf .coverage && mkdir .coverage
	@$(BIN)/coverage run -m pytest --timeout=900
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

## fuzz: run the property and crash tests with a large budget
fuzz: $(VENV)/.installed-test
	@HARNESS_FUZZ_EXAMPLES=$(EXAMPLES) HARNESS_FUZZ_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest $(PARALLEL) -m fuzz --timeout=14400

## mutants: MODULE=runs/journal.py MUTANTS=200: run tests/runs (or TESTS=…) on small faults, one at a time (docs/testing.md)
mutants: $(VENV)/.installed-check
	@HARNESS_TEST_EXAMPLES=all $(BIN)/python -m tools.mutants $(MODULE) $(TESTS) --mutants $(or $(MUTANTS),200)

## storms: kill and disturb SEEDS=200 whole runs and scorings, and compare each with an undisturbed run
storms: $(VENV)/.installed-test
	@$(BIN)/python -m tests.storms --seeds $(SEEDS) $(if $(FIRST),--first $(FIRST))

## simulate: measure the coverage of every interval and test; WHAT=nights, probe, likelihood, measures, judges; WHAT=runs SEEDS=n: whole runs in virtual time
simulate: $(VENV)/.installed-bench
ifeq ($(WHAT),runs)
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) $(if $(FIRST),--first $(FIRST)))
else
	@$(BIN)/python -m bench.simulate$(if $(WHAT),_$(WHAT), --repeats $(REPEATS))
endif

## bench: compare the client with other clients; WHAT=grading (compared with Math-Verify), scoreboard, size, schedule, start or peers
bench: $(VENV)/.installed-bench
	@$(BIN)/python -m $(if $(filter scoreboard,$(WHAT)),tests.pins.scoreboard,bench.$(or $(WHAT),client))

## test-PART: run one part: servers, routers, packaging, examples, trainers, ray, slurm, programs, interop, browser, docs, hostile
test-%: $(VENV)/.installed-test
	@HARNESS_HOSTILE="http openai" HARNESS_TEST_DOCS=1 HARNESS_RAY_SEEDS=$(or $(filter-out 200,$(SEEDS)),20) \
	  HARNESS_PROGRAM_ATTACKS=$(or $(ATTACKS),1200) $(BIN)/python -m pytest --timeout=7200 \
	  $(or $(TESTS),$(wildcard tests/$* tests/on_$*))

## flags: print the fraction of other tools' options that have an equivalent here (downloads 400 MB of packages)
flags: $(VENV)/.installed-test
	@$(BIN)/python -m tools.foreign_flags

## docs: build docs/ as a site in build/site; a dead link is an error
docs: $(VENV)-docs/.installed
	@NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict
	@echo "build/site/index.html"

$(VENV)-docs/.installed: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV)-docs 'mkdocs>=1.6,<2' 'mkdocs-material>=9.5,<10'
	@touch $@

## release: build wheel and sdist in dist/ and test them in an empty environment; DRAFT=1: even if the changelog is not ready
release: $(VENV)/.installed-release
	@$(BIN)/python tools/release.py $(if $(DRAFT),--draft)

## clean: remove the environment, the caches and all build output
clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

$(VENV)/.installed-demo: pyproject.toml tools/bootstrap.py
	@echo "Installing into $(VENV) (about a minute with a cold package cache) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml tools/bootstrap.py
	@echo "Installing what the tests need into $(VENV) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,test]'
	@touch $@

$(VENV)/.installed-check: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,test,check]'
	@touch $@

$(VENV)/.installed-bench: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,test,bench]'
	@touch $@

$(VENV)/.installed-release: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[release]'
	@touch $@
