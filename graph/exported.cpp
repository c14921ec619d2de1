#include "graph/exported.h"

#include "graph/text.h"

#include <xxhash.h>

#include <charconv>
#include <filesystem>
#include <fstream>

namespace ballast::graph {

using device::Buffer;
using device::Code;
using device::fail;

namespace {

constexpr char kMagic[] = "ballast.function ";
constexpr int kVersion = 1;

class File {
 public:
  explicit File(const std::string& path) : path_(path) {
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) {
      fail(Code::kNotFound, "[executable_load] {}: there is no such file", path);
    }
    std::ifstream file(path, std::ios::binary);
    if (!file || !std::filesystem::is_regular_file(path, failure)) refuse("cannot be read");
    const uint64_t size = std::filesystem::file_size(path, failure);
    bytes_.resize(failure ? 0 : size);
    if (!file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()))) {
      refuse("cannot be read");
    }
    read_head();
  }

  std::string_view text() const { return {bytes_.data() + at_, text_size_}; }
  std::string_view states() const {
    return {bytes_.data() + at_ + text_size_, bytes_.size() - at_ - text_size_};
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(Code::kInvalidArgument, "[executable_load] {}: {}", path_, why);
  }

 private:
  void read_head() {
    if (!accept(kMagic)) refuse("is no exported function");
    const uint64_t version = number(10);
    if (version != kVersion) {
      refuse(fmt::format("has version {}, this plugin reads {}", version, kVersion));
    }
    expect("\ngraph ");
    text_size_ = number(10);
    expect(" states ");
    const uint64_t state_size = number(10);
    expect(" checksum ");
    const uint64_t checksum = number(16);
    expect("\n");
    const uint64_t left = bytes_.size() - at_;
    if (text_size_ > left || state_size != left - text_size_) {
      refuse(fmt::format("holds {} bytes after its head, which names {} and {}", left, text_size_,
                         state_size));
    }
    if (XXH3_64bits(bytes_.data() + at_, left) != checksum) {
      refuse("is damaged: the checksum is another one");
    }
  }

  bool accept(std::string_view token) {
    if (bytes_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse("has a damaged head");
  }
  uint64_t number(int base) {
    uint64_t value = 0;
    const char* end = bytes_.data() + bytes_.size();
    const auto [next, error] = std::from_chars(bytes_.data() + at_, end, value, base);
    if (error != std::errc()) refuse("has a damaged head");
    at_ = static_cast<size_t>(next - bytes_.data());
    return value;
  }

  std::string path_, bytes_;
  uint64_t at_ = 0, text_size_ = 0;
};

}  // namespace

std::shared_ptr<Executable> load_exported(const device::DevicePtr& device, const std::string& path,
                                          const CompileOptions& options) {
  const File file(path);
  Graph graph;
  try {
    graph = parse(std::string(file.text()));
    verify(graph);
  } catch (const device::Error& error) {
    file.refuse(error.what());
  }
  uint64_t needed = 0;
  for (const TensorType& type : graph.types(graph.states())) {
    needed += type.bytes();
    if (needed > file.states().size()) break;  // before a sum of absurd sizes overflows
  }
  if (needed != file.states().size()) {
    file.refuse(
        fmt::format("holds {} bytes of states, the graph's are {}", file.states().size(), needed));
  }
  auto executable = std::make_shared<Executable>(device, graph, options);
  uint64_t at = 0;
  for (size_t i = 0; i < graph.states().size(); ++i) {
    const uint64_t size = graph.value(graph.states()[i]).type.bytes();
    executable->bind_state(i, Buffer::upload(device, file.states().data() + at, size));
    at += size;
  }
  return executable;
}

}  // namespace ballast::graph
