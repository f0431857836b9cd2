# make run    the main job on a bundled real dump; needs nothing but Python 3.10+ and make
# make test   lint, types and the whole test suite
# make bench  side by side with msprobe

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXAMPLE := examples/tp2_dp2_log_of_zero

.PHONY: run test lint bench clean

run: $(VENV)/pipeline
	$(BIN)/crossrank analyze $(EXAMPLE)

test: lint browser hosts
	$(BIN)/python -m pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/pipeline
	$(BIN)/python benchmarks/analyze.py --ranks 8 --calls 20000

# the report is tested in a real browser
.PHONY: browser
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || (apt-get update -qq && apt-get install -y -qq chromium chromium-driver)

# ray_cluster.yaml is tested on hosts of our own, for which it takes root: network namespaces with sshd
.PHONY: hosts
hosts:
	@[ "$$(id -u)" != 0 ] || (command -v sshd && command -v ip && command -v rsync \
	  && PATH=/usr/local/bin:/usr/bin python3 -c 'import ensurepip') >/dev/null 2>&1 \
	  || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	    openssh-server iproute2 rsync python3-venv)

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip

$(VENV)/pipeline: $(BIN)/pip pyproject.toml
	$(BIN)/pip install -q -e '.[pipeline]'
	@touch $@

$(VENV)/dev: $(BIN)/pip pyproject.toml
	$(BIN)/pip install -q -e '.[pipeline,dev]'
	@touch $@ $(VENV)/pipeline

clean:
	rm -rf $(VENV) build *.egg-info crossrank_out
