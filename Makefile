# Everything a newcomer needs: `make demo` shows what it does, `make test` shows that it works.
# Only Python 3.11 or newer and make are taken for granted; the rest is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
BENCH_VENV ?= .venv-bench
# Benchmarks compare algorithms, not thread pools: one thread for everybody.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

ALL_CORES := -n auto --dist worksteal

.PHONY: help demo test test-all lint bench docs fresh-kernels clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      solve a model made on the spot; table on the screen, picture in out/"
	@echo "make test      lint, types, tests and doctests"
	@echo "make test-all  the slow tests too"
	@echo "make lint      format check, lint and types alone"
	@echo "make bench     speed against rivals, in one run (installs them into $(BENCH_VENV))"
	@echo "make docs      write again the pages and pictures of docs/ that are made by code"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; found none (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(BENCH_VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; found none (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest $(ALL_CORES)

test-all: lint
	$(BIN)/python -m pytest $(ALL_CORES) -m ''

bench: $(BENCH_VENV)/.installed
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.logsum
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.start_up
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.compiling
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.low_rank
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.spectral
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.sdp
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.baselines
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.bounds
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.annealing
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.auto dense --models 5
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.expectation_propagation
	$(ONE_THREAD) $(BENCH_VENV)/bin/python -m benchmarks.exact

docs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bad_inputs
	$(BIN)/python examples/demo.py
	cp out/demo.png out/answer.png docs/images/
	$(BIN)/python examples/diagonal.py docs/images/sdp-diagonal.png
	$(BIN)/spectralz generate grid --side 15 --strength 0.5 --seed 0 out/grid15.npz
	$(BIN)/spectralz compare out/grid15.npz --methods exact,bp,mf,mbe,wmbe,trw,spectral --plot docs/images/compare.png

fresh-kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete

clean:
	rm -rf $(VENV) $(BENCH_VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
