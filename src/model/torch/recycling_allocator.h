// Memory of tensors on the CPU that is kept for the next tensor of about its size.
//
// A training step allocates and frees the same activations again and again. A general
// allocator returns large blocks to the operating system, which clears every page before
// it hands it out again.
//
//   RecycleTensorMemory();  // once, before training; later calls do nothing
//
// Blocks of at least 64 KiB are rounded up to one of eight sizes per power of two and wait
// for the next tensor that fills at least two thirds of them. Blocks in use and waiting
// together stay below 1.25 times the most that was ever in use at once; the rest is freed.
// Thread-safety: all functions may be called from any thread.
#ifndef PACE_MODEL_TORCH_RECYCLING_ALLOCATOR_H_
#define PACE_MODEL_TORCH_RECYCLING_ALLOCATOR_H_

#include <cstddef>

namespace pace {

// From now on LibTorch's CPU tensors come from recycled blocks. Does nothing in a build with the
// address sanitizer, which could no longer tell where a tensor ends.
void RecycleTensorMemory();

// Bytes of a block for `bytes`: `bytes` itself where blocks of that size are not kept.
size_t RecycledBlockBytes(size_t bytes);

struct RecycledMemory {
  size_t in_use = 0;   // bytes of blocks that are kept once freed
  size_t waiting = 0;  // bytes of freed blocks
  size_t most_in_use = 0;
  size_t num_fresh = 0;  // blocks that could not be served from those that wait
};
RecycledMemory MeasureRecycledMemory();

}  // namespace pace

#endif  // PACE_MODEL_TORCH_RECYCLING_ALLOCATOR_H_
