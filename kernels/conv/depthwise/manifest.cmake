foreach(wide depth_lines depth_weight_lines)
  ballast_kernel(conv_${wide} CLASSES cpu WIDE GENERATOR conv_${wide})
endforeach()
foreach(row 1x16 2x16 3x16 4x16 1x8 2x8 3x8 4x8 5x8 6x8 7x8 8x8)  # vectors x lanes
  ballast_sizes(${row} vectors lanes)
  foreach(kernel conv_depth_rows conv_depth_weight_rows)
    ballast_kernel(${kernel}_${row} CLASSES cpu WIDE GENERATOR ${kernel}
                   PARAMS vectors=${vectors} lanes=${lanes})
  endforeach()
  math(EXPR width "${vectors} * ${lanes}")
  if(width LESS_EQUAL 32)
    ballast_kernel(conv_depth_rows_5x5_${row} CLASSES cpu WIDE GENERATOR conv_depth_rows
                   PARAMS window=5 vectors=${vectors} lanes=${lanes})
    if(lanes EQUAL 16)  # 25 sums are more than there are registers of 8
      ballast_kernel(conv_depth_weight_rows_5x5_${row} CLASSES cpu WIDE
                     GENERATOR conv_depth_weight_rows
                     PARAMS window=5 vectors=${vectors} lanes=${lanes})
    endif()
  endif()
endforeach()
foreach(window 5 7)
  ballast_kernel(conv_depth_blocks_${window} CLASSES cpu WIDE GENERATOR conv_depth_blocks
                 PARAMS window=${window})
  ballast_kernel(conv_depth_blocks_${window}_14 CLASSES cpu WIDE GENERATOR conv_depth_blocks
                 PARAMS window=${window} side=14)
endforeach()
foreach(side 10 12 13 14)  # of AVX2, whose rows are two registers
  set(square vectors=2 lanes=8 plane=${side})
  foreach(kernel conv_depth_rows conv_depth_weight_rows)
    ballast_kernel(${kernel}_2x8_${side} CLASSES cpu WIDE GENERATOR ${kernel} PARAMS ${square})
  endforeach()
endforeach()
foreach(lanes 8 16)
  foreach(window 5 7)
    foreach(row 5 6 7 row_7 row_8)  # the pixels of a block, or of a row that is one
      string(REPLACE "row_" "" columns ${row})
      set(is_row false)
      if(NOT columns STREQUAL row)
        set(is_row true)
      endif()
      foreach(kernel conv_depth_turned conv_depth_weight_turned)
        if(kernel STREQUAL conv_depth_turned AND "${window}x${lanes}" STREQUAL 5x16)
          continue()  # in blocks or pairs instead
        endif()
        set(name ${kernel}_${window}_${row}x${lanes})
        set(params window=${window} columns=${columns} lanes=${lanes} is_row=${is_row})
        ballast_kernel(${name} CLASSES cpu WIDE GENERATOR ${kernel} PARAMS ${params})
        if("${window}x${lanes}" STREQUAL 5x8)  # of AVX2
          ballast_kernel(${name}_halved CLASSES cpu WIDE GENERATOR ${kernel}
                         PARAMS ${params} stride=2)
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()
foreach(side 6 7 8 10 12 13 14)
  foreach(kernel conv_depth_squares conv_depth_weight_squares)
    foreach(window 3 5)
      ballast_kernel(${kernel}_${window}x${window}_${side} CLASSES cpu WIDE GENERATOR ${kernel}
                     PARAMS window=${window} side=${side})
      # Of AVX2; larger windows are turned there where they can be.
      if(side LESS_EQUAL 8 AND (window EQUAL 3 OR "${kernel}_${side}" STREQUAL conv_depth_squares_6))
        ballast_kernel(${kernel}_${window}x${window}_${side}_narrow CLASSES cpu WIDE
                       GENERATOR ${kernel} PARAMS window=${window} side=${side} lanes=8)
      endif()
    endforeach()
  endforeach()
endforeach()
foreach(kernel conv_depth_steps conv_depth_steps_grad conv_depth_weight_steps)
  foreach(window 3 5)
    foreach(side 7 8 10 12 14 16)
      set(name ${kernel}_${window}x${window}_${side})
      set(params window=${window} side=${side})
      ballast_kernel(${name} CLASSES cpu WIDE GENERATOR ${kernel} PARAMS ${params})
      # Of AVX2, whose registers do not hold the sums of 5x5.
      if(side LESS_EQUAL 8 AND NOT "${kernel}_${window}" STREQUAL conv_depth_weight_steps_5)
        ballast_kernel(${name}_narrow CLASSES cpu WIDE GENERATOR ${kernel} PARAMS ${params} lanes=8)
      endif()
    endforeach()
  endforeach()
endforeach()
foreach(side 7 8)
  ballast_kernel(conv_depth_step_pairs_5x5_${side} CLASSES cpu WIDE GENERATOR conv_depth_pairs
                 PARAMS window=5 side=${side} stride=2)
  foreach(window 3 5)
    ballast_kernel(conv_depth_weight_step_pairs_${window}x${window}_${side} CLASSES cpu WIDE
                   GENERATOR conv_depth_weight_pairs
                   PARAMS window=${window} side=${side} stride=2)
  endforeach()
endforeach()
foreach(side 6 7 8)
  foreach(window 3 5)
    ballast_kernel(conv_depth_pairs_${window}x${window}_${side} CLASSES cpu WIDE
                   GENERATOR conv_depth_pairs PARAMS window=${window} side=${side})
  endforeach()
  ballast_kernel(conv_depth_weight_pairs_3x3_${side} CLASSES cpu WIDE
                 GENERATOR conv_depth_weight_pairs PARAMS side=${side})
endforeach()
foreach(lanes 8 16)
  foreach(even false true)
    set(name conv_depth_couples_${lanes})
    if(even)
      string(APPEND name _even)
    endif()
    ballast_kernel(${name} CLASSES cpu WIDE GENERATOR conv_depth_couples
                   PARAMS lanes=${lanes} even=${even})
  endforeach()
  foreach(kernel conv_depth_halves conv_depth_halves_grad conv_depth_halves_weight)
    ballast_kernel(${kernel}_${lanes} CLASSES cpu WIDE GENERATOR ${kernel} PARAMS lanes=${lanes})
  endforeach()
endforeach()
ballast_kernel(conv_depth_halves_5x5_16 CLASSES cpu WIDE GENERATOR conv_depth_halves
               PARAMS window=5)
foreach(window 3 5)
  foreach(kernel conv_rows conv_weight_rows)
    ballast_kernel(${kernel}_${window}x${window} CLASSES cpu GENERATOR ${kernel}
                   PARAMS dense=${window})
  endforeach()
endforeach()
ballast_kernel(conv_depth_weight_3x3 CLASSES cpu GENERATOR conv_depth_weight PARAMS square=3)
foreach(kernel depth depth_weight rows weight_rows)
  ballast_kernel(conv_${kernel} CLASSES cpu GENERATOR conv_${kernel})
endforeach()
