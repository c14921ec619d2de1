# Steps by the number of their outputs; the rules are those of
# optimizer_recipe.h.
ballast_kernel(optimizer_scale GENERATOR step_1 PARAMS rule=scale)
ballast_kernel(optimizer_sgd GENERATOR step_1 PARAMS rule=sgd)
foreach(rule momentum momentum_nesterov adagrad)
  ballast_kernel(optimizer_${rule} GENERATOR step_2 PARAMS rule=${rule})
endforeach()
foreach(rule adam adam_nesterov adam_weight_decay adamw rmsprop)
  ballast_kernel(optimizer_${rule} GENERATOR step_3 PARAMS rule=${rule})
endforeach()
# Norms and checks over many tensors.
foreach(kind square finite)
  ballast_kernel(optimizer_${kind}_chunks GENERATOR chunk_sums PARAMS kind=${kind})
  ballast_kernel(optimizer_${kind}_finish GENERATOR finish_sums PARAMS kind=${kind})
endforeach()

ballast_oclgrind_filter(Optimizer.*)
