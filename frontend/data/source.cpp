#include "frontend/data/source.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>

namespace ballast::data {

namespace {

Tensor on_host(const Tensor& tensor) {
  if (tensor.is_on_host()) return tensor;
  return Tensor::on_host_bytes(tensor.to_host_bytes(), tensor.type());
}

TensorType under(const Shape& leading, TensorType type) {
  type.shape.insert(type.shape.begin(), leading.begin(), leading.end());
  return type;
}

// Items made one by one, stacked.
Batch stacked(size_t count, const Shape& leading, const std::function<Batch(size_t)>& item) {
  if (leading.empty()) return item(0);
  std::vector<TensorType> types;
  std::vector<std::vector<uint8_t>> bytes;
  for (size_t i = 0; i < count; ++i) {
    const Batch made = item(i);
    if (i == 0) bytes.resize(made.size());
    if (made.size() != bytes.size()) {
      fail(BALLAST_INVALID_ARGUMENT, "[dataset] an item has {} columns, the item before {}",
           made.size(), bytes.size());
    }
    for (size_t column = 0; column < made.size(); ++column) {
      const Tensor host = on_host(made[column]);
      if (i == 0) types.push_back(host.type());
      if (host.type() != types[column]) {
        fail(
            BALLAST_INVALID_ARGUMENT,
            "[dataset] column {} of an item is {}, of the item before {}: they cannot be one batch",
            column, to_string(host.type()), to_string(types[column]));
      }
      const auto* first = static_cast<const uint8_t*>(host.host_data());
      bytes[column].insert(bytes[column].end(), first, first + host.type().bytes());
    }
  }
  Batch batch;
  for (size_t column = 0; column < types.size(); ++column) {
    batch.push_back(Tensor::on_host_bytes(std::move(bytes[column]), under(leading, types[column])));
  }
  return batch;
}

class ArraySource : public Source {
 public:
  explicit ArraySource(std::vector<Tensor> columns) : columns_(std::move(columns)) {}
  int64_t size() const override { return columns_[0].shape()[0]; }
  size_t column_count() const override { return columns_.size(); }

  Batch gather(uint64_t, const Positions& positions, const Shape& leading) const override {
    Batch batch;
    for (const Tensor& column : columns_) {
      const TensorType row{column.dtype(), Shape(column.shape().begin() + 1, column.shape().end())};
      const size_t size = row.bytes();
      std::vector<uint8_t> bytes(positions.size() * size);
      const auto* source = static_cast<const uint8_t*>(column.host_data());
      for (size_t i = 0; size > 0 && i < positions.size(); ++i) {
        std::memcpy(bytes.data() + i * size, source + static_cast<size_t>(positions[i]) * size,
                    size);
      }
      batch.push_back(Tensor::on_host_bytes(std::move(bytes), under(leading, row)));
    }
    return batch;
  }

 private:
  std::vector<Tensor> columns_;
};

class GeneratorSource : public Source {
 public:
  GeneratorSource(int64_t size, std::function<Batch(int64_t)> item)
      : size_(size), item_(std::move(item)), column_count_(size > 0 ? item_(0).size() : 0) {}
  int64_t size() const override { return size_; }
  size_t column_count() const override { return column_count_; }

  Batch gather(uint64_t, const Positions& positions, const Shape& leading) const override {
    return stacked(positions.size(), leading, [&](size_t i) {
      Batch made = item_(positions[i]);
      for (Tensor& column : made) column = on_host(column);
      return made;
    });
  }

 private:
  int64_t size_;
  std::function<Batch(int64_t)> item_;
  size_t column_count_;
};

class ZipSource : public Source {
 public:
  explicit ZipSource(std::vector<SourcePtr> sources) : sources_(std::move(sources)) {}
  int64_t size() const override {
    int64_t smallest = sources_[0]->size();
    for (const SourcePtr& source : sources_) smallest = std::min(smallest, source->size());
    return smallest;
  }
  size_t column_count() const override {
    size_t count = 0;
    for (const SourcePtr& source : sources_) count += source->column_count();
    return count;
  }

  Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const override {
    Batch batch;
    for (const SourcePtr& source : sources_) {
      for (Tensor& column : source->gather(epoch, positions, leading)) {
        batch.push_back(std::move(column));
      }
    }
    return batch;
  }
  int64_t run_length(int64_t position) const override {
    int64_t shortest = size() - position;
    for (const SourcePtr& source : sources_) {
      shortest = std::min(shortest, source->run_length(position));
    }
    return shortest;
  }

 private:
  std::vector<SourcePtr> sources_;
};

class MapSource : public Source {
 public:
  MapSource(SourcePtr source, MapFunction function)
      : source_(std::move(source)),
        function_(std::move(function)),
        column_count_(source_->size() > 0 ? function_(source_->gather(0, {0}, {})).size() : 0) {}
  int64_t size() const override { return source_->size(); }
  size_t column_count() const override { return column_count_; }

  Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const override {
    return stacked(positions.size(), leading, [&](size_t i) {
      Batch made = function_(source_->gather(epoch, {positions[i]}, {}));
      for (Tensor& column : made) column = on_host(column);
      return made;
    });
  }
  int64_t run_length(int64_t position) const override { return source_->run_length(position); }

 private:
  SourcePtr source_;
  MapFunction function_;
  size_t column_count_;
};

// Fisher and Yates by hand: std::shuffle differs between standard libraries.
Positions shuffled(int64_t size, uint64_t seed, uint64_t epoch) {
  Positions order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 generator(seed + epoch * 0x9e3779b97f4a7c15u);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

class ShuffleSource : public Source {
 public:
  ShuffleSource(SourcePtr source, uint64_t seed)
      : source_(std::move(source)),
        seed_(seed),
        is_uniform_(source_->size() == 0 || source_->run_length(0) == source_->size()) {}
  int64_t size() const override { return source_->size(); }
  size_t column_count() const override { return source_->column_count(); }

  Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const override {
    const std::shared_ptr<const Positions> order = order_of(epoch);
    Positions there;
    for (int64_t position : positions) there.push_back((*order)[static_cast<size_t>(position)]);
    return source_->gather(epoch, there, leading);
  }
  int64_t run_length(int64_t position) const override {
    return is_uniform_ ? size() - position : 1;
  }

 private:
  std::shared_ptr<const Positions> order_of(uint64_t epoch) const {
    std::lock_guard lock(mutex_);
    if (!order_ || epoch_ != epoch) {
      order_ = std::make_shared<Positions>(shuffled(size(), seed_, epoch));
      epoch_ = epoch;
    }
    return order_;
  }

  SourcePtr source_;
  uint64_t seed_;
  bool is_uniform_;
  mutable std::mutex mutex_;
  mutable uint64_t epoch_ = 0;  // of order_
  mutable std::shared_ptr<const Positions> order_;
};

class ShardSource : public Source {
 public:
  ShardSource(SourcePtr source, int64_t shards, int64_t shard)
      : source_(std::move(source)), shards_(shards), shard_(shard) {}
  int64_t size() const override { return (source_->size() + shards_ - 1) / shards_; }
  size_t column_count() const override { return source_->column_count(); }

  Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const override {
    Positions there;
    for (int64_t position : positions) there.push_back(in_source(position));
    return source_->gather(epoch, there, leading);
  }
  int64_t run_length(int64_t position) const override {
    return source_->run_length(0) == source_->size() ? size() - position : 1;
  }

 private:
  int64_t in_source(int64_t position) const {
    return (position * shards_ + shard_) % source_->size();
  }

  SourcePtr source_;
  int64_t shards_, shard_;
};

class BatchSource : public Source {
 public:
  BatchSource(SourcePtr source, int64_t batch, bool drop_remainder)
      : source_(std::move(source)), batch_(batch), full_(source_->size() / batch) {
    has_remainder_ = !drop_remainder && source_->size() % batch != 0;
  }
  int64_t size() const override { return full_ + has_remainder_; }
  size_t column_count() const override { return source_->column_count(); }

  Batch gather(uint64_t epoch, const Positions& positions, const Shape& leading) const override {
    Positions rows;
    for (int64_t position : positions) {
      const int64_t end = std::min((position + 1) * batch_, source_->size());
      for (int64_t row = position * batch_; row < end; ++row) rows.push_back(row);
    }
    Shape axes = leading;
    axes.push_back(static_cast<int64_t>(rows.size() / positions.size()));
    return source_->gather(epoch, rows, axes);
  }
  int64_t run_length(int64_t position) const override {
    return position < full_ ? full_ - position : 1;
  }

 private:
  SourcePtr source_;
  int64_t batch_, full_;
  bool has_remainder_ = false;
};

}  // namespace

SourcePtr array_source(std::vector<Tensor> columns) {
  for (Tensor& column : columns) column = on_host(column);
  return std::make_shared<ArraySource>(std::move(columns));
}

SourcePtr generator_source(int64_t size, std::function<Batch(int64_t)> item) {
  return std::make_shared<GeneratorSource>(size, std::move(item));
}

SourcePtr zip_source(std::vector<SourcePtr> sources) {
  return std::make_shared<ZipSource>(std::move(sources));
}

SourcePtr map_source(SourcePtr source, MapFunction function) {
  return std::make_shared<MapSource>(std::move(source), std::move(function));
}

SourcePtr shuffle_source(SourcePtr source, uint64_t seed) {
  return std::make_shared<ShuffleSource>(std::move(source), seed);
}

SourcePtr shard_source(SourcePtr source, int64_t shards, int64_t shard) {
  return std::make_shared<ShardSource>(std::move(source), shards, shard);
}

SourcePtr batch_source(SourcePtr source, int64_t size, bool drop_remainder) {
  return std::make_shared<BatchSource>(std::move(source), size, drop_remainder);
}

}  // namespace ballast::data
