#include "model/cpu/kernels/isa.h"

#include <algorithm>
#include <cstdint>

#include "core/check.h"
#include "model/cpu/kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
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

std::vector<Isa> Detect() {
  std::vector<Isa> levels = {Isa::kPortable};
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return levels;
  levels.push_back(Isa::kAvx2);
  for (const bool has :
       {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
        __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0}) {
    if (!has) return levels;
  }
  levels.push_back(Isa::kAvx512);
  if (MayUseAmx()) levels.push_back(Isa::kAmx);
  return levels;
}

Kernels WithAmx() {
  Kernels kernels = kAvx512Kernels;
  kernels.gemm_bf16 = &GemmAmx;
  return kernels;
}
#elif defined(__aarch64__)
std::vector<Isa> Detect() {
  std::vector<Isa> levels = {Isa::kPortable, Isa::kNeon};
  if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) levels.push_back(Isa::kNeonBf16);
  return levels;
}

Kernels WithBfmmla() {
  Kernels kernels = kNeonKernels;
  kernels.gemm_bf16 = &GemmBfmmla;
  return kernels;
}
#else
std::vector<Isa> Detect() {
  return {Isa::kPortable};
}
#endif

}  // namespace

const std::vector<Isa>& IsaLevels() {
  static const std::vector<Isa> levels = Detect();
  return levels;
}

Isa BestIsa() {
  return IsaLevels().back();
}

bool HasIsa(Isa isa) {
  return std::find(IsaLevels().begin(), IsaLevels().end(), isa) != IsaLevels().end();
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
    case Isa::kNeon:
      return "neon";
    case Isa::kNeonBf16:
      return "neon_bf16";
  }
  return "";
}

bool HasBf16Products(Isa isa) {
  return isa == Isa::kAmx || isa == Isa::kNeonBf16;
}

bool TorchHasBf16Products() {
#if defined(__aarch64__)
  return HasBf16Products(BestIsa());
#else
  return true;
#endif
}

const Kernels& KernelsOf(Isa isa) {
  PACE_CHECK(HasIsa(isa), "this machine has no ", IsaName(isa));
#if defined(__x86_64__)
  static const Kernels amx = WithAmx();
  if (isa == Isa::kAvx2) return kAvx2Kernels;
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAmx) return amx;
#elif defined(__aarch64__)
  static const Kernels bfmmla = WithBfmmla();
  if (isa == Isa::kNeon) return kNeonKernels;
  if (isa == Isa::kNeonBf16) return bfmmla;
#endif
  return kPortableKernels;
}

}  // namespace pace
