# Moves, by element size.
foreach(bytes 1 2 4 8)
  ballast_kernel(gather_${bytes} GENERATOR gather PARAMS bytes=${bytes})
  ballast_kernel(gather_rows_${bytes} GENERATOR gather_rows CLASSES cpu PARAMS bytes=${bytes})
  ballast_kernel(one_hot_${bytes} GENERATOR one_hot_rows PARAMS bytes=${bytes})
endforeach()
ballast_kernel(gather_rows_4_streams GENERATOR gather_rows CLASSES cpu
               PARAMS bytes=4 streams=true)
foreach(lanes 2 4 8)
  ballast_kernel(gather_rows_4_by_${lanes} GENERATOR gather_rows CLASSES cpu
                 PARAMS bytes=4 lanes=${lanes})
endforeach()
ballast_kernel(gather_lanes_4 GENERATOR gather_lanes CLASSES cpu PARAMS bytes=4)
foreach(type f32:float32 i32:int32 i64:int64 u8:uint8)
  string(REPLACE ":" ";" type ${type})
  list(GET type 0 dtype)
  list(GET type 1 type)
  ballast_kernel(scatter_add_${dtype} GENERATOR scatter_add_rows PARAMS type=${type})
  ballast_kernel(scatter_add_linked_${dtype} CLASSES gpu GENERATOR scatter_add_linked
                 PARAMS type=${type})
endforeach()
ballast_kernel(scatter_links CLASSES gpu GENERATOR scatter_links)

ballast_oclgrind_filter(Index.*)
