// Launches that the thread which submits them runs by itself. On an idle device PoCL has a worker
// on a launch 10 to 20 us later, and tells whoever waits as late again; what touches some kilobytes
// is done by then. So code that waits for each of its small steps does not wait at all.
#pragma once

#include "device/tasks.h"

#include <cstdint>

namespace ballast::device {

// Whether a launch over so many bytes (Launch::bytes) is for the calling thread, if the device is
// idle: it takes no longer than an enqueue, and the thread has the stack for it.
bool is_for_caller(uint64_t bytes);
// `launch`: its words. In the floating-point environment that a new thread has.
void run_on_caller(Task task, const TaskWords& launch);

}  // namespace ballast::device
