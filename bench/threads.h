// Rounds of work done by several threads at once, timed from the first start to the last end.
#pragma once

#include <functional>

namespace ballast::bench {

// Seconds of the fastest of `rounds` rounds, in each of which every thread calls work(thread) once.
double fastest_round(int threads, int rounds, const std::function<void(int)>& work);

}  // namespace ballast::bench
