# Two commands do everything on a machine that has Python, pip and make:
#   make demo   train two networks on digits and see what each digit added
#   make test   everything that has to hold
# The environment lives in .venv; stamp files in it say what is installed already.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.installed-core
ALL := $(VENV)/.installed-all
# --no-build-isolation: otherwise pip would fetch a build backend that constraints.txt does not pin.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
INSTALL_SELF := $(INSTALL) --no-build-isolation --editable
ESLINT := $(VENV)/eslint/node_modules/.bin/eslint
NEWS := grep --line-buffered --invert-match 'already satisfied'
EXTRAS := chem,compiled,hub,loggers,data,devices,plot,onnx,page,serve,slides,text,tune,cluster,dask,bench,docs,dev

# pipefail: pip's chatter is filtered below, its failures are not.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: attack scripts help demo test lint fast bench docs engines browser page constraints clean

help: ## what can be made
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

demo: $(CORE) ## train a GRU and a C-DeepSet on digits, compare what each digit adds (no download)
	$(BIN)/capnets demo

test: lint browser page ## install everything, then lint, types, import contract and all tests
	$(BIN)/pytest -n 2 -m "not engine"

lint: $(ALL) scripts ## style, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# ESLint comes from npm at this version, into .venv; without npm the scripts are not linted.
scripts: $(CORE)
	@if [ -x $(ESLINT) ]; then $(ESLINT) src/capnets/pages/static; \
	elif command -v npm >/dev/null; then \
	  npm install --prefix $(VENV)/eslint --no-package-lock --no-audit --no-fund --silent eslint@10.15.0 \
	  && $(ESLINT) src/capnets/pages/static; \
	else \
	  echo "No npm found: the scripts of the page are not linted (on Debian: apt install npm)."; \
	fi

fast: $(ALL) ## the quick tests only
	$(BIN)/pytest -q -m "not slow and not browser"

# Half an hour on a quiet machine: damaged files, and kills at every file operation.
attack: $(ALL) ## attack readers with 20,000 damaged files, kill writers 200 times, fill disks; prints a table
	$(BIN)/python tests/attack --inputs 20000 --kills 200

# Twenty minutes on a quiet machine. What takes longer is run by name: benchmarks/README.md lists it.
bench: $(ALL) ## measure speed, streams and memory; draw benchmarks/README.md
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/grid.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/ingest.py --instances 500000
	$(BIN)/python benchmarks/serve.py
	$(BIN)/python benchmarks/table.py

docs: $(ALL) ## build the documentation into docs/_build/html; warnings are errors
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html

# Ray and Spark are large, and Spark needs a Java runtime: `make test` leaves them out.
engines: $(VENV)/.installed-engines ## test batch prediction on Ray and Spark; installs them and Java
	$(BIN)/pytest -q -m engine tests/batch

$(VENV)/.installed-engines: $(ALL)
	@command -v java >/dev/null \
	  || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	       echo "Installing a Java runtime for Spark."; \
	       apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless; \
	     else \
	       echo "No Java found: Spark needs it (on Debian: apt install default-jre-headless)." >&2; exit 1; \
	     fi
	$(INSTALL_SELF) '.[ray,spark]' | $(NEWS)
	@touch $@

constraints: $(ALL) ## write constraints.txt again from .venv (after adding or upgrading a package)
	{ sed -n '/^#/p' constraints.txt; \
	  $(BIN)/python -m pip freeze --all --exclude-editable \
	  | sed -E 's/^torch==([0-9.]+)\+.*/torch==\1/' | grep -vE '^(pip|wheel)=='; } > $(VENV)/constraints.txt
	mv $(VENV)/constraints.txt constraints.txt

clean: ## remove .venv and all caches
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(CORE): pyproject.toml constraints.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "Making $(VENV) (once; a minute or two)."; $(PYTHON) -m venv $(VENV); } \
	  || { echo "$(PYTHON) cannot make a virtual environment (on Debian: apt install python3-venv)." >&2; exit 1; }
	$(INSTALL) hatchling editables | $(NEWS)
	$(INSTALL_SELF) . | $(NEWS)
	@touch $@

$(ALL): $(CORE)
	$(INSTALL_SELF) '.[$(EXTRAS)]' | $(NEWS)
	@touch $@

# The runtime of interactive pages comes from its npm package; its SHA-256 is checked.
page: $(CORE) ## install onnxruntime-web for `capnets page` and `capnets play`
	@[ -e $(ALL) ] || $(INSTALL_SELF) '.[page]' | $(NEWS)
	@if $(BIN)/python -c "from capnets.pages.runtime import find_runtime; find_runtime()" 2>/dev/null; then exit 0; \
	elif command -v npm >/dev/null; then \
	  folder=$$(mktemp -d) && (cd $$folder && npm pack --silent onnxruntime-web@1.30.0) \
	  && $(BIN)/python -m capnets.pages.runtime $$folder/onnxruntime-web-1.30.0.tgz && rm -r $$folder; \
	else \
	  echo "No npm found: tests of interactive pages will be skipped (on Debian: apt install npm)."; \
	fi

# Pages are looked at in a real browser. Without one those tests are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	       echo "Installing Chromium for the tests of pages."; \
	       apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; \
	     else \
	       echo "No Chromium found: tests of pages will be skipped (on Debian: apt install chromium)."; \
	     fi
