#include "device/program_cache.h"

#include "device/build_lock.h"
#include "device/disk_cache.h"
#include "device/test_environment.h"
#include "device/testing.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

extern char** environ;

namespace ballast::device {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Environment;
using ::testing::HasSubstr;
using testing::open_device;

SourcePtr numbered_source(int number) {
  return make_source(
      "__kernel void numbered(__global int* out) { out[0] = " + std::to_string(number) + "; }");
}

// A cache folder of the test's own for as long as it runs.
class ProgramCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = getenv("BALLAST_CACHE_DIR")) before_ = before;
    std::string pattern = ::testing::TempDir() + "ballast-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    setenv("BALLAST_CACHE_DIR", folder_.c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("BALLAST_CACHE_DIR");
    else
      setenv("BALLAST_CACHE_DIR", before_.c_str(), 1);
    fs::remove_all(folder_);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.push_back(entry.path());
    return all;
  }
  uint64_t built() const { return device_->counters().programs_built; }
  uint64_t cached() const { return device_->counters().programs_cached; }
  int run(const SourcePtr& source) {
    const Launch launch{source,    "numbered", "numbered",
                        {1, 1, 1}, {1, 1, 1},  {testing::buffer_arg(0)}};
    const auto stream = make_stream(device_);
    const BufferPtr out = Buffer::create(device_, 4);
    Buffer* buffers[] = {out.get()};
    stream->submit(launch, buffers, 1);
    return testing::download<int>(*stream, *out)[0];
  }

  DevicePtr device_ = open_device();
  fs::path folder_;
  std::string before_;
};

TEST_F(ProgramCacheTest, BuildsOnceThenReadsTheDisk) {
  const SourcePtr source = numbered_source(101);
  const uint64_t built_before = built(), cached_before = cached();
  ProgramCache first(*device_);
  const cl_program program = first.get(source);
  EXPECT_EQ(first.get(numbered_source(101)), program) << "equal text is the same source";
  EXPECT_EQ(built() - built_before, 1u);
  EXPECT_EQ(files().size(), 1u);
  ProgramCache second(*device_);
  cl_int code = CL_SUCCESS;
  const KernelHandle kernel(clCreateKernel(second.get(source), "numbered", &code));
  EXPECT_EQ(code, CL_SUCCESS);
  EXPECT_EQ(built() - built_before, 1u);
  EXPECT_EQ(cached() - cached_before, 1u);
  second.get(make_source(source->text, "-cl-mad-enable"));
  EXPECT_EQ(built() - built_before, 2u) << "options are part of the key";
}

TEST_F(ProgramCacheTest, ACachedProgramComputesTheSame) {
  const SourcePtr source = numbered_source(102);
  { ProgramCache(*device_).get(source); }
  DeviceOptions options;
  options.profile = true;  // a device of its own, with an empty table of programs, and no tasks
  device_ = open_device(options);
  EXPECT_EQ(run(source), 102);
  EXPECT_EQ(built(), 0u);
  EXPECT_EQ(cached(), 1u);
}

TEST_F(ProgramCacheTest, DamagedFilesAreMissesAndReplaced) {
  const SourcePtr source = numbered_source(103);
  { ProgramCache(*device_).get(source); }
  const fs::path file = files().at(0);
  const auto size = fs::file_size(file);
  auto flip_last_byte = [&] {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-1, std::ios::end);
    const char last = static_cast<char>(stream.get());
    stream.seekp(-1, std::ios::end);
    stream.put(static_cast<char>(last ^ 1));
  };
  auto write_noise = [&] { std::ofstream(file, std::ios::binary) << "not a program"; };
  const std::vector<std::function<void()>> damages = {
      flip_last_byte, [&] { fs::resize_file(file, size / 2); }, [&] { fs::resize_file(file, 0); },
      write_noise};
  for (const auto& damage : damages) {
    damage();
    const uint64_t before = built();
    ProgramCache(*device_).get(source);
    EXPECT_EQ(built() - before, 1u);
    ASSERT_EQ(files(), std::vector<fs::path>{file});
    ProgramCache(*device_).get(source);
    EXPECT_EQ(built() - before, 1u) << "the rebuilt file serves";
  }
}

TEST_F(ProgramCacheTest, ABinaryThatTheDriverRefusesIsAMiss) {
  const SourcePtr source = numbered_source(104);
  { ProgramCache(*device_).get(source); }
  const fs::path file = files().at(0);
  DiskCache(folder_).store(file.filename(), "intact, but not of this driver");
  const uint64_t before = built();
  ProgramCache(*device_).get(source);
  EXPECT_EQ(built() - before, 1u);
}

TEST_F(ProgramCacheTest, AnUnwritableFolderOnlyWarns) {
  std::ofstream(folder_ / "file") << "in the way";
  setenv("BALLAST_CACHE_DIR", (folder_ / "file" / "below").c_str(), 1);
  const uint64_t before = built();
  EXPECT_NE(ProgramCache(*device_).get(numbered_source(105)), nullptr);
  EXPECT_EQ(built() - before, 1u);
}

TEST_F(ProgramCacheTest, OffWritesNothing) {
  setenv("BALLAST_CACHE_DIR", "off", 1);
  ProgramCache(*device_).get(numbered_source(106));
  EXPECT_TRUE(files().empty());
}

TEST_F(ProgramCacheTest, UnaskedPoclKeepsItsOwnPrograms) {
  unsetenv("BALLAST_CACHE_DIR");
  const Environment home("XDG_CACHE_HOME", folder_.string());
  ProgramCache(*device_).get(numbered_source(112));
  EXPECT_EQ(files().empty(), device_->info().is_pocl());
  const Environment without_its_cache("POCL_KERNEL_CACHE", "0");
  ProgramCache(*device_).get(numbered_source(112));
  EXPECT_EQ(files(), std::vector<fs::path>{folder_ / "ballast"});
}

// Line numbers are those of the source, also where the program was first built otherwise.
TEST_F(ProgramCacheTest, ABuildFailureNamesTheLineOfTheSource) {
  const SourcePtr source = make_source(
      "/* three\nlines\n*/ inline int f(int x) { return x; }\n"
      "__kernel void oops(__global int* a) {\n  a[get_group_id(0)] = f(undeclared_name);\n}\n");
  EXPECT_ERROR(device_->make_kernel(source, "oops"), Code::kBuildFailed,
               ::testing::ContainsRegex("(^|[^0-9])5:[0-9]+: "));
}

TEST_F(ProgramCacheTest, ThreadsThatAskTogetherBuildOnce) {
  ProgramCache cache(*device_);
  const uint64_t before = built();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { cache.get(numbered_source(107)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(built() - before, 1u);
}

TEST_F(ProgramCacheTest, PrebuildFillsTheDevicesTable) {
  DeviceOptions options;
  options.memory_limit = 65ull << 20;
  device_ = open_device(options);
  device_->prebuild({numbered_source(108), numbered_source(109), numbered_source(110)});
  EXPECT_EQ(built(), 3u);
  EXPECT_EQ(run(numbered_source(108)), 108);  // a device's first launch may build what finds tasks
  const uint64_t before = built();
  EXPECT_EQ(run(numbered_source(109)), 109);
  EXPECT_EQ(built(), before);
  EXPECT_ERROR(device_->prebuild({numbered_source(111), make_source("__kernel void broken( {")}),
               Code::kBuildFailed, HasSubstr("broken"));
}

TEST_F(ProgramCacheTest, ABuildFailureHasTheLogAndTheKernelsName) {
  const SourcePtr source =
      make_source("__kernel void oops(__global int* a) { a[0] = undeclared_name; }");
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_ERROR(device_->make_kernel(source, "oops"), Code::kBuildFailed,
                 AllOf(HasSubstr("[build] oops"), HasSubstr("undeclared_name")));
  }
  EXPECT_TRUE(files().empty());
}

TEST_F(ProgramCacheTest, LocksInTheUsualFolderWhereThereIsNoOther) {
  const fs::path name = "ballast-" + std::to_string(getuid()) + ".lock";
  const Environment missing("TMPDIR", (folder_ / "missing").string());
  const fs::path working = fs::current_path();
  fs::current_path(folder_);
  { const BuildLock lock(1); }
  EXPECT_FALSE(fs::exists(name));
  EXPECT_TRUE(fs::exists("/tmp" / name));
  fs::current_path(working);
}

// Children run this test; alone it checks that the folder's programs can be read and built.
TEST_F(ProgramCacheTest, DISABLED_ChildFillsTheSharedFolder) {
  setenv("BALLAST_CACHE_DIR", before_.c_str(), 1);
  for (int i = 0; i < 4; ++i) {
    ProgramCache cache(*device_);
    for (int number = 120; number < 124; ++number)
      ASSERT_NE(cache.get(numbered_source(number)), nullptr);
  }
}

void run_children(int count) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  // LeakSanitizer cannot stop the threads of several processes at once; this one is checked.
  const char* sanitizer = getenv("ASAN_OPTIONS");
  setenv("ASAN_OPTIONS",
         ((sanitizer != nullptr ? std::string(sanitizer) + ":" : "") + "detect_leaks=0").c_str(),
         1);
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const char* arguments[] = {self.c_str(), "--gtest_also_run_disabled_tests",
                               "--gtest_filter=*DISABLED_ChildFillsTheSharedFolder", nullptr};
    pid_t child = 0;
    ASSERT_EQ(
        posix_spawn(&child, self.c_str(), nullptr, nullptr, const_cast<char**>(arguments), environ),
        0);
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(ProgramCacheTest, SeveralProcessesShareAFolder) {
  const std::string pocl_folder = folder_.string() + ".pocl";  // PoCL's cache too is cold
  setenv("POCL_CACHE_DIR", pocl_folder.c_str(), 1);
  run_children(5);
  unsetenv("POCL_CACHE_DIR");
  fs::remove_all(pocl_folder);
  EXPECT_EQ(files().size(), 4u) << "no temporary files are left";
  const uint64_t before = built();
  ProgramCache cache(*device_);
  for (int number = 120; number < 124; ++number) cache.get(numbered_source(number));
  EXPECT_EQ(built(), before);
}

TEST_F(ProgramCacheTest, OffNoKernelIsCompiledBeforeItRuns) {
  if (!device_->info().is_pocl()) GTEST_SKIP() << "of PoCL's cache";
  const fs::path pocl_folder = folder_ / "pocl";
  fs::create_directories(pocl_folder);
  setenv("POCL_CACHE_DIR", pocl_folder.c_str(), 1);
  setenv("BALLAST_CACHE_DIR", "off", 1);
  run_children(1);
  unsetenv("POCL_CACHE_DIR");
  size_t programs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(pocl_folder)) {
    if (entry.path().filename() == "program.bc") ++programs;
    EXPECT_NE(entry.path().extension(), ".so") << entry.path();
  }
  EXPECT_EQ(programs, 4u);
}

TEST(DiskCache, StoresAnyBytesAndFindsItsFolder) {
  std::string pattern = ::testing::TempDir() + "ballast-disk-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const DiskCache cache{fs::path(pattern)};
  EXPECT_FALSE(cache.load("absent"));
  for (const std::string& bytes :
       {std::string(), std::string("\0\n\xff", 3), std::string(100000, 'x')}) {
    cache.store("name", bytes);
    EXPECT_EQ(cache.load("name"), bytes);
  }
  cache.remove("name");
  cache.remove("name");
  EXPECT_FALSE(cache.load("name"));
  fs::remove_all(pattern);
}

}  // namespace
}  // namespace ballast::device
