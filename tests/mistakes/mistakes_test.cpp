// Every row of the table gives its exact message, and docs/mistakes.md is the table. After a
// change, BALLAST_WRITE_DOCS=1 writes the document anew.
#include "frontend/backend/plugin.h"
#include "frontend/test_support.h"
#include "tests/mistakes/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <tuple>

namespace ballast::tests {

std::vector<Mistake>& mistakes() {
  static auto* rows = new std::vector<Mistake>;
  return *rows;
}

MistakeRow::MistakeRow(const char* file, int line, int32_t code, const char* title,
                       const char* message, const char* source, void (*make)()) {
  const std::string name = std::filesystem::path(file).filename();
  mistakes().push_back({name, line, code, title, message, source, make});
}

std::ostream& operator<<(std::ostream& out, const Mistake& row) { return out << row.title; }

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

const std::string kAbi = fmt::format("{}.{}", BALLAST_ABI_MAJOR, BALLAST_ABI_MINOR);

// What a device is called and how large its blocks are is its own affair.
std::string devices() {
  std::string lines;
  for (const DeviceInfo& info : list_devices()) {
    lines += fmt::format("\n  {}: {} ({})", info.ordinal, info.name, info.platform);
  }
  return lines;
}

std::string without_sizes(const std::string& message) {
  return std::regex_replace(message, std::regex("largest single block [0-9]+"),
                            "largest single block {block}");
}

std::string expected_message(const Mistake& row) {
  std::string text = replaced(row.message, "{line}", row.file + ":" + std::to_string(row.line));
  text = replaced(text, "{plugin}", find_plugin());
  text = replaced(text, "{devices}", devices());
  text = replaced(text, "{abi}", kAbi);
  return replaced(text, "{folder}", testing::TempDir());
}

std::vector<Mistake> sorted_rows() {
  std::vector<Mistake> rows = mistakes();
  std::sort(rows.begin(), rows.end(), [](const Mistake& a, const Mistake& b) {
    return std::tie(a.file, a.line) < std::tie(b.file, b.line);
  });
  return rows;
}

class MistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, GivesItsMessage) {
  const Mistake& row = GetParam();
  EXPECT_EQ(without_sizes(message_of(row.code, row.make)), expected_message(row)) << row.title;
  EXPECT_EQ(Tensor::full({2}, 3).to_host<float>()[1], 3) << "afterwards the device still works";
}

std::string test_name(const testing::TestParamInfo<Mistake>& info) {
  std::string name = info.param.file.substr(0, info.param.file.find('.')) + "_";
  bool starts_word = true;
  for (char c : info.param.title) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      name += starts_word ? static_cast<char>(std::toupper(c)) : c;
    }
    starts_word = !std::isalnum(static_cast<unsigned char>(c));
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, MistakeTest, testing::ValuesIn(sorted_rows()), test_name);

// ---- the document

constexpr char kDocument[] = BALLAST_SOURCE_DIR "/docs/mistakes.md";

std::string fenced(const std::string& language, const std::string& text) {
  return "```" + language + "\n" + text + "\n```\n";
}

// Statements, a line each.
std::string statements(const std::string& source) {
  std::string lines;
  int depth = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    lines += source[i];
    if (source[i] == '{' || source[i] == '(') ++depth;
    if (source[i] == '}' || source[i] == ')') --depth;
    if (source[i] == ';' && depth == 0 && i + 1 < source.size()) {
      lines += '\n';
      ++i;  // the blank
    }
  }
  return lines;
}

std::string document() {
  std::string text =
      "# Mistakes, and what is said of them\n\n"
      "Made of the rows in tests/mistakes/, and checked by them: each is code and the whole "
      "message of\nthe `ballast::Error` it throws. `train.cpp:12` stands for your file and "
      "line.\n";
  std::string file;
  for (const Mistake& row : sorted_rows()) {
    if (row.file != file) {
      file = row.file;
      std::string heading = file.substr(0, file.find('.'));
      heading[0] = static_cast<char>(std::toupper(heading[0]));
      text += "\n## " + replaced(heading, "_", " ") + "\n";
    }
    text += "\n**" + row.title + "**\n\n" + fenced("cpp", statements(row.source));
    std::string quoted = replaced(row.message, "{line}", "train.cpp:12");
    quoted = replaced(replaced(quoted, "{plugin}", "libballast.so"), "{folder}", "/tmp/");
    quoted = replaced(quoted, "{abi}", kAbi);
    quoted = replaced(replaced(quoted, "{block}", "8589934592"), "{devices}", "\n  0: ...");
    text += fenced("text", quoted);
  }
  return text;
}

TEST(MistakesDocument, IsTheTable) {
  if (std::getenv("BALLAST_WRITE_DOCS")) std::ofstream(kDocument) << document();
  std::stringstream written;
  written << std::ifstream(kDocument).rdbuf();
  EXPECT_EQ(written.str(), document()) << "BALLAST_WRITE_DOCS=1 writes it anew";
}

TEST(MistakesDocument, HasFortyRowsOrMore) { EXPECT_GE(mistakes().size(), 40u); }

}  // namespace
}  // namespace ballast::tests
