# Two commands do everything on a fresh machine: `make transcribe` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := check

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUST   := $(shell find rust_fe -name '*.rs' -o -name Cargo.toml 2>/dev/null) Cargo.toml Cargo.lock
CLIP   := golden/audio/transcribe_me.wav

export PYTHONDONTWRITEBYTECODE :=
export CARGO_TERM_COLOR ?= never

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# ---------------------------------------------------------------- set up and build

.PHONY: tools
tools: ## check the compiler, Rust and Python; say how to install what is missing
	@bash .ci/tools.sh $(PYTHON)

$(VENV)/ready: pyproject.toml | tools
	@echo "== environment $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --group dev
	@touch $@

$(VENV)/built: $(VENV)/ready $(RUST) README.md LICENSE
	@echo "== build"
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) PIP_QUIET=1 $(BIN)/maturin develop --release --locked --quiet
	@$(BIN)/python -m compileall -q asr
	@touch $@

.PHONY: dev
dev: $(VENV)/built ## set up the environment and build the Rust part

.PHONY: edge
edge: $(VENV)/ready ## build the program and the C library for boards, for this machine (docs/edge.md)
	@cargo build --quiet --release --locked -p asr-edge

.PHONY: transcribe
transcribe: $(VENV)/built ## set up, build, transcribe a shipped clip; print text and timings
	$(BIN)/asr transcribe $(CLIP) --timings

# ---------------------------------------------------------------- what CI runs first

.PHONY: check test
check: test ## the same as make test
test: lint types test-rust test-python ## lint, types, Rust and Python tests, the docs' commands
	@test -n "$${ASR_SENSEVOICE_FILES:-}" || echo "make test: NOT PROVED HERE: SenseVoice's own" \
	  "tokenizer and CMVN files; ASR_SENSEVOICE_FILES=FOLDER names them"
	@echo "make test: all passed. Not covered here: system calls (strace), cold start and front-end" \
	  "races against peers; make test-system runs those."

.PHONY: lint
lint: $(VENV)/built ## formatting and lints, Python and Rust
	@echo "== lint"
	@$(BIN)/ruff format --check --quiet . || { echo "run: make fmt"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@cargo fmt --all --check
	@cargo clippy --quiet --workspace --all-targets --all-features --locked -- -D warnings

.PHONY: types
types: $(VENV)/built ## mypy --strict, and the stub against the compiled module
	@echo "== types"
	@$(BIN)/mypy
	@$(BIN)/python -m mypy.stubtest asr._rust_fe

.PHONY: test-rust
test-rust: $(VENV)/ready ## Rust tests
	@echo "== Rust tests"
	@cargo test --quiet --workspace --locked

.PHONY: test-python
test-python: $(VENV)/built edge ## Python tests
	@echo "== Python tests"
	@HYPOTHESIS_PROFILE=$${CI:+ci} $(BIN)/python -m pytest -q -m "not system" tests

.PHONY: test-system
test-system: $(VENV)/built .venv-peers/ready .venv-openvino/ready ## system calls, cold start, races; needs strace, hyperfine and the peers
	@echo "== system tests"
	@$(BIN)/python -m pytest -q -rP -m system tests

.PHONY: fuzz
fuzz: $(VENV)/built ## fuzz readers, boundary and rust_fe: MINUTES=10, SEED=N; by coverage with a nightly Rust
	@$(BIN)/python fuzz/run.py --minutes $${MINUTES:-10} $${SEED:+--seed $$SEED}

# ---------------------------------------------------------------- references and peers

.venv-golden/ready: golden/requirements.txt
	@test -x .venv-golden/bin/python || $(PYTHON) -m venv .venv-golden
	@.venv-golden/bin/python -m pip install --quiet -r golden/requirements.txt
	@touch $@

.PHONY: golden
golden: .venv-golden/ready ## make the expected values anew from the pinned references, show the diff
	.venv-golden/bin/python golden/make.py
	@git --no-pager diff --stat -- golden/expected

.venv-%/ready: benchmarks/peers/requirements-%.txt
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet -r $<
	@touch $@

PEERS_READY := $(foreach name,peers sherpa-onnx asrfront openvino ort128,.venv-$(name)/ready)
# The full-size reference networks; made from SenseVoice's own files (ASR_SENSEVOICE_FILES) if absent.
NETWORKS ?= target/reference-full

$(NETWORKS)/networks.json:
	@$(MAKE) --no-print-directory .venv-reference/ready
	.venv-reference/bin/python models/reference/make.py --size full --out $(NETWORKS)

.PHONY: peers-environments
peers-environments: $(PEERS_READY) ## set up the environments of the peers, 1.5 GB

.PHONY: peers
peers: $(VENV)/built edge peers-environments $(NETWORKS)/networks.json ## against the peers at full size: table, targets; NETWORKS=folder PEERS="--help"
	$(BIN)/python benchmarks/peers/compare.py --networks $(NETWORKS) $(PEERS)

.PHONY: peers-readme
peers-readme: $(VENV)/built ## write README's section "How fast" from the recorded result
	$(BIN)/python benchmarks/peers/compare.py --readme

.PHONY: parity
parity: $(VENV)/built .venv-peers/ready .venv-sherpa-onnx/ready .venv-ort128/ready ## our tokens against those of the peers' own programs
	$(BIN)/python benchmarks/peers/parity.py

.venv-reference/ready: models/reference/requirements.txt
	@test -x .venv-reference/bin/python || $(PYTHON) -m venv .venv-reference
	@.venv-reference/bin/python -m pip install --quiet -r $<
	@touch $@

.PHONY: reference-networks
reference-networks: .venv-reference/ready ## make tests/networks anew (needs torch), show what changed
	.venv-reference/bin/python models/reference/make.py --size tiny --out tests/networks
	@git --no-pager diff --stat -- tests/networks

.PHONY: train-tiny
train-tiny: ## train the built-in model: DATA=manifest.tsv WORK=folder (needs torch, hours)
	models/tiny-en/recipe.sh $(DATA) $(WORK)

.PHONY: calibrate
calibrate: $(VENV)/built ## confidence and rejection of a trained model: DATA= TTS= MODEL= WORK= (needs onnx)
	PYTHONPATH=$(CURDIR) $(BIN)/python models/tiny-en/calibrate.py --data $(DATA) --synthetic $(TTS) \
	  --model $(MODEL) --out $(WORK)

.PHONY: model-card
model-card: $(VENV)/built ## measure the built-in model on the test split: DATA=manifest.tsv [FP32=model.onnx]
	@$(BIN)/python models/tiny-en/evaluate.py --data $(DATA) $(if $(FP32),--fp32 $(FP32))

.PHONY: race
race: $(VENV)/built .venv-peers/ready ## front end and decoder against peers and NumPy, cold start
	PYTHONPATH=$(CURDIR) .venv-peers/bin/python benchmarks/race_frontend.py
	$(BIN)/python benchmarks/race_decode.py
	$(BIN)/python benchmarks/cold_start.py

.PHONY: instructions
instructions: $(VENV)/built ## instructions of each Rust stage against their budget, x86-64 and aarch64 (needs valgrind, qemu-user, mmdebstrap)
	@$(BIN)/python benchmarks/instructions.py

.PHONY: text-by-format
text-by-format: $(VENV)/built ## texts of every container, encoding, rate and channels against the clip's own
	$(BIN)/python benchmarks/text_by_format.py

# ---------------------------------------------------------------- boards (deploy/README.md)

IMAGE := build/deploy
OUT    = $(IMAGE)/out
DEPLOY := $(BIN)/asr deploy

.PHONY: image-tools
image-tools:
	@bash .ci/image-tools.sh

$(IMAGE)/fetched/ready: $(VENV)/built asr/deploy/contents.toml asr/deploy/wheels.lock | image-tools
	@echo "== fetch"
	@$(DEPLOY) fetch
	@touch $@

.PHONY: image
image: $(IMAGE)/fetched/ready ## build the Cortex-A76 images, packages and wheels into build/deploy/out
	@echo "== image: rust"
	@rm -rf $(OUT)
	@$(DEPLOY) build --profile rust --with-model tiny-en
	@$(DEPLOY) pack --profile rust --format oci --format tar.gz --format squashfs --format deb
	@echo "== image: python"
	@$(DEPLOY) build --profile python
	@$(DEPLOY) pack --profile python --format oci --format tar.gz --format squashfs
	@echo "== wheels"
	@$(DEPLOY) wheel

.PHONY: verify-image
verify-image: $(VENV)/built image-tools ## open the images, run them on emulated boards, boot one, build them again
	@echo "== verify"
	@$(DEPLOY) verify $(OUT)/asr-rust-*.oci.tar
	@$(DEPLOY) verify $(OUT)/asr-python-*.oci.tar --no-boot
	@bash .ci/image-checks.sh $(IMAGE)
	@$(BIN)/python .ci/board_golden.py $(IMAGE)

# ---------------------------------------------------------------- slower, larger, wrong?

.PHONY: gate
gate: $(VENV)/built ## judge this version against its parent, the reference and the budget
	$(BIN)/asr gate --quick

.PHONY: gate-proof
gate-proof: $(VENV)/built ## prove the gate with planted regressions (RUNS=20: hours; resumable)
	$(BIN)/python benchmarks/gate_proof.py --runs $(or $(RUNS),20) --write docs/gate-proof.md

# ---------------------------------------------------------------- for contributors

.PHONY: fmt
fmt: $(VENV)/ready ## format everything
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix . && cargo fmt --all

.PHONY: wheel
wheel: $(VENV)/ready ## build the wheel into dist/
	@$(BIN)/maturin build --release --locked --out dist

.PHONY: audit
audit: ## licences and sources of the Rust crates (needs cargo-deny)
	cargo deny check licenses bans sources

.PHONY: clean
clean: ## remove everything that can be made again
	rm -rf target dist build/deploy $(VENV) .venv-* asr/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
