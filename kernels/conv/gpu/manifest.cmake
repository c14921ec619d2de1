ballast_kernel(conv_general CLASSES gpu GENERATOR conv_general)
ballast_kernel(conv_input_grad_general CLASSES gpu GENERATOR conv_input_grad_general)
ballast_kernel(conv_weight_grad_general CLASSES gpu GENERATOR conv_weight_grad_general)
# Strips of a GPU: window_stride.
foreach(kernel conv_strips conv_input_grad_strips)
  set(is_grad false)
  if(kernel STREQUAL conv_input_grad_strips)
    set(is_grad true)
  endif()
  set(strips CLASSES gpu GENERATOR conv_strips PARAMS is_grad=${is_grad})
  ballast_kernel(${kernel}_3_1 ${strips})
  ballast_kernel(${kernel}_3_1_quads ${strips} rows=4 channels=4)
  foreach(window 5 7)
    ballast_kernel(${kernel}_${window}_1 ${strips} window=${window} columns=2)
  endforeach()
  foreach(window 3 5)
    if(is_grad)
      ballast_kernel(${kernel}_${window}_2 ${strips} window=${window} stride=2 rows=8 columns=2)
    else()
      ballast_kernel(${kernel}_${window}_2 ${strips} window=${window} stride=2 rows=4)
    endif()
  endforeach()
endforeach()
ballast_kernel(conv_weight_strips_3_1 CLASSES gpu GENERATOR conv_weight_strips)
ballast_kernel(conv_weight_strips_3_1_quads CLASSES gpu GENERATOR conv_weight_strips
               PARAMS channels=4 folds=2)
ballast_kernel(conv_weight_strips_5_1 CLASSES gpu GENERATOR conv_weight_strips
               PARAMS window=5 columns=2 folds=4)
ballast_kernel(conv_weight_strips_7_1 CLASSES gpu GENERATOR conv_weight_strips
               PARAMS window=7 columns=2 folds=2)
ballast_kernel(conv_weight_strips_3_2 CLASSES gpu GENERATOR conv_weight_strips PARAMS stride=2)
ballast_kernel(conv_weight_strips_5_2 CLASSES gpu GENERATOR conv_weight_strips
               PARAMS window=5 stride=2 rows=4 folds=4)
# Blocks of a GPU.
foreach(rows 64 32)
  foreach(kernel conv_blocks conv_input_grad_blocks)
    ballast_kernel(${kernel}_${rows} CLASSES gpu GENERATOR ${kernel} PARAMS rows=${rows})
    ballast_kernel(${kernel}_whole_${rows} CLASSES gpu GENERATOR ${kernel}
                   PARAMS rows=${rows} whole=true)
  endforeach()
  ballast_kernel(conv_blocks_by_taps_${rows} CLASSES gpu GENERATOR conv_blocks
                 PARAMS rows=${rows} by_taps=true)
  ballast_kernel(conv_weight_grad_blocks_${rows} CLASSES gpu GENERATOR conv_weight_grad_blocks
                 PARAMS rows=${rows})
endforeach()
ballast_kernel(conv_parts CLASSES gpu GENERATOR conv_parts)
