# Every target makes its own environment; nothing else needs installing by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)  # the tests wait now and then

.PHONY: help demo test check wheel bench crash clean

help:
	@echo "make demo    build a small module from recorded answers, in a new git repository"
	@echo "make test    run every test"
	@echo "make check   lint, check types, build the package and the documentation"
	@echo "make wheel   make a wheel in dist/"
	@echo "make bench   measure, against a floor measured in the same run"
	@echo "make crash   kill a build at each system call that leaves something behind, and resume it"
	@echo "make clean   remove what the other targets made"

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lopen needs Python 3.11 or newer: make PYTHON=python3.12")'
	@echo "installing lopen with its development tools into $(VENV) (a minute or two)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,serve,redis]'
	$(BIN)/python -m compileall -q lopen
	touch $(STAMP)

# The demo needs lopen alone: without the development tools where they are not installed yet.
demo: $(BIN)/lopen
	$(BIN)/lopen demo

$(BIN)/lopen: pyproject.toml
	@echo "installing lopen into $(VENV)"
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lopen needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $(BIN)/lopen

test: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/lopen check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir $(VENV)/site
	$(BIN)/python -m scripts.check_package

wheel:
	$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

bench: $(STAMP)
	$(BIN)/python -m bench

crash: $(STAMP)
	$(BIN)/python -m tests.crash.sweep

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
