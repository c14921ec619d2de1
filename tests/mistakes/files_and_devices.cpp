#include "frontend/backend/plugin.h"
#include "tests/mistakes/table.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ballast::tests {
namespace {

std::string in_folder(const std::string& name) { return testing::TempDir() + name; }

// A checkpoint of a Dense(3, 4).
std::string saved() {
  const std::string path = in_folder("net.safetensors");
  save_checkpoint(path, nn::Dense(3, 4));
  return path;
}

std::string saved_in_part() {
  const std::string path = saved(), part = in_folder("part.safetensors");
  std::filesystem::copy_file(path, part, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(part, std::filesystem::file_size(path) - 8);
  return part;
}

// ---- the plugin and its device

MISTAKE(NOT_FOUND, "a plugin that is not there",
        "[plugin] cannot load /nowhere/libballast.so: /nowhere/libballast.so: cannot open shared "
        "object file: No such file or directory\n  hint: BALLAST_PLUGIN or set_plugin_path() names "
        "the plugin's file",
        open_plugin("/nowhere/libballast.so"););

MISTAKE(NOT_FOUND, "a library that is no plugin",
        "[plugin] libm.so.6 is no Ballast plugin: it has no symbol ballast_get_api",
        open_plugin("libm.so.6"););

MISTAKE(ABI_MISMATCH, "a plugin of another age",
        "[plugin] {plugin} does not speak an ABI version from 9.0 to 9.5: this plugin speaks ABI "
        "1.0 to {abi}, the caller accepts 9.0 to 9.5",
        open_plugin(find_plugin(), BALLAST_ABI_VERSION(9, 0), BALLAST_ABI_VERSION(9, 5)););

MISTAKE(FAILED_PRECONDITION, "a plugin chosen too late",
        "[plugin] other.so comes too late: a plugin is already loaded\n  hint: call it before the "
        "first tensor is made",
        device();
        set_plugin_path("other.so"););

MISTAKE(NOT_FOUND, "a device that is not there",
        "[device_open] no device matches \"no such device\"; there is:{devices}\n  hint: "
        "BALLAST_DEVICE and set_device() take a number or a part of a name",
        set_device("no such device"););

MISTAKE(
    OUT_OF_DEVICE_MEMORY, "a tensor that does not fit the device",
    "[allocate] 4194304 bytes do not fit: 0 in use, 0 reserved, limit 1048576, largest single "
    "block {block}\n  hint: a smaller batch, checkpoint() around layers, or trim_memory(), which "
    "returns what the pool keeps",
    struct Limited {
      Limited() { set_device("", DeviceOptions{1 << 20}); }
      ~Limited() { set_device(""); }
    } limited;
    Tensor::zeros({1 << 20}););

// ---- checkpoints

MISTAKE(NOT_FOUND, "a checkpoint that is not there",
        "[load_checkpoint] {folder}none.safetensors: there is no such file",
        load_checkpoint(in_folder("none.safetensors")););

MISTAKE(INVALID_ARGUMENT, "a checkpoint that was cut off",
        "[load_checkpoint] {folder}part.safetensors: tensor \"weight\": data_offsets [16, 64] end "
        "beyond the 56 bytes of data",
        load_checkpoint(saved_in_part()););

MISTAKE(INVALID_ARGUMENT, "a checkpoint of another network",
        "[load_into] {folder}net.safetensors does not fit: 0 loaded; mismatched: bias is f32[5], "
        "the file has f32[4], weight is f32[5, 3], the file has f32[4, 3]\n  hint: "
        "LoadMode::kPartial loads what fits",
        load_into(nn::Dense(3, 5), saved()););

MISTAKE(INVALID_ARGUMENT, "a checkpoint with other names",
        "[load_into] {folder}net.safetensors does not fit: 0 loaded; missing: 0.bias, 0.weight; "
        "unexpected: bias, weight\n  hint: LoadMode::kPartial loads what fits",
        load_into(nn::SequentialCell(nn::Dense(3, 4)), saved()););

MISTAKE(INVALID_ARGUMENT, "two states of one name",
        "[StateDict] the name \"weight\" is given twice\n  hint: a prefix tells them apart: "
        "state.add(\"other.\", cell)",
        StateDict(nn::Dense(3, 4)).add("", nn::Dense(3, 4)););

MISTAKE(FAILED_PRECONDITION, "a checkpoint written inside of jit",
        "[save_checkpoint] called while a function is traced: there are no values (at "
        "{line})\n  hint: call it outside of jit, grad and the like",
        nn::Dense net(3, 4);
        jit([&](Tensor x) {
          save_checkpoint(in_folder("never"), net);
          return x;
        })(Tensor::scalar(1)););

}  // namespace
}  // namespace ballast::tests
