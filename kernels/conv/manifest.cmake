# What several ways of computing a convolution start from or end with, then theirs, a folder each.
foreach(kernel pack pack_columns channels pad gather)
  ballast_kernel(conv_${kernel} CLASSES cpu GENERATOR conv_${kernel})
endforeach()
foreach(lanes 4 8 16)
  ballast_kernel(conv_weave_${lanes} CLASSES cpu WIDE GENERATOR conv_weave PARAMS lanes=${lanes})
  ballast_kernel(conv_spread_${lanes} CLASSES cpu WIDE GENERATOR conv_weave
                 PARAMS lanes=${lanes} spreads=true)
endforeach()
foreach(way depthwise gpu grouped planes tiles winograd)
  include(${CMAKE_CURRENT_LIST_DIR}/${way}/manifest.cmake)
endforeach()

ballast_oclgrind_filter(Conv.* ConvWinograd.*)
