# One row per register tile; matmul_choice.cpp names them. The epilogue is a matter of arguments.
ballast_kernel(matmul_general GENERATOR matmul_general)
foreach(dtype i32 i64)
  ballast_kernel(matmul_general_${dtype} GENERATOR matmul_general PARAMS dtype=${dtype})
endforeach()
# Blocks of a GPU: A and B dense along k or not (n, t: row-major and transposed), without and with
# activations other than ReLU.
foreach(rows 128 64 32)
  foreach(layout nn nt tn tt)
    set(params rows=${rows})
    if(layout MATCHES "^t")
      list(APPEND params a_by_step=false)
    endif()
    if(layout MATCHES "t$")
      list(APPEND params b_by_step=true)
    endif()
    set(name matmul_${rows}x${rows}_block_${layout})
    ballast_kernel(${name} CLASSES gpu GENERATOR matmul_blocks PARAMS ${params})
    ballast_kernel(${name}_activated CLASSES gpu GENERATOR matmul_blocks
                   PARAMS ${params} activates=true)
  endforeach()
endforeach()
# matmul_tile(<rows> <vectors> <variant>...): one kernel of the tile for each; the first kind has an
# epilogue. matmul_tile_of: the same in vectors of <lanes>.
set(matmul_epilogue "")
set(matmul_plain plain=true)
set(matmul_columns plain=true columns=true)
set(matmul_packing plain=true packs=true)
set(matmul_copying plain=true copies=true)
set(matmul_strided dense_store=false)
macro(matmul_tile rows vectors)
  matmul_tile_of(${rows} ${vectors} 16 ${ARGN})
endmacro()
macro(matmul_tile_of rows vectors lanes)
  math(EXPR width "${lanes} * ${vectors}")
  foreach(variant IN ITEMS ${ARGN})
    string(REPLACE "_epilogue" "" name "matmul_${rows}x${width}_${variant}")
    ballast_kernel(${name} CLASSES cpu WIDE GENERATOR matmul_tiles
                   PARAMS rows=${rows} vectors=${vectors} lanes=${lanes} ${matmul_${variant}})
  endforeach()
endmacro()
matmul_tile(6 4 epilogue plain columns strided)
matmul_tile(12 2 epilogue plain packing)
matmul_tile(12 1 packing plain columns)
matmul_tile(8 3 epilogue plain packing columns)
matmul_tile(6 1 epilogue plain packing copying columns strided)
matmul_tile_of(4 3 8 epilogue plain packing copying columns)
ballast_kernel(matmul_16x32_turned CLASSES cpu WIDE GENERATOR matmul_turned
               PARAMS held_rows=8 vectors=2)
ballast_kernel(matmul_16x16_turned CLASSES cpu WIDE GENERATOR matmul_turned
               PARAMS held_rows=4 vectors=1)
ballast_kernel(matmul_16x16_short CLASSES cpu WIDE GENERATOR matmul_short
               PARAMS held_rows=8 vectors=1)
ballast_kernel(matmul_16x16_short_narrow CLASSES cpu WIDE GENERATOR matmul_short
               PARAMS held_rows=4 vectors=1)
matmul_tile(1 16 epilogue)
ballast_kernel(matmul_dot CLASSES cpu WIDE GENERATOR matmul_dot)
ballast_kernel(matmul_dot_4 CLASSES cpu WIDE GENERATOR matmul_dot PARAMS lanes=4)
ballast_kernel(matmul_dots CLASSES cpu WIDE GENERATOR matmul_dot PARAMS lanes=4 rows=5)
ballast_kernel(matmul_vector CLASSES cpu GENERATOR matmul_vector PARAMS vectors=1)
ballast_kernel(matmul_pack CLASSES cpu GENERATOR matmul_pack)
ballast_kernel(matmul_pack_rows CLASSES cpu GENERATOR matmul_pack PARAMS by_vectors=true)
ballast_kernel(matmul_pack_columns CLASSES cpu GENERATOR matmul_pack_columns)
ballast_kernel(matmul_pack_by_8 CLASSES cpu GENERATOR matmul_pack PARAMS lanes=8)
ballast_kernel(matmul_pack_rows_by_8 CLASSES cpu GENERATOR matmul_pack PARAMS lanes=8 by_vectors=true)
ballast_kernel(matmul_pack_columns_by_8 CLASSES cpu GENERATOR matmul_pack_columns PARAMS lanes=8)

ballast_oclgrind_filter(Matmul.Infinity* Matmul.Batches* Matmul.FewRows* Matmul.Integers*
                        MatmulChoice.AllGive* MatmulStrides.* FusedMatmul.E* FusedMatmul.Batches
                        FusedMatmul.Nan*)
