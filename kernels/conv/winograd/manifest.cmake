foreach(tile 6x4 12x2 6x1)
  ballast_sizes(${tile} broadcasts vectors)
  foreach(form dense apart between_odd between_even fives fours between_fours)
    ballast_kernel(conv_winograd_${tile}_${form} CLASSES cpu WIDE GENERATOR conv_winograd
                   PARAMS broadcasts=${broadcasts} vectors=${vectors} form=${form})
  endforeach()
  if(broadcasts EQUAL 6)
    foreach(form dense apart fives fours)
      ballast_kernel(conv_winograd_weight_${tile}_${form} CLASSES cpu WIDE
                     GENERATOR conv_winograd_weight
                     PARAMS broadcasts=${broadcasts} vectors=${vectors} form=${form})
    endforeach()
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
foreach(form dense apart fives fours)  # towards x with strides windows are as forward
  ballast_kernel(conv_winograd_filters_${form} CLASSES cpu GENERATOR conv_winograd_filters
                 PARAMS form=${form})
  ballast_kernel(conv_winograd_filters_${form}_turned CLASSES cpu GENERATOR conv_winograd_filters
                 PARAMS form=${form} turned=true)
endforeach()
