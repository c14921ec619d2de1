#include "frontend/data/csv.h"

#include <csv.h>
#include <zlib.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <memory>

namespace ballast::data {

namespace {

// What libcsv calls back: fields are appended as bytes of the wanted type.
class Table {
 public:
  Table(const std::string& path, const CsvOptions& options) : path_(path), options_(options) {
    if (!is_float() && options.dtype != DType::kI32 && options.dtype != DType::kI64) {
      fail(BALLAST_INVALID_ARGUMENT, "[load_csv] {} cannot be read, expected f32, f64, i32 or i64",
           name_of(options.dtype));
    }
  }

  [[noreturn]] void refuse(const std::string& why) const {
    fail(BALLAST_INVALID_ARGUMENT, "[load_csv] {}, line {}: {}", path_, line_, why);
  }

  void add_field(const std::string& text) {
    ++field_;
    if (options_.has_header && line_ == 1) {
      names_.push_back(text);
      return;
    }
    switch (options_.dtype) {
      case DType::kF32:
        return append<float>(text);
      case DType::kF64:
        return append<double>(text);
      case DType::kI32:
        return append<int32_t>(text);
      default:
        return append<int64_t>(text);
    }
  }

  void end_row() {
    if (columns_ == 0) columns_ = field_;
    if (field_ != columns_) {
      refuse(fmt::format("{} fields, the first row has {}", field_, columns_));
    }
    if (!options_.has_header || line_ > 1) ++rows_;
    field_ = 0;
    ++line_;
  }

  CsvTable take() {
    const TensorType type{options_.dtype, {rows_, columns_}};
    return {std::move(names_), Tensor::on_host_bytes(std::move(bytes_), type)};
  }

 private:
  bool is_float() const { return options_.dtype == DType::kF32 || options_.dtype == DType::kF64; }

  template <class T>
  void append(const std::string& text) {
    T value{};
    // Spaces around a number are none of from_chars' business.
    const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
    const char* begin = text.data() + (first == std::string::npos ? text.size() : first);
    const char* end = text.data() + (last == std::string::npos ? text.size() : last + 1);
    if (begin != end && *begin == '+') ++begin;
    const auto [stop, failure] = std::from_chars(begin, end, value);
    if (failure != std::errc() || stop != end) {
      refuse(fmt::format("column {} is \"{:.40}\", expected a number of {}", field_, text,
                         name_of(options_.dtype)));
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
  }

  std::string path_;
  CsvOptions options_;
  std::vector<std::string> names_;
  std::vector<uint8_t> bytes_;
  int64_t line_ = 1, field_ = 0, columns_ = 0, rows_ = 0;
};

// An exception must not cross libcsv's frames: it waits here.
struct Parsing {
  Table& table;
  std::exception_ptr failure;

  template <class Body>
  void guard(Body&& body) {
    if (failure) return;
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }
};

void on_field(void* text, size_t size, void* user) {
  auto* parsing = static_cast<Parsing*>(user);
  parsing->guard(
      [&] { parsing->table.add_field(std::string(static_cast<const char*>(text), size)); });
}

void on_row(int, void* user) {
  auto* parsing = static_cast<Parsing*>(user);
  parsing->guard([&] { parsing->table.end_row(); });
}

}  // namespace

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail(BALLAST_NOT_FOUND, "[load_csv] cannot open {}", path);
  Table table(path, options);
  Parsing parsing{table, nullptr};
  csv_parser parser;
  csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI);
  const std::unique_ptr<csv_parser, void (*)(csv_parser*)> owned(&parser, csv_free);
  csv_set_delim(&parser, static_cast<unsigned char>(options.delimiter));
  std::vector<char> piece(1 << 16);
  for (;;) {
    const int got = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    int failure = Z_OK;
    gzerror(file.get(), &failure);
    if (got < 0 || failure != Z_OK) table.refuse("the compressed data are damaged or end early");
    if (got == 0) break;
    const auto size = static_cast<size_t>(got);
    const bool is_parsed =
        csv_parse(&parser, piece.data(), size, on_field, on_row, &parsing) == size;
    if (parsing.failure) std::rethrow_exception(parsing.failure);
    if (!is_parsed) table.refuse(csv_strerror(csv_error(&parser)));
  }
  const bool is_finished = csv_fini(&parser, on_field, on_row, &parsing) == 0;
  if (parsing.failure) std::rethrow_exception(parsing.failure);
  if (!is_finished) table.refuse(csv_strerror(csv_error(&parser)));
  return table.take();
}

}  // namespace ballast::data
