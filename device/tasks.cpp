#include "device/tasks.h"

#include "device/device.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace ballast::device {
namespace {

// PoCL compiles a kernel for fewer groups than this along each dimension, or for any number.
constexpr uint64_t kFewGroups = 65535;

// In the whole process.
std::string name_of(const Source& source, const std::string& entry) {
  return fmt::format("{}_{}", entry, source.id);
}

// Gives each kernel its name and a last parameter that has it do nothing.
std::string task_text(const Source& source) {
  constexpr std::string_view kKernel = "__kernel void ", kSkip = "const uint _ballast_skip";
  std::string text = source.text;
  for (size_t at = 0; (at = text.find(kKernel, at)) != std::string::npos;) {
    at += kKernel.size();
    const size_t open = text.find('(', at), close = text.find(')', open),
                 body = text.find('{', close);
    if (body == std::string::npos) break;
    const std::string entry = text.substr(at, open - at);
    const bool is_empty = text.find_first_not_of(" \t\r\n", open + 1) == close;
    text.insert(body + 1, " if (_ballast_skip) return;");
    text.insert(close, fmt::format("{}{}", is_empty ? "" : ", ", kSkip));
    text.replace(at, entry.size(), name_of(source, entry));
  }
  return text;
}

// A library that the process has loaded, kept loaded.
class Library {
 public:
  explicit Library(const std::string& path)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {}
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(Library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

  // Has the pages of its constants in memory. A vector's load with a mask of no lanes does not
  // bring its page, and takes hundreds of cycles each time where it is missing: comparisons all
  // false of 1024x1024 took 5.6 ms, and take 0.06 (Zen 4).
  void touch() const {
    constexpr size_t kPage = 4096;
    link_map* map = nullptr;
    if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) return;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* address) {
          if (info->dlpi_addr != *static_cast<const ElfW(Addr)*>(address)) return 0;
          for (const ElfW(Phdr)* part = info->dlpi_phdr; part != info->dlpi_phdr + info->dlpi_phnum;
               ++part) {
            if (part->p_type != PT_LOAD || (part->p_flags & PF_R) == 0) continue;
            const auto* bytes =
                reinterpret_cast<const volatile char*>(info->dlpi_addr + part->p_vaddr);
            for (size_t at = 0; at < part->p_memsz; at += kPage) (void)bytes[at];
            if (part->p_memsz > 0) (void)bytes[part->p_memsz - 1];
          }
          return 1;
        },
        &map->l_addr);
  }

  Task find(const std::string& name) const {
    if (handle_ == nullptr) return nullptr;
    return reinterpret_cast<Task>(dlsym(handle_, ("_pocl_kernel_" + name + "_workgroup").c_str()));
  }

 private:
  void* handle_;
};

// Those that were loaded last come first.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0) {
          static_cast<std::vector<std::string>*>(out)->push_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  std::reverse(paths.begin(), paths.end());
  return paths;
}

// Schedules of the other class have groups of several items.
bool may_run_on(const DeviceInfo& info) {
  return info.is_pocl() && info.device_class == DeviceClass::kCpu &&
         info.driver.rfind("3.1", 0) == 0;
}

bool is_switched_off() {
  const char* value = std::getenv("BALLAST_TASKS");
  return value != nullptr && std::string_view(value) == "off";
}

// Writes all that a work-group can ask for.
Launch probe() {
  static const SourcePtr source = make_source(R"(
__kernel void probe(__global ulong* out, const uint a, const float b, __local uint* shared) {
  shared[1] = a;
  for (uint d = 0; d < 3; ++d) {
    out[d] = get_group_id(d);
    out[3 + d] = get_num_groups(d);
    out[6 + d] = get_local_size(d);
    out[9 + d] = get_global_offset(d);
    out[12 + d] = get_global_id(d);
    out[15 + d] = get_global_size(d);
  }
  out[18] = get_work_dim();
  out[19] = shared[1];
  out[20] = as_uint(b);
})");
  constexpr float kB = 1.5f;
  Arg a{Arg::Kind::kScalar, sizeof(uint32_t), 0, 77}, b{Arg::Kind::kScalar, sizeof(kB), 0, 0};
  std::memcpy(&b.bits, &kB, sizeof(kB));
  return {source,    "probe",
          "probe",   {5, 6, 7},
          {1, 1, 1}, {{Arg::Kind::kBuffer, 0, 0, 0}, a, b, {Arg::Kind::kLocal, 0, 0, 64}}};
}

}  // namespace

TaskCall::TaskCall(Task task, const uint64_t* words, const uint64_t* end, void* shared)
    : task_(task), shared_(shared) {
  static constexpr uint32_t kSkip = 0;
  std::copy_n(words, 3, context_.groups);
  const uint64_t* first = words + kTaskArguments;
  for (const uint64_t* word = first; word != end; ++word) {
    const size_t i = word - first;
    const bool is_local = (words[kTaskLocals + i / 64] >> i % 64 & 1) != 0;
    arguments_[i] = is_local ? static_cast<const void*>(&shared_) : word;
  }
  arguments_[end - first] = &kSkip;
}

bool may_be_task(const Launch& launch) {
  uint64_t groups = 1;
  for (size_t d = 0; d < 3; ++d) {
    if (launch.local[d] != 1 || launch.global[d] >= kFewGroups) return false;
    groups *= launch.global[d];
  }
  size_t locals = 0;
  for (const Arg& arg : launch.args) {
    if (arg.kind != Arg::Kind::kLocal) continue;
    if (++locals > 1 || arg.bits > kTaskLocalBytes) return false;
  }
  return groups <= kMostTaskGroups && launch.args.size() <= kMostTaskArguments;
}

void write_task_words(const Launch& launch, TaskWords* words) {
  words->assign(kTaskArguments + launch.args.size(), 0);
  std::copy(launch.global.begin(), launch.global.end(), words->begin());
  for (size_t i = 0; i < launch.args.size(); ++i) {
    const Arg& arg = launch.args[i];
    if (arg.kind == Arg::Kind::kLocal) (*words)[kTaskLocals + i / 64] |= uint64_t{1} << i % 64;
    (*words)[kTaskArguments + i] = arg.bits;
  }
}

struct Tasks::Impl {
  explicit Impl(Device& owner) : device(owner) {}

  struct Entry {
    std::mutex mutex;  // held while building, so that a second asker waits
    bool is_known = false;
    Task task = nullptr;
  };

  Device& device;
  std::once_flag once;
  bool is_as_known = false;  // the convention
  std::mutex mutex;          // of what follows
  std::map<std::string, SourcePtr> sources;
  std::map<std::string, std::unique_ptr<Entry>> entries;  // by name
  // PoCL unloads the code of kernels that were not enqueued for long.
  std::vector<Library> libraries;

  // Has PoCL compile and load the kernel, in a run that skips it. False, and nothing is done, where
  // it declares local memory in its body: PoCL passes that as one more argument.
  bool load(const SourcePtr& source, const std::string& name, const Launch& launch) {
    const KernelHandle kernel = device.make_kernel(source, name);
    cl_ulong local_bytes = 0;  // the arguments', which are not set, count nothing
    cl_check(clGetKernelWorkGroupInfo(kernel.get(), device.id(), CL_KERNEL_LOCAL_MEM_SIZE,
                                      sizeof(local_bytes), &local_bytes, nullptr),
             "clGetKernelWorkGroupInfo");
    if (local_bytes > 0) return false;
    constexpr uint64_t kZero = 0;
    constexpr uint32_t kSkip = 1;
    cl_uint index = 0;
    for (const Arg& arg : launch.args) {
      const bool is_scalar = arg.kind == Arg::Kind::kScalar;
      const size_t size = is_scalar                       ? arg.size
                          : arg.kind == Arg::Kind::kLocal ? std::max<uint64_t>(arg.bits, 1)
                                                          : sizeof(cl_mem);
      cl_check(clSetKernelArg(kernel.get(), index++, size, is_scalar ? &kZero : nullptr),
               "clSetKernelArg");
    }
    cl_check(clSetKernelArg(kernel.get(), index, sizeof(kSkip), &kSkip), "clSetKernelArg");
    cl_int code = CL_SUCCESS;
    const QueueHandle queue(
        clCreateCommandQueueWithProperties(device.context(), device.id(), nullptr, &code));
    cl_check(code, "clCreateCommandQueueWithProperties");
    constexpr size_t kOne[3] = {1, 1, 1};
    cl_check(clEnqueueNDRangeKernel(queue.get(), kernel.get(), 3, nullptr, kOne, kOne, 0, nullptr,
                                    nullptr),
             "clEnqueueNDRangeKernel");
    cl_check(clFinish(queue.get()), "clFinish");
    return true;
  }

  // nullptr where the kernel does not compile so.
  Task build(const Launch& launch) {
    const std::string name = name_of(*launch.source, launch.kernel);
    try {
      return load(source(launch.source), name, launch) ? look_up(name) : nullptr;
    } catch (const Error& error) {
      if (!is_refusal(error)) throw;
      return nullptr;
    }
  }

  // The text did not survive the change; the kernel itself may.
  static bool is_refusal(const Error& error) {
    const bool is_one = error.code() == Code::kBuildFailed || error.code() == Code::kNotFound;
    if (is_one) spdlog::debug("{}", error.what());
    return is_one;
  }

  SourcePtr source(const SourcePtr& source) {
    std::lock_guard lock(mutex);
    SourcePtr& found = sources[source->id];
    if (!found) found = make_source(task_text(*source), source->options);
    return found;
  }

  bool finds_all_in_place() {
    const Launch launch = probe();
    const Task task = build(launch);
    if (task == nullptr) return false;
    const std::vector<uint64_t> expected = {1, 2, 3, 5, 6, 7, 1, 1, 1,  0,         0,
                                            0, 1, 2, 3, 5, 6, 7, 3, 77, 0x3fc00000};
    std::vector<uint64_t> found(expected.size(), ~uint64_t{0});
    TaskWords words;
    write_task_words(launch, &words);
    words[kTaskArguments] = reinterpret_cast<uint64_t>(found.data());
    alignas(64) std::byte shared[kTaskLocalBytes];
    constexpr uint64_t kGroup = 1 + 5 * (2 + 6 * 3);
    TaskCall(task, words.data(), words.data() + words.size(), shared).run(kGroup);
    if (found == expected) return true;
    spdlog::warn("[tasks] PoCL calls kernels otherwise than expected; launches go one by one");
    return false;
  }

  Task look_up(const std::string& name) {
    for (const std::string& path : loaded_libraries()) {
      Library library(path);
      const Task task = library.find(name);
      if (task == nullptr) continue;
      library.touch();
      std::lock_guard lock(mutex);
      libraries.push_back(std::move(library));
      return task;
    }
    return nullptr;
  }
};

Tasks::Tasks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tasks::~Tasks() = default;

std::unique_ptr<Tasks> Tasks::make(Device& device) {
  if (!may_run_on(device.info()) || device.profile() != nullptr || is_switched_off()) {
    return nullptr;
  }
  return std::unique_ptr<Tasks>(new Tasks(std::make_unique<Impl>(device)));
}

bool Tasks::prebuild(const SourcePtr& source) {
  try {
    impl_->device.build(impl_->source(source));
    return true;
  } catch (const Error& error) {
    if (!impl_->is_refusal(error)) throw;
    return false;
  }
}

Kernel Tasks::make_kernel(const Launch& launch) {
  constexpr uint32_t kSkip = 0;
  Kernel kernel(impl_->device.make_kernel(impl_->source(launch.source),
                                          name_of(*launch.source, launch.kernel)));
  kernel.set_scalar(static_cast<cl_uint>(launch.args.size()), &kSkip, sizeof(kSkip));
  return kernel;
}

Task Tasks::find(const Launch& launch) {
  std::call_once(impl_->once, [this] { impl_->is_as_known = impl_->finds_all_in_place(); });
  if (!impl_->is_as_known) return nullptr;
  Impl::Entry* entry = nullptr;
  {
    std::lock_guard lock(impl_->mutex);
    auto& slot = impl_->entries[name_of(*launch.source, launch.kernel)];
    if (!slot) slot = std::make_unique<Impl::Entry>();
    entry = slot.get();
  }
  std::lock_guard lock(entry->mutex);
  if (!entry->is_known) entry->task = impl_->build(launch);
  entry->is_known = true;
  return entry->task;
}

}  // namespace ballast::device
