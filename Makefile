# Countersign. `make help` says what there is.

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
PKG      ?= ./...
PAGES    := internal/slacksim/page/web internal/demo/chat/web

.DEFAULT_GOAL := help
.PHONY: help demo test deps compile lint page page-check unit story image vuln fuzz soak bench build clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Run the whole thing on this machine: no keys, no Redis, no Slack
	$(GO) run ./cmd/bot demo

# Installing waits for the network, and the tests for processes and deadlines: what runs
# beside them uses that time.
test: ## Everything that CI checks: tests with race detector and shuffle, lint, the pages, the image
	@$(MAKE) --no-print-directory -j2 deps compile
	@$(MAKE) --no-print-directory -j2 unit lint page-check image

deps: ## Install what the tests need and this machine lacks (with apt, as root)
	@.ci/deps

# What several of the checks need: the tests, which lint reads too, and the program as it is
# shipped. Commands that need a package at the same time each compile it.
compile:
	$(GO) list -race -test -export $(PKG) >/dev/null
	CGO_ENABLED=0 $(GO) list -deps -export ./cmd/bot >/dev/null

# The linter itself is compiled without cgo, as the image is.
lint: ## Judge the code (golangci-lint, pinned)
	CGO_ENABLED=0 $(GO) run -exec "env CGO_ENABLED=1 GOGC=200 'GOFLAGS=$$($(GO) env GOFLAGS) -race'" $(GOLANGCI) run --allow-parallel-runners $(PKG)

page: ## Build the pages of the simulator and of the demo's chat from their source (npm)
	for p in $(PAGES); do (cd $$p && npm ci --silent --no-audit --no-fund && npm run --silent build) || exit 1; done

page-check: ## Test the pages' source, and that the committed bundles are what it gives
	@for p in $(PAGES); do \
	  (cd $$p && npm run --silent check) && out=$$(mktemp -d) && (cd $$p && PAGE_OUT="$$out" npm run --silent build) && \
	  diff -rq "$$out" $$p/../dist || { echo "The committed page of $$p is not what its source gives: run make page and commit it."; exit 1; }; \
	  rm -rf "$$out"; \
	done

# Lint vets the tests. The race detector has each program sleep for a second at its end.
# What a debugger reads of a test is not linked.
# Of what a flag of a test below makes longer, this runs a part: every seventh command to
# Redis with one of the faults, 6 kills, 2 failovers, 3 power failures, 3 guards, every
# other step of a removal, 40 conversations, two of the four frameworks in each situation,
# no older version. The help of each flag says what its default is.
# Three packages at a time use two cores better than two, since many tests wait.
unit: ## Run the tests, raced and shuffled
	GORACE=atexit_sleep_ms=20 $(GO) test -p 3 -race -shuffle=on -vet=off -ldflags=-w -timeout=30m $(PKG)

story: ## Run only the story of the demo: over HTTP, and in a browser (STORY_SHOTS=DIR keeps pictures)
	$(GO) test -race -count=1 -run 'Story' -v ./cmd/bot ./internal/slacksim/page/story

image: ## Build the final stage of the Dockerfile without an engine, and run it
	@.ci/image

vuln: ## Look for known vulnerabilities that are called (govulncheck, pinned); says so where its database cannot be reached
	@.ci/vuln

fuzz: ## Fuzz the core against its invariants for a minute
	$(GO) test -run '^$$' -fuzz FuzzApply -fuzztime 1m ./internal/approvals

soak: ## What takes longer than a test may: a million requirements against the oracle, each fault at each command to Redis, each framework in each situation, a thousand conversations, 220 kills of replicas and Redis, failovers of Sentinels and of a cluster, upgrades from older versions and back, the program without each of its guards, a thousand calls in a minute, power failures, two versions of the real Claude Code, opencode, and ten minutes of fuzzing
	$(GO) test -count=1 -timeout=60m -run Oracle ./internal/approvals -oracle=1000000
	$(GO) test -count=1 -timeout=20m -run TestAThousandCalls -v ./cmd/bot -soak
	$(GO) test -count=1 -timeout=60m -run TestAFaultAtAnyCommand ./cmd/bot -every-step
	$(GO) test -count=1 -timeout=60m -run 'TestAnyConversation|TestAnswersAlwaysFit|WhateverHappens|TestRemovalsRunNothingTwice' ./internal/agentrun ./internal/intake -rapid.checks=1000
	$(GO) test -count=1 -timeout=20m -run 'TestOn.*/removals' ./internal/state -every-step
	$(GO) test -count=1 -timeout=20m -run TestTheAgentsOfFrameworks ./cmd/bot -frameworks
	$(GO) test -count=1 -timeout=60m -run TestKillsOfReplicas -v ./cmd/bot -kills=220 -kill-seed=2
	$(GO) test -count=1 -timeout=20m -run TestAFailoverOfRedis -v ./cmd/bot -failovers=24
	$(GO) test -count=1 -timeout=60m -run TestAnUpgrade -v ./cmd/bot -upgrades
	$(GO) test -count=1 -timeout=60m -run TestEveryGuardIsTested ./internal -mutants
	$(GO) test -count=1 -timeout=20m -run 'PowerFailure|Failover' ./internal/state -power=50
	$(GO) test -count=1 -timeout=20m -run 'PowerFailure|Failover' ./cmd/bot -power=50
	for v in 2.1.332 2.1.197; do d=$$(mktemp -d) && npm install --prefix $$d --no-fund --no-audit @anthropic-ai/claude-code@$$v && \
		node $$d/node_modules/@anthropic-ai/claude-code/install.cjs && \
		$(GO) test -count=1 -timeout=30m -run RealClaudeCode -v ./internal/hookserver -claude=$$d/node_modules/.bin/claude -hold=400s; \
		ended=$$?; rm -rf $$d; [ $$ended = 0 ] || exit 1; done
	d=$$(mktemp -d) && npm install --prefix $$d --no-fund --no-audit @anthropic-ai/claude-code@2.1.332 opencode-ai@1.18.33 && \
		node $$d/node_modules/@anthropic-ai/claude-code/install.cjs && \
		$(GO) test -count=1 -timeout=30m -run RealAgentsAreGated -v ./internal/gateway -claude=$$d/node_modules/.bin/claude -opencode=$$d/node_modules/.bin/opencode; \
		ended=$$?; rm -rf $$d; [ $$ended = 0 ] || exit 1
	$(GO) test -run '^$$' -fuzz FuzzApply -fuzztime 4m ./internal/approvals
	$(GO) test -run '^$$' -fuzz FuzzConfig -fuzztime 3m ./internal/config
	$(GO) test -run '^$$' -fuzz FuzzParse -fuzztime 3m ./internal/policy

bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchtime 2s $(PKG)

build: ## Build a static binary: bin/bot
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o bin/bot ./cmd/bot

clean: ## Remove what was built
	rm -rf bin
