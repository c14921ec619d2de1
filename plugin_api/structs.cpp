#include "plugin_api/structs.h"

namespace ballast::plugin_api {

using device::Code;
using device::fail;

void check_header(uint64_t struct_size, uint64_t first_size, const ballast_chain* next,
                  const char* what) {
  if (struct_size < first_size) {
    fail(Code::kInvalidArgument, "{}: struct_size {} is below {}, the size in ABI 1.0", what,
         struct_size, first_size);
  }
  if (next != nullptr) {
    fail(Code::kUnimplemented, "{}: unknown chain node of type {:#x}", what,
         next->struct_size >= sizeof(ballast_chain) ? next->type_id : 0);
  }
}

std::string to_string(ballast_str text) {
  if (text.data == nullptr && text.size > 0) fail(Code::kInvalidArgument, "a string is NULL");
  return text.size == 0 ? std::string() : std::string(text.data, text.size);
}

kernels::TensorType to_type(const ballast_tensor_desc& desc, const char* what) {
  if (desc.dtype < BALLAST_F32 || desc.dtype > BALLAST_BOOL) {
    fail(Code::kInvalidArgument, "{}: unknown dtype {}", what, desc.dtype);
  }
  if (desc.rank > BALLAST_MAX_RANK) {
    fail(Code::kInvalidArgument, "{}: rank {} is above {}", what, desc.rank, BALLAST_MAX_RANK);
  }
  kernels::TensorType type{static_cast<kernels::DType>(desc.dtype), {}};
  type.shape.assign(desc.dims, desc.dims + desc.rank);
  try {
    graph::check_size(type);
  } catch (const device::Error& error) {
    fail(error.code(), "{}: {}", what, error.what());
  }
  return type;
}

ballast_tensor_desc to_desc(const kernels::TensorType& type) {
  ballast_tensor_desc desc{sizeof(ballast_tensor_desc)};
  desc.dtype = static_cast<int32_t>(type.dtype);
  desc.rank = static_cast<uint32_t>(type.shape.size());
  if (desc.rank > BALLAST_MAX_RANK) {
    fail(Code::kUnimplemented, "{} has a rank above {}", kernels::to_string(type),
         BALLAST_MAX_RANK);
  }
  std::copy(type.shape.begin(), type.shape.end(), desc.dims);
  return desc;
}

graph::Attrs to_attrs(const ballast_op_call& call) {
  graph::Attrs attrs;
  for (const ballast_attr& attr :
       read_array(call.attrs, call.attr_count, call.attr_stride, "attrs")) {
    graph::AttrValue& value = attrs[to_string(attr.name)];
    switch (attr.kind) {
      case BALLAST_ATTR_INT:
        value = attr.int_value;
        break;
      case BALLAST_ATTR_FLOAT:
        value = attr.float_value;
        break;
      case BALLAST_ATTR_STRING:
        value = to_string(attr.string_value);
        break;
      case BALLAST_ATTR_INTS:
        if (attr.ints == nullptr && attr.ints_count > 0) {
          fail(Code::kInvalidArgument, "attribute {}: ints is NULL", to_string(attr.name));
        }
        check_count(attr.ints_count, "ints");
        value = std::vector<int64_t>(attr.ints, attr.ints + attr.ints_count);
        break;
      default:
        fail(Code::kInvalidArgument, "attribute {}: unknown kind {}", to_string(attr.name),
             attr.kind);
    }
  }
  return attrs;
}

}  // namespace ballast::plugin_api
