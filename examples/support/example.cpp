#include "examples/support/example.h"

#include "frontend/modes/context.h"
#include "frontend/tensor/error.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <chrono>
#include <fstream>

namespace examples {

using namespace ballast;

void Example::record(std::string name, std::vector<float> values) {
  records_.emplace_back(std::move(name), std::move(values));
}

void Example::record(std::string name, const Tensor& values) {
  record(std::move(name), values.to_host<float>());
}

void Example::add_options(CLI::App& app) {
  static const std::map<std::string, JitLevel> kLevels = {{"O0", JitLevel::kO0},
                                                          {"O1", JitLevel::kO1}};
  app.add_option("--steps", steps_, "steps of the comparison")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--table,!--no-table", has_table_, "time eager, jit and sink (default)");
  app.add_option("--losses", losses_file_, "write the values of every step to this file, as JSON");
  app.add_option_function<JitLevel>(
         "--level",
         [](const JitLevel& level) {
           ContextOptions options;
           options.jit_level = level;
           set_context(options);
         },
         "optimization of jit and sink: O0 or O1 (default)")
      ->transform(CLI::CheckedTransformer(kLevels));
}

void Example::write_losses() const {
  if (losses_file_.empty()) return;
  std::vector<std::string> rows;
  for (const auto& [name, values] : records_) {
    // Nine digits tell any two floats apart.
    rows.push_back(fmt::format("\"{}\": [{:.9g}]", name, fmt::join(values, ", ")));
  }
  std::ofstream file(losses_file_);
  file << fmt::format("{{\n{}\n}}\n", fmt::join(rows, ",\n"));
  if (!file.flush()) fail(BALLAST_INVALID_ARGUMENT, "[--losses] cannot write {}", losses_file_);
}

int run_example(int argc, char** argv, const std::string& about,
                const std::function<void(Example&)>& body,
                const std::function<void(CLI::App&)>& add_options) {
  CLI::App app(about);
  Example example;
  example.add_options(app);
  if (add_options) add_options(app);
  CLI11_PARSE(app, argc, argv);
  try {
    body(example);
    example.write_losses();
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

double seconds_of(const std::function<void()>& work) {
  synchronize();
  const auto start = std::chrono::steady_clock::now();
  work();
  synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace examples
