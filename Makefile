# Countersign. `make help` says what there is.

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GO       ?= go
PKG      ?= ./...

.DEFAULT_GOAL := help
.PHONY: help demo test deps lint unit story fuzz bench build clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## Run the whole thing on this machine: no keys, no Redis, no Slack
	$(GO) run ./cmd/bot demo

test: deps lint unit ## Everything that CI checks: lint, tests with race detector and shuffle, the story

deps: ## Install what the tests need (redis-server and Node.js; with apt, as root)
	@command -v redis-server >/dev/null || { \
	  echo "installing redis-server"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server >/dev/null; } || { \
	  echo "The tests need a redis-server on the PATH: install the package redis-server (or redis)."; exit 1; }
	@command -v npm >/dev/null || { \
	  echo "installing nodejs and npm"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm >/dev/null; } || { \
	  echo "The tests need Node.js 20 or later and npm on the PATH."; exit 1; }
	@npm ci --silent --prefix internal/slackui/slacksim/bolt || { \
	  echo "npm could not install the packages of internal/slackui/slacksim/bolt."; exit 1; }

lint: ## Judge the code (golangci-lint, pinned)
	$(GO) run $(GOLANGCI) run $(PKG)

unit: ## Run the tests, raced and shuffled
	$(GO) test -race -shuffle=on -timeout=10m $(PKG)

story: ## Run only the story of the demo, end to end over HTTP
	$(GO) test -race -count=1 -run 'Story' -v ./cmd/bot

fuzz: ## Fuzz the core against its invariants for a minute
	$(GO) test -run '^$$' -fuzz FuzzApply -fuzztime 1m ./internal/approvals

bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchtime 2s $(PKG)

build: ## Build a static binary: bin/bot
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/bot ./cmd/bot

clean: ## Remove what was built
	rm -rf bin
