foreach(mask "" _mask)
  set(params "")
  if(mask)
    set(params "has_mask=true")
  endif()
  # `narrow`: for 16 registers of 8 lanes.
  foreach(tiles "tiles" "single_tiles is_single=true" "narrow_tiles narrow=true"
          "narrow_single_tiles narrow=true is_single=true")
    separate_arguments(tiles)
    list(POP_FRONT tiles name)
    set(wide "")
    if(name MATCHES narrow)
      set(wide WIDE)
    endif()
    ballast_kernel(attention_${name}${mask} CLASSES cpu WIDE GENERATOR attention_tiles
                   PARAMS ${tiles} ${params})
    ballast_kernel(attention_grad_${name}${mask} CLASSES cpu ${wide}
                   GENERATOR attention_grad_tiles PARAMS ${tiles} ${params})
  endforeach()
  ballast_kernel(attention_strip_softmax${mask} GENERATOR attention_strip_softmax PARAMS ${params})
  ballast_kernel(attention_strip_weights${mask} CLASSES gpu GENERATOR attention_strip_weights
                 PARAMS ${params})
  ballast_kernel(attention_lse${mask} CLASSES gpu GENERATOR attention_lse PARAMS ${params})
  ballast_kernel(attention_out${mask} CLASSES gpu GENERATOR attention_sum PARAMS ${params})
  ballast_kernel(attention_dq${mask} CLASSES gpu GENERATOR attention_sum
                 PARAMS of_ds=true ${params})
  ballast_kernel(attention_dk${mask} CLASSES gpu GENERATOR attention_sum
                 PARAMS of_ds=true transposed=true ${params})
  ballast_kernel(attention_dv${mask} CLASSES gpu GENERATOR attention_sum
                 PARAMS transposed=true ${params})
endforeach()
ballast_kernel(attention_strip_ds CLASSES gpu GENERATOR attention_strip_ds)
ballast_kernel(attention_copy CLASSES cpu GENERATOR attention_copy)
ballast_kernel(attention_turn_keep CLASSES cpu GENERATOR attention_turn_keep)
ballast_kernel(attention_turn_add CLASSES cpu GENERATOR attention_turn_add)
ballast_kernel(attention_grad_rows CLASSES cpu GENERATOR attention_grad_rows)
ballast_kernel(attention_grad_narrow_rows CLASSES cpu GENERATOR attention_grad_rows
               PARAMS narrow=true)
ballast_kernel(attention_grad_queries CLASSES cpu GENERATOR attention_grad_queries)
ballast_kernel(attention_grad_narrow_queries CLASSES cpu GENERATOR attention_grad_queries
               PARAMS narrow=true)
ballast_kernel(attention_keep GENERATOR attention_keep)

ballast_oclgrind_filter(Attention.Ti* Attention.Strips Attention.FullyMaskedRows Attention.EmptyExtents)
