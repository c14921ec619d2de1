#include "bench/rivals/worker.h"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <iostream>

namespace ballast::bench {
namespace {

using Json = nlohmann::json;

class Server {
 public:
  explicit Server(const Prepare& prepare) : prepare_(prepare) {}

  Json answer(const Json& request) {
    if (request.contains("prepare")) {
      variants_.clear();  // the memory of the last case first
      variants_ = prepare_(request["prepare"].get<Case>());
      Json names = Json::array();
      for (const Variant& variant : variants_) names.push_back(variant.name);
      return {{"variants", names}};
    }
    if (request.contains("run")) {
      using Clock = std::chrono::steady_clock;
      const Variant& variant = variants_.at(request["run"]);
      const Clock::time_point start = Clock::now();
      variant.run(request["count"]);
      return {{"seconds", std::chrono::duration<double>(Clock::now() - start).count()}};
    }
    Json sums = Json::array();
    for (const std::vector<float>& result : variants_.at(request.at("check")).results()) {
      const Checksum sum = checksum_of(result);
      sums.push_back({sum.magnitude, sum.sign});
    }
    return {{"checksums", sums}};
  }

 private:
  const Prepare& prepare_;
  std::vector<Variant> variants_;
};

}  // namespace

int serve(const std::string& rival, const std::string& version, const Prepare& prepare) {
  // What libraries print goes to standard error: standard output carries the answers.
  std::FILE* answers = fdopen(dup(STDOUT_FILENO), "w");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto reply = [&](const Json& json) {
    std::fprintf(answers, "%s\n", json.dump().c_str());
    std::fflush(answers);
  };
  reply({{"rival", rival}, {"version", version}});
  Server server(prepare);
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      reply(server.answer(Json::parse(line)));
    } catch (const std::exception& error) {
      reply({{"error", error.what()}});
    }
  }
  return 0;
}

}  // namespace ballast::bench
