# make demo   set up, run the main job on embedded data, say where to look
# make test   set up, pass the tests
# make check  what CI runs: lint, types, all tests including the slow ones

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Tests that run at the same time.
WORKERS ?= 2

.PHONY: demo test check lint types clean

demo: $(READY)
	$(BIN)/sagl demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

check: lint types $(READY)
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV)
