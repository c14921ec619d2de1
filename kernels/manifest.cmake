# One row per kernel built ahead of time.

# ---- pointwise: names, arities and rules come from pointwise_ops.inc
# Combinations of dense (1) and repeated (0) operands with a variant of their own.
set(patterns_1 1,0)
set(patterns_2 11,10,01)
set(patterns_3 111,110,101,011)

function(ballast_pointwise name op in out)
  string(REGEX MATCHALL "[a-z0-9]+" operands "${in}")
  list(LENGTH operands arity)
  ballast_kernel(${name} GENERATOR pointwise
                 PARAMS op=${op} in=${in} out=${out} patterns=${patterns_${arity}})
  set(BALLAST_KERNEL_NAMES ${BALLAST_KERNEL_NAMES} PARENT_SCOPE)
  set(BALLAST_KERNEL_OBJECTS ${BALLAST_KERNEL_OBJECTS} PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS pointwise_ops.inc)
file(STRINGS pointwise_ops.inc rows REGEX "^POINTWISE\\(")
foreach(row IN LISTS rows)
  string(REGEX MATCH "^POINTWISE\\(([a-z0-9_]+), ([1-3]), k([A-Za-z]+)," matched "${row}")
  if(NOT matched)
    message(FATAL_ERROR "pointwise_ops.inc: cannot read the row ${row}")
  endif()
  set(op ${CMAKE_MATCH_1})
  set(arity ${CMAKE_MATCH_2})
  set(rule ${CMAKE_MATCH_3})
  string(REPEAT ",T" ${arity} same)
  string(SUBSTRING "${same}" 1 -1 same)
  if(rule STREQUAL "Float")
    set(types f32)
  elseif(rule MATCHES "^(Numeric|Compare|Select)$")
    set(types f32 i32)
  elseif(rule STREQUAL "Logical")
    set(types bool)
  elseif(rule MATCHES "^(Cast|Any)$")
    set(types "")  # below
  else()
    message(FATAL_ERROR "pointwise_ops.inc: no rule k${rule}")
  endif()
  foreach(type IN LISTS types)
    string(REPLACE T ${type} in "${same}")
    set(out ${type})
    if(rule STREQUAL "Compare")
      set(out bool)
    elseif(rule STREQUAL "Select")
      set(in bool,${type},${type})
    endif()
    ballast_pointwise(${op}_${type} ${op} ${in} ${out})
  endforeach()
endforeach()

foreach(from f32 i32 i64 u8 bool)
  foreach(to f32 i32 i64 u8 bool)
    if(NOT from STREQUAL to)
      ballast_pointwise(cast_${from}_${to} cast ${from} ${to})
    endif()
  endforeach()
endforeach()

# Moves, by element size.
ballast_pointwise(copy_1 identity u8 u8)
ballast_pointwise(copy_2 identity f16 f16)
ballast_pointwise(copy_4 identity i32 i32)
ballast_pointwise(copy_8 identity i64 i64)

# ---- optimizer steps: tensors, then scalars
ballast_kernel(sgd_f32 GENERATOR sgd PARAMS patterns=110)
ballast_kernel(momentum_f32 GENERATOR momentum PARAMS patterns=11100 nesterov=false)
ballast_kernel(momentum_nesterov_f32 GENERATOR momentum PARAMS patterns=11100 nesterov=true)

# ---- reductions: a mean is a divided sum
foreach(row sum:f32 sum:i32 prod:f32 prod:i32 max:f32 max:i32 min:f32 min:i32 any:bool all:bool)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 kind)
  list(GET row 1 dtype)
  foreach(shape rows columns)
    ballast_kernel(reduce_${shape}_${kind}_${dtype} GENERATOR reduce_${shape}
                   PARAMS kind=${kind} dtype=${dtype})
  endforeach()
endforeach()

foreach(dtype f32 i32)
  foreach(kind argmax argmin)
    ballast_kernel(${kind}_${dtype} GENERATOR arg_reduce PARAMS kind=${kind} dtype=${dtype})
  endforeach()
endforeach()

# ---- losses
ballast_kernel(softmax_cross_entropy GENERATOR cross_entropy)
ballast_kernel(softmax_cross_entropy_grad GENERATOR cross_entropy_grad)

include(matmul_manifest.cmake OPTIONAL)
