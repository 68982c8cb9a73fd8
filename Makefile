# Every target sets itself up: a fresh machine needs Python 3.11 or later, and for `test` and `bench` a JDK 17 with Maven.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= $(shell getconf _NPROCESSORS_ONLN)
# An option and its value are one word: pytest would take the value for a path.
TESTS = $(BIN)/pytest -q --durations=25
# Every worker, node and command that a test starts imports the same modules: compiled once.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help

.PHONY: help
help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-19s %s\n", $$1, $$2}'

SET_UP := $(PYTHON) packaging/setup_venv.py $(VENV)

$(VENV)/.running: constraints-run.txt pyproject.toml
	@$(SET_UP) constraints-run.txt "what running aclog needs (make test installs the rest)"
	@touch $@

$(VENV)/.installed: constraints.txt pyproject.toml
	@$(SET_UP) constraints.txt "aclog with all extras, and what tests and checks need"
	@touch $(VENV)/.running $@

.PHONY: venv
venv: $(VENV)/.installed  ## the virtual environment, with what is pinned in constraints.txt

# An environment with everything runs aclog too.
RUNNING := $(if $(wildcard $(VENV)/.installed),$(VENV)/.installed,$(VENV)/.running)

# The compiled core is optional: NATIVE=0 does without it. Nothing that only runs aclog compiles.
NATIVE ?= 1
export NATIVE
CORE := $(if $(filter 0,$(NATIVE)),,$(VENV)/.native)
CORE_SOURCES := native/pyproject.toml native/setup.py native/MANIFEST.in $(wildcard native/src/*.[ch])

$(VENV)/.native: $(VENV)/.installed $(CORE_SOURCES)
	@command -v $(firstword $(CC)) >/dev/null || { \
	  echo "aclog's native core needs a C compiler, and there is no $(firstword $(CC)): install one, set CC, or test without the core: NATIVE=0" >&2; exit 1; }
	CC="$(CC)" $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --force-reinstall ./native
	@touch $@

.PHONY: native
native: $(VENV)/.native  ## the compiled core of native/, built and installed; tests build it, unless NATIVE=0

.PHONY: run
run: $(RUNNING)  ## the tour, then a node that Kafka's own clients manage
	@./run.sh

.PHONY: tour
tour: $(RUNNING)  ## a denied request and its fix, two moments of time, the tree; on a real log
	@./tour.sh

DOCS_VENV := build/docs-venv
$(DOCS_VENV)/.installed: docs/constraints.txt
	$(PYTHON) -m venv --clear $(DOCS_VENV)
	$(DOCS_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r docs/constraints.txt
	@touch $@

.PHONY: docs
docs: $(RUNNING) $(DOCS_VENV)/.installed  ## the documentation as a site that needs no server, in build/site; manual pages in build/man
	$(BIN)/python -m tests.docs.site
	rm -rf build/site build/.cache
	$(DOCS_VENV)/bin/zensical build --strict --config-file build/zensical.toml
	$(BIN)/python -m tests.docs.site.check
	@if command -v groff > /dev/null; then ! groff -man -ww -z build/man/*.1 2>&1 | grep .; fi

.PHONY: screenshots
screenshots: build/browser/.ready  ## the console's pages pictured anew for docs/console-pictures.md, into docs/images/console
	$(BIN)/python -m tests.support.web.pictures

.PHONY: page-pictures
page-pictures: docs build/browser/.ready  ## the README and the first page of the documentation as a visitor sees them, in build/pictures
	$(BIN)/python -m tests.docs.page_pictures

.PHONY: terminal-picture
terminal-picture: venv  ## pictures of explain, why and review on a terminal drawn anew, into docs/images/terminal
	$(BIN)/python -m tests.docs.terminal_picture

.PHONY: terminal-animation
terminal-animation: venv build/browser/.ready  ## the first picture of the README drawn anew: why, review and the console, from real runs
	$(BIN)/python -m tests.docs.terminal_animation

.PHONY: lint
lint: venv  ## ruff, mypy --strict, import-linter, banned words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.words

.PHONY: fmt
fmt: venv  ## format and fix what can be fixed
	$(BIN)/ruff check --fix --exit-zero --quiet .
	$(BIN)/ruff format .

# what the jars, our classes and the archives of classes are made from
JVM_SOURCES := tests/jvm/pom.xml $(wildcard tests/jvm/java/*.java tests/jvm/java-3.9/*.java tests/jvm/java-clients/*.java benchmarks/java/*.java) \
  tests/support/kafka/jvm.py tests/support/kafka/class_archives.py tests/support/spark/jvm.py

build/jvm/.ready: $(VENV)/.installed $(JVM_SOURCES)
	$(BIN)/python -m tests.support.kafka.jvm
	$(BIN)/python -m tests.support.kafka.class_archives
	@touch $@

build/shells/.ready: $(VENV)/.installed tests/support/cli/shells.py tests/support/processes/debian_packages.py
	$(BIN)/python -m tests.support.cli.shells
	@mkdir -p build/shells && touch $@

build/browser/.ready: $(VENV)/.installed tests/support/web/chromium.py tests/support/web/firefox.py tests/support/web/programs.py tests/support/processes/debian_packages.py
	$(BIN)/python -m tests.support.web.chromium
	$(BIN)/python -m tests.support.web.firefox
	@mkdir -p build/browser && touch $@

SERVERS := build/jvm/.ready build/shells/.ready build/browser/.ready build/spark-kafka/.ready

build/hadoop-aws/.ready: tests/support/spark/hadoop-aws.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/build/hadoop-aws
	@touch $@

.PHONY: check-s3
check-s3: venv build/hadoop-aws/.ready  ## aclog spark on s3a://, by Hadoop's client (660 MB) on a local object store
	CI=1 $(BIN)/python -m pytest -q -p no:cacheprovider --tier=all tests/pipeline/test_s3.py

.PHONY: check-connect
check-connect: venv build/jvm/.ready  ## every command and every step of a job on a server of Spark Connect, of which the other tests run one of each
	CI=1 CHECK_CONNECT=1 $(BIN)/python -m pytest -q -p no:cacheprovider --tier=all tests/pipeline/test_connect_commands.py

build/hadoop-minicluster/.ready: tests/support/spark/hadoop-minicluster.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/build/hadoop-minicluster
	@touch $@

.PHONY: check-hdfs
check-hdfs: venv build/hadoop-minicluster/.ready  ## aclog spark on hdfs://, of a NameNode and a DataNode (105 MB)
	CI=1 $(BIN)/python -m pytest -q -p no:cacheprovider --tier=all tests/pipeline/test_hdfs.py

FAKE_GCS := 1.56.1

build/fake-gcs/.ready: Makefile
	GOBIN=$(CURDIR)/build/fake-gcs go install github.com/fsouza/fake-gcs-server@v$(FAKE_GCS)
	@touch $@

build/azurite/.ready: tests/node/azurite/package.json tests/node/azurite/package-lock.json
	@mkdir -p build/azurite && cp $^ build/azurite/
	cd build/azurite && npm ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: check-clouds
check-clouds: venv build/fake-gcs/.ready build/azurite/.ready  ## --accesses and --index on gs:// and abfss://, by emulators (200 MB); needs Go and npm
	CI=1 $(BIN)/python -m pytest -q -p no:cacheprovider --tier=all tests/usage/accesses/test_clouds.py tests/usage/index/test_cloud_index.py

# Iceberg's package for Spark follows Spark's versions late
build/iceberg/.ready: tests/support/spark/iceberg.xml pyproject.toml
	$(PYTHON) -m venv build/iceberg/venv
	build/iceberg/venv/bin/pip install --quiet 'pyspark[connect]==4.1.*' 'pandas<3' '.[iceberg,usage]'
	mvn -q -B -f $< dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/iceberg
	@touch $@

.PHONY: check-iceberg
check-iceberg: build/iceberg/.ready  ## Iceberg tables on PySpark 4.1 and by pyiceberg, against Spark's own rows, and outputs in them: 600 MB
	scratch=$$(mktemp -d) && trap "rm -rf $$scratch" EXIT && \
	  build/iceberg/venv/bin/python -m tests.support.spark.iceberg_check build/iceberg/iceberg-spark-runtime-*.jar $$scratch && \
	  mkdir $$scratch/outputs && build/iceberg/venv/bin/python -m tests.support.spark.table_outputs_check iceberg \
	    $$(ls $(CURDIR)/build/iceberg/iceberg-spark-runtime-*.jar) $$scratch/outputs && \
	  mkdir $$scratch/connect && PYTHONPATH=$(CURDIR) build/iceberg/venv/bin/python -m tests.support.spark.connect_tables_check iceberg \
	    $$(ls $(CURDIR)/build/iceberg/iceberg-spark-runtime-*.jar) $$scratch/connect

# Delta's package is for Spark 4.2
build/delta/.ready: tests/support/spark/delta.xml pyproject.toml
	$(PYTHON) -m venv build/delta/venv
	build/delta/venv/bin/pip install --quiet 'pyspark[connect]==4.2.*' 'pandas<3' '.[delta,usage]'
	mvn -q -B -f $< dependency:copy-dependencies -DincludeGroupIds=io.delta -DoutputDirectory=$(CURDIR)/build/delta
	@touch $@

.PHONY: check-delta
check-delta: build/delta/.ready  ## outputs in Delta tables on PySpark 4.2, beside the same as Parquet, and streams into them: 500 MB
	scratch=$$(mktemp -d) && trap "rm -rf $$scratch" EXIT && \
	  build/delta/venv/bin/python -m tests.support.spark.table_outputs_check delta $$(ls $(CURDIR)/build/delta/*.jar | paste -sd,) $$scratch && \
	  mkdir $$scratch/connect && PYTHONPATH=$(CURDIR) build/delta/venv/bin/python -m tests.support.spark.connect_tables_check delta \
	    $$(ls $(CURDIR)/build/delta/*.jar | paste -sd,) $$scratch/connect

# The tests of what runs on Spark, on an older version than the pinned one; everything else is as pinned
SPARK ?= 4.0
# before 4.2, PySpark leaves the sockets of collect() to the garbage collector
SOCKETS := $(if $(filter 4.0 4.1,$(SPARK)),-W 'ignore:unclosed <socket:ResourceWarning')
SPARK_PYTHON := build/spark-$(SPARK)/venv/bin/python
build/spark-$(SPARK)/.ready: constraints.txt pyproject.toml
	$(PYTHON) packaging/setup_venv.py build/spark-$(SPARK)/venv constraints.txt "everything"
	build/spark-$(SPARK)/venv/bin/pip install --quiet --disable-pip-version-check 'pyspark==$(SPARK).*'
	$(SPARK_PYTHON) -c 'from tests.support.spark.jvm import make_archive; make_archive()'
	@touch $@

.PHONY: check-spark
check-spark: build/jvm/.ready build/spark-kafka/.ready build/spark-$(SPARK)/.ready  ## the tests of Spark on PySpark SPARK=4.0, or 4.1, or 4.2: 900 MB each
	CI=1 $(SPARK_PYTHON) -m pytest -q -p no:cacheprovider -n $(WORKERS) --tier=all -rs $(SOCKETS) tests/pipeline \
	  --ignore=tests/pipeline/test_s3.py --ignore=tests/pipeline/test_hdfs.py tests/cli/test_spark_flags.py \
	  tests/cli/test_premise_walk.py::test_jobs_on_spark tests/usage/accesses/test_events.py tests/usage/accesses/test_layouts.py

.PHONY: check
check: venv  ## lint, types, arrows, and the tests that start no server and no JVM: 2 minutes on 2 cores
	@$(MAKE) --no-print-directory -j2 lint check-tests

.PHONY: test
test: venv  ## check, and each promise of the README end to end on real servers: 10 minutes on 2 cores, from a fresh clone
	@$(MAKE) --no-print-directory -j3 $(SERVERS) lint check-tests  # which run while these wait for downloads
	@$(MAKE) --no-print-directory server-tests

.PHONY: test-all
test-all: venv  ## every test, whole walks, all examples: 45 minutes on 2 cores; then each benchmark at its smallest size
	@$(MAKE) --no-print-directory -j3 $(SERVERS) lint $(CORE)
	@$(MAKE) --no-print-directory all-tests
	@$(MAKE) --no-print-directory bench-quick

.PHONY: test-rest
test-rest: venv $(SERVERS)  ## what test-all adds to test; PART=1/2: every second file of it
	@$(MAKE) --no-print-directory rest-tests

# Many of the tests with servers wait for one: more workers than cores.
MANY := $$(($(WORKERS) + 2))

.PHONY: check-tests server-tests all-tests rest-tests
check-tests: venv $(CORE)
	$(TESTS) --tier=check --costs=build/costs-check.json -n $(WORKERS)
server-tests: venv $(CORE) $(SERVERS)
	$(TESTS) --tier=test --above=check --costs=build/costs-test.json -n $(MANY)
all-tests: venv $(CORE) $(SERVERS)
	$(TESTS) --tier=all --costs=build/costs-all.json -n $(MANY)
rest-tests: venv $(CORE) $(SERVERS)
	$(TESTS) --tier=all --above=test --costs=build/costs-rest.json -n $(MANY) $(if $(PART),--part=$(PART))

KAFKA ?= 4.4.0
DECISIONS ?= 1000000
.PHONY: oracle
oracle: venv $(CORE)  ## all that aclog assumes of a release beside its real classes, for KAFKA=4.4.0 or any other since 4.0; kept
	$(BIN)/python -m tests.oracle.kit $(KAFKA) --decisions $(DECISIONS) --workers $(WORKERS) \
	  $(if $(filter 1000000,$(DECISIONS)),--out benchmarks/results/oracle-$(KAFKA).txt)

.PHONY: oracle-long
oracle-long: venv build/jvm/.ready  ## 5 million decisions beside the real StandardAuthorizer
	$(BIN)/python -m tests.oracle.campaign --decisions 5000000 --workers $(WORKERS) --out benchmarks/results/oracle-long.txt

.PHONY: oracle-odd-patterns
oracle-odd-patterns: venv build/jvm/.ready  ## 400,000 more, with pattern types that only a record can carry; explained and in bulk too
	$(BIN)/python -m tests.oracle.campaign --decisions 400000 --odd-patterns --workers $(WORKERS) --out benchmarks/results/oracle-odd-patterns.txt

.PHONY: zookeeper-decisions
zookeeper-decisions: venv build/jvm/.ready  ## 100,000 decisions beside the real AclAuthorizer of Kafka 3.9, on one ZooKeeper
	$(BIN)/python -m tests.zkstore.decisions_campaign --decisions 100000 --out benchmarks/results/zookeeper-decisions.txt

.PHONY: bench
bench: venv $(CORE) build/jvm/.ready  ## figures beside the real StandardAuthorizer and Kafka's own log reader, in one run
	$(BIN)/python -m benchmarks

.PHONY: bench-quick
bench-quick: venv $(CORE) build/jvm/.ready  ## whether each benchmark still runs, at its smallest size; figures are not kept
	$(BIN)/python -m benchmarks --quick

FORMER ?= HEAD~1
build/former-$(FORMER):
	git clone --quiet . $@ && git -C $@ checkout --quiet $$(git rev-parse $(FORMER)) && $(MAKE) -C $@ venv native

.PHONY: bench-former
bench-former: venv $(CORE) build/former-$(FORMER)  ## whole commands beside those of an earlier commit (FORMER=COMMIT), in turn, on the same files: CPU and memory; kept
	FORMER_PYTHON=$(abspath build/former-$(FORMER))/.venv/bin/python $(BIN)/python -m benchmarks former

.PHONY: bench-questions
bench-questions: venv $(CORE)  ## whether questions grow faster than the number of rules: calls and memory up to 64,000 rules on ten kinds of estates, or on KINDS="one client,robot"; kept by kind
	$(BIN)/python -m benchmarks questions $(if $(KINDS),--kinds "$(KINDS)")

.PHONY: campaigns
campaigns: venv  ## nodes killed 60 times under 8 writers, 200 connections, 100,000 hostile frames; kept under benchmarks/results
	$(BIN)/python -m tests.scenarios.nodes.faults --kills 60 --writers 8 --out benchmarks/results/faults.txt
	$(BIN)/python -m tests.scenarios.nodes.load --connections 200 --requests 20000 --slow 10 --half 50 --out benchmarks/results/load.txt
	$(BIN)/python -m tests.scenarios.wire_fuzz --frames 100000 --seed 1 | tee benchmarks/results/wire-fuzz.txt

.PHONY: campaign-failover
campaign-failover: venv build/jvm/.ready  ## the active of three controllers killed, paused, cut off 60 times under load; kept under benchmarks/results
	$(BIN)/python -m tests.scenarios.failover.campaign --rounds 60 --out benchmarks/results/failover.txt

.PHONY: campaign-brokers
campaign-brokers: venv build/jvm/.ready  ## 20 of these failovers under 8 writers, a broker of the Kafka killed after each; kept too
	$(BIN)/python -m tests.scenarios.failover.campaign --rounds 20 --workers 8 --broker-kills --out benchmarks/results/failover-brokers.txt

.PHONY: campaign-observer
campaign-observer: venv build/jvm/.ready  ## 10,000 changes on a real Kafka of three nodes whose leaders die, followed live; kept too
	$(BIN)/python -m tests.scenarios.quorum.observer --changes 10000 --points 200 --faults 20 --out benchmarks/results/observer.txt
	$(BIN)/python -m tests.scenarios.quorum.observer --changes 5000 --points 100 --faults 10 --short-log --out benchmarks/results/observer-short-log.txt

.PHONY: campaign-sync
campaign-sync: venv  ## aclog sync beside brokers that restart 20 times, also without their controller; kept too
	$(BIN)/python -m tests.scenarios.nodes.sync_restarts --restarts 20 --out benchmarks/results/sync-restarts.txt

.PHONY: campaign-native
campaign-native: venv $(VENV)/.native  ## a million requests through the native core and the Python path; kept
	$(BIN)/python -m tests.scenarios.native_differences --workers $(WORKERS) --out benchmarks/results/native-differences.txt

SANITIZED := build/native-sanitized
BASES ?= 20000
.PHONY: fuzz-native
fuzz-native: venv $(VENV)/.native  ## the native core under two sanitizers: BASES=20000 damaged bases, 460 worlds beside Python, 15,000 misuses; 200,000 bases are kept
	mkdir -p $(SANITIZED)
	$(CC) -std=c11 -O1 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -shared -fPIC \
	  -DPy_LIMITED_API=0x030B0000 -I"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
	  native/src/*.c -o $(SANITIZED)/aclog_native.abi3.so
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
	  PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED) $(BIN)/python -m tests.scenarios.native_fuzz --bases $(BASES) \
	  $(if $(filter 200000,$(BASES)),--out benchmarks/results/fuzz-native.txt)

.PHONY: campaign-hostile
campaign-hostile: venv  ## `apply`, `mirror`, `sync` and `migrate` beside 2,000 servers that lie, and ZooKeepers: wrong lengths, flipped bits, dropped writes, damaged batches and snapshots
	$(BIN)/python -m tests.scenarios.hostile_peers --cases 2000

KEYCLOAK := 26.5.6
KEYCLOAK_ZIP := build/oidc/keycloak-quarkus-dist-$(KEYCLOAK).zip

$(KEYCLOAK_ZIP):
	mvn -q -B dependency:copy -Dartifact=org.keycloak:keycloak-quarkus-dist:$(KEYCLOAK):zip -DoutputDirectory=$(CURDIR)/build/oidc

build/oidc/dex: tests/go/dex/go.mod
	mkdir -p build/oidc
	cd tests/go/dex && go build -buildvcs=false -o $(CURDIR)/build/oidc/dex github.com/dexidp/dex/cmd/dex

.PHONY: campaign-oidc
campaign-oidc: venv $(KEYCLOAK_ZIP) build/oidc/dex  ## logins of the console at a Keycloak and a Dex, attacked at each step; needs a JDK, Maven and Go; kept
	$(BIN)/python -m tests.scenarios.oidc.campaign --keycloak $(KEYCLOAK_ZIP) --dex build/oidc/dex \
	  --dex-web "$$(cd tests/go/dex && go list -m -f '{{.Dir}}' github.com/dexidp/dex)/web" --out benchmarks/results/oidc.txt

.PHONY: campaign-full-disk
campaign-full-disk: venv  ## a node and audit files on small disks that fill up; takes root and mounts tmpfs; kept
	$(BIN)/python -m tests.scenarios.nodes.full_disk --rounds 6 --out benchmarks/results/full-disk.txt

.PHONY: campaign-differences
campaign-differences: venv build/jvm/.ready  ## the exact difference of policies: 10 million cells beside our authorizer, a million witnesses beside Kafka's
	$(BIN)/python -m tests.analysis.campaign --workers $(WORKERS) --out benchmarks/results/differences.txt

.PHONY: campaign-apply
campaign-apply: venv build/jvm/.ready  ## `aclog apply` on real Kafkas, 4.3.1 and 3.9: others write, rights are taken, brokers and apply are killed; kept
	$(BIN)/python -m tests.scenarios.planning.kafka_faults --rounds 54 --nodes 3 --out benchmarks/results/apply-faults.txt

.PHONY: campaign-unused
campaign-unused: venv  ## 600 histories of rules that come and go, each answer of `aclog unused` beside the engine; kept
	$(BIN)/python -m tests.usage.unused.campaign --histories 120 --out benchmarks/results/unused.txt

LINES ?= 2000000
.PHONY: campaign-damaged-logs
campaign-damaged-logs: venv  ## access logs of LINES=2000000 lines in three layouts, 1% damaged at random: no access invented, no rule judged by what is lost; 2 million are kept
	$(BIN)/python -m tests.usage.accesses.damage $(LINES) $(if $(filter 2000000,$(LINES)),> benchmarks/results/damaged-logs.txt)

.PHONY: campaign-usage-kafka
campaign-usage-kafka: venv build/jvm/.ready  ## an hour of a real Kafka, its authorizer log held against a brute force; kept
	$(BIN)/python -m tests.scenarios.usage.real_kafka --minutes 60 --out benchmarks/results/usage-real-kafka.txt

.PHONY: campaign-mutations
campaign-mutations: venv build/jvm/.ready  ## twenty hand-made mutations, and the test that kills each; kept
	$(BIN)/python -m tests.scenarios.mutations --tier all --out benchmarks/results/mutations.md

.PHONY: simulate
simulate: venv  ## a simulated cluster under faults for SECONDS=n of CPU time; SEED=n TRACE=1 repeats a seed, SHRINK=1 shortens it; SHORT=1 for most seeds
	SECONDS=$(SECONDS) SEED=$(SEED) COUNT=$(COUNT) WORLD=$(WORLD) TRACE=$(TRACE) SHRINK=$(SHRINK) SHORT=$(SHORT) $(BIN)/python -m tests.simulation.simulate

.PHONY: simulate-campaign
simulate-campaign: venv  ## SEEDS=n short seeds in JOBS=n processes, from FROM=n or where the result file ends; kept in benchmarks/results
	$(BIN)/python -W ignore -m tests.simulation.campaign --seeds $(or $(SEEDS),1000) --jobs $(or $(JOBS),1) $(if $(FROM),--first $(FROM))

.PHONY: simulate-mutations
simulate-mutations: venv  ## the mutations planted in the simulated cluster: with which seed, and after how long, each is found
	$(BIN)/python -m tests.simulation.mutations

.PHONY: campaign-plan
campaign-plan: venv  ## 10,000 random changes planned, applied, killed at every point, on two settings: what was to be seen is judged; kept
	$(BIN)/python -m tests.planning.campaign --cases 10000 --workers $(WORKERS) --out benchmarks/results/plan.txt

.PHONY: campaign-pdp
campaign-pdp: venv  ## the golden decisions asked of a decision point in batches of a thousand, and 100,000 hostile bodies; kept too
	$(BIN)/python -m tests.console.pdp.golden --out benchmarks/results/pdp-golden.txt
	$(BIN)/python -m tests.console.pdp.hostile --bodies 100000 --out benchmarks/results/pdp-hostile.txt

.PHONY: bench-flood
bench-flood: venv $(CORE)  ## 5,000 connections from one address to aclog pdp and aclog console, beside an authenticated client of another; kept
	$(BIN)/python -m benchmarks flood

.PHONY: bench-costly
bench-costly: venv $(CORE)  ## the console's admin while one viewer asks for states of the past without end, on 100,000 rules; kept
	$(BIN)/python -m benchmarks costly

OPA := 1.10.1

build/opa/opa:
	GOBIN=$(CURDIR)/build/opa go install github.com/open-policy-agent/opa@v$(OPA)

.PHONY: bench-pdp
bench-pdp: venv $(CORE) build/opa/opa  ## the decision point beside OPA and pycasbin, asked the same questions in one run; kept; needs Go
	$(BIN)/python -m benchmarks.pdp

.PHONY: campaign-exports
campaign-exports: venv  ## 300 random estates to each format of other tools that we write, and back: equal
	$(BIN)/python -m tests.sources.formats.export_campaign --estates 300 --out benchmarks/results/exports.txt

KUSTOMIZE := 5.8.1

build/kustomize/kustomize:
	GOBIN=$(CURDIR)/build/kustomize go install sigs.k8s.io/kustomize/kustomize/v5@v$(KUSTOMIZE)

.PHONY: campaign-kustomize
campaign-kustomize: venv build/kustomize/kustomize  ## 600 random overlays, and those of checkouts (REPOSITORIES=DIR), beside `kustomize build`: equal or unread, never different; needs Go; kept
	$(BIN)/python -m tests.sources.formats.kustomize_campaign --kustomize build/kustomize/kustomize --overlays 600 \
	    $(if $(REPOSITORIES),--overlays-of $(REPOSITORIES)) --out benchmarks/results/kustomize.txt

HELM := 3.19.0

build/helm/helm:
	GOBIN=$(CURDIR)/build/helm go install helm.sh/helm/v3/cmd/helm@v$(HELM)

.PHONY: campaign-helm
campaign-helm: venv build/helm/helm  ## 100 random charts, and those of checkouts (REPOSITORIES=DIR), beside `helm template`: equal or unread, never different; needs Go; kept
	$(BIN)/python -m tests.sources.formats.helm_campaign --helm build/helm/helm --number 100 \
	    $(if $(REPOSITORIES),--charts $(REPOSITORIES)) --out benchmarks/results/helm.txt

.PHONY: campaign-repositories
campaign-repositories: venv  ## aclog at the roots of checkouts (REPOSITORIES=DIR), and reviews of their commits, beside a plain expander
	$(BIN)/python -m tests.sources.formats.repositories_campaign $(REPOSITORIES) --commits 10

.PHONY: campaign-edits
campaign-edits: venv build/jvm/.ready  ## a consumer on real Kafkas, one with a ZooKeeper, through 60 edits of its rules, by plans and as others make them; kept
	$(BIN)/python -m tests.planning.edits_campaign --edits 60 --out benchmarks/results/edits.txt

.PHONY: campaign-terraform
campaign-terraform: venv  ## 600 commits of Terraform repositories beside HashiCorp's own parser and values; needs Go
	$(BIN)/python -m tests.support.terraform.campaign --seeds 3 --commits 200 --expressions 5000 --out benchmarks/results/terraform.txt

.PHONY: campaign-streams
campaign-streams: venv build/jvm/.ready  ## a Spark stream killed 20 times over a growing log: each record once
	$(BIN)/python -m tests.scenarios.pipeline.stream_kills --kills 20 | tee benchmarks/results/stream-kills.txt

# Kafka's source for Spark: the newest version that there is, for Spark 4.2, which works on 4.3.0
build/spark-kafka/.ready: tests/support/spark/kafka.xml
	mvn -q -B -f $< dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/build/spark-kafka
	@touch $@

.PHONY: campaign-follow
campaign-follow: venv build/jvm/.ready build/spark-kafka/.ready build/delta/.ready build/iceberg/.ready  ## aclog spark follow killed 20 times over growing files, over a topic, and into tables of Delta and Iceberg, while ACLs change: each access once
	$(BIN)/python -m tests.scenarios.pipeline.follow_kills --kills 20 | tee benchmarks/results/follow-kills.txt
	$(BIN)/python -m tests.scenarios.pipeline.follow_kills --kills 20 --topic | tee -a benchmarks/results/follow-kills.txt
	$(BIN)/python -m tests.scenarios.pipeline.follow_kills --kills 20 --format delta | tee -a benchmarks/results/follow-kills.txt
	$(BIN)/python -m tests.scenarios.pipeline.follow_kills --kills 20 --format iceberg | tee -a benchmarks/results/follow-kills.txt

.PHONY: campaign-ingest
campaign-ingest: venv build/jvm/.ready  ## aclog spark ingest --follow killed 20 times while logs grow and rotate: each line once
	$(BIN)/python -m tests.scenarios.pipeline.ingest_kills --kills 20 | tee benchmarks/results/ingest-kills.txt

.PHONY: migration
migration: venv build/jvm/.ready  ## 20,000 ACLs out of ZooKeeper while changes go on; killed at every call and at 30 random moments
	$(BIN)/python -m tests.scenarios.migration.live | tee benchmarks/results/migration-live.txt
	$(BIN)/python -m tests.scenarios.migration.kills --kills 30 --out benchmarks/results/migration-kills.txt

# Universal: one file for all systems and Pythons, with markers where versions differ. Keeps what is pinned unless UPGRADE=--upgrade.
# Every extra but Spark, which takes 400 MB and a JVM: all other commands of the README run after `make run`.
RUN_EXTRAS = $(addprefix --extra ,web usage s3 query kafka zookeeper mcp)
COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-emit-index-url $(UPGRADE)
.PHONY: constraints
constraints:  ## compile constraints.txt and constraints-run.txt from pyproject.toml; needs uv
	$(COMPILE) --extra all --group dev pyproject.toml --output-file constraints.txt
	$(COMPILE) --constraint constraints.txt $(RUN_EXTRAS) --group build pyproject.toml --output-file constraints-run.txt

RESOLVE_FOR ?= 3.11 3.12 3.13 3.14
.PHONY: resolve
resolve: venv  ## whether pip can install aclog from wheels alone, for each Python of RESOLVE_FOR
	@for version in $(RESOLVE_FOR); do \
	  echo "Python $$version: aclog, aclog[kafka,zookeeper,parquet]"; \
	  $(BIN)/python -m tests.packaging.requirements kafka zookeeper parquet > build/requirements.txt; \
	  $(BIN)/pip download --quiet --disable-pip-version-check --only-binary=:all: --python-version $$version \
	    --dest build/wheels-$$version --requirement build/requirements.txt; \
	done

.PHONY: dist
dist: venv  ## the source distributions and the wheel, in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd native && ../$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("../dist")' > /dev/null

.PHONY: hooks
hooks: venv  ## ruff, mypy, import-linter and the words of docs/style.md before every commit, its subject included
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type commit-msg
