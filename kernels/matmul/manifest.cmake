# One row per register tile; matmul_choice.cpp names them. The epilogue is a matter of arguments.
ballast_kernel(matmul_general GENERATOR matmul_general)
ballast_kernel(matmul_6x64 CLASSES cpu WIDE GENERATOR matmul_tiles PARAMS rows=6 vectors=4)
ballast_kernel(matmul_6x64_plain CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=4 plain=true)
ballast_kernel(matmul_6x64_columns CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=4 plain=true columns=true)
ballast_kernel(matmul_6x64_strided CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=4 dense_store=false)
ballast_kernel(matmul_12x32 CLASSES cpu WIDE GENERATOR matmul_tiles PARAMS rows=12 vectors=2)
ballast_kernel(matmul_12x32_plain CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=12 vectors=2 plain=true)
ballast_kernel(matmul_12x32_packing CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=12 vectors=2 plain=true packs=true)
ballast_kernel(matmul_12x16_packing CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=12 vectors=1 plain=true packs=true)
ballast_kernel(matmul_12x16_plain CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=12 vectors=1 plain=true)
ballast_kernel(matmul_12x16_columns CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=12 vectors=1 plain=true columns=true)
ballast_kernel(matmul_8x48 CLASSES cpu WIDE GENERATOR matmul_tiles PARAMS rows=8 vectors=3)
ballast_kernel(matmul_8x48_plain CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=8 vectors=3 plain=true)
ballast_kernel(matmul_8x48_packing CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=8 vectors=3 plain=true packs=true)
ballast_kernel(matmul_8x48_columns CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=8 vectors=3 plain=true columns=true)
ballast_kernel(matmul_6x16 CLASSES cpu WIDE GENERATOR matmul_tiles PARAMS rows=6 vectors=1)
ballast_kernel(matmul_6x16_plain CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=1 plain=true)
ballast_kernel(matmul_6x16_packing CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=1 plain=true packs=true)
ballast_kernel(matmul_6x16_columns CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=1 plain=true columns=true)
ballast_kernel(matmul_6x16_strided CLASSES cpu WIDE GENERATOR matmul_tiles
               PARAMS rows=6 vectors=1 dense_store=false)
ballast_kernel(matmul_16x32_turned CLASSES cpu WIDE GENERATOR matmul_turned
               PARAMS held_rows=8 vectors=2)
ballast_kernel(matmul_16x16_turned CLASSES cpu WIDE GENERATOR matmul_turned
               PARAMS held_rows=4 vectors=1)
ballast_kernel(matmul_1x256 CLASSES cpu WIDE GENERATOR matmul_tiles PARAMS rows=1 vectors=16)
ballast_kernel(matmul_dot CLASSES cpu WIDE GENERATOR matmul_dot)
ballast_kernel(matmul_dot_4 CLASSES cpu WIDE GENERATOR matmul_dot PARAMS lanes=4)
ballast_kernel(matmul_dots CLASSES cpu WIDE GENERATOR matmul_dot PARAMS lanes=4 rows=5)
ballast_kernel(matmul_vector CLASSES cpu GENERATOR matmul_vector PARAMS vectors=1)
ballast_kernel(matmul_pack CLASSES cpu GENERATOR matmul_pack)
ballast_kernel(matmul_pack_rows CLASSES cpu GENERATOR matmul_pack PARAMS by_vectors=true)
ballast_kernel(matmul_pack_columns CLASSES cpu GENERATOR matmul_pack_columns)

ballast_oclgrind_filter(Matmul.Infinity* Matmul.ReluKeepsNan Matmul.FewRows* MatmulChoice.*InBatches
                        FusedMatmul.E* FusedMatmul.Batches FusedMatmul.Nan*)
