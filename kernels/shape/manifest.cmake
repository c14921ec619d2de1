# Moves, by element size.
foreach(bytes 1 2 4 8)
  ballast_kernel(copy_${bytes} GENERATOR copy_region PARAMS bytes=${bytes})
  ballast_kernel(fill_${bytes} GENERATOR fill_region PARAMS bytes=${bytes})
  ballast_kernel(transpose_${bytes} GENERATOR transpose_region PARAMS bytes=${bytes})
endforeach()
ballast_kernel(arange_f32 GENERATOR arange PARAMS type=float32)
ballast_kernel(arange_i32 GENERATOR arange PARAMS type=int32)
ballast_kernel(arange_i64 GENERATOR arange PARAMS type=int64)

ballast_oclgrind_filter(Copy.FourBytes Region.Parts Region.Joins*)
