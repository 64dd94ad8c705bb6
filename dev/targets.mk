# Targets for developers: benchmarks, long tests, packages. Included by the Makefile.

.PHONY: bench-kernels bench-method bench-check bench-workflow fuzz test-presets test-packages test-debian13 test-debian12 test-debian11 test-first-run test-newcomer test-trouble requirements offline release-check

bench-kernels: setup kernels # compare the kernels with the reference tools; ARGS="--quick", see docs/performance.md
	@PYTHONPATH=src:dev python -m benchmarks.kernels $(ARGS)

bench-method: setup-test kernels # count false and missed verdicts of the method, with injected faults; ARGS="--quick", see docs/method.md
	@PYTHONPATH=src:dev python -m benchmarks.method $(ARGS)

bench-check: setup-test kernels # count false alarms of peakmark check beside other programs; ARGS="--calls 24", see docs/method.md
	@PYTHONPATH=src:dev python -m benchmarks.check $(ARGS)

bench-workflow: setup-test kernels # measure the cost of planning, jobs and report; ARGS="--only planning", see docs/performance.md
	@PYTHONPATH=src:dev python -m benchmarks.workflow $(ARGS)

fuzz: setup-test kernels # feed random input to the parsers of C and Python for ten minutes
	@$(MAKE) --no-print-directory -C src/kernels fuzz FUZZ_SECONDS=120
	FUZZ_EXAMPLES=5000 python -m pytest tests/unit/test_fuzz.py tests/unit/tools/test_outputs.py tests/unit/storage/test_integrity.py

test-presets: setup-test kernels # run every shipped preset, shortened, to its report
	python -m pytest tests/workflow/test_presets.py

test-packages: setup-test kernels # install and run the wheel, here and on the test cluster
	python -m pytest tests/workflow tests/cluster -m packages

test-debian13: # run the tests and every preset in a minimal Debian 13 below build/, as root; ARGS="lint test-kernels", ARGS=--user as an ordinary user
	@dev/debian/run 13 $(ARGS)

test-debian12: # run the tests and every preset in a minimal Debian 12
	@dev/debian/run 12 $(ARGS)

test-debian11: # test the kernels with the compiler and assembler of Debian 11, which lack an instruction set, as root
	@dev/debian/run 11 $(ARGS)

RELEASES ?= 12 13
test-first-run: setup # make first runs in minimal Debians, with and without a network, as root; RELEASES=13 ARGS="--config scale=0.1"
	@for release in $(RELEASES); do dev/debian/first-run $$release $(ARGS) || exit 1; done

test-newcomer: setup # run the commands of the documentation in minimal Debians, as root; RELEASES=13 ARGS="user tools docs"
	@for release in $(RELEASES); do dev/debian/newcomer $$release $(ARGS) || exit 1; done

test-trouble: setup-test kernels # test lost jobs, dead nodes, killed Snakemake, hanging tools and every preset, for an hour
	for folder in faults workflow cluster; do python -m pytest tests/$$folder -m trouble || exit 1; done

requirements: # pin envs/*.in with hashes (needs uv)
	for name in envs/requirements-build envs/requirements envs/requirements-test dev/requirements-offline dev/requirements-docs dev/requirements-release; do \
	  uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --allow-unsafe $$name.in -o $$name.txt; \
	done

offline: setup # pack an archive in build/ for installations without a network; ARGS="--python 3.12 --platform manylinux_2_28_aarch64"
	@python dev/offline.py $(ARGS)

release-check: build/release/bin/twine # build sdist and wheel, check them, names and versions, and list what a release needs; publishes nothing
	@python dev/release_check.py

# In an environment of its own: twine needs newer packages than Snakemake allows.
build/release/bin/twine: dev/requirements-release.txt | setup
	@rm -rf build/release && python -m venv build/release
	@build/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r dev/requirements-release.txt
	@touch $@
