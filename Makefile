# `make` alone lists what there is to do. Everything sets itself up from a bare Python 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SET_UP := $(VENV)/.set-up

.DEFAULT_GOAL := help
.PHONY: help run machine test check fix e2e soak conformance oracle bench sizes lock clean

help:  ## List these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(SET_UP)  ## Run the PyTorch tutorial's job on this machine, with its logs, to Succeeded
	$(BIN)/fullrank run examples/pytorch-simple/pytorch-simple.yaml

test: $(SET_UP) check  ## Check everything, then run all tests
	$(BIN)/pytest

machine:  ## Install what some tests want beyond Python, with apt-get, as root: a browser, a container engine
	export DEBIAN_FRONTEND=noninteractive; packages="chromium podman runc"; \
	apt-get install -y $$packages || { apt-get update && apt-get install -y $$packages; }

check: $(SET_UP)  ## Format, lint, types, layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(SET_UP)  ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

e2e: $(SET_UP)  ## The end-to-end tests, slow ones too: real processes, real kubectl, real training, clients others wrote
	$(BIN)/pytest tests/e2e tests/clients -m "slow or not slow"

soak: $(SET_UP)  ## The long run (half an hour): servers killed 200 times while clients write, 100 times while jobs run
	$(BIN)/python -m tests.soak

bench: $(SET_UP)  ## Measure: the home from outside, its control plane, crowds, planner, scheduler, and (KUBEBUILDER_ASSETS) the operator
	$(BIN)/python -m tests.bench.home
	$(BIN)/python -m tests.bench.control_plane
	$(BIN)/python -m tests.bench.scale
	$(BIN)/python -m tests.bench.planner
	$(BIN)/python -m tests.bench.scheduler
	[ -z "$$KUBEBUILDER_ASSETS" ] || $(BIN)/python -m tests.bench.operator

conformance: $(SET_UP)  ## Kubernetes' own tests against a home (KUBEBUILDER_ASSETS: e2e.test, agnhost, kubectl)
	$(BIN)/python -m tests.conformance

oracle: $(SET_UP)  ## Our operator beside training-operator v1.8.1 on a real control plane (KUBEBUILDER_ASSETS)
	$(BIN)/python -m tests.oracle

sizes: $(SET_UP)  ## How long files are: a guide, not a gate
	@wc -l $$(git ls-files 'src/*.py') | sort -n | tail -25

lock: $(SET_UP)  ## Choose the newest versions of all dependencies anew
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-header -q pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-header -q --group dev pyproject.toml -o requirements-dev.lock

clean:  ## Remove what these targets made here (not the home with its jobs)
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(SET_UP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Fullrank needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $(SET_UP)
