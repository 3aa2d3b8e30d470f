# Each target sets up everything it needs in .venv and can be run again at any time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(wildcard src/rlprof/*/core/*.[ch])
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-long lint bench sanitize sanitize-threads test-all-pythons clean

demo: $(VENV)/installed
	$(BIN)/rlprof run --quiet examples/slow_ppo.py
	$(BIN)/rlprof report
	$(BIN)/rlprof report --html report.html

# Tests that measure run alone, after the others.
test: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not figures and not long"
	$(BIN)/python -m pytest -m "figures and not long"

# The tests that take long: commands in pages that train, builds, rare algorithms, fifty kills.
test-long: $(VENV)/installed
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "long and not figures"
	$(BIN)/python -m pytest -m "long and figures"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed
	$(BIN)/python benchmarks/span_cost.py
	$(BIN)/python benchmarks/ledger_accuracy.py
	$(BIN)/python benchmarks/soak.py --spans 1e7
	$(BIN)/python benchmarks/report_speed.py
	$(BIN)/python benchmarks/asyncio_cost.py

# The tests of the C parts, built with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/installed
	tools/sanitize $(BIN)/python address

# Those with several threads, built with ThreadSanitizer.
sanitize-threads: $(VENV)/installed
	tools/sanitize $(BIN)/python thread

# The tests of the ledger on every other supported Python. Missing Pythons are downloaded into .pythons.
test-all-pythons:
	OPTIONAL=3.15 tools/test_all_pythons 3.12 3.13 3.14

$(VENV)/installed: pyproject.toml constraints.txt setup.py $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .venv-* .pythons build src/rlprof/*/*.so src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
