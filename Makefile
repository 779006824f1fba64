.PHONY: install run check test test-slow
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

install: $(VENV)/ready

$(VENV)/ready: requirements.txt requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@

run: install
	$(BIN)/python run_classifier.py --task_name=MRPC

check: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/pytest tests/test_architecture.py

test: install
	$(BIN)/pytest -m "not slow" -n 2 --cov --cov-report=term

test-slow: install
	$(BIN)/pip install --quiet -r requirements-peers.txt
	$(BIN)/pytest -m slow
