// Dataset: items (a host tensor per column) in a pipeline, as mindspore.dataset.
//   data::Dataset train = data::ArrayDataset({images, labels}).shuffle(7).batch(64).prefetch(4);
//   for (const std::vector<Tensor>& batch : train) step(batch[0], batch[1]);
// Steps apply in the order they are written: shuffle before batch mixes rows, after it batches; map
// before batch sees rows, after it batches. A Dataset is a value; copies share the items and the
// epoch counter. Each pass over it is one epoch with an order of its own that follows from the
// seed. With prefetch, and in a sink, the functions of generators and maps run on another thread.
#pragma once

#include "frontend/data/source.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace ballast::data {

class Prefetcher;
class StackedBatches;

class Dataset {
 public:
  Dataset map(MapFunction function) const;
  Dataset shuffle(uint64_t seed) const;
  // Every shards-th item from number `shard` on; all shards are equally long, for which the last
  // ones begin again at the front.
  Dataset shard(int64_t shards, int64_t shard, Where where = Where::here()) const;
  // Adds a leading axis.
  Dataset batch(int64_t size, bool drop_remainder = true, Where where = Where::here()) const;
  // One pass gives that many epochs.
  Dataset repeat(int64_t epochs, Where where = Where::here()) const;
  Dataset prefetch(int64_t batches) const;  // gathered ahead on a background thread

  // The next pass begins with this batch, counted from the first of epoch 0: where a run that was
  // interrupted goes on.
  void start_at(uint64_t batch, Where where = Where::here()) const;

  size_t column_count() const { return source_->column_count(); }
  int64_t batches_per_epoch() const { return source_->size(); }  // items, where nothing is batched
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
  friend Dataset ArrayDataset(std::vector<Tensor> columns, Where where);
  friend Dataset GeneratorDataset(int64_t, std::function<Batch(int64_t)>);
  friend Dataset GeneratorDataset(const std::function<std::optional<Batch>()>&);
  friend Dataset zip(const std::vector<Dataset>& datasets, Where where);
  friend class StackedBatches;
  struct Progress {
    std::atomic<uint64_t> epoch{0};
    std::atomic<int64_t> item{0};  // where the next pass begins
  };

  explicit Dataset(SourcePtr source) : source_(std::move(source)) {}
  Dataset with(SourcePtr source) const;

  SourcePtr source_;
  int64_t epochs_ = 1;
  int64_t prefetch_ = 0;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
};

// Rows of arrays that share their leading extent. Device tensors are read back once.
Dataset ArrayDataset(std::vector<Tensor> columns, Where where = Where::here());
// Items 0 to size - 1 of a function, which is called again in each epoch, and once for item 0 to
// learn how many columns there are.
Dataset GeneratorDataset(int64_t size, std::function<Batch(int64_t)> item);
// What a function gives until it gives nothing: read to the end, and kept, now.
Dataset GeneratorDataset(const std::function<std::optional<Batch>()>& next);
// Their columns side by side, as long as the shortest. Each keeps an order of its own.
Dataset zip(const std::vector<Dataset>& datasets, Where where = Where::here());

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
