#include "device/launch.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <utility>

namespace ballast::device {

SourcePtr make_source(std::string text, std::string options, bool packs_scalars) {
  // The lengths keep ("ab", "c") and ("a", "bc") apart.
  const std::string key = fmt::format("{}:{}:{}{}{}", text.size(), options.size(), text, options,
                                      packs_scalars ? ":packed" : "");
  const XXH128_hash_t hash = XXH3_128bits(key.data(), key.size());
  std::string id = fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  return std::make_shared<const Source>(
      Source{std::move(text), std::move(options), std::move(id), packs_scalars});
}

}  // namespace ballast::device
