// Writes the losses of a run as an SVG picture: each step's, and their running mean, on a log axis.
#pragma once

#include <string>
#include <vector>

namespace mnist {

// Throws std::runtime_error naming the file if it cannot be written.
void write_loss_plot(const std::string& path, const std::string& title,
                     const std::vector<float>& losses);

}  // namespace mnist
