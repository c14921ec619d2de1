// Does not compile, for the reason that tests/CMakeLists.txt looks for.
#include "frontend/ballast_frontend.h"

int main() {
  auto f = ballast::jit([](ballast::Tensor) { return 2.0; });
  f(ballast::Tensor::scalar(1));
}
