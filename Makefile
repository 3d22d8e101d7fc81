# Two commands do everything: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --constraint constraints.txt
SETUP := pyproject.toml setup.py constraints.txt Makefile $(wildcard src/setnet/index/kernels/*)

.PHONY: browser demo test install soak bench docs clean
demo: .venv/.demo
	$(BIN)/setnet demo

test: install browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -m "not soak"

install: .venv/.test

# The page is tested in a real browser; where none can be had those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { echo "installing chromium for the tests of the web page"; \
	     apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1; } \
	|| echo "no browser can be installed here: the tests of the page in a browser will be skipped"

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
	$(PIP) --editable '.[demo,serve]'
	touch $@

.venv/.test: .venv/.made $(SETUP)
	@echo "setting up .venv for the tests (once; a few minutes)"
	$(PIP) --editable '.[train,serve,demo,evaluate,dev]'
	touch $@ .venv/.demo

clean:
	rm -rf .venv build src/*.egg-info src/setnet/index/kernels/*.so
