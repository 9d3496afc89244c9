// PersistentLayers: all layers of a decode pass of one or two rows in one kernel.
//
// A pass of few rows is limited by reading the weights. Between kernels the memory is idle: while
// the last blocks finish, while inputs are loaded and normed, and during attention. Here one block
// per processor runs all layers. One of its warps streams the block's weights, which depend on
// nothing, through a ring in shared memory (layers_plan.h), as far ahead as the ring has room; the
// other warps compute. Pages of the KV cache of earlier tokens go through the same ring.
//
//   phase of a layer         input that all blocks wait for   output
//   norm, q, k and v         residual                         qkv
//   rotary and attention     qkv; partial results of splits   attended
//   attention's output       attended                         residual
//   norm, gate and up        residual                         gated
//   down                     gated                            residual
//
// Two warps compute a stage of weights while other warps compute other stages: most of the time of
// a stage is latency. One warp adds the parts of the sums and publishes them, while the others wait
// for the inputs of the next phase.
//
// Blocks exchange values through cells in global memory: a value and its epoch in one word of eight
// bytes, which is stored and loaded as a whole. A reader takes a cell that has the epoch that it
// wants, and loads it again otherwise: no fence. So that few loads delay the stores, one thread of
// a block polls a counter of the blocks that have published, before the others load their cells.
// The counter is not ordered with the cells: it only tells when it is worth loading them. Epochs
// grow from layer to layer and from pass to pass. A cell is written again only after all its
// readers have published what the writer waited for.
//
// Blocks wait for each other, so all of them must be resident at once. The launch is
// cooperative: the device starts all blocks or none, and two such kernels of different streams
// cannot each hold processors that the other waits for. Kernels of other streams (training) delay
// the start, but depend on nothing here and end.
//
// Values as those of the other kernels: weights and inputs of products are bf16, sums, norms and
// the residual stream float32. Weights in eight bits (float8.cuh) become bf16 in the computing
// warps, and sums are multiplied by the scales of their rows. The order of sums depends on the
// shape, the number of rows and the device only, so the same pass gives the same bits.
//
// Used where PlanLayers has a plan: bf16, dense layers of equal size, heads of 64 or 128, at most
// eight heads per key/value head, widths that are multiples of 64, a hidden size up to 5,120, and
// every row a decode row. All other passes use the kernels of network.h's pieces.
// Thread-safety: as kernels.h, but one launch at a time for the same `exchange`.
#ifndef PACE_MODEL_CUDA_DECODE_PERSISTENT_LAYERS_H_
#define PACE_MODEL_CUDA_DECODE_PERSISTENT_LAYERS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "model/cuda/decode/layers_plan.h"
#include "model/cuda/kernels.h"

namespace pace::cuda {

// The weights of the first layer; those of layer n lie n * layer_stride bytes on. Matrices without
// padding, in the format of LayersShape::weight_bytes; biases and the norms of heads may be null,
// and scales are where the matrices are halves.
struct PersistentWeights {
  const float* attention_norm = nullptr;
  const void* qkv = nullptr;
  const float* qkv_bias = nullptr;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
  const void* output = nullptr;
  const float* output_bias = nullptr;
  const float* mlp_norm = nullptr;
  const void* gate_up = nullptr;
  const float* gate_up_bias = nullptr;
  const void* down = nullptr;
  const float* down_bias = nullptr;
  const float* qkv_scales = nullptr;
  const float* output_scales = nullptr;
  const float* gate_up_scales = nullptr;
  const float* down_scales = nullptr;
  int64_t layer_stride = 0;
};

struct PersistentArguments {
  LayersShape shape;
  LayersPlan plan;
  int num_layers = 0;
  PersistentWeights weights;
  float epsilon = 0;
  const float* frequencies = nullptr;  // head_dim / 2
  RowTables rows{};
  void* cache = nullptr;  // of the first layer
  int64_t layer_cache_bytes = 0;
  float* residual = nullptr;  // shape.hidden per row: the embedding, then the result
  // PersistentExchangeBytes; zeros before the first pass, and then for these kernels alone.
  void* exchange = nullptr;
};

int64_t PersistentExchangeBytes(const LayersShape& shape, const LayersPlan& plan);

// The plan for this device, or nullopt.
std::optional<LayersPlan> PlanLayersHere(const LayersShape& shape);

void PersistentLayers(const PersistentArguments& arguments, cudaStream_t stream);

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_DECODE_PERSISTENT_LAYERS_H_
