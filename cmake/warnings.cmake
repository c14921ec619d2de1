# One interface target that every target of ours links.
add_library(ballast_flags INTERFACE)
target_compile_options(ballast_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow=local -Wno-missing-field-initializers
                       -Wno-unused-parameter)
target_include_directories(ballast_flags INTERFACE "${PROJECT_SOURCE_DIR}")

set(BALLAST_SANITIZE "" CACHE STRING "address or thread: build everything of ours with that sanitizer")
set(BALLAST_KERNELS_FROM "" CACHE PATH
    "another build folder whose AOT kernels are taken as they are (generated code is not instrumented)")
set(BALLAST_KERNELS_REBUILD "" CACHE STRING "a regular expression: kernels built here nevertheless")
if(BALLAST_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(BALLAST_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
endif()
