# Moves, by element size.
foreach(bytes 1 2 4 8)
  ballast_kernel(gather_${bytes} GENERATOR gather PARAMS bytes=${bytes})
  ballast_kernel(gather_rows_${bytes} GENERATOR gather_rows CLASSES cpu PARAMS bytes=${bytes})
  ballast_kernel(one_hot_${bytes} GENERATOR one_hot_rows PARAMS bytes=${bytes})
endforeach()
ballast_kernel(gather_rows_4_streams GENERATOR gather_rows CLASSES cpu
               PARAMS bytes=4 streams=true)
ballast_kernel(gather_lanes_4 GENERATOR gather_lanes CLASSES cpu PARAMS bytes=4)
ballast_kernel(scatter_add_f32 GENERATOR scatter_add_rows PARAMS type=float32)
ballast_kernel(scatter_add_i32 GENERATOR scatter_add_rows PARAMS type=int32)
ballast_kernel(scatter_add_i64 GENERATOR scatter_add_rows PARAMS type=int64)

ballast_oclgrind_filter(Index.*)
