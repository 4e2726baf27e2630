# Every target makes the environment it needs, in .venv, from nothing but Python 3.11+ and a C compiler.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# The build looks for meson and ninja on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo test lint typecheck docs-test clean

help:
	@echo "make demo    measure and draw the calibration of two real classifiers"
	@echo "make test    run the tests (under five minutes)"
	@echo "make lint    ruff, mypy --strict, import-linter"

$(STAMP): pyproject.toml meson.build
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet meson meson-python ninja Cython
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable ".[dev]"
	touch $(STAMP)

test: $(STAMP)
	$(BIN)/python -m pytest -q -n auto -m "not heavy"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	# -S: past the editable install's import hook, which hides the tree from static analysis.
	PYTHONPATH=src:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		$(BIN)/python -S $(BIN)/lint-imports

clean:
	rm -rf $(VENV) build dist site demo
