#include "frontend/data/dataset.h"
#include "frontend/data/npy.h"
#include "frontend/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <utility>

namespace ballast::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Tensor numbers(int64_t count) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::on_host(values, {count, 1});
}

std::vector<int32_t> read_pass(const Dataset& dataset) {
  std::vector<int32_t> seen;
  for (const Batch& batch : dataset) {
    for (int32_t value : batch.at(0).to_host<int32_t>()) seen.push_back(value);
  }
  return seen;
}

TEST(DatasetTest, BatchesInOrder) {
  Dataset dataset = ArrayDataset({numbers(7)}).batch(3);
  EXPECT_EQ(dataset.batches_per_epoch(), 2);
  EXPECT_EQ(read_pass(dataset), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  Dataset whole = ArrayDataset({numbers(7)}).batch(3, /*drop_remainder=*/false);
  EXPECT_EQ(whole.batches_per_epoch(), 3);
  EXPECT_EQ(read_pass(whole).size(), 7u);
}

TEST(DatasetTest, ShufflesEachEpochFromTheSeed) {
  auto make = [] { return ArrayDataset({numbers(50)}).shuffle(9).batch(10); };
  Dataset a = make(), b = make();
  std::vector<int32_t> first = read_pass(a), second = read_pass(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(read_pass(b), first);
  EXPECT_EQ(read_pass(b), second);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, numbers(50).to_host<int32_t>());
}

TEST(DatasetTest, RepeatsAndPrefetchesTheSameBatches) {
  Dataset plain = ArrayDataset({numbers(20)}).shuffle(1).batch(6).repeat(3);
  std::vector<int32_t> expected = read_pass(plain);
  EXPECT_EQ(expected.size(), 3u * 18);
  EXPECT_EQ(read_pass(ArrayDataset({numbers(20)}).shuffle(1).batch(6).repeat(3).prefetch(2)),
            expected);
}

TEST(DatasetTest, StopsReadingEarly) {
  for (const Batch& batch : ArrayDataset({numbers(1000)}).batch(1).prefetch(3)) {
    if (batch[0].to_host<int32_t>()[0] == 2) break;
  }
}

TEST(DatasetTest, StacksWithinAnEpoch) {
  StackedBatches batches(ArrayDataset({numbers(7)}).batch(2, /*drop_remainder=*/false), 2, 1);
  std::vector<Shape> shapes;
  for (int i = 0; i < 4; ++i) shapes.push_back(batches.next().at(0).shape());
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2, 1}, {1, 2, 1}, {1, 1, 1}, {2, 2, 1}}));
}

TEST(DatasetTest, StepsApplyInTheOrderTheyAreWritten) {
  // Batches in another order, each of neighbours.
  const std::vector<int32_t> seen = read_pass(ArrayDataset({numbers(20)}).batch(4).shuffle(3));
  EXPECT_NE(seen, numbers(20).to_host<int32_t>());
  for (size_t i = 0; i < 20; i += 4) {
    EXPECT_EQ(seen[i] % 4, 0);
    EXPECT_EQ(seen[i + 3], seen[i] + 3);
  }
  auto doubled = [](const Batch& item) {
    std::vector<int32_t> values = item[0].to_host<int32_t>();
    for (int32_t& value : values) value *= 2;
    return Batch{Tensor::on_host(values, item[0].shape())};
  };
  std::vector<Shape> shapes;
  auto noted = [&](const Batch& item) {
    shapes.push_back(item[0].shape());
    return item;
  };
  EXPECT_EQ(read_pass(ArrayDataset({numbers(4)}).map(noted).map(doubled).batch(2)),
            (std::vector<int32_t>{0, 2, 4, 6}));
  EXPECT_EQ(shapes[0], (Shape{1}));
  shapes.clear();
  read_pass(ArrayDataset({numbers(4)}).batch(2).map(noted));
  EXPECT_EQ(shapes[0], (Shape{2, 1}));
}

TEST(DatasetTest, AMapMayChangeColumns) {
  auto both = [](const Batch& item) { return Batch{item[0], item[0]}; };
  const Dataset dataset = ArrayDataset({numbers(6)}).map(both).batch(3);
  EXPECT_EQ(dataset.column_count(), 2u);
  for (const Batch& batch : dataset) EXPECT_EQ(batch[1].shape(), (Shape{3, 1}));
}

TEST(DatasetTest, ShardsAreEquallyLongAndCoverAll) {
  std::vector<int32_t> all;
  for (int64_t shard = 0; shard < 3; ++shard) {
    const Dataset part = ArrayDataset({numbers(7)}).shuffle(5).shard(3, shard).batch(1);
    EXPECT_EQ(part.batches_per_epoch(), 3);
    for (int32_t value : read_pass(part)) all.push_back(value);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(all, numbers(7).to_host<int32_t>());
}

TEST(DatasetTest, ZipsToTheShortest) {
  const Dataset pairs = zip({ArrayDataset({numbers(5)}), ArrayDataset({numbers(9)}).shuffle(1)});
  EXPECT_EQ(pairs.column_count(), 2u);
  EXPECT_EQ(pairs.batch(2).batches_per_epoch(), 2);
  EXPECT_EQ(read_pass(pairs.batch(5)), numbers(5).to_host<int32_t>());
}

TEST(DatasetTest, GeneratesItems) {
  auto item = [](int64_t i) {
    return Batch{Tensor::on_host<int32_t>({static_cast<int32_t>(i)}, {1})};
  };
  const Dataset by_number = GeneratorDataset(10, item).shuffle(2).batch(5);
  EXPECT_EQ(read_pass(by_number), read_pass(ArrayDataset({numbers(10)}).shuffle(2).batch(5)));
  auto next = [i = int64_t{0}, item]() mutable -> std::optional<Batch> {
    if (i == 4) return std::nullopt;
    return item(i++);
  };
  EXPECT_EQ(read_pass(GeneratorDataset(next).batch(2).prefetch(1)),
            (std::vector<int32_t>{0, 1, 2, 3}));
  StackedBatches stacked(GeneratorDataset(5, item).batch(2), 2, 1);
  EXPECT_EQ(stacked.next()[0].to_host<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(DatasetTest, GoesOnWhereItWasTold) {
  auto make = [] { return ArrayDataset({numbers(12)}).shuffle(9).batch(3).repeat(2); };
  const std::vector<int32_t> whole = read_pass(make());
  for (const uint64_t batch : {0, 3, 4, 6}) {
    const Dataset resumed = make();
    resumed.start_at(batch);
    std::vector<int32_t> rest = read_pass(resumed);
    rest.resize(24 - 3 * batch);  // two epochs from where it began
    EXPECT_EQ(rest, std::vector<int32_t>(whole.begin() + 3 * batch, whole.end()));
  }
  const Dataset sunk = make();
  sunk.start_at(2);
  StackedBatches batches(sunk, 4, 1);
  EXPECT_EQ(batches.next()[0].to_host<int32_t>(),
            std::vector<int32_t>(whole.begin() + 6, whole.begin() + 12));
  EXPECT_EQ(batches.next()[0].to_host<int32_t>(),
            std::vector<int32_t>(whole.begin() + 12, whole.end()));
}

TEST(DatasetTest, ItemsOfOneBatchHaveOneType) {
  auto item = [](int64_t i) {
    return Batch{Tensor::on_host(std::vector<int32_t>(i + 1), {i + 1})};
  };
  try {
    read_pass(GeneratorDataset(3, item).batch(2).prefetch(1));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("[dataset] column 0 of an item is i32[2], of the item before i32[1]"));
  }
}

TEST(DatasetTest, RefusesWhatCannotWork) {
  EXPECT_THROW(ArrayDataset({numbers(3)}).shard(2, 2), Error);
  EXPECT_THROW(zip({}), Error);
  EXPECT_THROW(GeneratorDataset(-1, [](int64_t) { return Batch{}; }), Error);
  EXPECT_THROW(ArrayDataset({numbers(0)}).start_at(1), Error);
  EXPECT_THROW(ArrayDataset({}), Error);
  EXPECT_THROW(ArrayDataset({numbers(3), numbers(4)}), Error);
  EXPECT_THROW(ArrayDataset({numbers(3)}).batch(0), Error);
  EXPECT_THROW(StackedBatches(ArrayDataset({numbers(3)}).batch(4), 2, 1), Error);
  EXPECT_THROW(StackedBatches(ArrayDataset({numbers(3)}), 2, 2), Error);
}

TEST(PrefetcherTest, HandsOnTheProducersException) {
  int calls = 0;
  Prefetcher prefetcher(
      [&]() -> std::optional<Batch> {
        if (++calls == 2) fail(BALLAST_NOT_FOUND, "[test] gone");
        return Batch{};
      },
      2);
  EXPECT_TRUE(prefetcher.next().has_value());
  EXPECT_THROW(prefetcher.next(), Error);
}

class NpyTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    path_ =
        (std::filesystem::temp_directory_path() / fmt::format("ballast_{}_{}.npy", name, getpid()))
            .string();
  }
  void TearDown() override { std::remove(path_.c_str()); }

  void write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string read() {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string error() {
    try {
      load_npy(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(NpyTest, RoundTrips) {
  for (const Shape& shape : std::vector<Shape>{{}, {1}, {2, 3}, {0, 5}}) {
    TensorType type{DType::kF32, shape};
    std::vector<float> values(static_cast<size_t>(type.elements()), 2.5f);
    save_npy(path_, Tensor::on_host(values, shape));
    Tensor loaded = load_npy(path_);
    EXPECT_EQ(loaded.type(), type);
    EXPECT_EQ(loaded.to_host<float>(), values);
  }
  save_npy(path_, numbers(9));
  EXPECT_EQ(load_npy(path_).to_host<int32_t>(), numbers(9).to_host<int32_t>());
}

TEST_F(NpyTest, ReadsWhatNumpyWrites) {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  header.append(117 - header.size(), ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header;
  bytes += std::string("\x05\x00\x00\x00\xff\xff\xff\xff", 8);
  write(bytes);
  EXPECT_EQ(load_npy(path_).to_host<int32_t>(), (std::vector<int32_t>{5, -1}));
}

TEST_F(NpyTest, ATruncatedFileNamesFileAndOffsetWhereverItEnds) {
  save_npy(path_, numbers(4));
  std::string whole = read();
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_THAT(error(), AllOf(HasSubstr("[load_npy]"), HasSubstr(path_),
                               HasSubstr(fmt::format("offset {}", size)), HasSubstr("ends")));
  }
}

TEST_F(NpyTest, AMalformedFileSaysWhatIsWrong) {
  save_npy(path_, numbers(4));
  std::string whole = read();
  auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    write(changed.replace(changed.find(from), from.size(), to));
    return error();
  };
  EXPECT_THAT(with("NUMPY", "NUMPX"), HasSubstr("magic"));
  EXPECT_THAT(with("<i4", "<c8"), HasSubstr("<c8"));
  EXPECT_THAT(with("False", "True "), HasSubstr("C order"));
  EXPECT_THAT(with("(4,1,)", "(-4,1)"), HasSubstr("shape"));
  EXPECT_THAT(with("(4,1,)", "(4,1x)"), HasSubstr("shape"));
  EXPECT_THAT(with("shape", "shope"), HasSubstr("shape"));
  write(whole + "x");
  EXPECT_THAT(error(), HasSubstr("after the last"));
  std::filesystem::remove(std::exchange(path_, "/nowhere/x.npy"));
  EXPECT_THAT(error(), HasSubstr("/nowhere/x.npy"));
}

}  // namespace
}  // namespace ballast::data
