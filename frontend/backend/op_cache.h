// Ops prepared for a device, one per signature: name, types of the inputs, attributes. None is
// dropped while the device is open. Thread-safe.
#pragma once

#include "frontend/tensor/attrs.h"

#include <ballast/ballast.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace ballast {

class Tensor;

// Immutable once made.
struct PreparedOp {
  std::string name;
  Attrs attrs;
  ballast_op* op = nullptr;
  uint64_t workspace_size = 0;  // bytes
  std::vector<SharedType> outputs;

  PreparedOp() = default;
  PreparedOp(const PreparedOp&) = delete;
  PreparedOp& operator=(const PreparedOp&) = delete;
  ~PreparedOp();
};

class OpCache {
 public:
  // Prepared now if the signature is new.
  const PreparedOp& get(ballast_device* device, const std::string& name,
                        const std::vector<Tensor>& inputs, const Attrs& attrs);
  void clear();

 private:
  // A signature met before, known by its very types: a result's type is shared by all results of
  // that op, so a program that repeats itself is found here without a key being written.
  struct Recent {
    const PreparedOp* op = nullptr;
    std::vector<SharedType> types;
  };
  static size_t slot_of(const std::string& name, const std::vector<Tensor>& inputs);
  const PreparedOp& find(ballast_device* device, const std::string& name,
                         const std::vector<Tensor>& inputs, const Attrs& attrs);

  static constexpr size_t kRecent = 256;
  std::mutex mutex_;
  std::array<Recent, kRecent> recent_;
  std::unordered_map<std::string, std::unique_ptr<const PreparedOp>> ops_;
};

}  // namespace ballast
