// The text side of stitching: OpenCL C kernels become plain functions whose ids are parameters.
//
// Parses only the top level (preprocessor lines, declarations, functions, kernels) and a kernel's
// parameter list; bodies are copied with the id queries and `restrict` replaced. Whatever it does
// not understand, it refuses with a reason (TextRefusal, which Stitched::make turns into its
// `why`). No OpenCL calls.
//
// Launches share memory that the planner reuses for other types. A compiler that sees them in one
// function may assume that a float* and an int* never meet (PoCL's and Intel's do, and a mem_fence
// does not stop PoCL's), so pointers are rewritten to types that may alias.
#pragma once

#include "device/kernel_parameter.h"
#include "device/launch.h"
#include "device/program_text.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::device {

// One kernel as a function: `text` defines `name`, which takes the ids (see kIdParameters) and then
// the kernel's own parameters.
struct KernelFunction {
  std::string name;
  std::vector<KernelParameter> parameters;
  bool needs_one_item_groups = false;  // it has barriers or uses local memory
};

struct Rewritten;  // stitch_source.cpp

// Collects the functions of many sources in one translation unit.
class StitchUnit {
 public:
  // Adds everything in the source once; later calls with an equal id do nothing.
  void add(const Source& source);
  const KernelFunction& kernel(const Source& source, const std::string& entry) const;
  std::string text() const;

 private:
  void add_text(const Rewritten& part);
  void add_declaration(const std::string& item);
  void add_kernel(const std::string& item, const std::string& prefix,
                  std::map<std::string, KernelFunction>* kernels);

  std::string text_;
  std::set<std::string> aliased_;  // element types of pointers
  std::map<std::string, std::map<std::string, KernelFunction>> sources_;  // id, entry
  std::map<std::string, std::string> declarations_;                       // name, text
};

// What the names of types that may alias begin with; a line of text() per type defines them, first.
constexpr std::string_view kAliasingPrefix = "_ba_";

// Group, local and size of a work-item, in the order in which calls pass them.
extern const char* const kIdParameters;

}  // namespace ballast::device
