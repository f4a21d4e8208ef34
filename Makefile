# make demo   set up what users need, run the main job on embedded data, say where to look
# make test   set up what the tests need as well, pass them
# make coverage  the same tests, and which lines they do not reach
# make check  what CI runs: lint, types, all tests including the slow ones
# make docs   the documentation, in site/; opens without a server or network
# make faults  commands struck down at random moments, others each time
# make slow   the slow tests alone, with the models of the examples
# make dist-check   build wheel and sdist, install each in a clean environment
# make audit  ask PyPI whether a pinned version is known to be vulnerable
# make fuzz   look for files that readers stumble over, SECONDS for each kind

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What users have, and what work on sagl needs besides.
USABLE := $(VENV)/.usable
READY := $(VENV)/.ready
# Versions to install: the pins, by default.
CONSTRAINTS ?= constraints.txt
# Tests that run at the same time.
WORKERS ?= 2
# Of fuzzing, for each target.
SECONDS ?= 60

.PHONY: faults demo test coverage check lint types docs slow dist-check audit fuzz clean

demo: $(USABLE)
	$(BIN)/sagl demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" --dist worksteal

coverage: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" --dist worksteal --cov

check: lint types $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

slow: $(READY)
	$(BIN)/python -m pip install --quiet -c $(CONSTRAINTS) -e ".[examples]"
	$(BIN)/python -m pytest -m slow

dist-check: $(READY)
	PYTHON=$(PYTHON) CONSTRAINTS=$(CONSTRAINTS) .ci/dist-check

audit:
	$(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --quiet pip-audit
	.audit/bin/pip-audit --no-deps --disable-pip -r $(CONSTRAINTS)

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

faults: $(READY)
	SAGL_FAULT_SEED=random $(BIN)/python -m pytest -m slow tests/faults

docs: $(READY)
	NO_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --quiet --clean

$(USABLE): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c $(CONSTRAINTS) -e ".[all]"
	touch $@

$(READY): $(USABLE)
	$(BIN)/python -m pip install --quiet -c $(CONSTRAINTS) -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .audit
