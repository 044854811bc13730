# Everything a newcomer needs: `make demo` shows what it does, `make test` shows that it works.
# Only Python 3.11 or newer and make are taken for granted; the rest is installed into .venv.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
BENCH_VENV ?= .venv-bench
# The ends of what pyproject.toml allows, each with an environment of its own.
OLDEST_PYTHON ?= python3.11
OLDEST_VENV ?= .venv-oldest
NEWEST_PYTHON ?= python3.13
NEWEST_VENV ?= .venv-newest
DIST_VENV ?= .venv-dist
TESTED_EXTRAS := test sdp dask pandas counting dimod networkx sklearn
comma := ,
empty :=
TESTED := .[$(subst $(empty) $(empty),$(comma),$(TESTED_EXTRAS))]
# Benchmarks compare algorithms, not thread pools: one thread for everybody.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

ALL_CORES := -n auto --dist worksteal

.PHONY: help demo compiled checked test test-all test-oldest test-newest coverage lint bench honesty docs site dist fresh-kernels clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         solve a model made on the spot; table on the screen, picture in out/"
	@echo "make test         lint, types, tests and doctests"
	@echo "make test-all     the slow tests too"
	@echo "make test-oldest  tests with the oldest releases that pyproject.toml allows, on $(OLDEST_PYTHON)"
	@echo "make test-newest  tests with the newest releases there are, on $(NEWEST_PYTHON)"
	@echo "make coverage     which lines and branches the tests reach; pages in out/coverage"
	@echo "make lint         format check, lint and types alone"
	@echo "make bench        speed against rivals, in one run (installs them into $(BENCH_VENV))"
	@echo "make honesty      are trusted answers right? hundreds of new models whose log Z is known"
	@echo "make docs         write again the pages and pictures of docs/ that are made by code"
	@echo "make site         build the documentation site with its gallery; open out/site/index.html"
	@echo "make dist         build the packages in dist/, and try the wheel in an empty environment"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; found none (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-site: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[site]'
	@touch $@ $(VENV)/.installed

$(BENCH_VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; found none (set PYTHON=...)"; exit 1; }
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable '.[bench]'
	@touch $@

# Packages that have no wheel for this Python were never usable with it, so nothing is built from source here. The
# bounds of the build's own packages hold too, which pip takes from the environment alone.
$(OLDEST_VENV)/.installed: pyproject.toml tools/oldest.py
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST_VENV)
	$(OLDEST_VENV)/bin/python tools/oldest.py $(TESTED_EXTRAS) > $(OLDEST_VENV)/oldest.txt
	PIP_CONSTRAINT=$(OLDEST_VENV)/oldest.txt PIP_BUILD_CONSTRAINT=$(OLDEST_VENV)/oldest.txt \
		$(OLDEST_VENV)/bin/python -m pip install --quiet --only-binary :all: --editable '$(TESTED)'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Once, on all cores, before several processes that run tests would each do so.
compiled: $(VENV)/.installed-dev
	$(BIN)/spectralz warm-up

checked: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory --jobs=2 compiled lint

test: checked
	$(BIN)/python -m pytest $(ALL_CORES)

test-all: checked
	$(BIN)/python -m pytest $(ALL_CORES) -m ''

# Old releases call names that newer releases of what they stand on deprecate: not for us to mend, so not an error.
# Compiled kernels go to a folder of their own, since those of one numba are of no use to another.
test-oldest: $(OLDEST_VENV)/.installed
	$(OLDEST_VENV)/bin/python -m pip freeze --exclude-editable
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST_VENV)/kernels $(OLDEST_VENV)/bin/python -m pytest $(ALL_CORES) \
		-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning

# Asks for upgrades every time: the newest releases of today are the point.
test-newest:
	test -d $(NEWEST_VENV) || $(NEWEST_PYTHON) -m venv $(NEWEST_VENV)
	$(NEWEST_VENV)/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable '$(TESTED)'
	$(NEWEST_VENV)/bin/python -m pip freeze --exclude-editable
	NUMBA_CACHE_DIR=$(CURDIR)/$(NEWEST_VENV)/kernels $(NEWEST_VENV)/bin/python -m pytest $(ALL_CORES)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(ALL_CORES) --cov --cov-report=term:skip-covered --cov-report=html

dist: $(VENV)/.installed-dev
	rm -rf dist $(DIST_VENV)
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m venv $(DIST_VENV)
	$(DIST_VENV)/bin/python -m pip install --quiet dist/*.whl
	cd $(DIST_VENV) && bin/spectralz --version
	cd $(DIST_VENV) && bin/python -c "import spectralz as sz; print(sz.log_z(sz.Ising([0.5, -0.5], [[0, 1], [1, 0]])))"

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

honesty: $(VENV)/.installed
	$(BIN)/python -m benchmarks.honesty

docs: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bad_inputs
	$(BIN)/python examples/demo.py
	cp out/demo.png out/answer.png docs/images/
	$(BIN)/python docs/pictures.py
	$(BIN)/python examples/diagonal.py docs/images/sdp-diagonal.png
	$(BIN)/spectralz generate grid --side 15 --strength 0.5 --seed 0 out/grid15.npz
	$(BIN)/spectralz compare out/grid15.npz --methods exact,bp,mf,mbe,wmbe,trw,spectral --plot docs/images/compare.png

# Kernels are compiled before the scripts of the gallery run, or pages would show that a script waited for them.
out/site-kernels: $(VENV)/.installed-site $(shell find src -name '*.py')
	@$(BIN)/spectralz warm-up
	@mkdir -p out && touch $@

# Nothing is fetched while it builds. Only scripts of the gallery that have changed run again, one per core.
site: out/site-kernels
	$(ONE_THREAD) $(BIN)/python -m sphinx -j auto -W --keep-going -d out/site-doctrees docs out/site
	@echo "The site: out/site/index.html"

fresh-kernels:
	find src -name '*.nbi' -delete -o -name '*.nbc' -delete

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(OLDEST_VENV) $(NEWEST_VENV) $(DIST_VENV) out dist docs/gallery docs/api/generated .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
