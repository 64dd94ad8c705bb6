# Two commands do all the set-up: `make demo` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
BIN := .venv/bin
PRESET ?= config/presets/quick.yaml
# The environment's programs first, so that rules and tests find the same ones.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# What make starts keeps its caches here, and not in the home directory.
export XDG_CACHE_HOME := $(CURDIR)/build/cache
export MPLCONFIGDIR := $(CURDIR)/build/matplotlib

.PHONY: help setup setup-test kernels demo bench-kernels bench-method bench-check bench-workflow test test-loaded test-unit test-kernels test-emulated test-workflow test-faults test-cluster test-gpu test-presets test-packages test-trouble test-debian13 test-debian12 test-debian11 test-first-run test-newcomer fuzz cluster cluster-down lint format docs requirements offline release-check clean

help: ## list these targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

# Named by hand, they also ask again for Debian packages that could not be had.
AGAIN := $(filter setup setup-test,$(MAKECMDGOALS))

setup: ## install the packages for measuring
	@bash envs/install.sh run $(AGAIN:%=again)

setup-test: ## install the packages for the tests
	@bash envs/install.sh test $(AGAIN:%=again)

kernels: ## compile the kernels into build/kernels
	@$(MAKE) --no-print-directory -C src/kernels

demo: setup ## measure this machine with the preset quick and write its report
	@snakemake --profile local --configfile $(PRESET)

bench-kernels: setup kernels ## compare the kernels with the reference tools; ARGS="--quick", see docs/performance.md
	@PYTHONPATH=src python -m benchmarks.kernels $(ARGS)

bench-method: setup-test kernels ## count false and missed verdicts of the method, with injected faults; ARGS="--quick", see docs/method.md
	@PYTHONPATH=src python -m benchmarks.method $(ARGS)

bench-check: setup-test kernels ## count false alarms of peakmark check beside other programs; ARGS="--calls 24", see docs/method.md
	@PYTHONPATH=src python -m benchmarks.check $(ARGS)

bench-workflow: setup-test kernels ## measure the cost of planning, jobs and report; ARGS="--only planning", see docs/workflow.md
	@PYTHONPATH=src python -m benchmarks.workflow $(ARGS)

# Of a warning of a compiler only those who change the sources make an error.
lint test test-loaded test-unit test-kernels test-emulated test-faults test-workflow test-cluster: export WERROR := 1

PARTS := lint test-kernels test-workflow test-unit test-faults test-cluster
# The kernels first: parts run side by side, and each makes sure that they are there.
test: setup-test kernels ## run all tests; the end lists times and skipped tests
	@+MAKE="$(MAKE)" python tests/parts.py $(PARTS)

TIMES ?= 10
LOAD ?= 8
test-loaded: setup-test kernels ## run all tests TIMES=10 times while LOAD=8 processes keep the machine busy; PARTS="test-unit test-faults"
	@+MAKE="$(MAKE)" python tests/parts.py --times $(TIMES) --load $(LOAD) $(PARTS)

# A part that needs a program is skipped where that is not; said as pytest says it, for the count at the end of make test.
where = type -P $(1) >/dev/null || { echo "SKIPPED [1] $@: $(1) is not here"; exit 0; };

lint: setup-test ## check formatting, types and style
	ruff check .
	ruff format --check .
	mypy
	python -m pytest -q tests/unit/test_vocabulary.py tests/unit/config/test_readme.py
	$(call where,shellcheck) shellcheck -x envs/install.sh envs/debian.bash envs/units-stay-off tests/debian/run tests/debian/first-run tests/debian/newcomer envs/offline-install.sh .ci/run src/kernels/probe.sh src/peakmark/data/modules.sh tests/guest/init tests/kernels/runs/*.sh
	@$(MAKE) --no-print-directory -C src/kernels format-check
	@$(call where,cppcheck) $(MAKE) --no-print-directory -C src/kernels cppcheck

test-unit: setup-test kernels
	python -m pytest tests/unit --numprocesses auto --maxprocesses 4 --dist loadfile

# Without its library the tests bring what they need of cmocka.
test-kernels: CMOCKA = $(shell echo 'int main(void) { return 0; }' | gcc -x c -o /dev/null - -lcmocka 2>/dev/null && echo -lcmocka)
test-kernels: setup-test
	@$(MAKE) --no-print-directory -C src/kernels test CMOCKA=$(CMOCKA)
	@$(MAKE) --no-print-directory -C src/kernels arm riscv
	@$(MAKE) --no-print-directory -C src/kernels sanitize CMOCKA=$(CMOCKA)
	@$(call where,clang) $(MAKE) --no-print-directory -C src/kernels fuzz FUZZ_SECONDS=3

fuzz: setup-test kernels ## feed random input to the parsers of C and Python for ten minutes
	@$(MAKE) --no-print-directory -C src/kernels fuzz FUZZ_SECONDS=120
	FUZZ_EXAMPLES=5000 python -m pytest tests/unit/test_fuzz.py tests/unit/tools/test_outputs.py tests/unit/storage/test_integrity.py

test-emulated: setup-test kernels ## test the kernels on CPUs that bochs emulates, with instruction sets that this CPU lacks; ARGS="--cpu corei7_skylake_x"
	@$(MAKE) --no-print-directory -C src/kernels ../../build/kernels/tests/test_sweeps
	@PYTHONPATH=. python tests/kernels/emulated/run.py $(ARGS)

test-workflow: setup-test
	python -m pytest tests/workflow -m "not trouble and not packages"

test-faults: setup-test kernels ## test killed programs, full disks, broken tools and bad networks
	python -m pytest tests/faults -m "not trouble"

test-cluster: setup-test
	python -m pytest tests/cluster -m "not trouble and not packages"

test-presets: setup-test kernels ## run every shipped preset, shortened, to its report
	python -m pytest tests/workflow/test_presets.py

test-packages: setup-test kernels ## install and run the wheel, here and on the test cluster
	python -m pytest tests/workflow tests/cluster -m packages

test-debian13: ## run the tests and every preset in a minimal Debian 13 below build/, as root; ARGS="lint test-kernels", ARGS=--user as an ordinary user
	@tests/debian/run 13 $(ARGS)

test-debian12: ## run the tests and every preset in a minimal Debian 12
	@tests/debian/run 12 $(ARGS)

test-debian11: ## test the kernels with the compiler and assembler of Debian 11, which lack an instruction set, as root
	@tests/debian/run 11 $(ARGS)

RELEASES ?= 12 13
test-first-run: setup ## make first runs in minimal Debians, with and without a network, as root; RELEASES=13 ARGS="--config scale=0.1"
	@for release in $(RELEASES); do tests/debian/first-run $$release $(ARGS) || exit 1; done

test-newcomer: setup ## run the commands of the documentation in minimal Debians, as root; RELEASES=13 ARGS="user tools docs"
	@for release in $(RELEASES); do tests/debian/newcomer $$release $(ARGS) || exit 1; done

test-trouble: setup-test kernels ## test lost jobs, dead nodes, killed Snakemake, hanging tools and every preset, for an hour
	for folder in faults workflow cluster; do python -m pytest tests/$$folder -m trouble || exit 1; done

test-gpu: setup kernels ## measure this machine's GPU with every kernel and compare it with its limits, cuBLAS and cuMemcpy, for five minutes
	@python -m tests.gpu

cluster: setup-test ## start a Slurm cluster of two nodes on this machine to practise on (root)
	@python -m tests.cluster.testcluster up

cluster-down: ## remove that cluster
	@python -m tests.cluster.testcluster down

format: setup-test ## format all sources
	ruff check --fix .
	ruff format .
	snakefmt Snakefile rules
	@$(MAKE) --no-print-directory -C src/kernels format

GALLERY := $(patsubst docs/%.tar.xz,build/docs/%.zip,$(wildcard docs/gallery/*.tar.xz))
docs: build/docs/packages/mkdocs $(GALLERY) ## build the documentation as a site in build/docs/site and check its links
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=src:build/docs/packages python -m mkdocs build
	@echo "build/docs/site/index.html; its search needs a server: python3 -m http.server --directory build/docs/site"

# Into a folder of their own: measuring needs none of them.
build/docs/packages/mkdocs: envs/requirements-docs.txt | setup
	@rm -rf build/docs/packages
	@python -m pip install --quiet --require-hashes --target build/docs/packages -r envs/requirements-docs.txt
	@touch $@

# Real campaigns as their bundles hold them, with the reports and bundles that this checkout makes of them.
build/docs/gallery/%.zip: docs/gallery/%.tar.xz | setup
	@rm -rf $@ $(basename $@) && python -m tarfile --extract $< $(basename $@)
	@PYTHONPATH=src python -m peakmark report --html $(basename $@)
	@PYTHONPATH=src python -m peakmark bundle $(basename $@) -o $@

requirements: ## pin envs/*.in with hashes (needs uv)
	cd envs && for name in requirements-build requirements requirements-offline requirements-test requirements-docs requirements-release; do \
	  uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --allow-unsafe $$name.in -o $$name.txt; \
	done

offline: setup ## pack an archive in build/ for installations without a network; ARGS="--python 3.12 --platform manylinux_2_28_aarch64"
	@python envs/offline.py $(ARGS)

release-check: build/release/bin/twine ## build sdist and wheel, check them, names and versions, and list what a release needs; publishes nothing
	@python envs/release_check.py

# In an environment of its own: twine needs newer packages than Snakemake allows.
build/release/bin/twine: envs/requirements-release.txt | setup
	@rm -rf build/release && python -m venv build/release
	@build/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r envs/requirements-release.txt
	@touch $@

clean: ## remove compiled files; results stay
	rm -rf build
