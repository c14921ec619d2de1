# One interface target that every target of ours links.
add_library(ballast_flags INTERFACE)
target_compile_options(ballast_flags INTERFACE -Wall -Wextra -Wpedantic
                       -Wno-missing-field-initializers -Wno-unused-parameter
                       $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow=local>
                       $<$<COMPILE_LANG_AND_ID:C,GNU>:-Wshadow=local>
                       # A generic lambda's implicit use of `this`, which clang 14 does not see.
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-unused-lambda-capture>)
target_include_directories(ballast_flags INTERFACE "${PROJECT_SOURCE_DIR}")

set(BALLAST_SANITIZE "" CACHE STRING "address or thread: build everything of ours with that sanitizer")
set(BALLAST_KERNELS_FROM "" CACHE PATH
    "another build folder whose AOT kernels are taken as they are (generated code is not instrumented)")
set(BALLAST_KERNELS_REBUILD "" CACHE STRING "a regular expression: kernels built here nevertheless")
if(BALLAST_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # The plugin finds clang's runtime in the executable, a program in C too: with its part for C++.
  add_link_options($<$<CXX_COMPILER_ID:Clang>:-fsanitize-link-c++-runtime>
                   $<$<LINK_LANG_AND_ID:C,Clang>:-Wl,--no-as-needed,-lstdc++>)
elseif(BALLAST_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()

# What spends its time in what it calls is sooner run than optimized; instrumented even more so.
function(ballast_optimize_lightly target)
  if(BALLAST_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
