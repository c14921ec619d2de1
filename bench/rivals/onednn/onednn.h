// oneDNN as a rival: cases become primitives on memory that is made once. Scratchpads are made
// once, too (user mode), and the implementation is whichever oneDNN puts first.
#pragma once

#include "bench/rivals/worker.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace ballast::bench::onednn {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using Memory = dnnl::memory;

const dnnl::engine& engine();
dnnl::stream& stream();

// Row-major f32 of these extents; a scalar becomes one element.
Desc plain(const Dims& dims);
// Element i of axis a lies strides[a] further.
Desc strided(const Dims& dims, const Dims& strides);
Dims dense_strides(const Dims& dims);

Memory upload(const Desc& desc, const std::vector<float>& values);
Memory input(const Case& c, size_t number);                    // plain, the case's own shape
Memory input(const Case& c, size_t number, const Desc& desc);  // the same elements, seen otherwise
Memory empty(const Desc& desc);
std::vector<float> download(const Memory& memory);  // plain order

struct Action {
  dnnl::primitive primitive;
  std::unordered_map<int, Memory> arguments;
};

// Attributes with a scratchpad of ours; `post_ops` may be empty.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {});

// A primitive with its scratchpad among the arguments.
template <class Primitive, class PrimitiveDesc>
Action action(const PrimitiveDesc& desc, std::unordered_map<int, Memory> arguments) {
  arguments[DNNL_ARG_SCRATCHPAD] = empty(desc.scratchpad_desc());
  return {Primitive(desc), std::move(arguments)};
}
Action reorder(const Memory& from, const Memory& to);

// Runs the actions in order. `outputs` are read as `shapes` says, or whole.
Variant variant(const std::string& suffix, std::vector<Action> actions,
                std::vector<Memory> outputs);

using Maker = std::function<std::vector<Variant>(const Case&)>;
using Makers = std::map<std::string, Maker>;

// What each file adds, by the op's name.
void add_matmul(Makers& makers);
void add_conv(Makers& makers);
void add_pool(Makers& makers);
void add_norm(Makers& makers);
void add_pointwise(Makers& makers);
void add_data(Makers& makers);
void add_attention(Makers& makers);

}  // namespace ballast::bench::onednn
