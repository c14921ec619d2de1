#include "plugin_api/log_sink.h"

#include "graph/print_sink.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

namespace ballast::plugin_api {

namespace {

class HostSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit HostSink(const ballast_host& host) : host_(host) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    host_.log(host_.user, level_of(message.level),
              {message.payload.data(), message.payload.size()});
  }
  void flush_() override {}

 private:
  static int32_t level_of(spdlog::level::level_enum level) {
    if (level >= spdlog::level::err) return 1;
    if (level == spdlog::level::warn) return 2;
    return level == spdlog::level::info ? 3 : 4;
  }

  ballast_host host_;
};

}  // namespace

void set_log_callback(const ballast_host& host) {
  spdlog::sink_ptr sink;
  if (host.log != nullptr) {
    sink = std::make_shared<HostSink>(host);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>("ballast", std::move(sink));
  // A host is told everything, and chooses by the level.
  if (host.log != nullptr) logger->set_level(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
}

void set_print_callback(const ballast_host& host) {
  graph::PrintSink sink;
  if (host.print != nullptr) {
    sink = [host](const std::string& text) { host.print(host.user, {text.data(), text.size()}); };
  }
  graph::set_print_sink(std::move(sink));
}

}  // namespace ballast::plugin_api
