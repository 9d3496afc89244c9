#include "bench/machine.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "core/concat.h"
#include "record/build_info.h"

namespace pace {
namespace {

std::string Compiler() {
#if defined(__clang__)
  return Concat("clang ", __clang_version__);
#else
  return Concat("gcc ", __VERSION__);
#endif
}

// A line of /proc/self/status, "VmHWM:    1234 kB".
std::optional<int64_t> StatusBytes(std::string_view field) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    int64_t kilobytes = 0;
    if (word == field && file >> kilobytes) return 1024 * kilobytes;
  }
  return std::nullopt;
}

// Sets the peak back to what is resident now.
bool ResetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  return static_cast<bool>(file << "5" << std::flush);
}

}  // namespace

PeakMemory::PeakMemory() {
  malloc_trim(0);
  if (ResetPeak()) before_ = StatusBytes("VmRSS:");
}

std::optional<int64_t> PeakMemory::Bytes() const {
  const std::optional<int64_t> peak = StatusBytes("VmHWM:");
  if (!before_.has_value() || !peak.has_value()) return std::nullopt;
  return std::max<int64_t>(0, *peak - *before_);
}

int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void WriteMachine(JsonWriter& json) {
  json.BeginObject();
  json.Put("cpu", CpuModel());
  json.Put("cores", std::thread::hardware_concurrency());
  double load = 0;
  if (getloadavg(&load, 1) == 1) json.Put("load", load);  // other work that shared it
  json.Put("memory_bytes", static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<int64_t>(sysconf(_SC_PAGE_SIZE)));
  json.Put("compiler", Compiler());
  json.Put("build_type", PACE_BUILD_TYPE);
  json.Put("sanitizers", PACE_BUILD_SANITIZE);
  json.EndObject();
}

void WriteGpu(const CudaDevice& device, const MeasuredLimits& limits, JsonWriter& json) {
  json.Key("gpu");
  json.BeginObject();
  json.Put("name", device.name);
  json.Put("driver_cuda", device.driver);
  json.Put("runtime_cuda", device.runtime);
  json.Put("memory_bytes", device.memory_bytes);
  for (const auto& [name, value] : limits) json.Put(name, value);
  json.EndObject();
}

}  // namespace pace
