FUZZTIME ?= 20s
ARGS     ?=

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Without a repository that git may read, Go cannot record the commit either.
VCS     := $(shell git status --short >/dev/null 2>&1 || echo -buildvcs=false)
# Packages have the time of the commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
LDFLAGS := -X main.version=$(VERSION)
GOBUILD := CGO_ENABLED=0 go build -trimpath $(VCS) -ldflags '$(LDFLAGS)'

# The visitor's pages built by npm, which the server embeds.
UI         := web/ui
UI_BUILT   := $(UI)/dist/manifest.json
UI_MODULES := $(UI)/node_modules/.package-lock.json
UI_SOURCES := $(UI)/build.mjs $(UI)/package.json $(UI)/tsconfig.json $(shell find $(UI)/src -type f)

# The browser tests, and their npm packages.
E2E         := web/e2e
E2E_MODULES := $(E2E)/node_modules/.package-lock.json

# The edge connector, and its npm packages.
EDGE         := connector/edge
EDGE_MODULES := $(EDGE)/node_modules/.package-lock.json

# The connectors' script for pages, and the npm packages that build it.
CLIENT         := connector/client
CLIENT_MODULES := $(CLIENT)/node_modules/.package-lock.json

# The linters and formatters; npm installs the one for scripts and styles.
LINT         := web/lint
LINT_MODULES := $(LINT)/node_modules/.package-lock.json
BIOME        := $(LINT)/node_modules/.bin/biome
GOLANGCI     := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The number of tests of a package that run at once: many wait for a clock or a database.
PARALLEL ?= 8

# The number of packages that are tested at once.
PACKAGES ?= 2

# go vet has run; a package may take ten minutes, which is the default, on a very busy machine.
TEST := -vet=off -timeout 30m -p $(PACKAGES) -parallel $(PARALLEL)

# Packages that start goroutines, which are tested under the race detector, except
# those that only compute, where it would find nothing.
PURE := audit audit/roomlog cmd/proofline/internal/apply cmd/proofline/internal/issuerdir cmd/proofline/internal/transcript connector/internal/address console/live/pglive console/simulate console/simulate/chart fairness/beacon room/branding room/door room/keys room/locale room/queueit room/setting room/style room/transfer verifier/counted verifier/evidence verifier/findings verifier/numeral verifier/stats verifier/ticket vrf web/confirm web/console/format web/issuer/puzzle web/page web/picture web/poll web/sse
RACE := ./audit/... ./connector/... ./console/... ./fairness/beacon/... ./room/... ./web/... ./verifier/... ./vrf/... ./internal/localpg ./cmd/proofline/internal/...

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-11s %s\n", $$1, $$2}' Makefile

.PHONY: demo
demo: build need-postgres ## run a whole sale on a real server, then audit it
	bin/proofline demo $(ARGS)

.PHONY: build
build: need-go $(UI_BUILT) ## build bin/proofline and bin/proofline-verify
	$(GOBUILD) -o bin/ ./cmd/proofline ./cmd/proofline-verify

$(UI_BUILT): $(UI_MODULES) $(UI_SOURCES)
	@internal/tools/need-node.sh
	cd $(UI) && npm run build

$(UI_MODULES): $(UI)/package-lock.json
	@internal/tools/need-node.sh
	cd $(UI) && npm ci --ignore-scripts
	@touch $@

.PHONY: run
run: build need-postgres ## run the server, ARGS="--addr :8080"
	bin/proofline serve $(ARGS)

.PHONY: test
test: need-go need-postgres $(UI_BUILT) ## vet and test everything: also concurrent packages under the race detector, and independent readers
	go vet ./...
	go test $(TEST) ./...
	@if [ "$$(go env CGO_ENABLED)" = 1 ] && command -v "$$(go env CC)" >/dev/null; then \
		echo go test -race -short $(TEST) $(RACE), without $(PURE); \
		go list $(RACE) | grep -vxF "$$(printf 'github.com/proofline/proofline/%s\n' $(PURE))" | xargs go test -race -short $(TEST); \
	else echo "no C compiler, so no race detector: go test -race is left out"; fi
	cd audit/interop && go test ./...
	@if node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)'; then $(MAKE) --no-print-directory scripts; \
	else echo "Node.js $$(node --version) builds the pages, and 20 is needed to test scripts: make scripts is left out"; fi

.PHONY: scripts
scripts: $(UI_BUILT) $(CLIENT_MODULES) $(EDGE_MODULES) ## test only the scripts of the pages and of connectors
	cd $(UI) && npm test
	cd $(CLIENT) && npm test
	cd $(EDGE) && npm test

.PHONY: e2e
e2e: build need-postgres need-chromium $(E2E_MODULES) ## test the real binaries end to end, including crashes, and the pages in Chromium
	@command -v pgbouncer >/dev/null || apt-get install -y pgbouncer
	@command -v promtool >/dev/null || apt-get install -y prometheus
	@ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || apt-get install -y libfaketime
	go test -count=1 -v -run Alerts ./cmd/proofline/internal/server
	PROOFLINE_TEST_SLOW=1 go test -count=1 -run 'E2E|Crash|Nodes' -v ./cmd/...
	$(MAKE) --no-print-directory alarms
	@for p in podman runc caddy; do command -v $$p >/dev/null || apt-get install -y --no-install-recommends $$p; done
	PROOFLINE_TEST_SLOW=1 go test -count=1 -timeout 30m -v ./deploy
	cd $(E2E) && npm test

.PHONY: alarms
alarms: build need-postgres ## raise the shipped alerts with real faults of two servers, with Prometheus; DRAW=1 draws the dashboards
	@command -v promtool >/dev/null || apt-get install -y prometheus
	PROOFLINE_TEST_SLOW=1 PROOFLINE_TEST_DRAW=$(DRAW) go test -count=1 -run Alarms -v ./cmd/proofline

# The number of kills.
N ?= 200

.PHONY: kills
kills: need-go need-postgres $(UI_BUILT) ## kill PostgreSQL and the server N times (200) in turns while visitors join, and check all receipts
	PROOFLINE_TEST_KILLS=$(N) go test -count=1 -timeout 0 -run TestCrashInTurns -v ./cmd/proofline

$(E2E_MODULES): $(E2E)/package-lock.json
	@internal/tools/need-node.sh
	cd $(E2E) && npm ci --ignore-scripts
	@touch $@

# The number of rooms that both verifiers decide about.
ROOMS ?= 10000

.PHONY: differential
differential: need-go $(UI_BUILT) ## compare both verifiers on more than a million texts, most of them mutated, and on ROOMS rooms (10000), and play as many through outages; takes an hour
	PROOFLINE_CASES=100000 PROOFLINE_ROOMS=$(ROOMS) go test -count=1 -timeout 0 -run 'TestSecondProgramReads|TestSecondProgramDecides$$' -v ./verifier
	PROOFLINE_ROOMS=$(ROOMS) go test -count=1 -timeout 0 -run TestOutages -v ./fairness

.PHONY: conformance
conformance: need-go need-postgres $(UI_BUILT) $(CLIENT_MODULES) $(EDGE_MODULES) ## test middleware, proxy, nginx and edge with one table of requests and responses, and rooms behind nginx, HAProxy and Caddy
	@for p in nginx:nginx haproxy:haproxy caddy:caddy apache2:apache2 php:php-cli; do command -v $${p%:*} >/dev/null || apt-get install -y $${p#*:}; done
	go test -count=1 -v -run 'Conformance|Nginx' ./connector/proxy
	go test -count=1 -v -run Origins ./connector/rules
	go test -count=1 -v -run Behind ./web
	cd $(CLIENT) && npm test
	cd $(EDGE) && npm test
	PROOFLINE_CONFORMANCE=1 go test -count=1 -v ./$(EDGE)
	PROOFLINE_CONFORMANCE=1 go test -count=1 -v -run Edge ./internal/connectortest

$(CLIENT_MODULES): $(CLIENT)/package-lock.json
	@internal/tools/need-node.sh
	cd $(CLIENT) && npm ci --ignore-scripts
	@touch $@

$(EDGE_MODULES): $(EDGE)/package-lock.json
	@internal/tools/need-node.sh
	cd $(EDGE) && npm ci --ignore-scripts
	@touch $@

# A release has the programs for these platforms, the scripts for the edge and for
# pages, a bill of materials and checksums. The same commit, Go and npm packages
# give the same bytes.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/arm64

.PHONY: dist
dist: LDFLAGS += -s -w
dist: need-go $(UI_BUILT) $(EDGE_MODULES) ## build a release in dist/, with SBOM and checksums
	rm -rf dist && mkdir dist
	set -e; for platform in $(PLATFORMS); do \
		os=$${platform%/*} arch=$${platform#*/}; \
		for program in proofline proofline-verify; do \
			GOOS=$$os GOARCH=$$arch $(GOBUILD) -o dist/$$program-$$os-$$arch ./cmd/$$program; \
		done; \
	done
	cd $(EDGE) && npm run build
	cp $(EDGE)/proofline-edge.js $(CLIENT)/wait.js $(CLIENT)/wait.mjs dist/
	go run ./internal/tools/sbom $(VERSION) $$(ls dist/proofline-*-* | sort) $(UI)/package-lock.json $(EDGE)/package-lock.json > dist/proofline.cdx.json
	cd dist && sha256sum * > ../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS

# What packages and images are made of: programs for Linux, manual pages and completions.
# They are built in build/, once per architecture.
ARCH ?= $(shell go env GOARCH)

.PHONY: manual
manual: build
	rm -rf build/share
	bin/proofline manual build/share
	bin/proofline-verify manual build/share

.PHONY: programs
programs: LDFLAGS += -s -w
programs: need-go $(UI_BUILT)
	GOOS=linux GOARCH=$(ARCH) $(GOBUILD) -o build/linux-$(ARCH)/ ./cmd/proofline ./cmd/proofline-verify

.PHONY: deb
deb: programs manual ## build a Debian package in build/, for this machine or ARCH
	deploy/debian/build.sh $(VERSION) $(ARCH) build/linux-$(ARCH) build/share build

# The private key of OpenSSH that signs a release; deploy/allowed_signers has its public part.
KEY ?=

.PHONY: release
release: need-key dist manual ## build a signed release in dist/, KEY=FILE: archives, Debian packages, chart, SBOM, checksums
	internal/tools/release.sh $(VERSION) dist build/share $(KEY)

.PHONY: need-key
need-key:
	@test -f "$(KEY)" || { echo "name the private key that signs: make release KEY=FILE (docs/operate/UPGRADES.md)" >&2; exit 1; }

# podman, buildah or docker builds the image. Some machines need flags, such as
# ENGINE_FLAGS='--storage-driver vfs' and BUILD_FLAGS='--isolation chroot --network host'.
ENGINE ?= $(firstword $(shell command -v podman buildah docker) podman)
IMAGE  ?= localhost/proofline:latest
CA     ?= /etc/ssl/certs/ca-certificates.crt
FORMAT := $(if $(filter %docker,$(ENGINE)),,--format docker --timestamp $(SOURCE_DATE_EPOCH))

.PHONY: image
image: programs ## build the container image IMAGE with podman, buildah or docker
	@command -v $(ENGINE) >/dev/null || { echo "install podman, buildah or docker, such as: apt install podman" >&2; exit 1; }
	rm -rf build/image && mkdir -p build/image/data
	cp build/linux-$(ARCH)/proofline build/linux-$(ARCH)/proofline-verify build/image/
	install -m 644 $(CA) build/image/ca-certificates.crt
	chmod 700 build/image/data
	$(ENGINE) $(ENGINE_FLAGS) build $(BUILD_FLAGS) $(FORMAT) -f deploy/Containerfile -t $(IMAGE) build/image

.PHONY: fuzz
fuzz: need-go ## fuzz every target for FUZZTIME (20s)
	internal/tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build need-postgres need-chromium $(E2E_MODULES) ## measure speed on this machine; ARGS="joins rooms" selects, BASE=ref compares with a commit
	go run ./internal/bench $(if $(BASE),-base $(BASE)) $(ARGS)

.PHONY: drill
drill: build need-postgres ## break a cluster of Patroni and two nodes while visitors join, and check what they were promised; ARGS="crash pause" selects
	@for p in patroni:patroni etcd:etcd-server haproxy:haproxy pgbackrest:pgbackrest; do command -v $${p%:*} >/dev/null || apt-get install -y $${p#*:}; done
	go run ./internal/drill $(ARGS)

.PHONY: lint
lint: need-go $(LINT_MODULES) ## check Go with golangci-lint, scripts and styles with Biome
	$(GOLANGCI) run
	$(BIOME) ci --error-on-warnings

.PHONY: format
format: need-go $(LINT_MODULES) ## format Go, scripts and styles
	$(GOLANGCI) fmt
	$(BIOME) check --write

$(LINT_MODULES): $(LINT)/package-lock.json
	@internal/tools/need-node.sh
	cd $(LINT) && npm ci --ignore-scripts
	@touch $@

.PHONY: generate
generate: need-go ## generate files again
	go generate ./...

.PHONY: clean
clean: ## remove built files
	rm -rf bin build dist $(UI)/dist

.PHONY: need-go need-postgres need-chromium
need-go:
	@internal/tools/need-go.sh
need-postgres:
	@internal/tools/need-postgres.sh
need-chromium:
	@internal/tools/need-chromium.sh
