// The decoder on an NVIDIA GPU (compute capability 9.0 and later), and facts about the GPU.
//
// Decode passes (one new token and one sample per sequence) run as CUDA graphs, one for each
// padded number of rows and metadata buffer; all share the same activations. Install copies
// weights into fixed buffers, so graphs stay valid; weights of a trainer on the same device are
// copied from its tensors directly. Only token ids and log-probabilities return to the host.
// A speculative pass follows each decode pass at once and reads the sampled tokens on the
// device, so it executes while the host processes results (speculative_pass.h). Its stream has
// the highest priority: passes are short and every response waits for them.
// A row's bits may depend on the other rows of its pass (cuBLAS chooses kernels by size), so
// the decoder is not deterministic(); the same passes in the same order give the same bits.
//
// In a build without CUDA these functions return one line that says so.
// Thread-safety: as Decoder; free functions may be called from any thread.
#ifndef PACE_MODEL_CUDA_DECODE_CUDA_DECODER_H_
#define PACE_MODEL_CUDA_DECODE_CUDA_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/decoder.h"

namespace pace {

// DecoderOptions::num_threads has no meaning here.
Result<std::unique_ptr<Decoder>> CreateCudaDecoder(const ModelConfig& config,
                                                   const DecoderOptions& options);

// Random weights generated on the device: matrices normal with this deviation, norms near 1.
// For benchmarks. REQUIRES: a decoder of CreateCudaDecoder
Result<std::shared_ptr<const DecoderWeights>> RandomCudaWeights(const Decoder& decoder,
                                                                uint64_t seed, double deviation);

// One piece of a pass, over all layers.
struct DecodePart {
  std::string name;
  double seconds = 0;
  int64_t num_bytes = 0;  // of weights or cache that it must read
  double num_flops = 0;   // of its products
};
// Measures each part of the pass alone, as a graph; the cache of these sequences is lost.
// Every layer has the experts that one routing of the pass's tokens selects.
// REQUIRES: a decoder of CreateCudaDecoder
Result<std::vector<DecodePart>> ProfileCudaPass(Decoder& decoder, const Pass& pass);

// Runs the pass and returns the number of experts that at least one of its rows selects, summed
// over the layers. Its results are discarded; the same pass may run again.
// REQUIRES: a decoder of CreateCudaDecoder for a mixture of experts; a decode pass of no more rows
// than an earlier pass had
Result<int64_t> CountCudaExperts(Decoder& decoder, const Pass& pass);

struct CudaDevice {
  std::string name;
  std::string driver;   // the highest CUDA version that the driver serves, "13.0"
  std::string runtime;  // of this program, "13.0"
  std::string cublas;
  int capability = 0;  // 90 = 9.0
  int num_processors = 0;
  int64_t memory_bytes = 0;
  int64_t free_bytes = 0;
};
// The device that decoders run on, or why there is none.
Result<CudaDevice> FindCudaDevice();

// Bytes per second of copies from the device's memory into itself, read and
// written bytes counted: the limit of what memory-bound kernels can reach.
Result<double> MeasureCudaBandwidth();

// Operations per second of a large product in bf16, a multiply-add counted as two.
Result<double> MeasureCudaProducts();

// Waits for the bytes. REQUIRES: as many on both sides
Status CopyFromCuda(std::span<const std::byte> from, std::span<std::byte> to);

// Whether this build has CUDA, with or without a GPU.
bool HasCuda();

}  // namespace pace

#endif  // PACE_MODEL_CUDA_DECODE_CUDA_DECODER_H_
