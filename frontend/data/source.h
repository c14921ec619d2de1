// Source: where a Dataset's items come from. An item is a tensor per column; every source gives any
// of its items by number, so that shuffling, sharding and batching are a matter of numbers and one
// copy puts a batch together. Immutable; several threads may read one.
#pragma once

#include "frontend/tensor/tensor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ballast::data {

using Batch = std::vector<Tensor>;  // one host tensor per column
using Positions = std::vector<int64_t>;

class Source {
 public:
  virtual ~Source() = default;

  virtual int64_t size() const = 0;  // items per epoch
  virtual size_t column_count() const = 0;
  // The items at `positions` in this epoch's order, stacked: their types with `leading` before the
  // shape, whose product is their number. Empty: a single item as it is.
  virtual Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const = 0;
  // How many items from this one on have the same types.
  virtual int64_t run_length(int64_t position) const { return size() - position; }
};
using SourcePtr = std::shared_ptr<const Source>;

using MapFunction = std::function<Batch(const Batch&)>;

// Rows of host arrays; of a function of the item's number; of several sources side by side.
SourcePtr array_source(std::vector<Tensor> columns);
SourcePtr generator_source(int64_t size, std::function<Batch(int64_t)> item);
SourcePtr zip_source(std::vector<SourcePtr> sources);
// What becomes of another source.
SourcePtr map_source(SourcePtr source, MapFunction function);
SourcePtr shuffle_source(SourcePtr source, uint64_t seed);
SourcePtr shard_source(SourcePtr source, int64_t shards, int64_t shard);
SourcePtr batch_source(SourcePtr source, int64_t size, bool drop_remainder);

}  // namespace ballast::data
