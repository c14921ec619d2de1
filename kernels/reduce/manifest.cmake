# Reductions: a mean is a divided sum
foreach(row sum:f32 sum:i32 sum:i64 prod:f32 prod:i32 prod:i64 max:f32 max:i32 max:i64
            max:u8 min:f32 min:i32 min:i64 min:u8 any:bool all:bool)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 kind)
  list(GET row 1 dtype)
  foreach(shape rows columns)
    ballast_kernel(reduce_${shape}_${kind}_${dtype} GENERATOR reduce_${shape}
                   PARAMS kind=${kind} dtype=${dtype})
  endforeach()
  ballast_kernel(reduce_rows_by_lane_${kind}_${dtype} GENERATOR reduce_rows_by_lane CLASSES cpu
                 PARAMS kind=${kind} dtype=${dtype})
endforeach()
foreach(kind sum prod max min)
  ballast_kernel(reduce_short_rows_${kind}_f32 GENERATOR reduce_rows CLASSES cpu
                 PARAMS kind=${kind} dtype=f32 is_short=true)
endforeach()

foreach(dtype f32 i32 i64 u8)
  foreach(kind argmax argmin)
    ballast_kernel(${kind}_${dtype} GENERATOR arg_reduce PARAMS kind=${kind} dtype=${dtype})
    set(classes)
    if(dtype STREQUAL f32)
      set(classes CLASSES gpu)
    endif()
    ballast_kernel(${kind}_rows_${dtype} ${classes} GENERATOR arg_rows
                   PARAMS kind=${kind} dtype=${dtype})
  endforeach()
endforeach()
foreach(kind argmax argmin)
  ballast_kernel(${kind}_search_f32 CLASSES cpu GENERATOR arg_search PARAMS kind=${kind})
endforeach()

foreach(dtype f32 i32 i64)
  ballast_kernel(cumsum_${dtype} GENERATOR cumsum PARAMS dtype=${dtype})
endforeach()
foreach(dtype f32 i32)
  foreach(shape rows columns)
    ballast_kernel(cumsum_${shape}_${dtype} GENERATOR cumsum_${shape} CLASSES cpu
                   PARAMS dtype=${dtype})
  endforeach()
  ballast_kernel(cumsum_row_${dtype} GENERATOR cumsum_rows CLASSES cpu
                 PARAMS dtype=${dtype} rows_at_once=1)
  ballast_kernel(cumsum_narrow_rows_${dtype} GENERATOR cumsum_narrow_rows CLASSES cpu
                 PARAMS dtype=${dtype} layout=narrow_rows)
endforeach()
# Tiles of long lines.
foreach(dtype f32 i32 i64)
  foreach(row rows:1 columns:16)
    string(REPLACE ":" ";" row ${row})
    list(GET row 0 shape)
    list(GET row 1 lines)
    ballast_kernel(cumsum_tiles_${shape}_${dtype} GENERATOR cumsum_tiles CLASSES gpu
                   PARAMS dtype=${dtype} lines=${lines})
  endforeach()
endforeach()

ballast_oclgrind_filter(Reduce.A* Reduce.Integers Reduce.S* FusedReduce.* Kinds/*.MatchesDouble/*
                        Cumulative.S* Cumulative.I*)
