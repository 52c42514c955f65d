# On a machine with Python, git and make, each target sets up all that it needs in .venv.
#   make demo    a first map from a synthetic city, in demo-output/
#   make quick   a file of tests of every room, and those of the client that privacy depends on:
#                tables, sampling, the ledger and its lock; half a minute on two cores
#   make test    linters, type checker and all tests
#   make check   linters, type checker and the import-direction test alone
#   make system  what some tests need of Debian, as root: PostgreSQL, Chromium, npm, proxies, Java;
#                where it is missing, a line at the end of the tests says which did not run
#   make bench   every speed that the docs state, beside its alternative; rewrites docs/benchmarks.md

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PROJECTS = pyproject.toml client_sdk/python/pyproject.toml
CLIENT = response verify sampling randomizer report ledger ledger_lock device
ROOMS = places/test_users metrics/test_transport_edges channels/test_disk estimation/test_em \
	privacy/test_audit files/test_maps datasets/test_synthetic plotting/test_transport_plot \
	release/test_release release/local/test_dam planning/test_designs \
	collecting/test_count_reports comparison/test_range_queries service/test_store \
	cli/test_cli_collection
QUICK = tests/test_imports.py $(CLIENT:%=tests/client/test_%.py) $(ROOMS:%=tests/ldpspatial/%.py)

TYPESCRIPT = client_sdk/typescript
DEBIAN = chromium curl e2fsprogs haproxy nginx-light openjdk-17-jre-headless openssl postgresql

.PHONY: demo quick test collected check system test-pythons bench clean

demo: $(VENV)/.runtime
	$(BIN)/ldpspatial demo

quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 $(QUICK)

# Bytecode is written first, whatever the environment says of it: the runners and some hundred short
# processes that tests start would each compile all sources anew. The linters take the other core.
test: $(VENV)/.dev
	$(BIN)/python -m compileall -q -j 2 ldpspatial client_sdk/python experiments tests/support
	$(MAKE) -j 2 check collected
	$(BIN)/python -m pytest -n 3 --dist worksteal -rs

collected: $(VENV)/.dev
	out=$$(PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only 2>&1) || \
		{ echo "$$out" | tail -n 60; exit 1; }

system:
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-upgrade --no-install-recommends $(DEBIAN)
	command -v npm || apt-get install -y -q --no-install-recommends npm

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
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python -m experiments benchmarks

clean:
	rm -rf $(VENV) demo-output $(TYPESCRIPT)/build $(TYPESCRIPT)/dist $(TYPESCRIPT)/node_modules

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
