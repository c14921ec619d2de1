foreach(result value index other)
  ballast_kernel(max_pool_${result} GENERATOR max_pool PARAMS result=${result})
endforeach()
ballast_kernel(max_pool_grad GENERATOR max_pool_grad)
ballast_kernel(avg_pool GENERATOR avg_pool)
ballast_kernel(avg_pool_grad GENERATOR avg_pool_grad)
foreach(op max avg)
  set(is_max false)
  if(op STREQUAL max)
    set(is_max true)
  endif()
  # Planes of few pixels, or windows, are less than a vector.
  foreach(planes "" _few_windows _few)
    set(few "")
    if(planes)
      set(few has_few_windows=true)
    endif()
    if(planes STREQUAL "_few")
      list(APPEND few has_few_pixels=true)
    endif()
    ballast_kernel(${op}_pool_lanes${planes} CLASSES cpu GENERATOR pool_lanes
                   PARAMS is_max=${is_max} ${few})
    ballast_kernel(${op}_pool_lanes${planes}_grad CLASSES cpu GENERATOR pool_lanes
                   PARAMS is_max=${is_max} is_grad=true ${few})
  endforeach()
  foreach(windows 4 8)
    ballast_kernel(${op}_pool_pairs_${windows} CLASSES cpu GENERATOR pool_pairs
                   PARAMS is_max=${is_max} windows=${windows})
    ballast_kernel(${op}_pool_pairs_grad_${windows} CLASSES cpu GENERATOR pool_pairs
                   PARAMS is_max=${is_max} is_grad=true windows=${windows})
  endforeach()
endforeach()
foreach(lanes 8 16)
  foreach(result max index average)
    ballast_kernel(pool_rows_${result}_${lanes} CLASSES cpu GENERATOR pool_rows
                   PARAMS result=${result} lanes=${lanes})
    ballast_kernel(pool_rows_${result}_2_${lanes} CLASSES cpu GENERATOR pool_rows
                   PARAMS result=${result} lanes=${lanes} is_stride_2=true)
  endforeach()
endforeach()
foreach(lanes 8 16)
  foreach(stride 1 2)
    foreach(result max average)
      ballast_kernel(pool_threes_${result}_${stride}_${lanes} WIDE CLASSES cpu GENERATOR pool_threes
                     PARAMS result=${result} stride=${stride} lanes=${lanes})
    endforeach()
    foreach(is_max true false)
      set(op avg)
      if(is_max)
        set(op max)
      endif()
      ballast_kernel(${op}_pool_threes_grad_${stride}_${lanes} WIDE CLASSES cpu
                     GENERATOR pool_threes_grad
                     PARAMS is_max=${is_max} stride=${stride} lanes=${lanes})
    endforeach()
  endforeach()
endforeach()
foreach(lanes 8 16)
  ballast_kernel(max_pool_rows_grad_${lanes} CLASSES cpu GENERATOR pool_rows_grad
                 PARAMS is_max=true lanes=${lanes})
  ballast_kernel(avg_pool_rows_grad_${lanes} CLASSES cpu GENERATOR pool_rows_grad
                 PARAMS is_max=false lanes=${lanes})
endforeach()
# Strips of a GPU: window_stride. Intel's compiler for CPUs crashes on gradients of maxima of more
# rows (8; 7 without a stride) once it puts items side by side.
ballast_kernel(max_pool_strips_3_1 CLASSES gpu GENERATOR pool_strips PARAMS rows=7)
ballast_kernel(max_pool_strips_3_2 CLASSES gpu GENERATOR pool_strips PARAMS stride=2 rows=4)
ballast_kernel(max_pool_strips_5_1 CLASSES gpu GENERATOR pool_strips PARAMS window=5 rows=7)
ballast_kernel(max_pool_strips_grad_3_1 CLASSES gpu GENERATOR pool_strips_grad PARAMS rows=4)
foreach(window 2 3)
  ballast_kernel(max_pool_strips_grad_${window}_2 CLASSES gpu GENERATOR pool_strips_grad
                 PARAMS window=${window} stride=2 rows=4)
  ballast_kernel(avg_pool_strips_grad_${window}_2 CLASSES gpu GENERATOR pool_strips_grad
                 PARAMS is_max=false window=${window} stride=2)
endforeach()
ballast_kernel(max_pool_lanes_any CLASSES cpu GENERATOR pool_lanes_max)
ballast_kernel(avg_pool_plane CLASSES cpu GENERATOR pool_plane)
ballast_kernel(avg_pool_plane_grad CLASSES cpu GENERATOR pool_plane_grad)

ballast_oclgrind_filter(Pool.M* Pool.A*)
