// PeakMemory: what a piece of work needs, at its peak, above what the process
// held before.
//
//   const PeakMemory peak;
//   // ... the work to measure ...
//   std::optional<int64_t> bytes = peak.Bytes();
//
// By the kernel's count of resident pages, so whatever allocates is seen. Freed
// memory goes back to the system first, which makes the work behind it slower:
// time is measured without. Linux only, and one at a time: the kernel keeps one
// mark for the process.
#ifndef PACE_BENCH_PEAK_MEMORY_H_
#define PACE_BENCH_PEAK_MEMORY_H_

#include <cstdint>
#include <optional>

namespace pace {

class PeakMemory {
 public:
  PeakMemory();
  // None where the kernel does not let the mark be set back.
  std::optional<int64_t> Bytes() const;

 private:
  std::optional<int64_t> before_;
};

}  // namespace pace

#endif  // PACE_BENCH_PEAK_MEMORY_H_
