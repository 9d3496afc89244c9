#include "ranks/gpu_choice.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "core/concat.h"

namespace pace {
namespace {

constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

// The driver's management library, which does not initialise CUDA. Without it: no GPUs.
class Nvml {
 public:
  Nvml() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    const auto init = Find<int (*)()>("nvmlInit_v2");
    works_ = init != nullptr && init() == 0;
  }
  ~Nvml() {
    const auto end = Find<int (*)()>("nvmlShutdown");
    if (works_ && end != nullptr) static_cast<void>(end());
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  int64_t Count() const {
    const auto count = Find<int (*)(unsigned*)>("nvmlDeviceGetCount_v2");
    unsigned found = 0;
    const bool counted = works_ && count != nullptr && count(&found) == 0;
    return counted ? static_cast<int64_t>(found) : 0;
  }
  // "GPU-..."; empty where there is no such GPU.
  std::string IdOf(unsigned index) const {
    const auto device = Find<int (*)(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
    const auto id = Find<int (*)(void*, char*, unsigned)>("nvmlDeviceGetUUID");
    void* found = nullptr;
    std::array<char, 96> text = {};
    const bool named = works_ && device != nullptr && id != nullptr && device(index, &found) == 0 &&
                       id(found, text.data(), text.size()) == 0;
    return named ? text.data() : "";
  }

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle_, name));
  }

  void* const handle_;
  bool works_ = false;
};

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
  const Nvml nvml;
  return nvml.Count();
}

void SelectGpu(const RankEnvironment& environment) {
  const std::optional<std::string> visible = ProcessVariable(kVariable);
  const std::optional<std::string> own =
      GpuOfRank(environment.local_rank, visible, visible.has_value() ? 0 : CountGpus());
  if (own.has_value()) ::setenv(kVariable, own->c_str(), /*overwrite=*/1);
}

std::string GpuPlace() {
  const std::string entry = ProcessVariable(kVariable).value_or("0");
  std::array<char, 256> host = {};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  unsigned index = 0;
  const char* const end = entry.data() + entry.size();
  const auto parsed = std::from_chars(entry.data(), end, index);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    const Nvml nvml;
    const std::string id = nvml.IdOf(index);
    if (!id.empty()) return Concat(host.data(), " ", id);
  }
  return Concat(host.data(), " ", entry);
}

}  // namespace pace
