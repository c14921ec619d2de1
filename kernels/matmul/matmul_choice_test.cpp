// The ways to compute one product (matmul_choice.h): that they agree, and which one is taken.
#include "kernels/matmul/matmul_choice.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/test_support.h"

#include <array>
#include <set>
#include <string_view>

namespace ballast::kernels::testing {
namespace {

struct Epilogue {
  bool has_bias;
  const char* activation;
  bool has_residual;
};
// The simulator takes the first two.
constexpr Epilogue kEpilogues[] = {{false, "none", false},
                                   {true, "relu", true},
                                   {true, "none", false},
                                   {false, "relu_grad", false},
                                   {true, "gelu_tanh", false}};

std::vector<MatmulChoice> choices_of(const MatmulConfig& config,
                                     DeviceClass device_class = DeviceClass::kCpu) {
  return matmul_choices(device_class, make_matmul_problem(config, MatmulSlots(config)));
}

std::vector<HostTensor> inputs_of(const MatmulConfig& c, int64_t products) {
  const auto many = [&](int64_t elements, uint32_t seed) {
    return random_f32({products * elements}, seed);
  };
  std::vector<HostTensor> inputs = {many(c.m * c.k, 1), many(c.k * c.n, 2)};
  if (c.has_bias) inputs.push_back(random_f32({c.n}, 3));
  if (c.has_residual || c.activation == "relu_grad") inputs.push_back(many(c.m * c.n, 4));
  return inputs;
}

// Adds the names of the tiles that served.
void expect_all_agree(MatmulConfig c, std::set<std::string>& tiles,
                      DeviceClass device_class = DeviceClass::kCpu) {
  const int64_t products = c.batch.empty() ? 1 : c.batch[0].extent;
  for (size_t i = 0; i < (is_simulated() ? 2 : std::size(kEpilogues)); ++i) {
    const Epilogue& epilogue = kEpilogues[i];
    // Kernels of GPUs with all activations take a compiler for CPUs seconds: half of them.
    const bool is_long = std::string_view(epilogue.activation) == "gelu_tanh";
    if (device_class == DeviceClass::kGpu && is_long && c.transpose_a) continue;
    c.has_bias = epilogue.has_bias;
    c.activation = epilogue.activation;
    c.has_residual = epilogue.has_residual;
    const std::vector<HostTensor> inputs = inputs_of(c, products);
    const TensorType type{DType::kF32, {products * c.m * c.n}};
    const std::vector<MatmulChoice> choices = choices_of(c, device_class);
    const auto run = [&](const MatmulChoice& choice) {
      return run_plan(plan_matmul_as(device_class, c, choice), inputs, type).bytes;
    };
    const std::vector<uint8_t> expected = run(choices.front());
    for (const MatmulChoice& choice : choices) {
      if (choice.tile == nullptr) continue;
      tiles.insert(choice.tile->name);
      EXPECT_EQ(run(choice), expected)
          << c.m << "x" << c.n << "x" << c.k << " " << choice.tile->name << " swapped "
          << choice.swapped << " pack " << static_cast<int>(choice.pack) << " bias " << c.has_bias
          << " " << c.activation;
    }
  }
}

// On edges of tiles, panels, vectors and unrolled steps of k.
TEST(MatmulChoice, AllGiveTheSameBits) {
  const RegistersScope narrow(kNarrowRegisters);  // has all tiles
  std::set<std::string> tiles;
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{5, 17, 3},
                                                                   {64, 33, 19},
                                                                   {33, 64, 8},
                                                                   {31, 16, 6},
                                                                   {70, 50, 21},
                                                                   {1, 300, 19},
                                                                   {1, 300, 5},
                                                                   {7, 100, 37},
                                                                   {29, 70, 48},
                                                                   {40, 53, 256},
                                                                   {70, 130, 70},
                                                                   {37, 11, 18}}) {
    if (is_too_large(12 * m * n)) continue;
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        if (is_simulated() && transpose_a != transpose_b) continue;
        expect_all_agree({m, n, k, transpose_a, transpose_b}, tiles);
      }
    }
  }
  // Small products, one after the other.
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {9, 9, 9}, {5, 12, 7}, {17, 8, 3}, {3, 4, 20}, {4, 6, 5}}) {
    if (is_simulated() && m > 5) continue;
    for (const bool transpose_a : {false, true}) {
      MatmulConfig small{m, n, k, transpose_a};
      small.batch = {{is_simulated() ? 2 : 37, m * k, k * n, m * n}};
      expect_all_agree(small, tiles);
    }
  }
  // Columns of C that are contiguous: lanes along them, and the bias along the rows of a tile.
  for (const bool transpose_a : {false, true}) {
    MatmulConfig columns{is_simulated() ? 17 : 70, 14, is_simulated() ? 16 : 64, transpose_a};
    columns.c_strides = MatmulStrides{1, columns.m};
    expect_all_agree(columns, tiles);
  }
  if (is_simulated()) return;
  const std::set<std::string> all = {"6x64",         "12x32",
                                     "8x48",         "6x16",
                                     "4x24",         "1x64_chunks",
                                     "4x24_chunks",  "5x16",
                                     "5x16_chunks",  "6x16_chunks",
                                     "16x32_turned", "16x16_turned",
                                     "6x64_strided", "6x16_strided",
                                     "16x16_short",  "16x16_short_narrow",
                                     "6x64_chunks",  "vector",
                                     "small_8",      "small_4",
                                     "line_8",       "6x64_chunks_strided"};
  EXPECT_EQ(tiles, all);
}

// However many tiles and panels a group has; the last ones have fewer.
TEST(MatmulChoice, GroupsOfAnySizeGiveTheSameBits) {
  const RegistersScope narrow(kNarrowRegisters);  // has all tiles
  constexpr int64_t kLongestChunk = 64;
  const int64_t n = is_simulated() ? 70 : 200, k = 2 * kLongestChunk + (is_simulated() ? 1 : 7);
  std::set<std::string> tiles;
  for (const auto& [m, swapped] : std::vector<std::pair<int64_t, bool>>{
           {is_simulated() ? 7 : 20, false}, {is_simulated() ? 7 : 20, true}, {8, false}}) {
    MatmulConfig c{swapped ? n : m, swapped ? m : n, k, swapped};
    c.batch = {{2, c.m * k, k * c.n, m * n}};
    c.has_bias = true;
    const std::vector<HostTensor> inputs = inputs_of(c, 2);
    const std::vector<MatmulChoice> choices = choices_of(c);
    const TensorType type{DType::kF32, {2 * m * n}};
    const auto run = [&](const MatmulChoice& choice) {
      return run_plan(plan_matmul_as(DeviceClass::kCpu, c, choice), inputs, type).bytes;
    };
    const std::vector<uint8_t> expected = run(choices.front());
    for (MatmulChoice choice : choices) {
      if (choice.tile == nullptr || !choice.takes_strips()) continue;
      tiles.insert(choice.tile->name);
      const int64_t most = choice.tile->has(kMatmulChunks) ? choice.tile->chunks().tiles : 4;
      for (const int64_t rows : is_simulated() ? Shape{2} : Shape{1, 3, 4}) {
        for (const int64_t panels : is_simulated() ? Shape{1, 3} : Shape{1, 3, 5, 9}) {
          choice.tiles_per_group = std::min(rows, most), choice.panels_per_group = panels;
          EXPECT_TRUE(run(choice) == expected)
              << choice.tile->name << " " << rows << " tiles of " << panels << " panels";
        }
      }
    }
  }
  if (is_simulated()) return;
  EXPECT_EQ(tiles, (std::set<std::string>{"6x64", "12x32", "8x48", "6x16", "4x24", "4x24_chunks",
                                          "5x16", "5x16_chunks", "6x16_chunks", "6x64_chunks",
                                          "6x64_chunks_strided", "6x64_strided", "6x16_strided"}));
}

// Vectors of B that lie where its rows do pass their ends, the last ones B's.
TEST(MatmulChoice, AllGiveTheSameBitsOfShortRows) {
  std::set<std::string> tiles;
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{17, 3, 13}, {16, 15, 9}, {18, 1, 20}, {19, 10, 1}}) {
    expect_all_agree({m, n, k}, tiles);
    MatmulConfig batches{m, n, k};
    batches.batch = {{2, m * k, k * n, m * n}};
    if (!is_simulated()) expect_all_agree(batches, tiles);
  }
  EXPECT_TRUE(tiles.count("16x16_short"));
}

TEST(MatmulChoice, BlocksOfGpusGiveTheSameBits) {
  std::set<std::string> tiles;
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {5, 17, 3}, {33, 70, 16}, {130, 129, 21}, {64, 10, 40}}) {
    if (is_too_large(2 * m * n)) continue;
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        if (is_simulated() && transpose_a != transpose_b) continue;
        expect_all_agree({m, n, k, transpose_a, transpose_b}, tiles, DeviceClass::kGpu);
      }
    }
  }
  MatmulConfig batches{18, 35, 9, false, true};
  batches.batch = {{2, 18 * 9, 0, 18 * 35}};
  expect_all_agree(batches, tiles, DeviceClass::kGpu);
  if (is_simulated()) return;
  const std::set<std::string> all = {"128x128_block", "64x64_block", "32x32_block"};
  EXPECT_EQ(tiles, all);
}

TEST(MatmulChoice, AllGiveTheSameBitsInBatches) {
  std::set<std::string> tiles;
  // A simulator executes ten million instructions in a minute.
  const int64_t m = is_simulated() ? 17 : 18, batch = is_simulated() ? 2 : 3;
  for (const int64_t k : is_simulated() ? std::vector<int64_t>{5} : std::vector<int64_t>{9, 32}) {
    MatmulConfig c{m, 35, k, false, true};
    c.batch = {{batch, c.m * c.k, c.k * c.n, c.m * c.n}};
    expect_all_agree(c, tiles);
  }
}

std::string tile_of(const MatmulConfig& config) {
  const std::vector<MatmulChoice> choices = choices_of(config);
  const MatmulChoice& best = choices[promising_choices(choices).front()];
  return best.tile == nullptr ? "general" : best.tile->name;
}

// `wide`: where there are 32 registers of 16 lanes; `narrow`: 16 of 8.
TEST(MatmulChoice, ProductsTakeTheTilesMadeForThem) {
  const auto expect = [](const MatmulConfig& config, const char* wide, const char* narrow) {
    for (int64_t bytes : {kWideRegisters, kNarrowRegisters}) {
      const RegistersScope scope(bytes);
      EXPECT_EQ(tile_of(config), has_wide_registers() ? wide : narrow);
    }
  };
  expect({1024, 1024, 1024}, "6x64", "4x24");
  expect({64, 512, 784, false, true}, "16x32_turned", "16x16_turned");  // weights [out, in]
  expect({64, 512, 512}, "8x48", "4x24");
  expect({392, 768, 256}, "6x64", "6x16");
  expect({196, 196, 32, false, true}, "8x48", "4x24");
  expect({4096, 10, 512}, "dots", "16x16_short_narrow");
  expect({4096, 16, 256}, "16x16_short", "6x16");  // folding would take longer
  expect({4096, 16, 256, false, true}, "16x16_short", "dot_4");
  expect({100000, 3, 64, false, true}, "16x16_short", "16x16_short_narrow");
  expect({1024, 1, 1024}, "line", "line_8");
  expect({1, 300, 20, false, true}, "line", "line_8");
  expect({1, 300, 12, false, true}, "vector", "line_8");  // less than a vector of steps
  expect({1, 10, 512, false, true}, "dot", "line_8");     // and of elements
  expect({64, 10, 512, false, true}, "dots", "dot_4");
  expect({64, 10, 512}, "16x16_short", "dot_4");  // in place; packed first
  expect({8, 1024, 1024, false, true}, "dots", "dot_4");
  expect({8, 1008, 1024}, "8x48", "4x24");
  expect({32, 1024, 1024}, "6x64_chunks", "4x24");  // few rows, B from afar
}

// Whatever is estimated, groups hold some tiles, and no more than there are rows of them.
TEST(MatmulChoice, GroupsHoldTheTilesThereAre) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                   {64, 512, 784},
                                                                   {392, 256, 256},
                                                                   {61, 67, 53},
                                                                   {3000, 2000, 1000},
                                                                   {100000, 64, 64},
                                                                   {1, 4096, 1024},
                                                                   {7, 100000, 9},
                                                                   {70, 20000, 9}}) {
    MatmulConfig c{m, n, k};
    c.batch = {{7, m * k, k * n, m * n}};
    const MatmulProblem problem = make_matmul_problem(c, MatmulSlots(c));
    for (const MatmulChoice& choice : choices_of(c)) {
      if (choice.tile == nullptr || !choice.tile->has_panels()) continue;
      const int64_t rows = choice.swapped ? n : m;
      EXPECT_GE(choice.tiles_per_group, 1) << choice.tile->name;
      EXPECT_LE(choice.tiles_per_group, ceil_div(rows, choice.tile->rows)) << choice.tile->name;
      const bool has_chunks = choice.tile->has(kMatmulChunks);
      const int64_t most = has_chunks                     ? choice.tile->chunks().panels
                           : writes_runs(problem, choice) ? kPageElements / choice.tile->lanes()
                           : choice.takes_strips()        ? kMatmulStripPanels
                                                          : 1;
      EXPECT_LE(choice.panels_per_group, most) << choice.tile->name;
      EXPECT_TRUE(!has_chunks || choice.tiles_per_group <= choice.tile->chunks().tiles);
    }
  }
}

}  // namespace
}  // namespace ballast::kernels::testing
