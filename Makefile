# A thin door onto the CMake presets; see README.md. Each target installs what it lacks first.
cmake := .venv/bin/cmake
ctest := .venv/bin/ctest
ARGS ?=

.PHONY: all setup setup-test build demo test test-release test-asan test-tsan bench clean
all: build

setup:
	@tools/setup.sh build

setup-test:
	@tools/setup.sh test

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

bench: build
	@bench/run.sh $(ARGS)

clean:
	@rm -rf build
