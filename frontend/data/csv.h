// Reads tables of numbers from CSV files (RFC 4180; packed by gzip or not) into host tensors. What
// is no number or has another length than the first row is an Error naming file, line and column.
#pragma once

#include "frontend/tensor/tensor.h"

#include <string>
#include <vector>

namespace ballast::data {

struct CsvOptions {
  bool has_header = false;
  char delimiter = ',';
  DType dtype = DType::kF32;  // f32, f64, i32 or i64
};

struct CsvTable {
  std::vector<std::string> names;  // of the columns, from the header
  Tensor values;                   // [rows, columns]
};

CsvTable load_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace ballast::data
