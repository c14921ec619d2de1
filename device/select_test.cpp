#include "device/select.h"

#include "device/event.h"
#include "device/test_environment.h"
#include "device/testing.h"

#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

extern char** environ;

namespace ballast::device {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::open_device;

TEST(DeviceList, DescribesEveryDevice) {
  const std::vector<DeviceInfo> devices = list_devices();
  ASSERT_FALSE(devices.empty());
  for (size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].ordinal, i);
    EXPECT_FALSE(devices[i].name.empty());
    EXPECT_FALSE(devices[i].platform.empty());
    EXPECT_FALSE(devices[i].driver.empty());
    EXPECT_GT(devices[i].compute_units, 0u);
    EXPECT_GT(devices[i].memory_bytes, 0u);
    EXPECT_GE(devices[i].buffer_alignment, 64u);
  }
}

// PoCL pins worker i to core i, which fails, and ends the process, where that core is not allowed.
TEST(DeviceList, PoclWorkersArePinnedWhereAllCoresAreAllowed) {
  list_devices();
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  const bool has_all = CPU_COUNT(&allowed) == sysconf(_SC_NPROCESSORS_CONF);
  EXPECT_EQ(getenv("POCL_AFFINITY") != nullptr, has_all);
}

TEST(DeviceSelection, ByOrdinalNameAndPlatform) {
  for (const DeviceInfo& info : list_devices()) {
    EXPECT_EQ(select_device(std::to_string(info.ordinal)).info.ordinal, info.ordinal);
    EXPECT_EQ(select_device(info.name).info.name, info.name);
    std::string shouted = info.platform;
    for (char& c : shouted) c = static_cast<char>(toupper(c));
    EXPECT_EQ(select_device(shouted).info.platform, info.platform);
    if (info.is_pocl()) {
      EXPECT_EQ(select_device("pocl").info.platform, info.platform);
    }
  }
}

TEST(DeviceSelection, AMissListsWhatThereIs) {
  const std::string name = list_devices().at(0).name;
  EXPECT_ERROR(select_device("no such thing"), Code::kNotFound,
               AllOf(HasSubstr("\"no such thing\""), HasSubstr(name)));
  EXPECT_ERROR(select_device("999"), Code::kNotFound, HasSubstr(name));
  EXPECT_ERROR(Device::open("999", {}), Code::kNotFound, HasSubstr("[device_open]"));
}

TEST(DeviceSelection, TheEnvironmentCountsWhereNothingIsAsked) {
  const testing::Environment nonsense("BALLAST_DEVICE", "nonsense");
  EXPECT_ERROR(select_device(""), Code::kNotFound, HasSubstr("of BALLAST_DEVICE"));
  EXPECT_EQ(select_device("0").info.ordinal, 0u);
}

TEST(DeviceOpen, EqualOpensShareAndOptionsSeparate) {
  const DevicePtr device = open_device();
  EXPECT_EQ(open_device(), device);
  EXPECT_EQ(Device::open(std::to_string(device->info().ordinal), {}), device);
  DeviceOptions options;
  options.device_class = int(DeviceClass::kGpu);
  const DevicePtr as_gpu = open_device(options);
  EXPECT_NE(as_gpu, device);
  EXPECT_EQ(as_gpu->info().device_class, DeviceClass::kGpu);
  options.device_class = 3;
  EXPECT_ERROR(open_device(options), Code::kInvalidArgument, HasSubstr("device_class 3"));
}

TEST(DeviceOpen, TheLimitHolds) {
  DeviceOptions options;
  options.memory_limit = 16ull << 20;
  const DevicePtr device = open_device(options);
  const BufferPtr held = Buffer::create(device, 12ull << 20);
  EXPECT_ERROR(Buffer::create(device, 5ull << 20), Code::kOutOfDeviceMemory,
               HasSubstr("12582912 in use"));
  EXPECT_EQ(Buffer::create(device, 4ull << 20)->size(), 4ull << 20);
}

TEST(DeviceOpen, AForkedChildIsRefused) {
  const DevicePtr device = open_device();
  const BufferPtr buffer = Buffer::create(device, 4);
  Event event(device);
  event.record(device->default_stream());
  const pid_t child = fork();
  if (child == 0) {
    int refused = 0;
    auto attempt = [&](auto call) {
      try {
        call();
      } catch (const Error& error) {
        if (error.code() == Code::kFailedPrecondition) ++refused;
      }
    };
    attempt([] { list_devices(); });
    attempt([] { open_device(); });
    attempt([&] { Buffer::create(device, 4); });
    attempt([&] { device->default_stream().sync(); });
    attempt([&] { Buffer::view(buffer, 0, 4); });
    attempt([&] { device->pool().trim(); });
    attempt([&] { event.is_done(); });
    attempt([&] { event.wait(); });
    _exit(refused);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 8);
}

// Run by the test below in a process whose loader finds no platform.
TEST(NoPlatform, DISABLED_Child) {
  EXPECT_TRUE(list_devices().empty());
  EXPECT_ERROR(Device::open("", {}), Code::kNotFound, HasSubstr("pocl-opencl-icd"));
}

TEST(NoPlatform, IsAnErrorThatNamesThePackage) {
  std::string folder = ::testing::TempDir() + "ballast-vendors-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string self = fs::read_symlink("/proc/self/exe");
  const std::string vendors = "OCL_ICD_VENDORS=" + folder;
  std::vector<char*> environment = {const_cast<char*>(vendors.c_str())};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "OCL_ICD_VENDORS=", 16) != 0) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  const char* arguments[] = {self.c_str(), "--gtest_also_run_disabled_tests",
                             "--gtest_filter=NoPlatform.DISABLED_Child", nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(arguments),
                        environment.data()),
            0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  fs::remove(folder);
}

}  // namespace
}  // namespace ballast::device
