# Everything below works on a machine that has only Python ≥ 3.11, make and a package index.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Budget of `make fuzz`: random inputs a test, and processes started and killed a test.
EXAMPLES ?= 20000
ROUNDS ?= 200

.PHONY: demo test check fuzz format clean

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
	@$(BIN)/lint-imports --no-cache

## fuzz: the property and crash tests with a large budget
fuzz: $(VENV)/.installed-test
	@HARNESS_FUZZ_EXAMPLES=$(EXAMPLES) HARNESS_FUZZ_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -m fuzz --timeout=14400

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
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,hub,test]'
	@touch $@

$(VENV)/.installed-check: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) -e '.[llama-cpp,hub,test,check]'
	@touch $@
