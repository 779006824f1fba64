.PHONY: run install check check-gpu test coverage test-slow benchmark-env
PYTHON ?= python3
BIN := .venv/bin

# make run GPU=1 installs CUDA's libraries too, 1.9 GB. NVIDIA is what tells that there is a card.
NVIDIA = $(wildcard /proc/driver/nvidia /dev/nvidia0) $(shell command -v nvidia-smi)
RUNS := $(if $(filter-out 0 no false,$(GPU)),.venv/gpu,.venv/runs)

run: $(RUNS)
	@[ -e .venv/gpu ] || [ -z "$(strip $(NVIDIA))" ] \
	  || echo "make run: there is an NVIDIA GPU: make run GPU=1 installs CUDA's libraries, with which it is used" >&2
	$(BIN)/python run_classifier.py --task_name=MRPC

install: .venv/develops

check: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/pytest tests/test_architecture.py

# Whether requirements-gpu.txt can be installed here; it needs the package registry, and installs nothing.
check-gpu: install
	$(BIN)/pip install --quiet --dry-run -r requirements-gpu.txt

# Files in the order that tests/conftest.py gives them, the long ones first: sorted by their number of tests, these would be
# left for one worker at the end.
TESTS := -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

test: install
	$(BIN)/pytest $(TESTS)

# The same tests a third slower, since Python's tracing sees every call of TensorFlow's too.
coverage: install
	$(BIN)/pytest $(TESTS) --cov --cov-report=term

# BERT_TF_PEERS_PYTHON names the Python of a virtual environment with benchmarks/peers/transformers.txt: .peers/transformers/bin/python
# Pages are looked at in a browser: apt-get install chromium
test-slow: install
	$(BIN)/pytest -m slow

# What `python -m bert_tf benchmark --peers` measures beside ours: a virtual environment for each library. One that cannot be
# installed is left out, and the benchmark says so.
benchmark-env: .peers/transformers .peers/keras_hub .peers/model_garden

.peers/%:
	($(PYTHON) -m venv $@ && $@/bin/pip install --quiet -r benchmarks/peers/$*.txt) \
	  || (rm -rf $@; echo "$* cannot be installed: it is left out" >&2)

.venv/runs: requirements.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements.txt
	touch $@

.venv/gpu: .venv/runs requirements-gpu.txt
	$(BIN)/pip install --quiet -r requirements-gpu.txt
	touch $@

.venv/develops: .venv/runs requirements-dev.txt
	$(BIN)/pip install --quiet -r requirements-dev.txt
	touch $@
