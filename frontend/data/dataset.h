// Dataset: columns of host arrays that share their leading extent, read in batches.
//   data::Dataset train = data::ArrayDataset({images, labels}).shuffle(7).batch(64).prefetch(4);
//   for (const std::vector<Tensor>& batch : train) step(batch[0], batch[1]);
// A Dataset is a value; copies share the arrays and the epoch counter. Each pass over it is one
// epoch with an order of its own that follows from the seed. Batches lie in host memory.
#pragma once

#include "frontend/tensor.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ballast::data {

using Batch = std::vector<Tensor>;  // one host tensor per column

class Cursor;
class Prefetcher;
class StackedBatches;

class Dataset {
 public:
  Dataset shuffle(uint64_t seed) const;
  Dataset batch(int64_t size, bool drop_remainder = true) const;
  Dataset repeat(int64_t epochs) const;     // one pass gives that many epochs
  Dataset prefetch(int64_t batches) const;  // gathered ahead on a background thread

  int64_t rows() const;
  size_t column_count() const { return columns_.size(); }
  int64_t batches_per_epoch() const;
  int64_t batches_per_pass() const { return batches_per_epoch() * epochs_; }

  // Reads the next pass; dereferencing is legal until the end.
  class Iterator {
   public:
    const Batch& operator*() const { return batch_; }
    Iterator& operator++();
    bool operator!=(const Iterator& o) const { return is_end_ != o.is_end_; }

   private:
    friend class Dataset;
    std::shared_ptr<Prefetcher> reader_;
    Batch batch_;
    bool is_end_ = true;
  };
  Iterator begin() const;
  Iterator end() const { return {}; }

 private:
  friend Dataset ArrayDataset(std::vector<Tensor> columns);
  friend class Cursor;
  friend class StackedBatches;
  std::vector<int64_t> order_of_epoch(uint64_t epoch) const;
  // Rows as tensors whose leading extents are `leading`.
  Batch gather(const int64_t* rows, const Shape& leading) const;

  std::vector<Tensor> columns_;
  std::optional<uint64_t> seed_;
  int64_t batch_size_ = 1;
  bool drop_remainder_ = true;
  int64_t epochs_ = 1;
  int64_t prefetch_ = 0;
  std::shared_ptr<std::atomic<uint64_t>> next_epoch_ = std::make_shared<std::atomic<uint64_t>>(0);
};

// Device tensors are read back once.
Dataset ArrayDataset(std::vector<Tensor> columns);

// Endless runs of up to `stack` equal-sized batches as [n, batch, ...] tensors, gathered ahead on a
// background thread. A run never crosses the end of an epoch.
class StackedBatches {
 public:
  StackedBatches(Dataset dataset, uint64_t stack, size_t expected_columns);
  ~StackedBatches();
  StackedBatches(StackedBatches&& other) noexcept;
  std::vector<Tensor> next();

 private:
  std::unique_ptr<Prefetcher> reader_;
};

}  // namespace ballast::data
