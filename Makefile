# `make demo`, `make test` and `make drill`. Each does all of its own set-up.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/pip --disable-pip-version-check --quiet
TYPES := tools/types/node_modules
PACKAGES := $(shell grep -v '^#' tests/debian-packages.txt)

.PHONY: help demo test drill lint services constraints clean

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

demo: $(VENV)/demo ## a small Laravel-shaped world, and the exporter on http://127.0.0.1:10087 (INCIDENT=name rehearses one)
	@$(VENV)/bin/queue-exporter demo $(if $(INCIDENT),--incident $(INCIDENT))

test: $(VENV)/dev services lint ## all checks; installs Debian packages, as root or with sudo, and says which
	$(VENV)/bin/pytest --numprocesses 4 --dist loadfile $(ARGS)

drill: $(VENV)/dev services ## every incident, brought about and told by its alert; writes the table into README.md
	$(VENV)/bin/python -m tests.drills

lint: $(VENV)/dev $(TYPES) ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

services: ## the servers that the tests run for real
	@tests/install-services $(PACKAGES)

$(TYPES): tools/types/package-lock.json | $(VENV)/dev
	@echo "installing Grafana's types into tools/types"
	@PATH=$(CURDIR)/$(VENV)/bin:$$PATH npm --prefix tools/types ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing the exporter and its demo into $(VENV)"
	@$(PIP) install -c constraints.txt -e '.[demo]'
	@touch $@

$(VENV)/dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing the exporter, its demo and the test tools into $(VENV)"
	@$(PIP) install -c constraints.txt -e '.[demo,dev]'
	@touch $@ $(VENV)/demo

constraints: ## the newest versions of everything, to be tried and committed
	rm -rf $(VENV)/new && $(PYTHON) -m venv $(VENV)/new
	$(VENV)/new/bin/pip --disable-pip-version-check --quiet install '.[demo,dev]'
	@echo "# The versions that the two commands install and CI has run; \`make constraints\` renews them." > constraints.txt
	$(VENV)/new/bin/pip freeze --exclude laravel-queue-exporter >> constraints.txt

clean: ## remove what make has made
	rm -rf $(VENV) $(TYPES) .mypy_cache .pytest_cache .ruff_cache .hypothesis
