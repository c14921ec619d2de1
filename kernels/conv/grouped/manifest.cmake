ballast_kernel(conv_grouped_any CLASSES cpu WIDE GENERATOR conv_grouped)
foreach(window 3x3 5x5 7x0)  # columns x rows at once, or one by one
  ballast_sizes(${window} across down)
  ballast_kernel(conv_grouped_${across} CLASSES cpu WIDE GENERATOR conv_grouped
                 PARAMS across=${across} down=${down})
  ballast_kernel(conv_grouped_weight_${across} CLASSES cpu WIDE
                 GENERATOR conv_grouped_weight PARAMS across=${across} down=${down})
endforeach()
