# What is taken from outside, and where it comes from. Why each is there: docs/dependencies.md.
find_package(OpenCL REQUIRED)            # Debian: ocl-icd-opencl-dev
find_package(fmt REQUIRED)               # Debian: libfmt-dev
find_package(spdlog REQUIRED)            # Debian: libspdlog-dev
find_package(nlohmann_json REQUIRED)     # Debian: nlohmann-json3-dev
find_package(ZLIB REQUIRED)              # Debian: zlib1g-dev
find_library(ZIP_LIBRARY zip REQUIRED)   # Debian: libzip-dev, whose package file wants its tools
find_library(CSV_LIBRARY csv REQUIRED)   # Debian: libcsv-dev
find_package(CLI11 REQUIRED)             # Debian: libcli11-dev
find_package(GTest REQUIRED)             # Debian: libgtest-dev, libgmock-dev
find_package(benchmark REQUIRED)         # Debian: libbenchmark-dev
find_package(Threads REQUIRED)
# PyPI: halide (tools/setup.sh puts it into .venv); not its image tools and Python bindings.
set(CMAKE_DISABLE_FIND_PACKAGE_Halide_Python ON)
find_package(Halide 21 REQUIRED COMPONENTS Halide)
find_library(JEMALLOC_LIBRARY jemalloc)  # Debian: libjemalloc-dev; left out where it is missing
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  # It leaves files alone that take precompiled headers, unless it is told so.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  "${CCACHE}")
endif()
