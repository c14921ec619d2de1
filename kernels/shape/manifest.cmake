# Moves, by element size.
foreach(bytes 1 2 4 8)
  ballast_kernel(copy_${bytes} GENERATOR copy_region PARAMS bytes=${bytes})
  ballast_kernel(fill_${bytes} GENERATOR fill_region PARAMS bytes=${bytes})
endforeach()
ballast_kernel(copy_4_streams GENERATOR copy_region CLASSES cpu PARAMS bytes=4 streams=true)
# By the size of elements and the sides of blocks.
foreach(row 1:16 2:16 4:16 4:8 8:8)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 bytes)
  list(GET row 1 side)
  ballast_kernel(transpose_${bytes}_${side}x${side} GENERATOR transpose_region CLASSES cpu
                 PARAMS bytes=${bytes} side_p=${side} side_q=${side})
endforeach()
foreach(bytes 1 2 4 8)
  foreach(side 16 32)
    ballast_kernel(transpose_tiles_${bytes}_${side} GENERATOR transpose_tiles CLASSES gpu
                   PARAMS bytes=${bytes} side=${side})
  endforeach()
endforeach()
ballast_kernel(transpose_4_16x16_streams GENERATOR transpose_region CLASSES cpu
               PARAMS bytes=4 side_p=16 side_q=16 streams=true)
# Few channels of many pixels, and back.
foreach(row 1:16 2:16 4:16 4:8 8:8)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 bytes)
  list(GET row 1 pixels)
  foreach(channels 2 3 4)
    foreach(sides "${channels};${pixels}" "${pixels};${channels}")
      list(GET sides 0 p)
      list(GET sides 1 q)
      ballast_kernel(transpose_${bytes}_${p}x${q} GENERATOR transpose_region CLASSES cpu
                     PARAMS bytes=${bytes} side_p=${p} side_q=${q})
    endforeach()
  endforeach()
endforeach()
foreach(channels 2 3 4)
  ballast_kernel(transpose_4_${channels}x16_streams GENERATOR transpose_region CLASSES cpu
                 PARAMS bytes=4 side_p=${channels} side_q=16 streams=true)
  ballast_kernel(transpose_4_16x${channels}_streams GENERATOR transpose_region CLASSES cpu
                 PARAMS bytes=4 side_p=16 side_q=${channels} streams=true)
endforeach()
ballast_kernel(arange_f32 GENERATOR arange PARAMS type=float32)
ballast_kernel(arange_i32 GENERATOR arange PARAMS type=int32)
ballast_kernel(arange_i64 GENERATOR arange PARAMS type=int64)

ballast_oclgrind_filter(Copy.* Region.*)
