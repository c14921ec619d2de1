// The manifest as a table; its source is written by kernels.cmake. Ends with a null name.
#pragma once

namespace ballast::kernels {

struct AotRow {
  const char* name;
  int (*cpu)(void** argv);
  int (*gpu)(void** argv);
};

const AotRow* aot_rows();

}  // namespace ballast::kernels
