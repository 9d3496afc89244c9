// Which instruction set the kernels use.
//
// Each level's kernels are compiled in a file of their own with that level's
// flags, and chosen at run time: a binary runs on every x86-64, and elsewhere
// on the portable level.
// Thread-safety: pure functions.
#ifndef PACE_MODEL_CPU_ISA_H_
#define PACE_MODEL_CPU_ISA_H_

#include <string_view>
#include <vector>

#include "model/cpu/kernels.h"

namespace pace {

enum class Isa {
  kPortable,
  kAvx2,
  kAvx512,
  kAmx,  // AVX-512, and bf16 products in tiles
};

// What this machine has, rising; the portable level is always there.
std::vector<Isa> IsaLevels();
// The last of them.
Isa BestIsa();

std::string_view IsaName(Isa isa);

// REQUIRES: one of IsaLevels()
const Kernels& KernelsOf(Isa isa);

}  // namespace pace

#endif  // PACE_MODEL_CPU_ISA_H_
