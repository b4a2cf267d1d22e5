# Everything below works on a machine that has only Python ≥ 3.11, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Budget of `make fuzz`: random inputs a test, and processes started and killed a test.
EXAMPLES ?= 20000
ROUNDS ?= 200
# Runs of `make simulate-runs`.
SEEDS ?= 20000
# Budget of `make simulate`: repetitions a cell.
REPEATS ?= 4000

.PHONY: demo test check coverage fuzz simulate simulate-runs bench bench-grading bench-journal bench-start bench-schedule bench-viewer test-servers test-browser test-fault-tools format clean

## demo: start the embedded server, run the demo benchmark, score it, print the table
demo: $(VENV)/.installed-demo
	@$(BIN)/harness demo

## test: the whole test suite, with the embedded server
test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest

## check: format, lint, types, import contracts
check: $(VENV)/.installed-check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests/typing
	@$(BIN)/lint-imports --no-cache

## coverage: the test suite again, and which lines and branches it never reached (twice as slow)
coverage: $(VENV)/.installed-check
	@rm -rf .coverage && mkdir .coverage
	@$(BIN)/coverage run -m pytest --timeout=300
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

## fuzz: the property and crash tests with a large budget
fuzz: $(VENV)/.installed-test
	@HARNESS_FUZZ_EXAMPLES=$(EXAMPLES) HARNESS_FUZZ_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -m fuzz --timeout=14400

## simulate-runs: SEEDS=n whole runs in virtual time, every promise checked; SEED=n tells one of them step by step
simulate-runs: $(VENV)/.installed-test
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

## bench: the client's cost per token beside other clients, every reply checked (see docs/performance.md)
bench: $(VENV)/.installed-bench
	@$(BIN)/python bench/client.py

## bench-grading: accuracy and speed of the grader, beside Math-Verify where it is installed (see docs/grading.md)
bench-grading: $(VENV)/.installed-bench
	@$(BIN)/python bench/grading.py

## bench-journal: cost of storing and resuming
bench-journal: $(VENV)/.installed-bench
	@$(BIN)/python bench/journal.py

## bench-start: CPU of `harness --help`, and of `harness run` up to its first request
bench-start: $(VENV)/.installed-bench
	@$(BIN)/python bench/start.py

## bench-schedule: simulated makespan of the order in which samples are asked
bench-schedule: $(VENV)/.installed-bench
	@$(BIN)/python bench/schedule.py

## simulate: coverage of every interval and test by simulation (see docs/statistics.md)
simulate: $(VENV)/.installed-bench
	@$(BIN)/python bench/simulate.py --repeats $(REPEATS)
	@$(BIN)/python bench/simulate_endpoints.py
	@$(BIN)/python bench/simulate_race.py

## bench-viewer: reading a run of 4 GB: opening it, any sample, the search
bench-viewer: $(VENV)/.installed-bench
	@$(BIN)/python bench/viewer.py

## test-servers: real vLLM, SGLang and routers on this CPU; installs several GB on the first call
test-servers: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/servers --timeout=3600

## test-browser: the viewer's pages in a real headless Chromium, which must be installed (with chromedriver)
test-browser: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/viewer/test_viewer_browser.py

## test-fault-tools: whole runs through real fault proxies; installs them on the first call (needs npm)
test-fault-tools: $(VENV)/.installed-test
	@$(BIN)/python -m pytest tests/fault_tools --timeout=1200

format: $(VENV)/.installed-check
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

$(VENV)/.installed-demo: pyproject.toml tools/bootstrap.py
	@echo "Installing into $(VENV) (about a minute with a cold package cache) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml tools/bootstrap.py
	@echo "Installing what the tests need into $(VENV) …"
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,hub,test]' --extra-if-possible reasoning-gym
	@touch $@

$(VENV)/.installed-check: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,hub,test,check]' --extra-if-possible reasoning-gym
	@touch $@

$(VENV)/.installed-bench: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,hub,bench]'
	@touch $@
