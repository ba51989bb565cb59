# Two commands do everything: `make run` and `make test`. Each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SCENARIO ?= scenarios/chat-resume.yaml
JOBS ?= 2
SAMPLE ?= 400

.PHONY: run test check lint types clean
.DELETE_ON_ERROR:

run: $(VENV)/installed
	$(BIN)/lab run $(SCENARIO)

test: $(VENV)/installed-test check
	$(BIN)/pytest -q -n $(JOBS)
	$(BIN)/lab contract coverage > $(VENV)/coverage.txt || { cat $(VENV)/coverage.txt; exit 1; }

.PHONY: test-long
test-long: $(VENV)/installed-test
	$(BIN)/pytest -q -n $(JOBS) -m slow

.PHONY: bench
bench: $(VENV)/installed
	$(BIN)/python -m benchmarks

.PHONY: mutate
mutate: $(VENV)/installed-mutation
	$(BIN)/python -m tests.mutation.table --sample $(SAMPLE)

check: lint types

lint: $(VENV)/installed-test
	$(BIN)/ruff check -q .
	$(BIN)/ruff format --check -q .

types: $(VENV)/installed-test
	$(BIN)/mypy

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; name one with `make PYTHON=python3.12 …`" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml constraints.txt
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

$(VENV)/installed-mutation: $(VENV)/installed-test
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[test,mutation]'
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
