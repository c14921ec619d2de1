foreach(tile 6x4 8x3 8x2 12x2 9x2 12x1 6x1)
  ballast_sizes(${tile} pixels vectors)
  if(NOT tile MATCHES "^(12|9)x2$")
    ballast_kernel(conv_tiles_${tile} CLASSES cpu WIDE GENERATOR conv_tiles
                   PARAMS pixels=${pixels} vectors=${vectors})
    ballast_kernel(conv_tiles_${tile}_strided CLASSES cpu WIDE GENERATOR conv_tiles
                   PARAMS pixels=${pixels} vectors=${vectors} dense_store=false)
  endif()
  if(NOT tile STREQUAL "8x2")
    ballast_kernel(conv_weight_tiles_${tile} CLASSES cpu GENERATOR conv_weight_tiles
                   PARAMS taps=${pixels} vectors=${vectors})
    ballast_kernel(conv_weight_tiles_${tile}_packing CLASSES cpu GENERATOR conv_weight_tiles
                   PARAMS taps=${pixels} vectors=${vectors} packs=true)
    ballast_kernel(conv_weight_whole_${tile}_packing CLASSES cpu GENERATOR conv_weight_whole
                   PARAMS taps=${pixels} vectors=${vectors} packs=true)
  endif()
endforeach()
foreach(row 8 10 12 14)
  math(EXPR pixels "2 * ${row}")
  ballast_kernel(conv_tiles_${pixels}x1 CLASSES cpu WIDE GENERATOR conv_tiles
                 PARAMS pixels=${pixels} vectors=1 row=${row})
endforeach()
ballast_kernel(conv_tiles_14x2 CLASSES cpu WIDE GENERATOR conv_tiles
               PARAMS pixels=14 vectors=2 row=7 points=true)
ballast_kernel(conv_weight_sum CLASSES cpu GENERATOR conv_weight_sum)
