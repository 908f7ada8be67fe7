# Start with `make train` and `make test`; both set up .venv on first use.
PYTHON ?= python3
ARGS ?=
SECONDS ?= 60
SEED ?= 0
BIN := .venv/bin
TRAINS := .venv/.trains
INSTALLED := .venv/.installed
COMPILED := .venv/.compiled

# Two processes; each runs whole modules, so what the tests of a module share is made once.
# tests/conftest.py orders them. A process that dies ends the run: one that took its place would wait for ever.
PARALLEL := -n 2 --max-worker-restart=0 --dist loadfile --no-loadscope-reorder
# Slow tests are few and long, so whichever process is free takes the next one.
STEALING := -n 2 --max-worker-restart=0 --dist worksteal -m slow

COMPAT := compat-sb3 compat-cleanrl compat-torchrl compat-rllib compat-onnx compat-optuna compat-executors compat-minari

.PHONY: train warmup test test-slow other-python docs wheels wheel-test fuzz faults lint types contract cuda gpu web format clean compat
.PHONY: compat-gymnasium $(COMPAT)

# Installs and compiles only what training, evaluation and video need.
train: $(TRAINS)
	@$(BIN)/nclone-env warmup train
	@$(BIN)/nclone-env train $(ARGS)

# Compile all kernels, unless they are cached.
warmup: $(INSTALLED)
	@$(BIN)/nclone-env warmup
	@touch $(COMPILED)

# Before tests, after an edit alone: to see that all are cached takes seven seconds.
$(COMPILED): $(INSTALLED) $(shell find nclone_env -name '*.py')
	@$(MAKE) --no-print-directory warmup

# Python caches compiled modules, also where the surroundings forbid it: tests start some hundred processes.
unexport PYTHONDONTWRITEBYTECODE

# Tests of memory have processes of their own: to look at memory takes three times as long where torch is loaded.
test: $(COMPILED)
	$(if $(ARGS),,$(BIN)/pytest $(PARALLEL) tests/memory)
	$(BIN)/pytest $(PARALLEL) $(or $(ARGS),--ignore=tests/memory)

# Compile all kernels and run a core on a second Python, if there is one.
other-python: $(INSTALLED)
	@.ci/other-python

test-slow: $(COMPILED)
	$(if $(ARGS),,$(BIN)/pytest $(STEALING) tests/memory)
	$(BIN)/pytest $(STEALING) $(or $(ARGS),--ignore=tests/memory)

# Build the documentation site into site/, with warnings as errors (not with --quiet, which drops them before they count);
# nothing in it is loaded from elsewhere.
docs: .venv-docs/.installed $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build
	$(BIN)/nclone-env gallery $(sort $(notdir $(patsubst %/,%,$(wildcard levels/*/)))) --title "Levels of the package" --output site/gallery

# Build the wheel with machine code for this platform and Python (docs/installation.md).
wheels: $(INSTALLED)
	NCLONE_ENV_CODE=1 $(BIN)/python -m build --wheel --no-isolation $(ARGS)

# Install the wheel for every Python on the PATH and run the examples of the README with it (docs/installation.md).
wheel-test: $(INSTALLED)
	$(BIN)/python -m profiling.checks.wheel_test $(ARGS)

# Kill and fail every system call that writes a file, and print what is left (docs/operation/security.md). Requires strace.
faults: warmup
	$(BIN)/python -m tests.faults $(ARGS)

# Damaged and forged files, arguments and calls (docs/operation/security.md).
fuzz: warmup
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(INSTALLED)
	$(BIN)/mypy

contract: $(INSTALLED)
	$(BIN)/lint-imports

# Compile the kernels for CUDA and check the code. Requires no GPU (docs/operation/cuda.md).
cuda: $(INSTALLED)
	@$(BIN)/python -m profiling.checks.cuda_code $(ARGS)

# Compare environments on this machine's GPU with those of the processor, and time them; at most four minutes.
gpu: $(INSTALLED)
	@$(BIN)/python -m profiling.checks.cuda_run $(ARGS)

# Build the kernels as WebAssembly into the package, for pages. Requires a linker (apt-get install lld, or pip install ziglang).
web: $(INSTALLED)
	@$(BIN)/python -m profiling.checks.web

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Test other libraries, each in a separate environment under .venv-compat (docs/environments/compatibility.md).
compat: compat-gymnasium $(COMPAT)

$(COMPAT): compat-%: .venv-compat/%/.installed
	.venv-compat/$*/bin/python -m pytest tests/compat/test_$*.py $(ARGS)

compat-gymnasium: .venv-compat/gymnasium/.installed
	.venv-compat/gymnasium/bin/python -m pytest tests/env tests/system $(ARGS)

.venv-compat/%/.installed: tests/compat/%.txt constraints.txt pyproject.toml
	@echo "Setting up .venv-compat/$* (some minutes, once) ..."
	@$(PYTHON) -m venv .venv-compat/$*
	@.venv-compat/$*/bin/python -m pip install --quiet --disable-pip-version-check -r tests/compat/$*.txt -e .
	@touch $@

clean:
	rm -rf .venv .venv-compat .venv-docs .venv-other runs dist build site

# Python compiles the modules that are imported; all modules of all packages would take half of the time. Without a GPU
# a build of PyTorch for processors, if none is there and a package index of pip's settings has it: the plain release
# brings 4 GB of libraries for GPUs.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
TORCH := $(shell sed -n 's/^torch==\([0-9.]*\).*/torch==\1+cpu/p' constraints.txt)

$(TRAINS): pyproject.toml constraints.txt
	@echo "Setting up .venv (a minute, once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv
	@nvidia-smi -L > /dev/null 2>&1 || ls .venv/lib/python*/site-packages/torch > /dev/null 2>&1 \
		|| $(PIP) "$(TORCH)" 2> /dev/null || true
	@$(PIP) -e ".[train,human,video]"
	@touch $@

# All else: tests, types, profiler.
$(INSTALLED): $(TRAINS)
	@echo "Completing .venv (half a minute, once) ..."
	@$(PIP) -e ".[all,dev]"
	@touch $@

# The reference is made from the sources, which are read and not imported, so the package is not installed.
.venv-docs/.installed: pyproject.toml constraints.txt
	@echo "Setting up .venv-docs (half a minute, once) ..."
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $$($(PYTHON) -c \
		'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"])')
	@touch $@
