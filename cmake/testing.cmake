# How GoogleTest binaries become CTest entries: one entry per OpenCL implementation, not per case.
#
#   ballast_add_test(<target> [NO_DEVICE] [BOTH_CLASSES] [LABELS label...] [TIMEOUT seconds]
#                    [COST seconds] [SHARDS n] [ENVIRONMENT k=v...])
#     <target>.pocl and, where tools/setup.sh installed Intel's runtime, <target>.intel; with
#     NO_DEVICE a single entry <target>. BALLAST_DEVICE names the device, BALLAST_PLUGIN the plugin.
#     SHARDS divides the cases among n entries that run side by side: <target>.pocl.1, ... A process
#     of PoCL compiles one program at a time. BOTH_CLASSES: once more with the schedules of GPUs,
#     <target>.pocl.gpu and so on, by the main of tests/class_main.cpp.
#     COST: about how long an entry takes where that is long. Those start first, so that none is left
#     alone at the end; ctest itself knows only once it has run them.
#   ballast_add_oclgrind_test(<target> FILTER gtest-filter [TIMEOUT seconds] [COST seconds] [SHARDS n])
#     <target>.oclgrind.1, ...: the filtered cases on the simulator; any report of it is a failure.
#
# Labels select: pocl, intel, oclgrind (the implementation), threads (what the tsan preset runs) and
# slow (left out of the sanitizer presets).
set(BALLAST_INTEL_VENDORS "${PROJECT_SOURCE_DIR}/.venv/intel/vendors")
find_program(OCLGRIND oclgrind)

# TSan's runtime (clang 14, gcc 12) cannot map its shadow where address randomization is strong.
set(BALLAST_TEST_LAUNCHER "")
if(BALLAST_SANITIZE STREQUAL "thread")
  execute_process(COMMAND setarch -R true RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(BALLAST_TEST_LAUNCHER setarch -R)
  endif()
endif()

# A cache folder of the tests' own: the user's is left alone, and runs find warm programs. Whoever
# takes another folder's kernels takes what OpenCL made of them as well.
set(cache_owner "${PROJECT_BINARY_DIR}")
if(BALLAST_KERNELS_FROM)
  set(cache_owner "${BALLAST_KERNELS_FROM}")
endif()
# LeakSanitizer's runtime guesses where glibc keeps a library's thread-local memory; gcc 12's guesses
# wrong with this one, and then crashes while it looks for leaks: it is told not to.
# Of who allocated it keeps six calls: thirty made gradient_test 59 s of work instead of 42.
set(BALLAST_TEST_ENVIRONMENT
    "BALLAST_CACHE_DIR=${cache_owner}/test-cache"
    "ASAN_OPTIONS=detect_stack_use_after_return=1:intercept_tls_get_addr=0:malloc_context_size=6"
    "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan.supp:print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:second_deadlock_stack=1")

# Which group of cmake/precompiled.cmake a folder's tests take.
set(BALLAST_TEST_HEADERS tests)

# What the tsan preset builds.
add_custom_target(thread_tests)

function(ballast_test_entry name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;COST" "LABELS;ENVIRONMENT;COMMAND")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  # A folder of the entry's own: the same case may run on another implementation at the same time.
  set(files "${PROJECT_BINARY_DIR}/test-files/${name}")
  file(MAKE_DIRECTORY "${files}")
  set(plugin "")
  if(TARGET ballast)
    set(plugin "BALLAST_PLUGIN=$<TARGET_FILE:ballast>")
  endif()
  set_tests_properties(${name} PROPERTIES
    TIMEOUT "${arg_TIMEOUT}" LABELS "${arg_LABELS}"
    ENVIRONMENT "${BALLAST_TEST_ENVIRONMENT};TEST_TMPDIR=${files};${plugin};${arg_ENVIRONMENT}")
endfunction()

# One entry per OpenCL implementation. On PoCL its own cache has to do: for ours it compiles each
# kernel once more, for any local size, which made the first run of layer_test 61 s instead of 29.
function(ballast_device_entries target suffix)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "TIMEOUT;COST" "LABELS;ENVIRONMENT")
  set(command ${BALLAST_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  set(common TIMEOUT ${arg_TIMEOUT} COST ${arg_COST} COMMAND ${command})
  ballast_test_entry(${target}.pocl${suffix} ${common} LABELS pocl ${arg_LABELS}
                     ENVIRONMENT BALLAST_DEVICE=pocl BALLAST_CACHE_DIR=off ${arg_ENVIRONMENT})
  if(IS_DIRECTORY "${BALLAST_INTEL_VENDORS}" AND NOT BALLAST_SANITIZE)
    ballast_test_entry(${target}.intel${suffix} ${common} LABELS intel ${arg_LABELS}
                       ENVIRONMENT BALLAST_DEVICE=intel "OCL_ICD_VENDORS=${BALLAST_INTEL_VENDORS}"
                                   ${arg_ENVIRONMENT})
  endif()
endfunction()

function(ballast_add_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_DEVICE;BOTH_CLASSES"
                        "TIMEOUT;COST;SHARDS" "LABELS;ENVIRONMENT")
  target_compile_options(${target} PRIVATE -O0)  # that takes a quarter off its compilation
  if(BALLAST_TEST_HEADERS)
    ballast_precompile(${BALLAST_TEST_HEADERS} ${target})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(thread_tests ${target})
    if(TARGET ballast)
      add_dependencies(thread_tests ballast)
    endif()
  endif()
  set(common TIMEOUT ${arg_TIMEOUT} COST ${arg_COST} LABELS ${arg_LABELS})
  if(arg_NO_DEVICE)
    ballast_test_entry(${target} TIMEOUT ${arg_TIMEOUT} LABELS pure ${arg_LABELS}
                       ENVIRONMENT ${arg_ENVIRONMENT}
                       COMMAND ${BALLAST_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
  elseif(arg_SHARDS)
    foreach(shard RANGE 1 ${arg_SHARDS})
      math(EXPR index "${shard} - 1")
      ballast_device_entries(${target} .${shard} ${common} ENVIRONMENT
        GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index} ${arg_ENVIRONMENT})
    endforeach()
  else()
    ballast_device_entries(${target} "" ${common} ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
  if(arg_BOTH_CLASSES AND NOT BALLAST_SANITIZE)  # the same code of ours
    ballast_device_entries(${target} .gpu ${common} ENVIRONMENT BALLAST_TEST_CLASS=gpu
                           ${arg_ENVIRONMENT})
  endif()
endfunction()

function(ballast_add_oclgrind_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;COST;FILTER;SHARDS" "")
  if(NOT OCLGRIND OR BALLAST_SANITIZE)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1500)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    math(EXPR index "${shard} - 1")
    set(log "${CMAKE_CURRENT_BINARY_DIR}/${target}.oclgrind.${shard}.log")
    ballast_test_entry(${target}.oclgrind.${shard} TIMEOUT ${arg_TIMEOUT} COST "${arg_COST}"
      LABELS oclgrind
      ENVIRONMENT BALLAST_DEVICE=oclgrind BALLAST_CACHE_DIR=off GTEST_TOTAL_SHARDS=${arg_SHARDS}
                  GTEST_SHARD_INDEX=${index}
      COMMAND "${PROJECT_SOURCE_DIR}/tools/under_oclgrind.sh" "${OCLGRIND}" "${log}"
              $<TARGET_FILE:${target}> "--gtest_filter=${arg_FILTER}")
  endforeach()
endfunction()
