# Optimizer steps: tensors, then scalars
ballast_kernel(sgd_f32 GENERATOR sgd PARAMS patterns=110)
ballast_kernel(momentum_f32 GENERATOR momentum PARAMS patterns=11100 nesterov=false)
ballast_kernel(momentum_nesterov_f32 GENERATOR momentum PARAMS patterns=11100 nesterov=true)

ballast_oclgrind_filter(Optimizer.*)
