.PHONY: run install check test test-slow
PYTHON ?= python3
BIN := .venv/bin

run: .venv/runs
	$(BIN)/python run_classifier.py --task_name=MRPC

install: .venv/develops

check: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/pytest tests/test_architecture.py

test: install
	$(BIN)/pytest -m "not slow" -n 2 --dist loadfile --cov --cov-report=term

# BERT_TF_PEERS_PYTHON names the Python of a virtual environment with requirements-peers.txt.
test-slow: install
	$(BIN)/pytest -m slow

.venv/runs: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements.txt
	touch $@

.venv/develops: .venv/runs requirements-dev.txt
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@
