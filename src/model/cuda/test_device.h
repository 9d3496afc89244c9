// Values on the device, and what kernels are compared with, for tests.
#ifndef PACE_MODEL_CUDA_TEST_DEVICE_H_
#define PACE_MODEL_CUDA_TEST_DEVICE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/random.h"
#include "formats/float_encoding.h"
#include "model/cuda/cache_layout.h"
#include "model/cuda/decode/cuda_decoder.h"
#include "model/cuda/device_memory.h"

namespace pace::cuda {

using Floats = std::vector<float>;

// A copy of host values on the device, and back.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    EXPECT_EQ(cudaMemcpy(memory_.at(), values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  explicit OnDevice(size_t count)
      : count_(count),
        memory_(std::move(DeviceMemory::Allocate(static_cast<int64_t>(count * sizeof(T)), "test"))
                    .value()) {}
  T* get() const { return memory_.As<T>(); }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), memory_.at(), count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  size_t count_;
  DeviceMemory memory_;
};

inline Floats Random(size_t count, uint64_t seed, double scale = 1) {
  const CounterRandom random(seed, 7);
  Floats values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * random.Normal(i));
  return values;
}

inline std::vector<uint16_t> Halves(const Floats& values) {
  std::vector<uint16_t> halves;
  for (const float value : values) halves.push_back(FloatToBF16(value));
  return halves;
}
inline Floats FromHalves(const std::vector<uint16_t>& halves) {
  Floats values;
  for (const uint16_t half : halves) values.push_back(BF16ToFloat(half));
  return values;
}
inline Floats Rounded(const Floats& values) {
  return FromHalves(Halves(values));
}

// ||a - b|| / ||b||
inline double Distance(const Floats& a, const Floats& b) {
  double difference = 0;
  double norm = 0;
  EXPECT_EQ(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / std::max(norm, 1e-30));
}

inline double Silu(double x) {
  return x / (1 + std::exp(-x));
}

class CudaKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<CudaDevice> device = FindCudaDevice();
    if (!device.ok()) GTEST_SKIP() << device.status().message();
  }
};

// One layer's cache with random sequences, and rows at their ends.
struct Sequences {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  std::vector<int32_t> positions{};
  std::vector<int32_t> tables{};
  std::vector<int32_t> blocks{};

  int padded() const { return PaddedHeadDim(head_dim); }
  size_t num_rows() const { return positions.size(); }

  // Chunks: (start, tokens). Blocks are dealt out from the last one on.
  static Sequences Of(const std::vector<std::pair<int, int>>& chunks, int num_heads,
                      int num_kv_heads, int head_dim) {
    Sequences s{.num_heads = num_heads, .num_kv_heads = num_kv_heads, .head_dim = head_dim};
    int32_t next = 0;
    for (const auto& [start, count] : chunks) {
      for (int i = 0; i < count; ++i) {
        s.positions.push_back(start + i);
        s.tables.push_back(static_cast<int32_t>(s.blocks.size()));
      }
      for (int b = 0; b * kPageTokens < start + count; ++b) s.blocks.push_back(next++);
    }
    const auto total = static_cast<int32_t>(s.blocks.size());
    for (int32_t& block : s.blocks) block = total - 1 - block;
    return s;
  }
  size_t num_blocks() const {
    return static_cast<size_t>(*std::max_element(blocks.begin(), blocks.end())) + 1;
  }
  size_t cache_elements() const {
    return num_blocks() * static_cast<size_t>(num_kv_heads * 2 * PageElements(padded()));
  }
};

}  // namespace pace::cuda

#endif  // PACE_MODEL_CUDA_TEST_DEVICE_H_
