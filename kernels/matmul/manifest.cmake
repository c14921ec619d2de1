# The variants of matmul: every epilogue of every form; kernels/matmul.cpp names them.
foreach(bias "" _bias)
  foreach(activation none relu relu_grad)
    set(epilogue "${activation}${bias}")
    set(params "activation=${activation}")
    if(bias)
      list(APPEND params has_bias=true)
    endif()
    ballast_kernel(matmul_general_${epilogue} GENERATOR matmul_general PARAMS ${params})
    ballast_kernel(matmul_6x64_${epilogue} CLASSES cpu GENERATOR matmul_tiles
                   PARAMS rows=6 vectors=4 dense_store=true ${params})
    ballast_kernel(matmul_8x48_${epilogue} CLASSES cpu GENERATOR matmul_tiles
                   PARAMS rows=8 vectors=3 dense_store=true ${params})
    ballast_kernel(matmul_6x64_strided_${epilogue} CLASSES cpu GENERATOR matmul_tiles
                   PARAMS rows=6 vectors=4 dense_store=false ${params})
  endforeach()
endforeach()
ballast_kernel(matmul_pack CLASSES cpu GENERATOR matmul_pack)
ballast_kernel(matmul_pack_rows CLASSES cpu GENERATOR matmul_pack PARAMS by_vectors=true)
ballast_kernel(matmul_pack_columns CLASSES cpu GENERATOR matmul_pack_columns)

ballast_oclgrind_filter(Matmul.Infinity* Matmul.ReluKeepsNan)
