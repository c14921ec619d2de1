foreach(tile 6x4 12x2 6x1)
  ballast_sizes(${tile} broadcasts vectors)
  ballast_kernel(conv_winograd_${tile} CLASSES cpu WIDE GENERATOR conv_winograd
                 PARAMS broadcasts=${broadcasts} vectors=${vectors})
  ballast_kernel(conv_winograd_${tile}_stride2 CLASSES cpu WIDE GENERATOR conv_winograd
                 PARAMS broadcasts=${broadcasts} vectors=${vectors} stride=2)
  if(broadcasts EQUAL 6)
    ballast_kernel(conv_winograd_weight_${tile} CLASSES cpu WIDE GENERATOR conv_winograd_weight
                   PARAMS broadcasts=${broadcasts} vectors=${vectors})
    foreach(turned "" _turned)
      set(is_turned false)
      if(turned)
        set(is_turned true)
      endif()
      ballast_kernel(conv_winograd_deep_${tile}${turned} CLASSES cpu WIDE
                     GENERATOR conv_winograd_deep
                     PARAMS broadcasts=${broadcasts} at_once=${vectors} turned=${is_turned})
    endforeach()
  endif()
endforeach()
ballast_kernel(conv_winograd_inputs CLASSES cpu WIDE GENERATOR conv_winograd_inputs)
ballast_kernel(conv_winograd_filters CLASSES cpu GENERATOR conv_winograd_filters)
ballast_kernel(conv_winograd_filters_stride2 CLASSES cpu GENERATOR conv_winograd_filters
               PARAMS stride=2)
ballast_kernel(conv_winograd_filters_turned CLASSES cpu GENERATOR conv_winograd_filters
               PARAMS turned=true)
