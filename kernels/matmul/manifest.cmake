# One row per register tile; matmul_choice.cpp names them. The epilogue is a matter of arguments.
ballast_kernel(matmul_general GENERATOR matmul_general)
foreach(tile 6,4 8,3 12,2)
  string(REPLACE "," ";" shape ${tile})
  list(GET shape 0 rows)
  list(GET shape 1 vectors)
  math(EXPR lanes "16 * ${vectors}")
  ballast_kernel(matmul_${rows}x${lanes} CLASSES cpu GENERATOR matmul_tiles
                 PARAMS rows=${rows} vectors=${vectors})
  ballast_kernel(matmul_${rows}x${lanes}_plain CLASSES cpu GENERATOR matmul_tiles
                 PARAMS rows=${rows} vectors=${vectors} plain=true)
endforeach()
ballast_kernel(matmul_1x128 CLASSES cpu GENERATOR matmul_tiles PARAMS rows=1 vectors=8)
ballast_kernel(matmul_vector CLASSES cpu GENERATOR matmul_vector PARAMS vectors=1)
ballast_kernel(matmul_6x64_strided CLASSES cpu GENERATOR matmul_tiles
               PARAMS rows=6 vectors=4 dense_store=false)
ballast_kernel(matmul_8x32_strided CLASSES cpu GENERATOR matmul_tiles
               PARAMS rows=8 vectors=2 dense_store=false)
ballast_kernel(matmul_pack CLASSES cpu GENERATOR matmul_pack)
ballast_kernel(matmul_pack_rows CLASSES cpu GENERATOR matmul_pack PARAMS by_vectors=true)
ballast_kernel(matmul_pack_columns CLASSES cpu GENERATOR matmul_pack_columns)

ballast_oclgrind_filter(Matmul.Infinity* Matmul.ReluKeepsNan)
