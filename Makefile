# Two commands do all the set-up: `make demo` and `make test`. `make help` lists the rest, and dev/targets.mk has the targets of developers.
SHELL := /bin/bash
BIN := .venv/bin
PRESET ?= config/presets/quick.yaml
# The environment's programs first, so that rules and tests find the same ones.
export PATH := $(CURDIR)/$(BIN):$(PATH)
# What make starts keeps its caches here, and not in the home directory.
export XDG_CACHE_HOME := $(CURDIR)/build/cache
export MPLCONFIGDIR := $(CURDIR)/build/matplotlib

.PHONY: help setup setup-test kernels demo test test-unit test-kernels test-workflow test-faults test-cluster test-gpu cluster cluster-down lint format docs clean

help: ## list these targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

# Named by hand, they also ask again for Debian packages that could not be had.
AGAIN := $(filter setup setup-test,$(MAKECMDGOALS))

setup: ## install the packages for measuring
	@bash envs/install.sh run $(AGAIN:%=again)

setup-test:
	@bash envs/install.sh test $(AGAIN:%=again)

kernels: ## compile the kernels into build/kernels
	@$(MAKE) --no-print-directory -C src/kernels

demo: setup ## measure this machine with the preset quick and write its report
	@snakemake --profile local --configfile $(PRESET)

# Of a warning of a compiler only those who change the sources make an error.
lint test test-unit test-kernels test-faults test-workflow test-cluster: export WERROR := 1

# The kernels first: parts run side by side, and each makes sure that they are there.
test: setup-test kernels ## run all tests; the end lists times and skipped tests
	@python dev/parts.py

# A part that needs a program is skipped where that is not; said as pytest says it, for the count at the end of make test.
where = type -P $(1) >/dev/null || { echo "SKIPPED [1] $@: $(1) is not here"; exit 0; };

lint: setup-test ## check formatting, types and style
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile rules workflow
	mypy
	python -m pytest -q tests/unit/test_house.py tests/unit/test_vocabulary.py tests/unit/config/test_readme.py
	$(call where,shellcheck) shellcheck -x envs/install.sh envs/debian.bash envs/units-stay-off dev/debian/run dev/debian/first-run dev/debian/newcomer dev/offline-install.sh .ci/run src/kernels/probe.sh src/peakmark/data/modules.sh tests/kernels/runs/*.sh
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

test-workflow: setup-test
	python -m pytest tests/workflow -m "not trouble and not packages"

test-faults: setup-test kernels
	python -m pytest tests/faults -m "not trouble"

test-cluster: setup-test
	python -m pytest tests/cluster -m "not trouble and not packages"

test-gpu: setup kernels ## measure this machine's GPU with every kernel and compare it with its limits, cuBLAS and cuMemcpy, for five minutes
	@python dev/gpu.py

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
build/docs/packages/mkdocs: dev/requirements-docs.txt | setup
	@rm -rf build/docs/packages
	@python -m pip install --quiet --require-hashes --target build/docs/packages -r dev/requirements-docs.txt
	@touch $@

# Real campaigns as their bundles hold them, with the reports and bundles that this checkout makes of them.
build/docs/gallery/%.zip: docs/gallery/%.tar.xz | setup
	@rm -rf $@ $(basename $@) && python -m tarfile --extract $< $(basename $@)
	@PYTHONPATH=src python -m peakmark report $(basename $@)
	@PYTHONPATH=src python -m peakmark bundle $(basename $@) -o $@

clean: ## remove compiled files; results stay
	rm -rf build

include dev/targets.mk
