// Which instruction set the kernels use.
//
// Each level's kernels are compiled in a file of their own with that level's
// flags, and chosen at run time: a binary runs on every processor of its
// architecture.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_KERNELS_ISA_H_
#define PACE_MODEL_CPU_KERNELS_ISA_H_

#include <string_view>
#include <vector>

#include "model/cpu/kernels/kernels.h"

namespace pace {

// The values have no order: IsaLevels() has.
enum class Isa {
  kPortable,
  // x86-64:
  kAvx2,
  kAvx512,
  kAmx,  // AVX-512, and bf16 products in tiles
  // AArch64:
  kNeon,
  kNeonBf16,  // NEON, and bf16 products by BFMMLA
};

// What this machine has, slowest first; it begins with the portable level.
const std::vector<Isa>& IsaLevels();
// The last of them.
Isa BestIsa();

bool HasIsa(Isa isa);

std::string_view IsaName(Isa isa);

// Whether bf16 products have instructions of their own, faster than float32.
bool HasBf16Products(Isa isa);
// Whether LibTorch's bf16 products on this processor are worth using: on AArch64
// without instructions for them they take a hundred times as long as float32.
bool TorchHasBf16Products();

// REQUIRES: one of IsaLevels()
const Kernels& KernelsOf(Isa isa);

}  // namespace pace

#endif  // PACE_MODEL_CPU_KERNELS_ISA_H_
