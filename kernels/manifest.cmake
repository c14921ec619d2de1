# The kernels built ahead of time: one manifest per family, one row per kernel.
set(BALLAST_KERNEL_FAMILIES
    pointwise shape index reduce matmul conv pool norm softmax rows attention random optimizer)
foreach(family IN LISTS BALLAST_KERNEL_FAMILIES)
  file(GLOB generator_sources CONFIGURE_DEPENDS ${family}/*_generator.cpp
       ${family}/*/*_generator.cpp)
  if(generator_sources)
    add_executable(ballast_${family}_generators EXCLUDE_FROM_ALL ${generator_sources})
    target_link_libraries(ballast_${family}_generators PRIVATE ballast_recipes Halide::Generator
                          $<$<BOOL:${JEMALLOC_LIBRARY}>:${JEMALLOC_LIBRARY}>)
    # Each runs a few times, for less long than it would take to optimize.
    target_compile_options(ballast_${family}_generators PRIVATE -O0)
    ballast_precompile(generators ballast_${family}_generators)
  endif()
  include(${family}/manifest.cmake)
endforeach()
