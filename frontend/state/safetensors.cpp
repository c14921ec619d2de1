#include "frontend/state/safetensors.h"

#include "frontend/state/atomic_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace ballast {

namespace {

using Json = nlohmann::json;

constexpr uint64_t kLargestHeader = 100'000'000;  // the format's own bound
constexpr size_t kPrefix = 8;                     // the header's length, little-endian
constexpr char kMetadata[] = "__metadata__";

struct Name {
  const char* text;
  DType dtype;
};
constexpr Name kNames[] = {
    {"F32", DType::kF32}, {"F64", DType::kF64}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
    {"I32", DType::kI32}, {"I64", DType::kI64}, {"U8", DType::kU8},   {"BOOL", DType::kBool},
};

const char* safetensors_name(DType dtype) {
  return std::find_if(std::begin(kNames), std::end(kNames),
                      [&](const Name& row) { return row.dtype == dtype; })
      ->text;
}

struct Place {
  std::string name;
  TensorType type;
  uint64_t begin = 0, end = 0;  // after the header
};

// In the order of the bytes. Wide elements come first, so that all are aligned.
std::vector<Place> laid_out(const TensorMap& tensors) {
  std::vector<Place> places;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadata || name.empty()) {
      fail(BALLAST_INVALID_ARGUMENT, "[save_checkpoint] a tensor cannot be named \"{}\"", name);
    }
    if (!tensor.defined()) {
      fail(BALLAST_INVALID_ARGUMENT, "[save_checkpoint] tensor \"{}\" is undefined", name);
    }
    places.push_back({name, tensor.type()});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return size_of(a.type.dtype) > size_of(b.type.dtype);
  });
  uint64_t at = 0;
  for (Place& place : places) {
    place.begin = at;
    place.end = at += place.type.bytes();
  }
  return places;
}

std::string header_text(const std::vector<Place>& places, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  for (const Place& place : places) {
    header[place.name] = {{"dtype", safetensors_name(place.type.dtype)},
                          {"shape", place.type.shape},
                          {"data_offsets", {place.begin, place.end}}};
  }
  try {
    std::string text = header.dump();
    text.append((kPrefix - text.size() % kPrefix) % kPrefix, ' ');
    return text;
  } catch (const nlohmann::json::exception& error) {
    fail(BALLAST_INVALID_ARGUMENT, "[save_checkpoint] a name or metadata is not UTF-8: {}",
         error.what());
  }
}

}  // namespace

void write_safetensors(const std::string& path, const TensorMap& tensors,
                       const Metadata& metadata) {
  const std::vector<Place> places = laid_out(tensors);
  const std::string header = header_text(places, metadata);
  if (header.size() > kLargestHeader) {
    fail(BALLAST_INVALID_ARGUMENT,
         "[save_checkpoint] {}: the header takes {} bytes, the most is {}", path, header.size(),
         kLargestHeader);
  }
  AtomicFile file(path, "save_checkpoint");
  uint8_t length[kPrefix];
  for (size_t i = 0; i < kPrefix; ++i) length[i] = static_cast<uint8_t>(header.size() >> 8 * i);
  file.write(length, kPrefix);
  file.write(header.data(), header.size());
  for (const Place& place : places) {
    const std::vector<uint8_t> bytes = tensors.at(place.name).to_host_bytes();
    file.write(bytes.data(), bytes.size());
  }
  file.commit();
}

// ---- reading

struct SafetensorsReader::Header {
  const SafetensorsReader& reader;

  // The only forms are {name: {"dtype": string, "shape": [...], "data_offsets": [...]}} and
  // {"__metadata__": {string: string}}; JSON would let a key appear twice and nest without end.
  Json parse(const std::string& text) const {
    if (text.empty() || text[0] != '{') reader.refuse("the header does not begin with {");
    std::map<int, std::set<std::string>> keys;  // of the open object that begins at this depth
    auto check = [&](int depth, Json::parse_event_t event, Json& value) {
      constexpr int kDeepest = 3;
      if (depth > kDeepest) reader.refuse("the header is nested too deep");
      if (event == Json::parse_event_t::object_start) keys[depth].clear();
      if (event == Json::parse_event_t::key) {
        const auto key = value.get<std::string>();
        if (!keys[depth - 1].insert(key).second) {
          reader.refuse(fmt::format("the key \"{}\" appears twice", key));
        }
      }
      return true;
    };
    try {
      return Json::parse(text, check);
    } catch (const nlohmann::json::exception& error) {
      reader.refuse(fmt::format("the header is no JSON: {}", error.what()));
    }
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& why) const {
    reader.refuse(fmt::format("tensor \"{}\": {}", name, why));
  }

  const Json& field(const std::string& name, const Json& entry, const char* key) const {
    if (!entry.is_object() || !entry.contains(key)) refuse(name, fmt::format("no {}", key));
    return entry[key];
  }

  std::vector<uint64_t> numbers(const std::string& name, const Json& entry, const char* key) const {
    const Json& value = field(name, entry, key);
    std::vector<uint64_t> list;
    bool is_list = value.is_array();
    for (const Json& element : value) {
      is_list = is_list && element.is_number_unsigned();
      if (is_list) list.push_back(element.get<uint64_t>());
    }
    if (!is_list) {
      refuse(name, fmt::format("{} is {}, expected a list of whole numbers", key, value.dump()));
    }
    return list;
  }

  DType dtype(const std::string& name, const Json& entry) const {
    const Json& value = field(name, entry, "dtype");
    for (const Name& row : kNames) {
      if (value == row.text) return row.dtype;
    }
    refuse(name, fmt::format("dtype {} is not one of F32, F64, F16, BF16, I32, I64, U8, BOOL",
                             value.dump()));
  }

  Place place(const std::string& name, const Json& entry) const {
    Place made{name, {dtype(name, entry), {}}};
    const std::vector<uint64_t> shape = numbers(name, entry, "shape");
    if (shape.size() > BALLAST_MAX_RANK) {
      refuse(name, fmt::format("{} axes, the most is {}", shape.size(), BALLAST_MAX_RANK));
    }
    uint64_t bytes = size_of(made.type.dtype);
    for (uint64_t extent : shape) {
      // The product of all extents but those of 0 must fit, whatever their order.
      const uint64_t factor = std::max<uint64_t>(extent, 1);
      if (extent > INT64_MAX || __builtin_mul_overflow(bytes, factor, &bytes) ||
          bytes > INT64_MAX) {
        refuse(name, fmt::format("shape [{}] is too large", fmt::join(shape, ", ")));
      }
      made.type.shape.push_back(static_cast<int64_t>(extent));
    }
    const std::vector<uint64_t> offsets = numbers(name, entry, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) {
      refuse(name, fmt::format("data_offsets [{}] are no range", fmt::join(offsets, ", ")));
    }
    made.begin = offsets[0];
    made.end = offsets[1];
    if (made.end - made.begin != made.type.bytes()) {
      refuse(name, fmt::format("{} bytes at [{}, {}], {} needs {}", made.end - made.begin,
                               made.begin, made.end, to_string(made.type), made.type.bytes()));
    }
    return made;
  }

  Metadata metadata(const Json& value) const {
    Metadata made;
    if (!value.is_object()) reader.refuse("__metadata__ is no map of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) reader.refuse(fmt::format("__metadata__ \"{}\" is no string", key));
      made[key] = text.get<std::string>();
    }
    return made;
  }

  // Every byte after the header belongs to exactly one tensor.
  void check_cover(std::vector<Place> places, uint64_t size) const {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    uint64_t at = 0;
    for (const Place& place : places) {
      const std::string range = fmt::format("data_offsets [{}, {}]", place.begin, place.end);
      if (place.end > size) {
        refuse(place.name, fmt::format("{} end beyond the {} bytes of data", range, size));
      }
      if (place.begin < at) refuse(place.name, range + " overlap another tensor's");
      if (place.begin > at) {
        refuse(place.name, fmt::format("{} leave a hole after byte {}", range, at));
      }
      at = place.end;
    }
    if (at != size) reader.refuse(fmt::format("{} bytes after the last tensor", size - at));
  }
};

void SafetensorsReader::refuse(const std::string& why) const {
  fail(BALLAST_INVALID_ARGUMENT, "[load_checkpoint] {}: {}", path_, why);
}

SafetensorsReader::SafetensorsReader(const std::string& path)
    : path_(path), file_(path, std::ios::binary) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) {
    fail(BALLAST_NOT_FOUND, "[load_checkpoint] {}: there is no such file", path);
  }
  if (!file_ || !std::filesystem::is_regular_file(path, failure)) refuse("cannot be read");
  const uint64_t size = std::filesystem::file_size(path);
  if (size < kPrefix) refuse(fmt::format("{} bytes are too few for a header", size));
  uint8_t prefix[kPrefix];
  file_.read(reinterpret_cast<char*>(prefix), kPrefix);
  uint64_t length = 0;
  for (size_t i = 0; i < kPrefix; ++i) length |= uint64_t{prefix[i]} << 8 * i;
  if (length > kLargestHeader) {
    refuse(fmt::format("a header of {} bytes, the most is {}", length, kLargestHeader));
  }
  if (length > size - kPrefix) {
    refuse(
        fmt::format("a header of {} bytes in a file of {}: the file is truncated or no "
                    "safetensors file",
                    length, size));
  }
  std::string text(length, '\0');
  if (!file_.read(text.data(), static_cast<std::streamsize>(length))) refuse("cannot be read");

  const Header header{*this};
  std::vector<Place> places;
  const Json parsed = header.parse(text);
  for (const auto& [name, entry] : parsed.items()) {
    if (name == kMetadata) {
      metadata_ = header.metadata(entry);
    } else {
      places.push_back(header.place(name, entry));
    }
  }
  header.check_cover(places, size - kPrefix - length);
  for (Place& place : places) {
    positions_[place.name] = kPrefix + length + place.begin;
    types_[place.name] = std::move(place.type);
  }
}

Tensor SafetensorsReader::read(const std::string& name) {
  const TensorType& type = types_.at(name);
  std::vector<uint8_t> bytes(type.bytes());
  file_.seekg(static_cast<std::streamoff>(positions_.at(name)));
  if (!file_.read(reinterpret_cast<char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()))) {
    refuse(fmt::format("tensor \"{}\": cannot be read", name));
  }
  if (type.dtype == DType::kBool) {
    const auto odd =
        std::find_if(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte > 1; });
    if (odd != bytes.end()) {
      refuse(fmt::format("tensor \"{}\": element {} of a BOOL is {}", name, odd - bytes.begin(),
                         *odd));
    }
  }
  return Tensor::on_host_bytes(std::move(bytes), type);
}

}  // namespace ballast
