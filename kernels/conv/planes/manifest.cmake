foreach(tile 8x3 6x4 4x6 6x1)
  ballast_sizes(${tile} channels vectors)
  foreach(kernel conv_planes conv_plane_rows)
    ballast_kernel(${kernel}_${tile} CLASSES cpu WIDE GENERATOR ${kernel}
                   PARAMS channels=${channels} vectors=${vectors})
  endforeach()
endforeach()
foreach(tile 4x3 6x2)  # of AVX2
  ballast_sizes(${tile} channels vectors)
  ballast_kernel(conv_plane_rows_${tile}x8 CLASSES cpu WIDE GENERATOR conv_plane_rows
                 PARAMS channels=${channels} vectors=${vectors} lanes=8)
endforeach()
ballast_kernel(conv_plane_channels_6x4 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=4)
ballast_kernel(conv_plane_channels_6x1 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=1)
ballast_kernel(conv_plane_phases_6x4 CLASSES cpu WIDE GENERATOR conv_plane_phases PARAMS vectors=4)
foreach(kernel plane_weights phase_weights phase_taps)
  ballast_kernel(conv_${kernel} CLASSES cpu GENERATOR conv_${kernel})
endforeach()
