# Moves, by element size.
ballast_pointwise(copy_1 identity u8 u8)
ballast_pointwise(copy_2 identity f16 f16)
ballast_pointwise(copy_4 identity i32 i32)
ballast_pointwise(copy_8 identity i64 i64)

ballast_oclgrind_filter(Copy.FourBytes)
