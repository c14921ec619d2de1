// Times a case against its rivals in rounds: in every round the limit of the machine, ours and each
// rival follow one another, so that what else the machine does weighs on all of them. Medians of
// the ratios within rounds are what is reported.
#pragma once

#include "bench/case.h"
#include "bench/limits.h"
#include "bench/ours.h"
#include "bench/rival.h"
#include "bench/work.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ballast::bench {

struct Samples {
  std::string name;             // "ours", "sunk", "unfused", or a rival's variant
  std::vector<double> seconds;  // a round each
  bool agrees = true;           // with our results
};

struct Measurement {
  Case work_case;
  std::string missing;  // why nothing was measured; empty if all is well
  Work work;
  std::string limit;  // "FMA", "L2", "launch", ...
  std::vector<double> limit_seconds;
  Samples ours;  // launched one by one
  Samples sunk;  // no seconds where it cannot be
  std::vector<Samples> rivals;

  double milliseconds() const;  // median of ours
  // Ours, or sunk, in percent of the limit: median over the rounds.
  double percent(const Samples& samples) const;
  // The rival that stands best against ours; nullptr without one.
  const Samples* best() const;
  // The rival's time over that of ours, or sunk, median over the rounds: above 1 ours is faster.
  double ratio(const Samples& rival, const Samples& samples) const;
};

double median(std::vector<double> values);

// Prepares a case once; round() then measures everything once more. The rivals and the limits must
// outlive it.
class Contest {
 public:
  Contest(const Case& c, const std::vector<std::unique_ptr<Rival>>& rivals, Limits& limits);

  // Seconds of ours. A case that has taken some seconds is not measured again.
  double round();
  Measurement& measurement() { return measurement_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Contestant {
    std::function<double(int)> run;  // seconds of n runs
    Samples* samples = nullptr;
    double one = 0;  // seconds of a run, roughly
    int count = 1;   // runs in a sample
    int samples_a_turn = 1;
    bool is_hopeless = false;  // so slow that one round is enough
  };

  // After a first run, which allocates and compiles.
  void add(std::function<double(int)> run, Samples* samples);
  void choose_limit();
  void add_sunk();
  void add_rivals();
  void wait_until_idle() const;
  double turn(const Contestant& contestant) const;
  const std::vector<std::unique_ptr<Rival>>& rivals_;
  Limits& limits_;
  Measurement measurement_;
  std::unique_ptr<Ours> ours_, sunk_, unfused_;
  std::function<double()> limit_seconds_;
  std::vector<Contestant> contestants_;  // ours first
  size_t rounds_ = 0;
  Clock::time_point start_;
};

}  // namespace ballast::bench
