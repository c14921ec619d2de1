foreach(mask "" _mask)
  set(params "")
  if(mask)
    set(params "has_mask=true")
  endif()
  # `narrow`: for 16 registers of 8 lanes.
  foreach(tiles "tiles" "single_tiles vectors=1" "narrow_tiles lanes=8 vectors=3 held=4 unrolled=1"
          "narrow_single_tiles lanes=8 vectors=1 unrolled=1")
    separate_arguments(tiles)
    list(POP_FRONT tiles name)
    ballast_kernel(attention_${name}${mask} CLASSES cpu WIDE GENERATOR attention_tiles
                   PARAMS ${tiles} ${params})
  endforeach()
  foreach(tiles "tiles PARAMS" "single_tiles PARAMS is_single=true"
          "narrow_tiles WIDE PARAMS lanes=8 vectors=3 registers=12 block=60"
          "narrow_single_tiles WIDE PARAMS lanes=8 vectors=3 registers=12 block=60 is_single=true")
    separate_arguments(tiles)
    list(POP_FRONT tiles name)
    ballast_kernel(attention_grad_${name}${mask} CLASSES cpu GENERATOR attention_grad_tiles
                   ${tiles} ${params})
  endforeach()
  foreach(kernel attention_strip_softmax attention_strip_weights)
    ballast_kernel(${kernel}${mask} CLASSES gpu GENERATOR ${kernel} PARAMS ${params})
  endforeach()
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
               PARAMS vectors=1)
ballast_kernel(attention_grad_queries CLASSES cpu GENERATOR attention_grad_queries)
ballast_kernel(attention_grad_narrow_queries CLASSES cpu GENERATOR attention_grad_queries
               PARAMS lanes=8 vectors=3)
ballast_kernel(attention_keep CLASSES gpu GENERATOR attention_keep)

ballast_oclgrind_filter(Attention.Ti* Attention.Strips Attention.FullyMaskedRows Attention.EmptyExtents)
