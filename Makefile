# Everything runs in $(VENV), made here on first use; the system's Python is only asked
# for a virtual environment. A stamp in it records each set of extras installed, so
# that a second run starts at once.

PYTHON ?= python3
VENV ?= .venv
DEMO ?= demo
PEERS ?= build/peers
A ?= HEAD~1
B ?= HEAD
JOBS ?= 2
TEST_EXTRAS := test,dask,report
ifdef TORCH
TEST_EXTRAS := $(TEST_EXTRAS),torch
endif
ifdef COV
COVERAGE := --cov --cov-report=term --cov-fail-under=$(COV)
endif
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# The data files kept beside the checkout, where nothing else was asked for.
ifndef SURFF_DATA
ifneq ($(wildcard ../shared/data/.),)
export SURFF_DATA := $(CURDIR)/../shared/data
endif
endif

# Tests start dozens of processes; each would compile the package's source again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint style rooms types format bench bench-peers bench-compare \
  docs links clean

help: ## list the goals
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile
	@echo "variables: PYTHON=$(PYTHON) VENV=$(VENV) JOBS=$(JOBS) COV=$(COV) DEMO=$(DEMO) SURFF_DATA=$(SURFF_DATA) PEERS=$(PEERS)"

demo: $(VENV)/.cli ## the paper's table at a few sizes, in about a minute
	$(BIN)/surff demo --out $(DEMO)

test: $(VENV)/.$(TEST_EXTRAS) ## the whole test suite; TORCH=1 tests torch input too
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --max-worker-restart 0 $(COVERAGE)

lint: style rooms types ## check style, the walls between rooms, and type hints

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

rooms: $(VENV)/.dev
	$(BIN)/python tools/rooms.py
	$(BIN)/python tools/floors.py

types: $(VENV)/.dev
	$(BIN)/python tools/hints.py
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev ## mend style and format where ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.cli ## beside scikit-learn and installed peers: benchmarks/results/compare.md
	$(BIN)/python benchmarks/micro.py feature_map generation --rounds 5
	$(BIN)/python benchmarks/compare.py $(if $(wildcard $(PEERS)/peers.json),--peers $(PEERS))

bench-peers: $(VENV)/.cli ## other libraries in environments of their own, for make bench
	$(BIN)/python benchmarks/peers.py $(PEERS)

bench-compare: $(VENV)/.cli ## has commit B become slower than A? make bench-compare A=main B=HEAD
	$(BIN)/python benchmarks/regression.py $(A) $(B)

docs: $(VENV)/.dev ## the documentation, in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

links: $(VENV)/.dev ## ask the network whether links to elsewhere work
	$(BIN)/python -m sphinx -q -b linkcheck docs docs/_build/links

clean: ## remove what the goals above made
	rm -rf $(VENV) $(DEMO) build dist docs/_build docs/api/generated docs/auto_examples
	rm -rf .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find src tests docs benchmarks tools -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "surff needs Python 3.11 or newer; $(PYTHON) is" \
	    "$$($(PYTHON) --version 2>/dev/null || echo missing)." \
	    "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments;" \
	    "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.%: pyproject.toml | $(VENV)/pyvenv.cfg
	@echo "installing surff[$*] into $(VENV); the first time takes minutes"
	@$(PIP) install --editable '.[$*]'
	@touch $@
