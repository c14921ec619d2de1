// Flag: a switch on the host that decides what is traced, as a cell's training flag does. A trace
// that reads one is right for that value only, so jit remembers what was read (FlagsRead) and
// traces anew when it is different. Copies share the switch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ballast {

// The flags that were read on this thread while a Scope was open, with their values.
class FlagsRead {
 public:
  // Opens recording into `flags`; what an enclosing scope records pauses.
  class Scope {
   public:
    explicit Scope(FlagsRead& flags);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    FlagsRead* previous_;
  };

  // What records on this thread, or null.
  static FlagsRead* current();
  void add(const std::shared_ptr<const bool>& flag, std::string name);

  // Whether all still have the value that was read; those that are gone count as such.
  bool hold() const;
  // What changed: "Dropout's training flag is on, was off"; empty if all hold.
  std::string changes() const;

 private:
  struct Read {
    std::weak_ptr<const bool> flag;
    bool value;
    std::string name;
  };
  std::vector<Read> reads_;
  mutable uint64_t checked_at_ = 0;  // they held when this many flags had been set
};

class Flag {
 public:
  explicit Flag(bool is_on = false) : is_on_(std::make_shared<bool>(is_on)) {}

  // name() is what a reason for tracing again calls it: "Dropout's training flag".
  template <class Name>
  bool read(const Name& name) const {
    if (FlagsRead* flags = FlagsRead::current()) flags->add(is_on_, name());
    return *is_on_;
  }
  void set(bool is_on) const;

 private:
  std::shared_ptr<bool> is_on_;
};

}  // namespace ballast
