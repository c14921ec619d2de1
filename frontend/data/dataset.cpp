#include "frontend/data/dataset.h"

#include "frontend/data/prefetcher.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace ballast::data {

Dataset ArrayDataset(std::vector<Tensor> columns) {
  if (columns.empty()) fail(BALLAST_INVALID_ARGUMENT, "[ArrayDataset] no columns given");
  Dataset dataset;
  for (Tensor& column : columns) {
    if (column.rank() == 0 || column.shape()[0] != columns[0].shape()[0]) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[ArrayDataset] column {} is {}, column 0 is {}: they must "
           "share their leading extent",
           &column - columns.data(), to_string(column.type()), to_string(columns[0].type()));
    }
    dataset.columns_.push_back(column.is_on_host()
                                   ? column
                                   : Tensor::on_host_bytes(column.to_host_bytes(), column.type()));
  }
  return dataset;
}

Dataset Dataset::shuffle(uint64_t seed) const {
  Dataset changed = *this;
  changed.seed_ = seed;
  return changed;
}

Dataset Dataset::batch(int64_t size, bool drop_remainder) const {
  if (size < 1) fail(BALLAST_INVALID_ARGUMENT, "[batch] size is {}, expected at least 1", size);
  Dataset changed = *this;
  changed.batch_size_ = size;
  changed.drop_remainder_ = drop_remainder;
  return changed;
}

Dataset Dataset::repeat(int64_t epochs) const {
  if (epochs < 1) fail(BALLAST_INVALID_ARGUMENT, "[repeat] {} epochs, expected at least 1", epochs);
  Dataset changed = *this;
  changed.epochs_ = epochs;
  return changed;
}

Dataset Dataset::prefetch(int64_t batches) const {
  Dataset changed = *this;
  changed.prefetch_ = std::max<int64_t>(0, batches);
  return changed;
}

int64_t Dataset::rows() const { return columns_.at(0).shape()[0]; }

int64_t Dataset::batches_per_epoch() const {
  return drop_remainder_ ? rows() / batch_size_ : (rows() + batch_size_ - 1) / batch_size_;
}

std::vector<int64_t> Dataset::order_of_epoch(uint64_t epoch) const {
  std::vector<int64_t> order(static_cast<size_t>(rows()));
  std::iota(order.begin(), order.end(), 0);
  if (!seed_) return order;
  // Fisher-Yates by hand: std::shuffle differs between standard libraries.
  std::mt19937_64 generator(*seed_ + epoch * 0x9e3779b97f4a7c15u);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

Batch Dataset::gather(const int64_t* rows, const Shape& leading) const {
  auto count = static_cast<size_t>(TensorType{DType::kU8, leading}.elements());
  Batch batch;
  for (const Tensor& column : columns_) {
    TensorType row{column.dtype(), Shape(column.shape().begin() + 1, column.shape().end())};
    size_t size = row.bytes();
    std::vector<uint8_t> bytes(count * size);
    const auto* source = static_cast<const uint8_t*>(column.host_data());
    for (size_t i = 0; size > 0 && i < count; ++i) {
      std::memcpy(bytes.data() + i * size, source + static_cast<size_t>(rows[i]) * size, size);
    }
    row.shape.insert(row.shape.begin(), leading.begin(), leading.end());
    batch.push_back(Tensor::on_host_bytes(std::move(bytes), std::move(row)));
  }
  return batch;
}

// A place within the sequence of epochs.
class Cursor {
 public:
  Cursor(Dataset dataset, uint64_t epoch)
      : dataset_(std::move(dataset)), order_(dataset_.order_of_epoch(epoch)) {}

  bool is_epoch_over() const {
    int64_t left = static_cast<int64_t>(order_.size()) - position_;
    return dataset_.drop_remainder_ ? left < dataset_.batch_size_ : left <= 0;
  }
  void start_epoch(uint64_t epoch) {
    order_ = dataset_.order_of_epoch(epoch);
    position_ = 0;
  }
  Batch take_batch() { return take(std::min(dataset_.batch_size_, left()), 0); }
  // Full batches as one stack, or a smaller last batch alone.
  Batch take_stack(int64_t stack) {
    int64_t size = std::min(dataset_.batch_size_, left());
    return take(size, std::min(stack, left() / size));
  }

 private:
  int64_t left() const { return static_cast<int64_t>(order_.size()) - position_; }
  Batch take(int64_t size, int64_t stack) {
    Shape leading = stack > 0 ? Shape{stack, size} : Shape{size};
    const int64_t* rows = order_.data() + position_;
    position_ += std::max<int64_t>(1, stack) * size;
    return dataset_.gather(rows, leading);
  }

  Dataset dataset_;
  std::vector<int64_t> order_;
  int64_t position_ = 0;
};

Dataset::Iterator Dataset::begin() const {
  uint64_t epoch = next_epoch_->fetch_add(static_cast<uint64_t>(epochs_));
  auto produce = [cursor = Cursor(*this, epoch), epoch,
                  end = epoch + static_cast<uint64_t>(epochs_)]() mutable -> std::optional<Batch> {
    while (cursor.is_epoch_over()) {
      if (++epoch >= end) return std::nullopt;
      cursor.start_epoch(epoch);
    }
    return cursor.take_batch();
  };
  Iterator iterator;
  iterator.reader_ =
      std::make_shared<Prefetcher>(std::move(produce), static_cast<size_t>(prefetch_));
  iterator.is_end_ = false;
  return ++iterator;
}

Dataset::Iterator& Dataset::Iterator::operator++() {
  std::optional<Batch> next = reader_->next();
  is_end_ = !next.has_value();
  batch_ = is_end_ ? Batch() : std::move(*next);
  return *this;
}

StackedBatches::StackedBatches(Dataset dataset, uint64_t stack, size_t expected_columns) {
  if (dataset.column_count() != expected_columns) {
    fail(BALLAST_INVALID_ARGUMENT, "[data_sink] the dataset has {} columns, the step takes {}",
         dataset.column_count(), expected_columns);
  }
  if (stack < 1 || dataset.batches_per_epoch() < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[data_sink] nothing to run: sink size {}, {} batches per epoch",
         stack, dataset.batches_per_epoch());
  }
  auto epochs = dataset.next_epoch_;
  uint64_t first = epochs->fetch_add(1);
  auto produce = [cursor = Cursor(dataset, first), epochs,
                  stack]() mutable -> std::optional<Batch> {
    if (cursor.is_epoch_over()) cursor.start_epoch(epochs->fetch_add(1));
    return cursor.take_stack(static_cast<int64_t>(stack));
  };
  constexpr size_t kAhead = 2;  // one waits while the next is gathered
  reader_ = std::make_unique<Prefetcher>(std::move(produce), kAhead);
}

StackedBatches::~StackedBatches() = default;
StackedBatches::StackedBatches(StackedBatches&& other) noexcept = default;

std::vector<Tensor> StackedBatches::next() { return *reader_->next(); }

}  // namespace ballast::data
