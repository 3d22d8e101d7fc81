# Two commands do everything: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --constraint constraints.txt
SETUP := pyproject.toml setup.py constraints.txt Makefile $(wildcard src/setnet/index/kernels/*)

.PHONY: demo test install soak bench docs clean
demo: .venv/.demo
	$(BIN)/setnet demo

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not soak"

install: .venv/.test

soak: install
	SETNET_SOAK=1 $(BIN)/pytest -m soak --timeout 7200

bench: install
	$(PIP) --editable '.[bench]'
	$(BIN)/python benchmarks/engine.py

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.demo: .venv/.made $(SETUP)
	@echo "setting up .venv for the demo (once; a minute or two)"
	$(PIP) --editable '.[demo]'
	touch $@

.venv/.test: .venv/.made $(SETUP)
	@echo "setting up .venv for the tests (once; a few minutes)"
	$(PIP) --editable '.[train,serve,demo,evaluate,dev]'
	touch $@ .venv/.demo

clean:
	rm -rf .venv build src/*.egg-info src/setnet/index/*.so
