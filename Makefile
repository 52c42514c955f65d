# On a machine with Python, git and make, each target sets up all that it needs in .venv.
#   make demo    a first map from a synthetic city, in demo-output/
#   make test    linters, type checker and all tests
#   make check   linters, type checker and the import-direction test alone
#   make bench   every speed that the docs state, beside its alternative; rewrites docs/benchmarks.md

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PROJECTS = pyproject.toml client_sdk/python/pyproject.toml

.PHONY: demo test check test-pythons bench clean

demo: $(VENV)/.runtime
	$(BIN)/ldpspatial demo

test: check
	$(BIN)/python -m pytest -n 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

# All tests under every supported Python that this machine has.
test-pythons:
	for version in 3.10 3.11 3.12 3.13 3.14; do \
		if python$$version -c '' 2>/dev/null; then \
			$(MAKE) test PYTHON=python$$version VENV=.venv/py$$version || exit 1; \
		else echo "python$$version is not here: left out"; fi; \
	done

bench: $(VENV)/.dev
	$(BIN)/python -m experiments benchmarks

clean:
	rm -rf $(VENV) demo-output

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python $(PROJECTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-e 'client_sdk/python[fast]' -e .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python $(PROJECTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		-e 'client_sdk/python[fast]' -e '.[dev]'
	touch $@ $(VENV)/.runtime
