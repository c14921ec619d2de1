#include "bench/rival.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <stdexcept>

namespace ballast::bench {

using Json = nlohmann::json;

Rival::Rival(const std::vector<std::string>& command) {
  int requests[2], answers[2];
  // Closed in the rivals started later: only then does this one's input end with the driver.
  if (pipe2(requests, O_CLOEXEC) != 0 || pipe2(answers, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  pid_ = fork();
  if (pid_ == 0) {
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(requests[0]);
  close(answers[1]);
  to_ = fdopen(requests[1], "w");
  from_ = fdopen(answers[0], "r");
  const Json greeting = receive();
  name_ = greeting.at("rival");
  version_ = greeting.at("version");
}

Rival::~Rival() {
  if (to_) std::fclose(to_);
  if (from_) std::fclose(from_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

Json Rival::receive() {
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, from_);
  const std::string text(line ? line : "", length > 0 ? length : 0);
  std::free(line);
  if (length <= 0) {
    has_ended_ = true;
    throw std::runtime_error("the rival's process ended");
  }
  const Json answer = Json::parse(text);
  if (answer.contains("error")) throw std::runtime_error(answer["error"].get<std::string>());
  return answer;
}

Json Rival::ask(const Json& request) {
  std::fprintf(to_, "%s\n", request.dump().c_str());
  std::fflush(to_);
  return receive();
}

std::vector<std::string> Rival::prepare(const Case& c) {
  if (has_ended_) return {};
  try {
    return ask({{"prepare", c}}).at("variants");
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "  {}: {}: {}\n", name_, c.name, error.what());
    return {};
  }
}

double Rival::cpu_seconds() const { return bench::cpu_seconds(pid_); }

double Rival::run(size_t variant, int count) {
  return ask({{"run", variant}, {"count", count}}).at("seconds");
}

std::vector<Checksum> Rival::check(size_t variant) {
  const Json answer = ask({{"check", variant}});
  std::vector<Checksum> sums;
  for (const Json& pair : answer.at("checksums")) {
    sums.push_back({pair.at(0), pair.at(1)});
  }
  return sums;
}

double cpu_seconds(int pid) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return double(used.tv_sec) + 1e-9 * double(used.tv_nsec);
}

namespace {

namespace fs = std::filesystem;

// The same number of threads each, by every name a library may read it from.
void set_environment(int threads) {
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BALLAST_BENCH_THREADS"}) {
    setenv(name, count.c_str(), 1);
  }
  // A machine may be set up for reproducible rather than fast kernels.
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "ONEDNN_MAX_CPU_ISA"}) {
    unsetenv(name);
  }
  setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
}

// A build tree may have been brought to another machine, with the sources or without.
fs::path folder_of_scripts(const fs::path& folder) {
  if (const char* given = std::getenv("BALLAST_BENCH_RIVALS")) return given;
  const fs::path sources = BALLAST_SOURCE_DIR "/bench/rivals";
  for (const fs::path& place : {sources, folder / "../../../bench/rivals"}) {
    if (fs::exists(place / "worker.py")) return place;
  }
  return folder;
}

std::vector<std::vector<std::string>> commands(const std::string& folder, bool is_gpu) {
  std::vector<std::vector<std::string>> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("rival_", 0) == 0 && (!is_gpu || name == "rival_clblast") &&
        entry.is_regular_file() && access(entry.path().c_str(), X_OK) == 0) {
      found.push_back({entry.path()});
    }
  }
  const std::string python = BALLAST_SOURCE_DIR "/.venv/bench/bin/python";
  const fs::path scripts = folder_of_scripts(folder);
  const bool has_python = access(python.c_str(), X_OK) == 0;
  if (has_python && !is_gpu) {
    for (const char* script : {"numpy_rival.py", "onnxruntime_rival.py"}) {
      found.push_back({python, scripts / script});
    }
  }
  const char* given = std::getenv("BALLAST_BENCH_PYTHON");
  if (given || (has_python && is_gpu)) {
    for (const char* script : {"jax_rival.py", "torch_rival.py"}) {
      found.push_back({given ? given : python, scripts / script});
    }
  }
  return found;
}

}  // namespace

std::vector<std::unique_ptr<Rival>> start_rivals(const std::string& folder, int threads,
                                                 bool is_gpu) {
  signal(SIGPIPE, SIG_IGN);  // a rival that died answers with an end of file instead
  set_environment(threads);
  std::vector<std::unique_ptr<Rival>> rivals;
  for (const auto& command : commands(folder, is_gpu)) {
    try {
      rivals.push_back(std::make_unique<Rival>(command));
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} did not start: {}\n", fs::path(command.back()).filename().string(),
                 error.what());
    }
  }
  return rivals;
}

}  // namespace ballast::bench
