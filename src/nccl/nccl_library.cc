#include "nccl/nccl_library.h"

#include <dlfcn.h>

#include <string>

namespace pace {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";
constexpr int kLeastVersion = 21400;  // NcclConfig

class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {}
  template <typename Function>
  void Find(const char* name, Function& to) {
    to = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (to == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const handle_;
  std::string missing_;
};

Result<NcclCalls> ReadLibrary() {
  void* const handle = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    return NotFound(kLibrary, ": cannot be loaded (", reason == nullptr ? "no reason" : reason,
                    "); pip install nvidia-nccl-cu13 has it, LD_LIBRARY_PATH names its folder");
  }
  Symbols symbols(handle);
  NcclCalls calls;
  symbols.Find("ncclGetVersion", calls.get_version);
  symbols.Find("ncclGetUniqueId", calls.get_unique_id);
  symbols.Find("ncclCommInitRankConfig", calls.comm_init_rank_config);
  symbols.Find("ncclCommFinalize", calls.comm_finalize);
  symbols.Find("ncclCommAbort", calls.comm_abort);
  symbols.Find("ncclCommGetAsyncError", calls.comm_get_async_error);
  symbols.Find("ncclGetErrorString", calls.get_error_string);
  symbols.Find("ncclGetLastError", calls.get_last_error);
  symbols.Find("ncclAllReduce", calls.all_reduce);
  symbols.Find("ncclReduceScatter", calls.reduce_scatter);
  symbols.Find("ncclAllGather", calls.all_gather);
  symbols.Find("ncclBroadcast", calls.broadcast);
  if (!symbols.missing().empty()) {
    return NotFound(kLibrary, ": has no ", symbols.missing(), " (NCCL 2.14 or later is needed)");
  }
  int version = 0;
  if (calls.get_version(&version) != kNcclSuccess || version < kLeastVersion) {
    return NotFound(kLibrary, ": is NCCL ", NcclVersionText(version), ", 2.14 or later is needed");
  }
  return calls;
}

}  // namespace

Result<const NcclCalls*> LoadNccl() {
  static const Result<NcclCalls> calls = ReadLibrary();
  if (!calls.ok()) return calls.status();
  return &*calls;
}

std::string NcclVersionText(int version) {
  return Concat(version / 10'000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace pace
