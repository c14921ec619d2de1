#include "bench/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace ballast::bench {
namespace {

constexpr const char* kFormat =
    "{:<34} {:<26.26} {:>8} {:>8} {:>8} {:>6} {:<6} {:>5} {:>5}  {:<22} {:>8} {:>6} {:>6}\n";

std::string short_number(double value) {
  if (std::isnan(value) || value == 0) return "-";
  if (value >= 100) return fmt::format("{:.0f}", value);
  if (value >= 10) return fmt::format("{:.1f}", value);
  if (value >= 1) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace

std::string heading() {
  return fmt::format(kFormat, "row", "inputs", "ours ms", "sunk ms", "GFLOP/s", "GB/s", "limit",
                     "%", "sunk", "best rival", "its ms", "ratio", "sunk") +
         std::string(164, '-') + "\n";
}

std::string line_of(const Measurement& m) {
  const std::string& name = m.work_case.name;
  if (!m.missing.empty()) {
    return fmt::format("{:<34} {:<30.30} missing: {}\n", name, m.work_case.shapes(), m.missing);
  }
  const double ms = m.milliseconds();
  const double bytes = static_cast<double>(m.work.read + m.work.written);
  const Samples* best = m.best();
  const auto ratio = [&](const Samples& samples) {
    return best && !samples.seconds.empty() ? fmt::format("{:.2f}", m.ratio(*best, samples)) : "-";
  };
  std::string line = fmt::format(
      kFormat, name, m.work_case.shapes(), short_number(ms),
      short_number(1e3 * median(m.sunk.seconds)), short_number(m.work.flops / ms / 1e6),
      short_number(bytes / ms / 1e6), m.limit, short_number(m.percent(m.ours)),
      short_number(m.percent(m.sunk)), best ? best->name + (best->agrees ? "" : " (differs)") : "-",
      short_number(best ? 1e3 * median(best->seconds) : NAN), ratio(m.ours), ratio(m.sunk));
  for (const Samples& rival : m.rivals) {
    if (rival.name != "unfused") continue;
    line.pop_back();
    line += fmt::format("  {:.2f} x unfused{}\n", m.ratio(rival, m.ours),
                        rival.agrees ? "" : " (differs)");
  }
  return line;
}

std::string preamble(const nlohmann::json& context) {
  const bool is_gpu = context.contains("compute_units");
  std::string text = fmt::format(
      "{}; {} {}; FMA peak {:.0f} GFLOP/s; copy", context.at("device").get<std::string>(),
      context.at(is_gpu ? "compute_units" : "threads").get<int>(),
      is_gpu ? "compute units" : "threads", context.at("fma_peak_gflops").get<double>());
  for (const auto& level : context.at("copy_gb_per_s")) {
    text += fmt::format(" {} {:.0f}", level.at("level").get<std::string>(),
                        level.at("gb_per_s").get<double>());
  }
  text += " GB/s\nrivals:";
  for (const auto& rival : context.at("rivals")) {
    text += fmt::format(" {} {};", rival.at("name").get<std::string>(),
                        rival.at("version").get<std::string>());
  }
  if (context.at("rivals").empty()) text += " none is installed (tools/setup.sh bench)";
  text += "\nours: each run launched on its own; sunk: as steps of a sink";
  text += is_gpu ? ";\nlimit: what bounds the row (FMA, memory, or that a kernel is launched)"
                 : ", in one kernel;\n"
                   "limit: what bounds the row (FMA, or the level of memory its operands fit in)";
  return text +
         ", and both in percent of it;\n"
         "ratio: the best rival's time over ours, then over sunk, median of the rounds: above 1 "
         "ours "
         "is faster; (differs): another result\n\n";
}

nlohmann::json context_of(const std::vector<std::unique_ptr<Rival>>& rivals, Limits& limits,
                          int threads) {
  nlohmann::json context;
  const device::DeviceInfo& info = device()->info();
  context["device"] = info.name + ", " + info.platform + " " + info.driver;
  if (limits.are_of_host()) {
    context["threads"] = threads;
  } else {
    context["compute_units"] = info.compute_units;
  }
  context["fma_peak_gflops"] = limits.fma_peak_gflops();
  context["copy_gb_per_s"] = nlohmann::json::array();
  for (const CopySpeed& speed : limits.copies()) {
    context["copy_gb_per_s"].push_back({{"level", speed.level}, {"gb_per_s", speed.gb_per_s}});
  }
  context["rivals"] = nlohmann::json::array();
  for (const auto& rival : rivals) {
    context["rivals"].push_back({{"name", rival->name()}, {"version", rival->version()}});
  }
  return context;
}

void write_json(const std::string& path, const nlohmann::json& context,
                const std::vector<Measurement>& rows) {
  nlohmann::json json = {{"context", context}, {"rows", nlohmann::json::array()}};
  for (const Measurement& m : rows) {
    nlohmann::json row = m.work_case;
    row["shapes"] = m.work_case.shapes();
    if (!m.missing.empty()) {
      row["missing"] = m.missing;
    } else {
      row.update({{"flops", m.work.flops},
                  {"bytes_read", m.work.read},
                  {"bytes_written", m.work.written},
                  {"limit", m.limit},
                  {"limit_seconds", m.limit_seconds},
                  {"seconds", m.ours.seconds},
                  {"percent", m.percent(m.ours)},
                  {"sunk_seconds", m.sunk.seconds},
                  {"sunk_percent", m.percent(m.sunk)}});
      row["rivals"] = nlohmann::json::array();
      for (const Samples& rival : m.rivals) {
        row["rivals"].push_back({{"name", rival.name},
                                 {"seconds", rival.seconds},
                                 {"agrees", rival.agrees},
                                 {"ratio", m.ratio(rival, m.ours)},
                                 {"sunk_ratio", m.ratio(rival, m.sunk)}});
      }
    }
    json["rows"].push_back(row);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream(path) << json.dump(1) << "\n";
}

}  // namespace ballast::bench
