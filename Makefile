# `make help` lists the targets. Everything that is installed goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
MODEL ?= smollm2-135m-instruct
ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo serve test sim lint regs docs bench-rtl bench-policy bench-twin bench-engine bench-tiers bench-daemon soak fuzz clean formal push

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

setup: $(READY) ## make .venv with every pinned package (done once; again when pins change)

demo: $(READY) ## three concurrent chats through the scheduler's RTL, a table and a picture of the run
	@$(BIN)/cuelight demo --model $(MODEL)

serve: $(READY) ## the daemon: an OpenAI-compatible service; ARGS="--port 9000 --settings cuelight.toml"
	@$(BIN)/cuelight serve --model $(MODEL) $(ARGS)

test: lint ## lint, type check, then all tests
	@$(BIN)/pytest -q -n 2

sim: $(READY) ## cocotb benches on Verilator and Icarus; narrowed by SIM=icarus BENCH=cancel ONLY=twice; SEED=7 WAVES=1 FULL=1
	@SIM=$(SIM) PYTHON=$(BIN)/python sim/benches/prepare.sh
	@cd sim && ../$(BIN)/python -m benches $(if $(SIM),--sim $(SIM)) $(if $(BENCH),--bench $(BENCH)) \
		$(if $(ONLY),--only '$(ONLY)') $(if $(SEED),--seed $(SEED)) $(if $(WAVES),--waves) $(if $(FULL),--full)
	@$(if $(SIM)$(BENCH)$(ONLY),,cd sim && ../$(BIN)/python -m cuelight_push --schedules 60)

push: $(READY) ## what a board pushes, and random schedules of faults on the way; SCHEDULES=10000
	@cd sim && ../$(BIN)/python -m cuelight_push --schedules $(or $(SCHEDULES),400)

lint: $(READY) ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/mypy

formal: $(READY) ## prove the RTL: a table of sentences, with the method, depth and time of each proof
	@$(BIN)/python -m cuelight_formal

regs: $(READY) ## generate what follows from rtl/cuelight.rdl
	@cd rtl && ../$(BIN)/python -m regs

docs: $(READY) ## the register reference as HTML, in build/registers/, and the guides' pictures
	@cd rtl && ../$(BIN)/python -m regs --html ../build/registers
	@SIM=verilator PYTHON=$(BIN)/python sim/benches/prepare.sh
	@cd docs && PYTHONPATH=../sim ../$(BIN)/python -m draw

bench-rtl: $(READY) ## exact cycle counts of the RTL, and the account of its state
	@$(BIN)/python bench/rtl.py

bench-policy: $(READY) ## what settings of the policy do to each tier, on the RTL with a lane of a given pace
	@$(BIN)/python bench/policies.py

bench-twin: $(READY) ## completion to next descriptor through the twin, and cycles per second
	@$(BIN)/python bench/twin.py

bench-engine: $(READY) ## decode speed with the scheduler in the loop, beside transformers and llama.cpp; what drawing costs
	@$(BIN)/python bench/engine.py
	@$(BIN)/python bench/sampling.py

bench-tiers: $(READY) ## a VIP's time to first token beside best-effort requests, on the RTL, on the real engine and through the daemon
	@$(BIN)/python bench/tiers_rtl.py
	@$(BIN)/python bench/tiers.py
	@$(BIN)/python bench/tiers_daemon.py

bench-daemon: $(READY) ## what the daemon adds to a question, questions and streamed tokens a second, with a lane that runs no model
	@$(BIN)/python bench/daemon.py

soak: $(READY) ## 64 streams of the default model for two minutes, with clients that hang up and two deaths of the lane
	@$(BIN)/python bench/soak.py

fuzz: $(READY) ## questions made from the daemon's OpenAPI description; FUZZ=5000 of each kind
	@FUZZ=$(or $(FUZZ),2000) $(BIN)/pytest -q tests/daemon/test_fuzz.py

clean: ## remove what was built or written here; .venv and the cache stay
	rm -rf build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt setup.sh
	@PYTHON=$(PYTHON) VENV=$(VENV) ./setup.sh
	@touch $@
