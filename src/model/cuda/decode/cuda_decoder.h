// The decoder on an NVIDIA GPU (compute capability 9.0 and later), and what
// there is to know about the GPU.
//
// Passes in which every sequence has one new token and asks for one sample run
// as CUDA graphs, one for each padded number of rows and place of its tables; all
// share the same activations. Install copies weights into fixed buffers on the device, so graphs
// stay valid: weights of a trainer on the same device go straight from its tensors
// into place. Only ids and log-probabilities come back to the host. The pass that
// probably follows is queued at once, behind tokens that are still on the device, so
// that it runs while the host works on the answers (speculative_pass.h). Passes go before
// other work of the device: they are short, and a response waits for each.
// Bits of a row may depend on the rows beside it (cuBLAS chooses by size), so
// it is not deterministic() in Decoder's sense; the same passes in the same
// order give the same bits.
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

// Random weights that never were on the host: matrices normal with this
// deviation, norms near 1. For benchmarks. REQUIRES: a decoder of CreateCudaDecoder
Result<std::shared_ptr<const DecoderWeights>> RandomCudaWeights(const Decoder& decoder,
                                                                uint64_t seed, double deviation);

// One piece of a decode pass, over all layers.
struct DecodePart {
  std::string name;
  double seconds = 0;
  int64_t num_bytes = 0;  // of weights or cache that it must read
};
// Each part of the pass alone, as a graph on the device; what the cache holds for
// these sequences is lost. Dense networks in full; of experts nothing is told.
// REQUIRES: a decoder of CreateCudaDecoder; every sequence has one new token and
// asks for one sample
Result<std::vector<DecodePart>> ProfileCudaDecode(Decoder& decoder, const Pass& pass);

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

// Waits for the bytes. REQUIRES: as many on both sides
Status CopyFromCuda(std::span<const std::byte> from, std::span<std::byte> to);

// True where this build has CUDA, whether or not there is a GPU.
bool HasCuda();

}  // namespace pace

#endif  // PACE_MODEL_CUDA_DECODE_CUDA_DECODER_H_
