#include "ranks/gpu_choice.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "core/concat.h"

namespace pace {
namespace {

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

std::vector<std::string> EntriesOf(const std::string& list) {
  std::vector<std::string> entries;
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const size_t first = list.find_first_not_of(' ', begin);
    if (first >= end) break;
    const size_t last = list.find_last_not_of(' ', end - 1);
    const std::string entry = list.substr(first, last - first + 1);
    // CUDA stops at the first that names no GPU.
    if (entry.starts_with('-')) break;
    entries.push_back(entry);
    begin = end + 1;
  }
  return entries;
}

}  // namespace

std::optional<std::string> GpuOfRank(int64_t local_rank, const std::optional<std::string>& visible,
                                     int64_t num_gpus) {
  if (!visible.has_value()) {
    if (num_gpus <= 0) return std::nullopt;
    return std::to_string(local_rank % num_gpus);
  }
  const std::vector<std::string> entries = EntriesOf(*visible);
  if (entries.empty()) return std::nullopt;
  return entries[static_cast<size_t>(local_rank) % entries.size()];
}

int64_t CountGpus() {
  void* const handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return 0;
  const auto init = reinterpret_cast<int (*)()>(::dlsym(handle, "nvmlInit_v2"));
  const auto count =
      reinterpret_cast<int (*)(unsigned*)>(::dlsym(handle, "nvmlDeviceGetCount_v2"));
  const auto end = reinterpret_cast<int (*)()>(::dlsym(handle, "nvmlShutdown"));
  if (init == nullptr || count == nullptr || end == nullptr || init() != 0) return 0;
  unsigned found = 0;
  const bool counted = count(&found) == 0;
  static_cast<void>(end());
  return counted ? static_cast<int64_t>(found) : 0;
}

void SelectGpu(const RankEnvironment& environment) {
  const std::optional<std::string> visible = ProcessVariable(kVariable);
  const std::optional<std::string> own =
      GpuOfRank(environment.local_rank, visible, visible.has_value() ? 0 : CountGpus());
  if (own.has_value()) ::setenv(kVariable, own->c_str(), /*overwrite=*/1);
}

std::string GpuPlace() {
  std::array<char, 256> host = {};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  return Concat(host.data(), " ", ProcessVariable(kVariable).value_or(""));
}

}  // namespace pace
