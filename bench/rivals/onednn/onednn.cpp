#include "bench/rivals/onednn/onednn.h"

#include <cstdlib>
#include <cstring>

namespace ballast::bench::onednn {

const dnnl::engine& engine() {
  static const auto* made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}

dnnl::stream& stream() {
  static auto* made = new dnnl::stream(engine());
  return *made;
}

Dims dense_strides(const Dims& dims) {
  Dims strides(dims.size());
  dnnl::memory::dim stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Desc strided(const Dims& dims, const Dims& strides) {
  return Desc(dims, dnnl::memory::data_type::f32, strides);
}

Desc plain(const Dims& dims) {
  const Dims extents = dims.empty() ? Dims{1} : dims;
  return strided(extents, dense_strides(extents));
}

Memory empty(const Desc& desc) { return Memory(desc, engine()); }

Memory upload(const Desc& desc, const std::vector<float>& values) {
  Memory memory = empty(desc);
  void* data = memory.map_data();
  std::memcpy(data, values.data(), values.size() * sizeof(float));
  memory.unmap_data(data);
  return memory;
}

Memory input(const Case& c, size_t number, const Desc& desc) {
  return upload(desc, values_of(c.inputs[number], number));
}

Memory input(const Case& c, size_t number) {
  return input(c, number, plain(c.inputs[number].shape));
}

Action reorder(const Memory& from, const Memory& to) {
  return {dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

std::vector<float> download(const Memory& memory) {
  Memory dense = memory;
  const Desc expected = plain(memory.get_desc().get_dims());
  if (memory.get_desc() != expected) {
    dense = empty(expected);
    dnnl::reorder(memory, dense).execute(stream(), const_cast<Memory&>(memory), dense);
    stream().wait();
  }
  std::vector<float> values(dense.get_desc().get_size() / sizeof(float));
  void* data = dense.map_data();
  std::memcpy(values.data(), data, values.size() * sizeof(float));
  dense.unmap_data(data);
  return values;
}

dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post_ops);
  return attr;
}

Variant variant(const std::string& suffix, std::vector<Action> actions,
                std::vector<Memory> outputs) {
  Variant made;
  made.name = std::string(BALLAST_RIVAL_NAME) + (suffix.empty() ? "" : " " + suffix);
  made.run = [actions = std::move(actions)](int count) {
    for (int i = 0; i < count; ++i) {
      for (const Action& action : actions) action.primitive.execute(stream(), action.arguments);
    }
    stream().wait();
  };
  made.results = [outputs = std::move(outputs)] {
    std::vector<std::vector<float>> results;
    for (const Memory& output : outputs) results.push_back(download(output));
    return results;
  };
  return made;
}

}  // namespace ballast::bench::onednn

int main() {
  using namespace ballast::bench;
  // The runtime that this library's CPU engine may ask for; the build knows where it lies.
  if (*BALLAST_RIVAL_VENDORS) setenv("OCL_ICD_VENDORS", BALLAST_RIVAL_VENDORS, 1);
  onednn::Makers makers;
  onednn::add_matmul(makers);
  onednn::add_conv(makers);
  onednn::add_pool(makers);
  onednn::add_norm(makers);
  onednn::add_pointwise(makers);
  onednn::add_data(makers);
  onednn::add_attention(makers);
  const dnnl_version_t* version = dnnl_version();
  const std::string text = std::to_string(version->major) + "." + std::to_string(version->minor) +
                           "." + std::to_string(version->patch);
  onednn::engine();
  return serve(BALLAST_RIVAL_NAME, text, [&](const Case& c) -> std::vector<Variant> {
    const auto maker = makers.find(c.op);
    for (const Operand& input : c.inputs) {
      if (input.dtype != "f32") return {};
    }
    return maker == makers.end() ? std::vector<Variant>{} : maker->second(c);
  });
}
