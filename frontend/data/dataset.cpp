#include "frontend/data/dataset.h"

#include "frontend/data/prefetcher.h"

#include <algorithm>
#include <numeric>

namespace ballast::data {

Dataset ArrayDataset(std::vector<Tensor> columns, Where where) {
  if (columns.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[ArrayDataset] no columns given (at {})", to_string(where));
  }
  for (const Tensor& column : columns) {
    if (column.rank() == 0 || column.shape()[0] != columns[0].shape()[0]) {
      fail(BALLAST_INVALID_ARGUMENT,
           "[ArrayDataset] column {} is {}, column 0 is {}: they must "
           "share their leading extent (at {})",
           &column - columns.data(), to_string(column.type()), to_string(columns[0].type()),
           to_string(where));
    }
  }
  return Dataset(array_source(std::move(columns)));
}

Dataset GeneratorDataset(int64_t size, std::function<Batch(int64_t)> item) {
  if (size < 0) fail(BALLAST_INVALID_ARGUMENT, "[GeneratorDataset] {} items", size);
  return Dataset(generator_source(size, std::move(item)));
}

Dataset GeneratorDataset(const std::function<std::optional<Batch>()>& next) {
  auto items = std::make_shared<std::vector<Batch>>();
  while (std::optional<Batch> item = next()) items->push_back(*std::move(item));
  return GeneratorDataset(static_cast<int64_t>(items->size()), [items](int64_t position) {
    return (*items)[static_cast<size_t>(position)];
  });
}

Dataset zip(const std::vector<Dataset>& datasets, Where where) {
  if (datasets.empty()) {
    fail(BALLAST_INVALID_ARGUMENT, "[zip] no datasets given (at {})", to_string(where));
  }
  std::vector<SourcePtr> sources;
  for (const Dataset& dataset : datasets) sources.push_back(dataset.source_);
  return Dataset(zip_source(std::move(sources)));
}

Dataset Dataset::with(SourcePtr source) const {
  Dataset changed(std::move(source));
  changed.epochs_ = epochs_;
  changed.prefetch_ = prefetch_;
  return changed;
}

Dataset Dataset::map(MapFunction function) const {
  return with(map_source(source_, std::move(function)));
}

Dataset Dataset::shuffle(uint64_t seed) const { return with(shuffle_source(source_, seed)); }

Dataset Dataset::shard(int64_t shards, int64_t shard, Where where) const {
  if (shards < 1 || shard < 0 || shard >= shards) {
    fail(BALLAST_INVALID_ARGUMENT, "[shard] number {} of {} (at {})", shard, shards,
         to_string(where));
  }
  return with(shard_source(source_, shards, shard));
}

Dataset Dataset::batch(int64_t size, bool drop_remainder, Where where) const {
  if (size < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[batch] size is {}, expected at least 1 (at {})", size,
         to_string(where));
  }
  return with(batch_source(source_, size, drop_remainder));
}

Dataset Dataset::repeat(int64_t epochs, Where where) const {
  if (epochs < 1) {
    fail(BALLAST_INVALID_ARGUMENT, "[repeat] {} epochs, expected at least 1 (at {})", epochs,
         to_string(where));
  }
  Dataset changed = with(source_);
  changed.epochs_ = epochs;
  return changed;
}

Dataset Dataset::prefetch(int64_t batches) const {
  Dataset changed = with(source_);
  changed.prefetch_ = std::max<int64_t>(0, batches);
  return changed;
}

void Dataset::start_at(uint64_t batch, Where where) const {
  const auto per_epoch = static_cast<uint64_t>(batches_per_epoch());
  if (per_epoch == 0) {
    fail(BALLAST_INVALID_ARGUMENT, "[start_at] the dataset is empty (at {})", to_string(where));
  }
  progress_->epoch = batch / per_epoch;
  progress_->item = static_cast<int64_t>(batch % per_epoch);
}

Dataset::Iterator Dataset::begin() const {
  const auto epochs = static_cast<uint64_t>(epochs_);
  const uint64_t first = progress_->epoch.fetch_add(epochs);
  auto produce = [source = source_, epoch = first, end = first + epochs,
                  item = progress_->item.exchange(0)]() mutable -> std::optional<Batch> {
    while (item >= source->size()) {
      if (++epoch >= end) return std::nullopt;
      item = 0;
    }
    return source->gather(epoch, {item++}, {});
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
  auto progress = dataset.progress_;
  auto produce = [source = dataset.source_, progress, stack, epoch = progress->epoch.fetch_add(1),
                  item = progress->item.exchange(0)]() mutable -> std::optional<Batch> {
    if (item >= source->size()) {
      epoch = progress->epoch.fetch_add(1);
      item = 0;
    }
    const int64_t count = std::min(static_cast<int64_t>(stack), source->run_length(item));
    Positions positions(static_cast<size_t>(count));
    std::iota(positions.begin(), positions.end(), item);
    item += count;
    return source->gather(epoch, positions, {count});
  };
  constexpr size_t kAhead = 2;  // one waits while the next is gathered
  reader_ = std::make_unique<Prefetcher>(std::move(produce), kAhead);
}

StackedBatches::~StackedBatches() = default;
StackedBatches::StackedBatches(StackedBatches&& other) noexcept = default;

std::vector<Tensor> StackedBatches::next() { return *reader_->next(); }

}  // namespace ballast::data
