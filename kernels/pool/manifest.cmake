foreach(result value index other)
  ballast_kernel(max_pool_${result} GENERATOR max_pool PARAMS result=${result})
endforeach()
ballast_kernel(max_pool_grad GENERATOR max_pool_grad)
ballast_kernel(avg_pool GENERATOR avg_pool)
ballast_kernel(avg_pool_grad GENERATOR avg_pool_grad)

ballast_oclgrind_filter(Pool.*)
