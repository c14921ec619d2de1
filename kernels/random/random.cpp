#include "kernels/kernels.h"
#include "kernels/plan/halide_runtime.h"
#include "kernels/plan/plan_builder.h"
#include "kernels/random/random_limits.h"
#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ballast::kernels {
namespace {

int32_t low_word(int64_t value) { return static_cast<int32_t>(value & 0xffffffff); }
int32_t high_word(int64_t value) { return static_cast<int32_t>(value >> 32); }

Operand key_operand(uint32_t slot) { return {slot, DType::kI64, {2}, {1}, {}}; }
Operand row(uint32_t slot, DType dtype, int64_t n) { return {slot, dtype, {n}, {1}, {}}; }

// How many strips a work-group makes: some 10 us of work at least, and enough groups
// for all cores.
int32_t strips_per_group(int64_t n) {
  return checked_int32(std::clamp<int64_t>(n / kStrip / 16, 128, 1024));
}

// key, stream, strips, then `rest` in the generator's order.
Plan plan_draws(DeviceClass device_class, const std::string& kernel, int64_t n, int64_t stream,
                uint32_t key_slot, std::vector<HostArg> rest) {
  if (n == 0) return {};
  std::vector<HostArg> args = {key_operand(key_slot), low_word(stream), high_word(stream),
                               strips_per_group(n)};
  args.insert(args.end(), rest.begin(), rest.end());
  Recorder recorder;
  recorder.call(kernel, device_class, args);
  return recorder.finish();
}

constexpr int64_t kBucketMean = 1024;  // numbers of a permutation's bucket, where there are few

// That a bucket may touch. One of twice its mean is 30 standard deviations away, a chance of
// 10^-150 or less.
int64_t strips_of_bucket(int64_t n, int64_t buckets) {
  return buckets == 1 ? ceil_div(n, kStrip) : ceil_div(2 * n / buckets, kStrip) + 2;
}

// On GPUs, of as many numbers that a bucket fits into local memory.
Plan plan_permutation_by_groups(int64_t n, int64_t stream) {
  const int64_t buckets = permutation_buckets(n), chunks = ceil_div(n, kGroupChunk),
                cells = buckets == 1 ? 1 : chunks * buckets;
  PlanBuilder builder(2);
  const uint32_t counts = builder.add_floats(cells), starts = builder.add_floats(cells),
                 work = builder.add_floats(buckets == 1 ? 1 : n);
  const auto cells_of = [&](uint32_t slot) {
    const int64_t rows = cells / buckets;
    return Operand{slot, DType::kI32, {rows, buckets}, {1, rows}, {}};
  };
  const auto append = [&](const std::string& step, const std::vector<HostArg>& rest,
                          const std::vector<uint32_t>& slots) {
    std::vector<HostArg> args = {key_operand(0), low_word(stream), high_word(stream), low_word(n),
                                 low_word(buckets)};
    args.insert(args.end(), rest.begin(), rest.end());
    Recorder recorder(kNoAliases);
    recorder.call("random_permutation_group_" + step, DeviceClass::kGpu, args);
    builder.append(recorder.finish(), slots);
  };
  if (buckets > 1) {
    append("counts", {cells_of(1)}, {0, counts});
    builder.append(plan_cumsum(DeviceClass::kGpu, {DType::kI32, {cells}}, 0, /*is_exclusive=*/true,
                               /*is_reverse=*/false),
                   {counts, starts});
    append("moves", {cells_of(1), row(2, DType::kI32, n)}, {0, starts, work});
  }
  append("shuffle",
         {low_word(strips_of_bucket(n, buckets)), cells_of(1),
          row(2, DType::kI32, buckets == 1 ? 1 : n), row(3, DType::kI32, n)},
         {0, starts, work, 1});
  return builder.finish();
}

// How many of the 2^24 uniform numbers are below p.
int32_t threshold_of(double p) { return static_cast<int32_t>(std::ceil(p * (1 << 24))); }

Plan plan_floats(DeviceClass device_class, const std::string& kernel, int64_t n, int64_t stream,
                 float scale, float shift, float limit) {
  return plan_draws(device_class, kernel, n, stream, 0,
                    {scale, shift, limit, row(1, DType::kF32, n)});
}

}  // namespace

Plan plan_random_bits(DeviceClass device_class, int64_t n, int64_t stream) {
  return plan_draws(device_class, "random_bits", n, stream, 0, {0, 0, row(1, DType::kI32, n)});
}

Plan plan_random_integers(DeviceClass device_class, int64_t n, int64_t stream, int32_t low,
                          int32_t high) {
  const int32_t count = low_word(int64_t{high} - low);
  return plan_draws(device_class, "random_integers", n, stream, 0,
                    {low, count, row(1, DType::kI32, n)});
}

Plan plan_random_uniform(DeviceClass device_class, int64_t n, int64_t stream, float low,
                         float high) {
  return plan_floats(device_class, "random_uniform", n, stream, high - low, low,
                     std::nextafter(high, low));
}

Plan plan_random_normal(DeviceClass device_class, int64_t n, int64_t stream, float mean,
                        float stddev) {
  return plan_floats(device_class, "random_normal", n, stream, stddev, mean, 0.0f);
}

Plan plan_truncated_normal(DeviceClass device_class, int64_t n, int64_t stream, float mean,
                           float stddev) {
  return plan_floats(device_class, "random_truncated_normal", n, stream, stddev, mean, 0.0f);
}

Plan plan_bernoulli(DeviceClass device_class, int64_t n, int64_t stream, double p) {
  return plan_draws(device_class, "random_bernoulli", n, stream, 0,
                    {threshold_of(p), row(1, DType::kBool, n)});
}

Plan plan_bernoulli_tensor(DeviceClass device_class, int64_t n, int64_t stream) {
  return plan_draws(device_class, "random_bernoulli_tensor", n, stream, 0,
                    {row(1, DType::kF32, n), row(2, DType::kBool, n)});
}

Plan plan_dropout(DeviceClass device_class, int64_t n, int64_t stream, double keep_prob) {
  const auto scale = static_cast<float>(1 / keep_prob);
  return plan_draws(
      device_class, "random_dropout", n, stream, 1,
      {row(0, DType::kF32, n), threshold_of(keep_prob), scale, row(2, DType::kF32, n)});
}

int64_t permutation_buckets(int64_t n) {
  return n <= 2048 ? 1 : std::min<int64_t>(ceil_div(n, kBucketMean), kMaxBuckets);
}

Plan plan_random_permutation(DeviceClass device_class, int64_t n, int64_t stream) {
  if (n == 0) return {};
  if (device_class == DeviceClass::kGpu && n <= kMaxBuckets * kBucketMean) {
    return plan_permutation_by_groups(n, stream);
  }
  const int64_t buckets = permutation_buckets(n), strips = ceil_div(n, kStrip);
  const int64_t chunk_strips = ceil_div(strips, buckets == 1 ? 1 : 16);
  const int64_t chunks = ceil_div(strips, chunk_strips), cells = chunks * buckets;
  Workspace workspace(2);
  const uint32_t counts_slot = workspace.add_floats(buckets == 1 ? 1 : cells);
  const uint32_t work_slot = workspace.add_floats(buckets == 1 ? 1 : cells + n);
  const auto cells_of = [&](uint32_t slot) {
    return Operand{slot, DType::kI32, {buckets, chunks}, {1, buckets}, {}};
  };
  const int64_t bucket_strips = strips_of_bucket(n, buckets);
  Recorder recorder(kNoAliases);
  const auto call = [&](const std::string& step, const std::vector<HostArg>& args) {
    const std::string kernel = "random_permutation_" + step;
    recorder.call(kernel, device_class, args);
  };
  const auto step_args = [&](const std::vector<HostArg>& rest) {
    std::vector<HostArg> args = {key_operand(0), low_word(stream),  high_word(stream),
                                 low_word(n),    low_word(buckets), low_word(chunk_strips)};
    args.insert(args.end(), rest.begin(), rest.end());
    return args;
  };
  const Operand work = row(work_slot, DType::kI32, buckets == 1 ? 1 : cells + n);
  if (buckets > 1) {
    call("counts", step_args({cells_of(counts_slot)}));
    call("cursors", {cells_of(counts_slot), cells_of(work_slot)});
    call("moves", step_args({work}));
  }
  call("shuffle", step_args({low_word(bucket_strips), work, row(1, DType::kI32, n)}));
  return recorder.finish(workspace);
}

Plan plan_random_advance(DeviceClass device_class, int64_t blocks) {
  const std::string kernel = "random_advance";
  Recorder recorder;
  recorder.call(kernel, device_class,
                {key_operand(0), low_word(blocks), high_word(blocks), key_operand(1)});
  return recorder.finish();
}

}  // namespace ballast::kernels
