# Headers that take longer to parse than what includes them, parsed once for many targets.
#
#   ballast_precompile(<group> <target>)
#     plugin and frontend: what most sources below and above the ABI include; recipes and
#     generators: Halide; tests and kernel_tests: GoogleTest; frontend_tests: that and the frontend.
#     The first target of a group parses its headers, the others take what it made, so all of a
#     group have its compiler options and definitions. Sources include what they use as if there
#     were no group.
set(BALLAST_HEADERS_plugin <algorithm> <functional> <map> <memory> <optional> <string>
                           <unordered_map> <vector> <fmt/format.h>)
set(BALLAST_HEADERS_frontend ${BALLAST_HEADERS_plugin})
set(BALLAST_HEADERS_recipes <Halide.h>)
set(BALLAST_HEADERS_generators ${BALLAST_HEADERS_recipes})
set(BALLAST_HEADERS_tests <gmock/gmock.h> <gtest/gtest.h>)
set(BALLAST_HEADERS_kernel_tests ${BALLAST_HEADERS_tests})
set(BALLAST_HEADERS_frontend_tests ${BALLAST_HEADERS_tests} <frontend/ballast_frontend.h>)

# What lets a compiler cache know a precompiled header by its content.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
                    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

function(ballast_precompile group target)
  get_property(owner GLOBAL PROPERTY BALLAST_PRECOMPILED_${group})
  if(owner)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  else()
    target_precompile_headers(${target} PRIVATE ${BALLAST_HEADERS_${group}})
    set_property(GLOBAL PROPERTY BALLAST_PRECOMPILED_${group} ${target})
  endif()
endfunction()
