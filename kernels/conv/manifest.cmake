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
foreach(tile 8x3 6x4 4x6 6x1)
  ballast_sizes(${tile} channels vectors)
  foreach(kernel conv_planes conv_plane_rows)
    ballast_kernel(${kernel}_${tile} CLASSES cpu WIDE GENERATOR ${kernel}
                   PARAMS channels=${channels} vectors=${vectors})
  endforeach()
endforeach()
ballast_kernel(conv_plane_channels_6x4 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=4)
ballast_kernel(conv_plane_channels_6x1 CLASSES cpu WIDE GENERATOR conv_plane_channels PARAMS vectors=1)
ballast_kernel(conv_plane_phases_6x4 CLASSES cpu WIDE GENERATOR conv_plane_phases PARAMS vectors=4)
foreach(tile 6x4 12x2 6x1)
  ballast_sizes(${tile} broadcasts vectors)
  ballast_kernel(conv_winograd_${tile} CLASSES cpu WIDE GENERATOR conv_winograd
                 PARAMS broadcasts=${broadcasts} vectors=${vectors})
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
ballast_kernel(conv_winograd_filters_turned CLASSES cpu GENERATOR conv_winograd_filters
               PARAMS turned=true)
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
        ballast_kernel(${kernel}_${window}_${row}x${lanes} CLASSES cpu WIDE GENERATOR ${kernel}
                       PARAMS window=${window} columns=${columns} lanes=${lanes}
                              is_row=${is_row})
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
    foreach(side 7 8 14 16)
      ballast_kernel(${kernel}_${window}x${window}_${side} CLASSES cpu WIDE GENERATOR ${kernel}
                     PARAMS window=${window} side=${side})
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
foreach(lanes 4 8 16)
  ballast_kernel(conv_weave_${lanes} CLASSES cpu WIDE GENERATOR conv_weave PARAMS lanes=${lanes})
  ballast_kernel(conv_spread_${lanes} CLASSES cpu WIDE GENERATOR conv_weave
                 PARAMS lanes=${lanes} spreads=true)
endforeach()
foreach(lanes 8 16)
  foreach(kernel conv_depth_halves conv_depth_halves_grad conv_depth_halves_weight)
    ballast_kernel(${kernel}_${lanes} CLASSES cpu WIDE GENERATOR ${kernel} PARAMS lanes=${lanes})
  endforeach()
endforeach()
ballast_kernel(conv_grouped_any CLASSES cpu WIDE GENERATOR conv_grouped)
foreach(window 3x3 5x5 7x0)  # columns x rows at once, or one by one
  ballast_sizes(${window} across down)
  ballast_kernel(conv_grouped_${across} CLASSES cpu WIDE GENERATOR conv_grouped
                 PARAMS across=${across} down=${down})
  ballast_kernel(conv_grouped_weight_${across} CLASSES cpu WIDE
                 GENERATOR conv_grouped_weight PARAMS across=${across} down=${down})
endforeach()
ballast_kernel(conv_depth_weight_3x3 CLASSES cpu GENERATOR conv_depth_weight PARAMS square=3)
foreach(helper plane_weights phase_weights phase_taps pack pack_columns channels pad gather weight_sum rows weight_rows depth
               depth_weight)
  ballast_kernel(conv_${helper} CLASSES cpu GENERATOR conv_${helper})
endforeach()

ballast_oclgrind_filter(Conv.* ConvWinograd.*)
