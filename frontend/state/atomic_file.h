// AtomicFile: writes a file so that its name always stands for a whole one, the old or the new,
// whenever the process or the machine stops: a temporary file beside it, fsync, rename, and fsync
// of the folder. A temporary file is locked while it is written; what a process that was killed
// left is not, and goes with the next commit() of the same name. Errors name the file and what the
// system said. One thread.
#pragma once

#include <cstddef>
#include <string>

namespace ballast {

class AtomicFile {
 public:
  // `call` begins the messages: "[save_checkpoint] ...".
  AtomicFile(std::string path, std::string call);
  ~AtomicFile();  // without commit() nothing has happened
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  [[noreturn]] void refuse(const char* what) const;  // with errno's text
  bool create();                                     // whether it is ours alone
  void remove_leftovers() const;

  std::string path_, call_, temporary_;
  int descriptor_ = -1;
};

}  // namespace ballast
