#include "frontend/nn/container.h"

namespace ballast::nn {

void CellList::append(std::shared_ptr<Cell> cell) {
  add(std::to_string(cells_.size()), *cell);
  cells_.push_back(std::move(cell));
}

Tensor SequentialCell::construct(const Tensor& x) {
  Tensor value = x;
  for (const auto& cell : cells_) value = (*cell)(value);
  return value;
}

}  // namespace ballast::nn
