ballast_kernel(conv_general CLASSES gpu GENERATOR conv_general)
ballast_kernel(conv_input_grad_general CLASSES gpu GENERATOR conv_input_grad_general)
ballast_kernel(conv_weight_grad_general CLASSES gpu GENERATOR conv_weight_grad_general)
foreach(tile 6x4 8x3 8x2 12x2 12x1 6x1)
  string(REPLACE x ";" sizes ${tile})
  list(GET sizes 0 pixels)
  list(GET sizes 1 vectors)
  if(NOT tile STREQUAL "12x2")
    ballast_kernel(conv_tiles_${tile} CLASSES cpu WIDE GENERATOR conv_tiles
                   PARAMS pixels=${pixels} vectors=${vectors})
    ballast_kernel(conv_tiles_${tile}_strided CLASSES cpu WIDE GENERATOR conv_tiles
                   PARAMS pixels=${pixels} vectors=${vectors} dense_store=false)
  endif()
  if(NOT tile STREQUAL "8x2")
    ballast_kernel(conv_weight_tiles_${tile} CLASSES cpu GENERATOR conv_weight_tiles
                   PARAMS taps=${pixels} vectors=${vectors})
  endif()
endforeach()
ballast_kernel(conv_planes_8x3 CLASSES cpu WIDE GENERATOR conv_planes PARAMS channels=8 vectors=3)
ballast_kernel(conv_planes_6x1 CLASSES cpu WIDE GENERATOR conv_planes PARAMS channels=6 vectors=1)
ballast_kernel(conv_plane_channels_6x4 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=4)
ballast_kernel(conv_plane_channels_6x1 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=1)
foreach(wide depth_lines depth_weight_lines)
  ballast_kernel(conv_${wide} CLASSES cpu WIDE GENERATOR conv_${wide})
endforeach()
foreach(vectors 1 2 3 4)
  ballast_kernel(conv_depth_rows_${vectors} CLASSES cpu WIDE GENERATOR conv_depth_rows
                 PARAMS vectors=${vectors})
  ballast_kernel(conv_depth_weight_rows_${vectors} CLASSES cpu WIDE GENERATOR conv_depth_weight_rows
                 PARAMS vectors=${vectors})
endforeach()
ballast_kernel(conv_depth_weight_3x3 CLASSES cpu GENERATOR conv_depth_weight PARAMS square=3)
foreach(helper plane_weights phase_weights pack pack_columns channels pad gather weight_sum rows weight_rows depth
               depth_weight)
  ballast_kernel(conv_${helper} CLASSES cpu GENERATOR conv_${helper})
endforeach()

ballast_oclgrind_filter(Conv.*)
