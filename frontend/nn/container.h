// Cells that hold cells. What lies in them is named by position: "0.weight".
#pragma once

#include "frontend/nn/cell.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ballast::nn {

// Cells to be called by their owner, in any way: CellList blocks(Block(8), Block(8)).
class CellList : public Cell {
 public:
  template <class... Cells, class = std::enable_if_t<(std::is_base_of_v<Cell, Cells> && ...)>>
  explicit CellList(Cells... cells) {
    (append(std::make_shared<Cells>(std::move(cells))), ...);
  }
  void append(std::shared_ptr<Cell> cell);

  size_t size() const { return cells_.size(); }
  Cell& operator[](size_t position) const { return *cells_.at(position); }

 protected:
  std::vector<std::shared_ptr<Cell>> cells_;
};

// Cells in a row: SequentialCell net(Flatten(), Dense(784, 10)).
class SequentialCell : public CellList {
 public:
  using Cell::construct;
  using CellList::CellList;
  Tensor construct(const Tensor& x) override;
};

}  // namespace ballast::nn
