.PHONY: run install lock wheel check check-requirements test test-machines test-versions coverage test-slow benchmark-env
# The virtual environment. It is remade if make is given another PYTHON or TF than it was made with.
VENV ?= .venv
BIN := $(VENV)/bin

# TF=2.15 for TensorFlow 2.15, TF=newest for the newest one that supports the Python; without it that of the environment, else the newest.
TF ?= $(if $(wildcard $(VENV)/made-2.15-*),2.15,newest)
REQUIREMENTS := $(if $(filter 2.15,$(TF)),requirements-2.15.txt,requirements.txt)
ifeq ($(filter 2.15 newest,$(TF)),)
$(error TF is newest or 2.15, not $(TF))
endif

# Without PYTHON that of the environment, else python3, else another one that TensorFlow supports.
FOUND := $(shell .ci/find_python $(TF) $(if $(PYTHON),only $(PYTHON),first $(wildcard $(BIN)/python)))
ifeq ($(filter /%,$(firstword $(FOUND))),)
$(error $(or $(FOUND),.ci/find_python failed))
endif
MADE := $(VENV)/made-$(TF)-$(lastword $(FOUND))
ifeq ($(shell $(BIN)/python -c 'print(1)' 2>/dev/null),)
.PHONY: $(MADE)
endif

# make run GPU=1 installs CUDA's libraries too, 1.9 GB. NVIDIA is what tells that there is a card.
NVIDIA = $(wildcard /proc/driver/nvidia /dev/nvidia0) $(shell command -v nvidia-smi)
RUNS := $(VENV)/$(if $(filter-out 0 no false,$(GPU)),gpu,runs)

# make install LOCKED=1 installs exact versions, each with its hash, and nothing else: what CI does, on Linux x86-64. make lock
# writes what pip would install today. A Python without a lock gets the versions of the ranges.
LOCK := .ci/locks/$(TF)-$(lastword $(FOUND)).txt
PINNED := $(addprefix --require-hashes -r ,$(if $(LOCKED),$(wildcard $(LOCK))))

# Modules are compiled when they are first imported, most of them never: installing takes less than half of the time.
PIP_OPTIONS := --quiet --no-compile
# With it, every start would compile them again.
unexport PYTHONDONTWRITEBYTECODE

run: $(RUNS)
	@[ -e $(VENV)/gpu ] || [ -z "$(strip $(NVIDIA))" ] \
	  || echo "make run: there is an NVIDIA GPU: make run GPU=1 installs CUDA's libraries, with which it is used" >&2
	$(BIN)/python run_classifier.py --task_name=MRPC

install: $(VENV)/develops

lock: $(MADE)
	$(BIN)/python .ci/lock.py $(REQUIREMENTS) $(LOCK)

# dist/*.whl, with a list of what it needs: exact versions and hashes, in CycloneDX's form.
wheel: install
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python .ci/lock.py dist/bert_tf-*.whl

check: install
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/pytest tests/test_architecture.py

# Whether today's package registry has versions that fit together: for development, a GPU, and each extra. Nothing is installed.
# It depends on the day, not on the change, so it is no part of CI: docs/versions.md says when to run it.
check-requirements: install
	$(BIN)/python .ci/check_requirements.py $(REQUIREMENTS)

# Each of two workers has half of the tests, and at its end takes some of the other's.
WORKERS := -n 2 --dist worksteal

test: install
	$(BIN)/pytest -m "not slow and not several_machines" $(WORKERS)

# Processes that train together, each as a machine of its own; Apache Beam, wheels.
test-machines: install
	$(BIN)/pytest -m several_machines $(WORKERS)

# What can differ between versions of TensorFlow.
test-versions: install
	$(BIN)/pytest -m "versions and not slow" $(WORKERS)

# Python 3.12 and newer count lines for next to nothing; older ones take a third longer.
coverage: install
	COVERAGE_CORE=sysmon $(BIN)/pytest -m "not slow" $(WORKERS) --cov --cov-report=term

# BERT_TF_PEERS_PYTHON names the Python of a virtual environment with benchmarks/peers/transformers.txt: .peers/transformers/bin/python
# Pages are looked at in a browser: apt-get install chromium
test-slow: install
	$(BIN)/pytest -m slow

# What `python -m bert_tf benchmark --peers` measures beside ours: a virtual environment for each library. One that cannot be
# installed is left out, and the benchmark says so.
benchmark-env: .peers/transformers .peers/keras_hub .peers/model_garden

.peers/%:
	($(firstword $(FOUND)) -m venv --upgrade-deps $@ && $@/bin/pip install --quiet -r benchmarks/peers/$*.txt) \
	  || (rm -rf $@; echo "$* cannot be installed: it is left out" >&2)

# The pip of Python 3.9 and 3.10 cannot build seqeval, which is published as a source only.
$(MADE):
	@[ ! -e $(VENV) ] || [ -e $(VENV)/pyvenv.cfg ] || { echo "make: $(VENV) is no virtual environment: name another VENV" >&2; exit 1; }
	$(firstword $(FOUND)) -m venv --clear --upgrade-deps $(VENV)
	touch $@

$(VENV)/runs: $(MADE) requirements-base.txt $(REQUIREMENTS)
	$(BIN)/pip install $(PIP_OPTIONS) $(or $(PINNED),-r $(REQUIREMENTS))
	touch $@

$(VENV)/gpu: $(VENV)/runs requirements-gpu.txt
	$(BIN)/pip install $(PIP_OPTIONS) -r $(REQUIREMENTS) -r requirements-gpu.txt
	touch $@

$(VENV)/develops: $(VENV)/runs requirements-dev.txt
	$(BIN)/pip install $(PIP_OPTIONS) $(or $(PINNED),-r $(REQUIREMENTS) -r requirements-dev.txt)
	touch $@
