# Every target makes the environment it needs, in .venv, from nothing but Python 3.11+ and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# The build looks for meson and ninja on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo test  test-thorough test-all fuzz fuzz-quick wheel wheel-quick edges lint docs docs-test docs-check evidence evidence-quick clean

help:
	@echo "make demo    measure and draw the calibration of two real classifiers"
	@echo "make test    run the tests (under three minutes)"
	@echo "make test-thorough    try the laws on a thousand new examples each"
	@echo "make test-all    run the tests that need Spark, Dask, Ray, torch, PostgreSQL, a browser, evaluation tools or other calibration packages"
	@echo "make fuzz    damage files, compare every way in with exact sums, kill and fork (under two hours)"
	@echo "make wheel   build the wheel and run the tests against it, without a compiler in reach"
	@echo "make edges   run the tests against the wheel with the lowest versions, and with every Python at hand"
	@echo "make lint    ruff, mypy --strict, import-linter"
	@echo "make evidence    measure everything anew and write docs/evidence (under three hours)"
	@echo "make docs    build the documentation site in site/"
	@echo "make docs-check   open every page in a browser: links, accessibility, search, requests to other hosts"
	@echo "make docs-test    run every example of the documentation, the README and the docstrings"

$(STAMP): pyproject.toml meson.build
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet meson meson-python ninja Cython
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	touch $(STAMP)

# Of a fresh machine, only what the demo needs.
$(VENV)/.demo: pyproject.toml meson.build
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet meson meson-python ninja Cython
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[all]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/calibrant demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto -m "not heavy"

# A thousand examples of every law, other ones each time.
test-thorough: $(STAMP)
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -q -n auto -m "not heavy" tests/laws tests/data \
		tests/measures tests/inference tests/plotting tests/reporting

# Damaged files, every way in against exact arithmetic, kills and forks; `make fuzz-quick` in CI. Where
# `make test-all` has installed the heavy engines, they are ways in too; otherwise they are named.
FUZZ = $(if $(wildcard .venv-heavy/.installed),PATH="$(CURDIR)/.venv-heavy/bin:$$PATH" .venv-heavy,$(VENV))

fuzz: $(STAMP)
	$(FUZZ)/bin/python -m tests.fuzz

fuzz-quick: $(STAMP)
	$(FUZZ)/bin/python -m tests.fuzz --flips 300 --checks 1500 --engine-checks 500 --kills 10 --forks 30

# The wheel of this commit: built twice, repaired, and tested where no compiler can be found.
wheel:
	.ci/wheel build
	.ci/wheel first-verdict $(PYTHON)
	.ci/wheel test newest $(PYTHON)

# The same with the tests of the compiled parts and of the command line alone.
wheel-quick:
	.ci/wheel build
	.ci/wheel first-verdict $(PYTHON)
	.ci/wheel test newest $(PYTHON) tests/data tests/smoothing tests/measures tests/cli

# The wheel with the lowest versions that are declared, and with every Python that is at hand.
PYTHONS := $(foreach v,3.11 3.12 3.13 3.14,$(firstword $(wildcard $(HOME)/.pyenv/versions/$(v).*/bin/python$(v)) \
	$(shell command -v python$(v))))

edges:
	.ci/wheel build
	.ci/wheel test lowest $(firstword $(PYTHONS))
	for python in $(PYTHONS); do .ci/wheel test newest $$python || exit 1; done

# The heavy engines, in an environment of their own. torch comes first, and alone, or other packages would
# choose its version. What cannot be installed is named, and its tests say so.
HEAVY := .venv-heavy
HEAVY_PACKAGES := torchmetrics pyspark[connect] dask[dataframe,distributed] ray[data] \
	ibis-framework[duckdb] modin psycopg[binary] playwright jax \
	inspect-ai lm-eval mlflow-skinny evaluate axe-playwright-python pyright
DEBIAN_PACKAGES := postgresql chromium default-jre-headless r-base-core r-cran-rms r-cran-proc

# On Debian, and where we may.
install_debian = for package in $(1); do \
		dpkg -s $$package > /dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && \
		(apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$package) \
		> /dev/null 2>&1; } || echo "== could not install $$package"; \
	done

$(HEAVY)/.installed: pyproject.toml meson.build
	$(PYTHON) -m venv $(HEAVY)
	$(HEAVY)/bin/python -m pip install --quiet --upgrade pip
	$(HEAVY)/bin/python -m pip install --quiet torch==2.13.0 || echo "== could not install torch"
	for package in $(HEAVY_PACKAGES); do \
		$(HEAVY)/bin/python -m pip install --quiet "$$package" || echo "== could not install $$package"; \
	done
	# Of this one two metrics are compared, which need nothing that it depends on.
	$(HEAVY)/bin/python -m pip install --quiet --no-deps torch-uncertainty || echo "== could not install torch-uncertainty"
	$(HEAVY)/bin/python -m pip install --quiet meson meson-python ninja Cython
	PATH="$(CURDIR)/$(HEAVY)/bin:$$PATH" $(HEAVY)/bin/python -m pip install --quiet \
		--no-build-isolation -Cbuild-dir=build/heavy --editable ".[dev]"
	touch $@

# The packages whose maps ours must equal, at pinned versions: venn-abers, betacal, netcal and probmetrics.
PEERS_OF_MAPS := bench/.envs/maps/.installed

$(PEERS_OF_MAPS): bench/peers/requirements/maps.txt $(HEAVY)/.installed
	$(HEAVY)/bin/python -m bench.environments maps || echo "== could not install the peers of maps"

test-all: $(HEAVY)/.installed $(PEERS_OF_MAPS)
	@$(call install_debian,$(DEBIAN_PACKAGES))
	PATH="$(CURDIR)/$(HEAVY)/bin:$$PATH" $(HEAVY)/bin/python -m pytest -q -m heavy
	PATH="$(CURDIR)/$(HEAVY)/bin:$$PATH" PYTHONPATH=docs $(HEAVY)/bin/python -m pytest -q docs \
		-k "engines or torch or same"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	# -S: past the editable install's import hook, which hides the tree from static analysis.
	PYTHONPATH=src:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		$(BIN)/python -S $(BIN)/lint-imports

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[docs]"
	touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# Every page in a browser: requests to other hosts, dead links, accessibility (axe), and what the search finds.
docs-check: $(HEAVY)/.installed
	@$(call install_debian,chromium)
	test -e site/index.html || $(MAKE) docs
	$(HEAVY)/bin/python docs/check_site.py

docs-test: $(STAMP)
	PYTHONPATH=docs $(BIN)/python -m pytest -q -n auto docs

# Everything under docs/evidence, made anew in under three hours. `make evidence-quick` is the reduced form for CI.
evidence: $(STAMP)
	$(BIN)/python -m bench

evidence-quick: $(STAMP)
	$(BIN)/python -m bench --reduced

clean:
	rm -rf $(VENV) build dist site demo
