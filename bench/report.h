// The table, the JSON with every sample, and nothing else.
#pragma once

#include "bench/measure.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace ballast::bench {

// One line of the table, and its two lines of heading.
std::string heading();
std::string line_of(const Measurement& m);
// What holds of all rows: the device, the machine's limits, the rivals' versions.
std::string preamble(const nlohmann::json& context);

nlohmann::json context_of(const std::vector<std::unique_ptr<Rival>>& rivals, Limits& limits,
                          int threads);
void write_json(const std::string& path, const nlohmann::json& context,
                const std::vector<Measurement>& rows);

}  // namespace ballast::bench
