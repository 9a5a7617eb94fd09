# Everything a person or a machine runs here. `make demo` and `make test` need only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find kernels learners pipeline \( -name '*.py' -o -name '*.txt' \) -printf '%p ' 2>/dev/null)

.PHONY: help demo test test-slow lint types layers snapshot reference pages pictures docs bench chaos soak fuzz places results scale slurm clean format

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 14

# The installed set of files is part of a strict editable install, so a new file means a new install.
$(VENV)/.files: pyproject.toml constraints.txt FORCE
	@echo "$(sort $(SOURCES))" | cmp -s - $@ 2>/dev/null || { mkdir -p $(VENV); rm -f $(VENV)/.installed; echo "$(sort $(SOURCES))" > $@; }

# pip's chatter goes to a log that is shown only when something failed.
INSTALL = $(BIN)/python -m pip install --constraint constraints.txt
QUIETLY = >> $(VENV)/install.log 2>&1 || { cat $(VENV)/install.log; exit 1; }

$(VENV)/.installed: $(VENV)/.files pyproject.toml constraints.txt
	@echo "installing gramline and what it needs into $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --upgrade pip setuptools wheel $(QUIETLY)
	@$(INSTALL) --no-build-isolation --config-settings editable_mode=strict --editable . $(QUIETLY)
	@touch $@

$(VENV)/.developer: $(VENV)/.installed
	@echo "installing test and lint tools into $(VENV)"
	@$(INSTALL) --group dev $(QUIETLY)
	@touch $@

FORCE:

demo: $(VENV)/.installed  ## corpus, Gram matrix on a local Dask cluster, labeler, evaluation: the main job on built-in data
	$(BIN)/gramline demo

test: lint types layers  ## lint, types, import rules and the default tests: what CI runs
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/.developer  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.developer  ## put the code into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.developer
	$(BIN)/mypy

layers: $(VENV)/.developer
	$(BIN)/lint-imports

snapshot: $(VENV)/.developer  ## stores, models, runs and pages of every kernel and learner, compared with recorded checksums
	rm -rf .snapshot
	$(BIN)/python tests/house/snapshot.py .snapshot --check tests/house/snapshot.json

reference: $(VENV)/.installed  ## tables of README.md, docs/reference.md and docs/jobs.md, the files of the tutorial, and the schema of job files, from the declarations
	$(BIN)/python docs/generate.py

pages: $(VENV)/.developer  ## runs the commands of README, tutorial, how-to and job files, and pastes what they print
	$(BIN)/python docs/transcripts.py

pictures: $(VENV)/.developer  ## terminal and report of the tutorial as pictures, with the Chromium of this machine
	$(BIN)/python docs/screenshots.py

docs: $(VENV)/.developer  ## these pages and the reference of every public name as a static site in build/site
	$(BIN)/python -m sphinx --fail-on-warning --quiet -c docs . build/site
	@echo "open build/site/README.html"

bench: $(VENV)/.developer  ## measured ratios: tiles against a copy, streams against a memmap; written to docs/benchmarks.md
	FIGURES=docs/benchmarks.md $(BIN)/python -m pytest -m benchmark -s tests/benchmarks

chaos: $(VENV)/.developer  ## real kills, stops, cuts and damage; prints the table of faults and keeps it in docs/reliability.md
	FIGURES=docs/reliability.md $(BIN)/python -m pytest -m "not soak" -s tests/chaos

soak: $(VENV)/.developer  ## twenty thousand tiles through one scheduler while workers die and return; figures into docs/reliability.md
	FIGURES=docs/reliability.md $(BIN)/python -m pytest -m soak -s tests/chaos/test_soak.py

fuzz: $(VENV)/.developer  ## more than twenty thousand bad files for every reader; figures into docs/reliability.md
	FIGURES=docs/reliability.md $(BIN)/python -m pytest -m fuzz -s tests/fuzz

places: $(VENV)/.developer  ## the commands of deploy/ssh and deploy/slurm, against an sshd and a Slurm where they are installed
	$(BIN)/python -m pytest -m places tests/deploy

slurm:  ## a Slurm of one node on loopback, from Debian's packages, in .slurm (root); `make places` tests with one of its own
	deploy/slurm/single-node.sh install
	deploy/slurm/single-node.sh start .slurm

DATA ?= data
SCRATCH ?= .
results: $(VENV)/.developer  ## the papers' experiments on the data sets in DATA, written to docs/results.md (hours)
	$(BIN)/gramline reproduce --data $(DATA) --scratch $(SCRATCH) -o docs/results --page docs/results.md

# Sizes that were measured before are kept in SCRATCH/gramline-scale-computed and not measured again.
SIZES ?= 100000,250000,500000,1000000
scale: $(VENV)/.installed  ## two workers of 1 GB: a matrix larger than memory, and up to SIZES positions without one, in SCRATCH; written to docs/scale.md (two hours)
	GRAMLINE_SCALE_SIZES=$(SIZES) $(BIN)/gramline reproduce scale-computed scale --scratch $(SCRATCH) -o docs/results --page docs/results.md --page docs/scale.md

clean:  ## remove what was built
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
