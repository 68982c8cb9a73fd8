# Every target sets itself up: a fresh machine needs Python 3.11 or later, and for `test` and `bench` a JDK 17 with Maven.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.DEFAULT_GOAL := help

.PHONY: help
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/.installed: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "aclog needs Python 3.11 or later; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv
venv: $(VENV)/.installed  ## the virtual environment, with what is pinned in constraints.txt

.PHONY: lint
lint: venv  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: fmt
fmt: venv  ## format and fix what can be fixed
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .

.PHONY: test
test: lint  ## lint, then every test, in parallel and in random order
	$(BIN)/pytest -n $(WORKERS) -q
