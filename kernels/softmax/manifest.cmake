foreach(layout rows columns)
  foreach(row softmax:false log_softmax:true)
    string(REPLACE ":" ";" row ${row})
    list(GET row 0 op)
    list(GET row 1 is_log)
    ballast_kernel(${op}_${layout} GENERATOR softmax PARAMS layout=${layout} is_log=${is_log})
    ballast_kernel(${op}_grad_${layout} GENERATOR softmax_grad
                   PARAMS layout=${layout} is_log=${is_log})
  endforeach()
  foreach(op cross_entropy cross_entropy_grad)
    ballast_kernel(softmax_${op}_${layout} GENERATOR ${op} PARAMS layout=${layout})
  endforeach()
endforeach()
foreach(op cross_entropy cross_entropy_grad)
  ballast_kernel(softmax_${op}_narrow_rows GENERATOR ${op} CLASSES cpu PARAMS layout=narrow_rows)
endforeach()
foreach(row softmax:false log_softmax:true)
  string(REPLACE ":" ";" row ${row})
  list(GET row 0 op)
  list(GET row 1 is_log)
  ballast_kernel(${op}_short_rows GENERATOR softmax CLASSES cpu
                 PARAMS layout=short_rows is_log=${is_log})
  foreach(kernel softmax softmax_grad)
    string(REPLACE softmax ${op} name ${kernel})
    ballast_kernel(${name}_narrow_rows GENERATOR ${kernel} CLASSES cpu
                   PARAMS layout=narrow_rows is_log=${is_log})
  endforeach()
  # That more work-items share.
  ballast_kernel(${op}_long_rows GENERATOR softmax CLASSES gpu
                 PARAMS layout=long_rows is_log=${is_log})
  ballast_kernel(${op}_grad_long_rows GENERATOR softmax_grad CLASSES gpu
                 PARAMS layout=long_rows is_log=${is_log})
endforeach()
foreach(op cross_entropy cross_entropy_grad)
  ballast_kernel(softmax_${op}_long_rows GENERATOR ${op} CLASSES gpu PARAMS layout=long_rows)
endforeach()
# Rows short enough to keep their exponentials.
foreach(op softmax softmax_cross_entropy_grad)
  string(REPLACE softmax_cross cross generator ${op})
  ballast_kernel(${op}_rows_cached GENERATOR ${generator} CLASSES cpu
                 PARAMS layout=rows is_cached=true)
  ballast_kernel(${op}_rows_cached_streams GENERATOR ${generator} CLASSES cpu
                 PARAMS layout=rows is_cached=true streams=true)
endforeach()

ballast_oclgrind_filter(CrossEntropy.M* CrossEntropy.Smooths* CrossEntropy.Labels* Softmax.M*)
