# One row per kernel built ahead of time.
include(matmul_manifest.cmake OPTIONAL)
