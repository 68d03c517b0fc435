# `make lab` and `make test` are the two commands; each first makes or brings up to date the environment in .venv.

PYTHON ?= python3
JOBS   ?= 2
ARGS   ?=
LABS   ?=
PEERS  ?=
# Choices of the set-up; see the README.
#   EXTRAS=none         no PyTorch, CuPy, Triton, CuTe DSL, cuTile, instructor's or developer's tools
#   CUDA=12 or CUDA=13  not what the driver says
#   TORCH_INDEX=URL     another index for PyTorch's wheels, such as PyTorch's own for builds without CUDA
EXTRAS      ?= all
CUDA        ?= auto
TORCH_INDEX ?=

BIN  := .venv/bin
# Whole files to a process, or all tests of one lab (tests/conftest.py): what they prepare is prepared once.
# Bytecode is kept even where the environment says otherwise: hundreds of Pythons start.
TEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

.PHONY: help lab test test-fast test-all compilers site check format bench conformance validate setup clean

help:
	@echo "make lab       open JupyterLab on the labs      (make lab ARGS=--no-browser: server only)"
	@echo "make test-fast those tests that take less than five minutes together: before each commit"
	@echo "make test      every kind of test: before a merge (make test ARGS=tests/ptx: some; ARGS=--costs: their costs)"
	@echo "make test-all  every case of every test, with the compilers of older CUDA releases: before a release"
	@echo "make compilers only fetch those: about 1 GB beside .venv"
	@echo "make site      the course as web pages          (make site LABS=\"00 03\": some labs; ARGS=--keep-runs)"
	@echo "make check     style, types, labs in step with their sources"
	@echo "make format    put the style right"
	@echo "make validate  measure this machine's GPU: a JSON to commit (make validate ARGS=--times-only: no ncu)"
	@echo "make bench     side-by-side timings"
	@echo "make conformance  programs and tests of others, run unchanged: docs/conformance (PEERS=FOLDER with checkouts)"
	@echo "make setup     only make .venv                  (EXTRAS=none: without PyTorch, CuPy and tools)"
	@echo "make clean     remove .venv and caches"

setup:
	@command -v $(PYTHON) >/dev/null || { echo "make: no '$(PYTHON)' on this machine. Install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv), or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 7))' || { echo "make: '$(PYTHON)' is far too old. Name a Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) tools/setup.py --extras=$(EXTRAS) --cuda=$(CUDA) --torch-index=$(TORCH_INDEX)

lab: setup
	@$(BIN)/python -m gpulab lab $(ARGS)

test: setup
	@$(TEST) -m "not slow" $(ARGS)

test-fast: setup
	@$(TEST) -m "not slow and not thorough" $(ARGS)

# Without a network it goes on; the tests that miss those compilers say so.
test-all: setup
	-@$(BIN)/python tools/compilers.py
	@$(TEST) $(ARGS)

compilers: setup
	@$(BIN)/python tools/compilers.py

site: setup
	@$(BIN)/python -m tools.site $(LABS) $(ARGS)

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m grading release --check

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

conformance: setup
	@$(BIN)/python -m tests.conformance $(if $(PEERS),--peers $(PEERS)) $(ARGS)

bench: setup
	@for file in $(wildcard benchmarks/*.py); do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# Goes on where it was stopped.
validate: setup
	@$(BIN)/python -m validation measure $(ARGS)

clean:
	rm -rf .venv .venv-cuda-* .pytest_cache .hypothesis .mypy_cache .ruff_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
