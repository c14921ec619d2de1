# A thin door onto the CMake presets; see README.md. Each target installs what it lacks first.
cmake := .venv/bin/cmake
ctest := .venv/bin/ctest
ARGS ?=

.PHONY: all setup setup-test setup-bench build demo test test-release test-asan test-tsan bench \
  bench-workloads clean
all: build

setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

setup-bench:
	@tools/setup.sh bench

build: setup
	@$(cmake) --preset release --log-level=WARNING
	@$(cmake) --build --preset release

demo: setup
	@$(cmake) --preset release --log-level=WARNING
	@$(cmake) --build --preset release --target ballast_mnist
	@build/release/examples/mnist/ballast_mnist --plot build/mnist_loss.svg $(ARGS)

test: test-release test-asan test-tsan

test-release: setup-test
	@$(cmake) --preset release --log-level=WARNING
	@$(cmake) --build --preset release
	@$(ctest) --preset release

# The generated kernels carry no instrumentation, so the release build's serve here too.
test-asan test-tsan: test-%: test-release
	@$(cmake) --preset $* --log-level=WARNING -DBALLAST_KERNELS_FROM=$(CURDIR)/build/release
	@$(cmake) --build --preset $*
	@$(ctest) --preset $*

bench: setup-bench
	@$(cmake) --preset release --log-level=WARNING
	@$(cmake) --build --preset release
	@bench/run.sh $(ARGS)

# Whole workloads beside other frameworks; bench/compare.py says where these are looked for.
bench-workloads: build
	@.venv/bin/python bench/compare.py $(ARGS)

clean:
	@rm -rf build
