#include "device/profile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace ballast::device {
namespace {

// Events that wait for reading; more are read while the program runs, to bound the memory.
constexpr size_t kMaxPending = 8192;

}  // namespace

struct Profile::Impl {
  std::mutex mutex;
  std::vector<std::pair<std::string, EventHandle>> pending;
  std::map<std::string, ProfileRow> rows;

  // Adds the times of finished events to the rows and drops those of failed ones.
  void collect() {
    auto read = [&](const std::pair<std::string, EventHandle>& entry) {
      const cl_event event = entry.second.get();
      const cl_int status = event_status(event);
      if (status > CL_COMPLETE) return false;
      cl_ulong start = 0, end = 0;
      if (status < 0 ||
          clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start), &start,
                                  nullptr) != CL_SUCCESS ||
          clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end, nullptr) !=
              CL_SUCCESS) {
        return true;
      }
      const uint64_t ns = end > start ? end - start : 0;
      ProfileRow& row = rows[entry.first];
      row.min_ns = row.count == 0 ? ns : std::min(row.min_ns, ns);
      row.total_ns += ns;
      ++row.count;
      return true;
    };
    pending.erase(std::remove_if(pending.begin(), pending.end(), read), pending.end());
  }
};

Profile::Profile() : impl_(new Impl) {}
Profile::~Profile() = default;

void Profile::add(const std::string& label, EventHandle event) {
  std::lock_guard lock(impl_->mutex);
  impl_->pending.emplace_back(label, std::move(event));
  if (impl_->pending.size() % kMaxPending == 0) impl_->collect();
}

std::vector<ProfileRow> Profile::drain() {
  std::lock_guard lock(impl_->mutex);
  impl_->collect();
  std::vector<ProfileRow> rows;
  for (auto& [label, row] : impl_->rows) {
    row.kernel = label;
    rows.push_back(std::move(row));
  }
  impl_->rows.clear();
  std::stable_sort(rows.begin(), rows.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return a.total_ns > b.total_ns;
  });
  return rows;
}

}  // namespace ballast::device
