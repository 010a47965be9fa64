# Two commands do everything: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores, as some tests wait for other processes.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Tests start a thousand processes; each would compile every library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo explore test test-fast test-thorough coverage fuzz lint types contracts format docs dist trial release bench accuracy mutants clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     invented people through every product to one atlas: demo/atlas/index.html (OPEN=1 opens it)"
	@echo "make explore  choose budgets by looking: a local page in the browser"
	@echo "make test     all that guards a change: lint, types, contracts, tests"
	@echo "make test-fast      the quick ones of these tests"
	@echo "make test-thorough  whole systems, exhaustive worlds, long laws, browsers, engines and kills"
	@echo "make coverage  the lines that the tests reach"
	@echo "make fuzz     attack every input of every command, without end"
	@echo "make bench    the benchmarks, as one table"
	@echo "make accuracy COOK=PARQUET ILLINOIS=PARQUET  the figures of docs/accuracy.md, measured again, an hour"
	@echo "make docs     the pages as a site to read and search: build/site/index.html"
	@echo "make dist     wheel and source archive in dist/; make trial installs each into an empty environment and uses it"
	@echo "make release  wheel, source archive and their checksums in dist/, tried in an empty environment (docs/releasing.md)"
	@echo "make mutants  faults put into the guarantee and the plan one by one: how many do their tests catch?"

# uv.lock names packages, versions and hashes but no hosts, so it is exported and installed by name.
$(STAMP): uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Python 3.11 or newer is needed, and $(PYTHON) is not. Name another, as in: make setup PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.8 && \
	  $(BIN)/uv export --quiet --frozen --all-extras --all-groups --no-emit-project --output-file $(VENV)/requirements.txt && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r $(VENV)/requirements.txt && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable . || \
	  { echo "The libraries could not be fetched. That takes a network or, in PIP_INDEX_URL and UV_INDEX_URL, a package index. Then run make setup again."; exit 1; }
	@echo "Compiling, half a minute ..."
	@$(BIN)/python tools/compile_kernels.py
	@touch $@

setup: $(STAMP)

demo: setup
	@$(BIN)/yupana demo demo --overwrite $(if $(OPEN),--open)

explore: setup
	@$(BIN)/yupana explore

test: lint types contracts
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not thorough"

test-fast: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not quality and not thorough" --ignore tests/attack

test-thorough: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m thorough

coverage: setup
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal -m "not thorough"
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

fuzz: setup
	$(BIN)/python tests/attack/fuzz.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/measure.py

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

# Dead links and pages that nothing leads to end it.
docs: setup
	$(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees -c docs . "build/site/$$($(BIN)/yupana --version | sed 's/.* //')"
	@echo "build/site/index.html"

dist: setup
	rm -rf dist
	$(BIN)/uv build
	cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS

trial:
	$(PYTHON) tools/trial.py

# The checklist is docs/releasing.md.
release: test docs dist trial
	@echo "dist/ is built and tried. Sign and publish it as docs/releasing.md says."

bench: setup
	$(BIN)/python benchmarks/run.py

# COOK and ILLINOIS are the files that examples/topdown_cook.py and topdown_illinois.py describe; what is measured is kept
# in accuracy/.
accuracy: setup
	@test -n "$(COOK)" -a -n "$(ILLINOIS)" || \
	  { echo "make accuracy COOK=PARQUET ILLINOIS=PARQUET: the files that examples/topdown_cook.py and topdown_illinois.py describe"; exit 1; }
	@mkdir -p accuracy
	@test -d accuracy/cook || $(BIN)/python examples/topdown_cook.py $(COOK) accuracy/cook
	@test -d accuracy/illinois || $(BIN)/python examples/topdown_illinois.py $(ILLINOIS) accuracy/illinois
	@test -d accuracy/state || $(BIN)/yupana synth accuracy/state --households 150000 --states 17 --seed 3 --format parquet
	$(BIN)/python benchmarks/accuracy accuracy --docs docs
	$(BIN)/python benchmarks/block_shares.py accuracy/state accuracy/block_shares.json

mutants: setup
	$(BIN)/python tools/mutants.py

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis mutants accuracy
