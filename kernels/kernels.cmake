# The kernels built ahead of time: one row per variant, each with a schedule for CPU-class and one
# for GPU-class devices.
#
#   ballast_kernel(<name> GENERATOR <generator> [CLASSES cpu|gpu] [WIDE] [PARAMS <key=value>...])
#
# runs the generator of this family once with device_class=cpu and once with device_class=gpu, adds
# the objects of both to BALLAST_KERNEL_OBJECTS and a row to the table that
# kernels::aot_kernel("<name>", device_class) looks in. Halide's own add_halide_library makes four
# CMake targets and an archive per variant; with some hundred variants plain commands are simpler.
# WIDE: indices in the kernel are 64-bit, so that compilers keep them in pointers; with 32 bits each
# access of a loop costs a sign extension.
# Each family has a generator program of its own, so that a change rebuilds that family only.

# Host code runs on any machine of the architecture; what is fast runs on the device.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(BALLAST_HALIDE_HOST arm-64-linux)
else()
  set(BALLAST_HALIDE_HOST x86-64-linux)
endif()
set(BALLAST_HALIDE_TARGET
    "${BALLAST_HALIDE_HOST}-opencl-no_runtime-no_asserts-no_bounds_query")

set(BALLAST_KERNEL_NAMES "")
set(BALLAST_KERNEL_OBJECTS "")

function(ballast_kernel name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "WIDE" "GENERATOR" "CLASSES;PARAMS")
  set(generators ballast_${family}_generators)
  if(NOT ARG_CLASSES)
    set(ARG_CLASSES cpu gpu)
  endif()
  set(target ${BALLAST_HALIDE_TARGET})
  if(ARG_WIDE)
    string(APPEND target "-large_buffers")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/aot")
  file(MAKE_DIRECTORY "${folder}")
  set(objects "")
  foreach(class IN LISTS ARG_CLASSES)
    set(function "ballast_${name}_${class}")
    set(object "${folder}/${function}.o")
    set(prebuilt "${BALLAST_KERNELS_FROM}/kernels/aot/${function}.o")
    if(BALLAST_KERNELS_FROM AND EXISTS "${prebuilt}"
       AND NOT (BALLAST_KERNELS_REBUILD AND name MATCHES "${BALLAST_KERNELS_REBUILD}"))
      list(APPEND objects "${prebuilt}")
      continue()
    endif()
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${generators} -g ${ARG_GENERATOR} -f ${function} -n ${function} -o "${folder}"
              -e object "target=${target}" device_class=${class} ${ARG_PARAMS}
      DEPENDS ${generators}
      COMMENT "Halide ${name} (${class})"
      VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set(BALLAST_KERNEL_NAMES ${BALLAST_KERNEL_NAMES} ${name} PARENT_SCOPE)
  set_property(GLOBAL PROPERTY BALLAST_CLASSES_${name} ${ARG_CLASSES})
  set(BALLAST_KERNEL_OBJECTS ${BALLAST_KERNEL_OBJECTS} ${objects} PARENT_SCOPE)
endfunction()

# Two numbers of a variant's name: ballast_sizes(6x4 pixels vectors).
function(ballast_sizes text first second)
  string(REPLACE x ";" sizes ${text})
  list(GET sizes 0 one)
  list(GET sizes 1 other)
  set(${first} ${one} PARENT_SCOPE)
  set(${second} ${other} PARENT_SCOPE)
endfunction()

# Writes the table of all rows so far to `path`.
function(ballast_write_kernel_table path)
  set(declarations "")
  set(rows "")
  foreach(name IN LISTS BALLAST_KERNEL_NAMES)
    set(row "\"${name}\"")
    get_property(classes GLOBAL PROPERTY BALLAST_CLASSES_${name})
    foreach(class cpu gpu)
      if(class IN_LIST classes)
        string(APPEND declarations "int ballast_${name}_${class}_argv(void**);\n")
        string(APPEND row ", ballast_${name}_${class}_argv")
      else()
        string(APPEND row ", nullptr")
      endif()
    endforeach()
    string(APPEND rows "    {${row}},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${path}" @ONLY CONTENT [[
#include "kernels/plan/aot_table.h"

extern "C" {
@declarations@}

const ballast::kernels::AotRow* ballast::kernels::aot_rows() {
  static const AotRow rows[] = {
@rows@    {nullptr, nullptr, nullptr}};
  return rows;
}
]])
endfunction()

# ballast_oclgrind_filter(<pattern>...): the family's tests that are small enough for the simulator.
set(BALLAST_OCLGRIND_FILTERS "")
function(ballast_oclgrind_filter)
  set(BALLAST_OCLGRIND_FILTERS ${BALLAST_OCLGRIND_FILTERS} ${ARGN} PARENT_SCOPE)
endfunction()
