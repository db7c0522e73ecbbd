# The way in. Each target sets up what it needs.

CARGO ?= cargo
FIXTURES := $(sort $(wildcard fixtures/kep/*/*.yaml fixtures/real-world/*.yaml fixtures/real-world/with-intent/*.yaml))
# The manifest that uses everything comes first: what it compiles to is shown.
FILE ?= fixtures/kep/field/my-db.yaml $(filter-out fixtures/kep/field/my-db.yaml,$(FIXTURES))
FORMAT ?= table
GOLDEN_DIR ?= fixtures/golden
# At most so many bytes: 350 KiB.
MAX_POLICY_SIZE := 358400

WASM_TARGET := wasm32-wasip1
WASM_BUILT := target/$(WASM_TARGET)/wasm/statefulset_scheduling_policy.wasm
# Only what the compiler itself uses: with everything on, wasm-opt writes modules that the engines'
# tools cannot parse.
WASM_FEATURES := --enable-bulk-memory --enable-sign-ext --enable-mutable-globals \
	--enable-nontrapping-float-to-int --enable-reference-types --enable-multivalue

.DEFAULT_GOAL := help
.PHONY: help setup run test golden lint size bench bench-controller wasm clean

help: ## Shows this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Installs what the build needs beyond cargo
	@scripts/setup

run: policy.wasm ## Reviews the fixtures, or FILE=my.yaml, with the module in wasmtime (FORMAT=table|yaml|json)
	@$(CARGO) run --quiet -p host-harness --bin review -- --output $(FORMAT) $(FILE)

test: policy.wasm ## Runs all tests, the golden vectors last
	$(CARGO) test --workspace --lib --bins --tests --exclude host-harness
	$(CARGO) test -p host-harness --lib --bins --test 'module_*'
	@$(MAKE) --no-print-directory size
	@$(MAKE) --no-print-directory golden

golden: policy.wasm ## Compares the golden vectors of GOLDEN_DIR, on the native core and through the module
	@GOLDEN_DIR=$(abspath $(GOLDEN_DIR)) $(CARGO) test --quiet -p host-harness --test golden

lint: setup ## Checks format, lints and documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy -p statefulset-scheduling-policy --target $(WASM_TARGET) -- -D warnings
	$(CARGO) clippy -p statefulset-scheduling-core --target wasm32-unknown-unknown -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

size: policy.wasm ## Prints the size of the module; over the bound is an error
	@size=$$(wc -c < policy.wasm); \
	printf 'policy.wasm: %d bytes, bound %d (%d KiB)\n' $$size $(MAX_POLICY_SIZE) $$(( $(MAX_POLICY_SIZE) / 1024 )); \
	test $$size -le $(MAX_POLICY_SIZE)

bench: policy.wasm ## Measures the module and the core, as ratios
	$(CARGO) bench -p host-harness

bench-controller: ## Measures the controller at scale; over a bound is an error
	$(CARGO) bench -p statefulset-scheduling-controller --bench scale

# Cargo decides whether anything is to be built; the optimised module follows it.
policy.wasm: wasm
	@if [ ! -e $@ ] || [ $(WASM_BUILT) -nt $@ ]; then \
		wasm-opt -Oz $(WASM_FEATURES) --strip-debug --strip-producers $(WASM_BUILT) -o $@.tmp && mv $@.tmp $@; \
	fi

wasm: setup
	@$(CARGO) build --quiet --profile wasm --target $(WASM_TARGET) -p statefulset-scheduling-policy

clean: ## Removes everything that was built
	$(CARGO) clean
	rm -f policy.wasm
