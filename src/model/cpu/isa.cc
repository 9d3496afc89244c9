#include "model/cpu/isa.h"

#include <cstdint>

#include "core/check.h"
#include "model/cpu/levels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace pace {
namespace {

#if defined(__x86_64__)
// Linux lets a process use tile registers once it has asked; every thread
// inherits the answer.
bool MayUseAmx() {
  constexpr uint32_t kAmxBf16 = 1U << 22;
  constexpr uint32_t kAmxTile = 1U << 24;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
  uint32_t d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Isa Detect() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kPortable;
  for (const bool has :
       {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
        __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0}) {
    if (!has) return Isa::kAvx2;
  }
  return MayUseAmx() ? Isa::kAmx : Isa::kAvx512;
}

Kernels WithAmx() {
  Kernels kernels = kAvx512Kernels;
  kernels.gemm_bf16 = &GemmAmx;
  return kernels;
}
#else
Isa Detect() {
  return Isa::kPortable;
}
#endif

}  // namespace

Isa BestIsa() {
  static const Isa best = Detect();
  return best;
}

std::vector<Isa> IsaLevels() {
  std::vector<Isa> levels;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (isa <= BestIsa()) levels.push_back(isa);
  }
  return levels;
}

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "";
}

const Kernels& KernelsOf(Isa isa) {
  PACE_CHECK(isa <= BestIsa(), "this machine has no ", IsaName(isa));
#if defined(__x86_64__)
  static const Kernels amx = WithAmx();
  switch (isa) {
    case Isa::kPortable:
      break;
    case Isa::kAvx2:
      return kAvx2Kernels;
    case Isa::kAvx512:
      return kAvx512Kernels;
    case Isa::kAmx:
      return amx;
  }
#endif
  return kPortableKernels;
}

}  // namespace pace
