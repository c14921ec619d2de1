# Parts: rows on GPUs are whole kernels below, but for the lines of groups and batches.
foreach(layout rows columns)
  set(classes cpu gpu)
  if(layout STREQUAL "rows")
    set(classes cpu)
  endif()
  foreach(kind layer batch)
    ballast_kernel(norm_moments_${kind}_${layout} GENERATOR moments
                   PARAMS kind=${kind} layout=${layout})
  endforeach()
  ballast_kernel(norm_moments_rms_${layout} GENERATOR moments CLASSES ${classes}
                 PARAMS kind=rms layout=${layout})
  foreach(kind layer rms)
    ballast_kernel(norm_sums_${kind}_${layout} GENERATOR norm_sums CLASSES ${classes}
                   PARAMS kind=${kind} layout=${layout})
  endforeach()
  ballast_kernel(norm_sums_batch_${layout} GENERATOR norm_sums CLASSES cpu
                 PARAMS kind=batch layout=${layout})
  ballast_kernel(norm_sums_channels_${layout} GENERATOR norm_sums CLASSES gpu
                 PARAMS kind=channels layout=${layout})
endforeach()
# Rows that more work-items share.
foreach(kind layer batch)
  ballast_kernel(norm_moments_${kind}_long_rows GENERATOR moments CLASSES gpu
                 PARAMS kind=${kind} layout=long_rows)
endforeach()
ballast_kernel(norm_sums_channels_long_rows GENERATOR norm_sums CLASSES gpu
               PARAMS kind=channels layout=long_rows)
ballast_kernel(norm_line_sums GENERATOR norm_line_sums CLASSES gpu)
ballast_kernel(norm_line_sums_weighted GENERATOR norm_line_sums CLASSES gpu
               PARAMS is_weighted=true)
ballast_kernel(norm_group_sums GENERATOR norm_group_sums CLASSES gpu)

foreach(row layer:false rms:true)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 kind)
  list(GET row 1 is_rms)
  ballast_kernel(norm_apply_${kind} GENERATOR norm_apply PARAMS kind=${kind})
  ballast_kernel(norm_dx_${kind} GENERATOR norm_dx PARAMS kind=${kind})
  ballast_kernel(norm_parameter_sums_${kind} GENERATOR norm_parameter_sums PARAMS is_rms=${is_rms})
  # Rows in one pass over memory.
  foreach(row rows:cpu,gpu short_rows:cpu long_rows:gpu)
    string(REGEX REPLACE "[:,]" ";" row ${row})
    list(POP_FRONT row layout)
    ballast_kernel(${kind}_norm_${layout} GENERATOR layer_norm CLASSES ${row}
                   PARAMS is_rms=${is_rms} layout=${layout})
  endforeach()
  foreach(layout rows short_rows)
    ballast_kernel(${kind}_norm_whole_${layout} GENERATOR layer_norm CLASSES cpu
                   PARAMS is_rms=${is_rms} layout=${layout} whole_steps=true)
  endforeach()
  ballast_kernel(${kind}_norm_grad_rows GENERATOR layer_norm_grad PARAMS kind=${kind})
  ballast_kernel(${kind}_norm_grad_long_rows GENERATOR layer_norm_grad CLASSES gpu
                 PARAMS kind=${kind} layout=long_rows)
endforeach()

ballast_kernel(norm_apply_inference GENERATOR norm_apply PARAMS kind=inference)
ballast_kernel(batch_norm_moments GENERATOR batch_moments PARAMS layout=columns)

ballast_oclgrind_filter(Norm*.MatchesDouble Norms.NoLines*)
