# The way in. Each target sets up what it needs.

CARGO ?= cargo
FIXTURES := $(sort $(wildcard fixtures/kep/*/*.yaml fixtures/real-world/*.yaml fixtures/real-world/with-intent/*.yaml))
# The manifest that uses everything comes first: what it compiles to is shown.
FILE ?= fixtures/kep/field/my-db.yaml $(filter-out fixtures/kep/field/my-db.yaml,$(FIXTURES))
FORMAT ?= table
GOLDEN_DIR ?= fixtures/golden
# At most so many bytes: 350 KiB.
MAX_POLICY_SIZE := 358400
MAX_OPA_SIZE := 614400

WASM_TARGET := wasm32-wasip1
WASM_BUILT := target/$(WASM_TARGET)/wasm/statefulset_scheduling_policy.wasm
# Only what the compiler itself uses: with everything on, wasm-opt writes modules that the engines'
# tools cannot parse.
WASM_FEATURES := --enable-bulk-memory --enable-sign-ext --enable-mutable-globals \
	--enable-nontrapping-float-to-int --enable-reference-types --enable-multivalue

.DEFAULT_GOAL := help
.PHONY: help setup run test test-deployments test-faces golden golden-faces demo cluster chaos npm dist/opa.wasm dist/playground \
	playground test-playground package publish pull image publish-image pull-image reproducible artifacthub \
	check-artifacthub check-chart check-docs lint deny size bench bench-cli bench-controller wasm clean

# One selection of packages for all tests: with another one, cargo would build the dependencies once more
# with other features.
TEST := $(CARGO) test --workspace --features cluster/kubectl,cluster-apiserver/kubectl
# The programs of the simulated cluster, in the same selection.
CLUSTER := $(TEST) --quiet --no-run --test demo && target/debug
# The packaging, in the same selection.
PACKAGE := $(TEST) --quiet --no-run --test registry && target/debug/package
PLACE = --ref $(or $(REF),$(error REF=HOST/REPOSITORY:TAG is missing)) $(if $(PLAIN),--plain-http)

help: ## Shows this list
	@awk -F ':.*## ' '/^[a-z.\/-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Installs what the build needs beyond cargo
	@scripts/setup

run: policy.wasm ## Reviews the fixtures, or FILE=my.yaml, with the module in wasmtime (FORMAT=table|yaml|json)
	@$(CARGO) run --quiet -p host-harness --bin review -- --output $(FORMAT) $(FILE)

test: policy.wasm npm dist/opa.wasm ## Runs all tests: the cluster's, 200 seeds of chaos, every face, chart and docs
	$(TEST) --lib --bins --tests
	@$(MAKE) --no-print-directory test-deployments
	@$(MAKE) --no-print-directory test-faces test-playground
	@$(MAKE) --no-print-directory check-artifacthub check-chart check-docs
	@$(MAKE) --no-print-directory size
	@$(MAKE) --no-print-directory golden golden-faces

test-deployments: policy.wasm ## Runs the end-to-end tests on the webhook without an engine, and on the rendered chart
	@scripts/render-chart
	@for deploy in webhook dist/chart/kubewarden.yaml dist/chart/webhook.yaml; do \
		echo "end to end: $$deploy"; E2E_DEPLOY=$$deploy $(TEST) --quiet --test e2e || exit 1; \
	done

golden: policy.wasm ## Compares the golden vectors of GOLDEN_DIR, on the native core and through the module
	@GOLDEN_DIR=$(abspath $(GOLDEN_DIR)) $(TEST) --quiet --test golden

golden-faces: policy.wasm npm dist/opa.wasm ## Compares them on all four faces: native, Kubewarden, OPA, JavaScript
	@GOLDEN_DIR=$(abspath $(GOLDEN_DIR)) $(TEST) --quiet --test golden-faces

test-faces: npm dist/opa.wasm ## Tests the JavaScript and the OPA face under Node
	@cd policy/js/test && npm ci --silent --no-audit --no-fund && npm test --silent
	@cd policy/opa/test && npm ci --silent --no-audit --no-fund && npm test --silent

demo: policy.wasm ## Plays the demo on a simulated cluster (ARGS=--html=demo.html, ARGS='--profile kep')
	@$(CLUSTER)/demo $(ARGS)

cluster: policy.wasm ## Starts the simulated cluster and leaves it running for kubectl (ARGS='--port 8080 --empty')
	@$(CLUSTER)/cluster $(ARGS)

chaos: policy.wasm ## Random faults over random lives of StatefulSets (SEEDS=200 SEED=1)
	@$(CLUSTER)/chaos

npm: setup ## Builds the npm package in dist/npm
	@CARGO="$(CARGO)" scripts/npm

dist/opa.wasm: setup ## Builds the module for OPA's hosts
	@CARGO="$(CARGO)" WASM_FEATURES="$(WASM_FEATURES)" scripts/opa

dist/playground: npm
	@scripts/playground

playground: dist/playground ## Builds the playground and serves it on loopback (PORT=8277)
	@scripts/playground-serve

test-playground: dist/playground ## Tests the playground in a browser
	@cd playground && npm test --silent

package: policy.wasm ## Writes dist: the annotated module, SBOMs, provenance, checksums
	@$(PACKAGE) module

publish: package ## Pushes the module to a registry (REF=ghcr.io/me/policy:v1, PLAIN=1 for HTTP)
	@target/debug/package publish $(PLACE)

pull: ## Pulls a module and verifies it (REF=…, DIGEST=sha256:…)
	@$(PACKAGE) pull $(PLACE) $(if $(DIGEST),--digest $(DIGEST))

image: setup ## Writes dist/image: the controller's image (ARCHITECTURES='amd64 arm64')
	@scripts/image-setup
	@$(TEST) --quiet --no-run --test registry
	@CARGO="$(CARGO)" PACKAGE=target/debug/package scripts/image

publish-image: ## Pushes the image of dist/image (REF=…)
	@$(PACKAGE) publish-image $(PLACE)

pull-image: ## Pulls an image and verifies it (REF=…, DIGEST=sha256:…)
	@$(PACKAGE) pull-image $(PLACE) $(if $(DIGEST),--digest $(DIGEST))

reproducible: setup ## Builds the module twice and compares
	@scripts/package-reproducible

artifacthub: ## Generates artifacthub-pkg.yml and the README's section from metadata.yml and Cargo.toml
	@scripts/artifacthub

check-artifacthub: ## Fails where they differ from what is generated
	@scripts/artifacthub --check

check-chart: ## Renders chart and kustomize, compares them, judges alerts, dashboard and schema
	@scripts/check-chart

check-docs: policy.wasm ## Checks the docs against the code, and reviews the stories' manifests
	@scripts/check-docs
	@$(MAKE) --no-print-directory run FILE="$(wildcard docs/stories/*.yaml)" >/dev/null

lint: setup ## Checks format, lints, documentation and dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features cluster/kubectl,cluster-apiserver/kubectl -- -D warnings
	$(CARGO) clippy -p statefulset-scheduling-policy --target $(WASM_TARGET) -- -D warnings
	$(CARGO) clippy -p statefulset-scheduling-core -p statefulset-scheduling-js -p statefulset-scheduling-opa \
		--target wasm32-unknown-unknown -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	@$(MAKE) --no-print-directory deny

deny: ## Checks licences, sources, duplicates and advisories of the dependencies
	@scripts/package-deny

size: policy.wasm dist/opa.wasm dist/playground ## Prints the sizes of modules and page; over a bound is an error
	@size=$$(wc -c < policy.wasm); \
	printf 'policy.wasm: %d bytes, bound %d (%d KiB)\n' $$size $(MAX_POLICY_SIZE) $$(( $(MAX_POLICY_SIZE) / 1024 )); \
	test $$size -le $(MAX_POLICY_SIZE)
	@size=$$(wc -c < dist/opa.wasm); \
	printf 'dist/opa.wasm: %d bytes, bound %d (%d KiB)\n' $$size $(MAX_OPA_SIZE) $$(( $(MAX_OPA_SIZE) / 1024 )); \
	test $$size -le $(MAX_OPA_SIZE)
	@node policy/js/size.mjs
	@node playground/size.mjs

bench: policy.wasm ## Measures the module and the core, as ratios
	$(CARGO) bench -p host-harness

bench-cli: ## Measures lint on a long stream; over a bound is an error
	$(CARGO) bench -p kubectl-sts-scheduling --bench lint

bench-controller: ## Measures the controller at scale; over a bound is an error
	$(CARGO) bench -p statefulset-scheduling-controller --bench scale

# Cargo decides whether anything is to be built; the optimised module follows it.
policy.wasm: wasm
	@if [ ! -e $@ ] || [ $(WASM_BUILT) -nt $@ ]; then \
		wasm-opt -Oz $(WASM_FEATURES) --strip-debug --strip-producers $(WASM_BUILT) -o $@.tmp && mv $@.tmp $@; \
	fi

# What is in it must not depend on where it is built.
wasm: export CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS = --remap-path-prefix=$(CURDIR)=/src \
	--remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo
wasm: setup
	@$(CARGO) build --quiet --profile wasm --target $(WASM_TARGET) -p statefulset-scheduling-policy

clean: ## Removes everything that was built
	$(CARGO) clean
	rm -rf policy.wasm dist playground/node_modules deploy/check/node_modules policy/js/test/node_modules \
		policy/opa/test/node_modules
