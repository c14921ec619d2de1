# Moves, by element size.
foreach(bytes 1 2 4 8)
  ballast_kernel(copy_${bytes} GENERATOR copy_region PARAMS bytes=${bytes})
  ballast_kernel(fill_${bytes} GENERATOR fill_region PARAMS bytes=${bytes})
endforeach()
# By the size of elements and the side of blocks.
foreach(row 1:16 2:16 4:16 4:8 8:8)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 bytes)
  list(GET row 1 side)
  ballast_kernel(transpose_${bytes}_${side} GENERATOR transpose_region
                 PARAMS bytes=${bytes} side=${side})
endforeach()
ballast_kernel(transpose_4_streams GENERATOR transpose_region CLASSES cpu
               PARAMS bytes=4 side=16 streams=true)
ballast_kernel(arange_f32 GENERATOR arange PARAMS type=float32)
ballast_kernel(arange_i32 GENERATOR arange PARAMS type=int32)
ballast_kernel(arange_i64 GENERATOR arange PARAMS type=int64)

ballast_oclgrind_filter(Copy.* Region.*)
