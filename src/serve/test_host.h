// A host over a small real network whose passes a test can hold up. For tests alone.
#ifndef PACE_SERVE_TEST_HOST_H_
#define PACE_SERVE_TEST_HOST_H_

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "model/cpu/cpu_decoder.h"
#include "model/tiny_configs.h"
#include "rollout/engine_core.h"
#include "rollout/test_tokenizers.h"
#include "serve/engine_host.h"

namespace pace {

// Stops a decoder before its passes: Allow says how many more may run.
class PassGate {
 public:
  void Allow(int64_t count) {
    const MutexLock lock(mutex_);
    left_ += count;
    changed_.NotifyAll();
  }
  void AllowAll() { Allow(int64_t{1} << 40); }
  // Waits until this many have run and the next one waits.
  void WaitForPasses(int64_t count) {
    const MutexLock lock(mutex_);
    while (num_passes_ < count || !waits_) changed_.WaitUntil(mutex_, Soon());
  }
  void Pass() {
    const MutexLock lock(mutex_);
    while (left_ == 0) {
      waits_ = true;
      changed_.NotifyAll();
      changed_.WaitUntil(mutex_, Soon());
    }
    waits_ = false;
    --left_;
    ++num_passes_;
    changed_.NotifyAll();
  }

 private:
  static std::chrono::steady_clock::time_point Soon() {
    return std::chrono::steady_clock::now() + std::chrono::seconds(1);
  }
  Mutex mutex_;
  CondVar changed_;
  int64_t left_ PACE_GUARDED_BY(mutex_) = 0;
  int64_t num_passes_ PACE_GUARDED_BY(mutex_) = 0;
  bool waits_ PACE_GUARDED_BY(mutex_) = false;
};

class GatedDecoder final : public Decoder {
 public:
  GatedDecoder(std::unique_ptr<Decoder> decoder, PassGate& gate)
      : decoder_(std::move(decoder)), gate_(gate) {}
  const ModelConfig& config() const override { return decoder_->config(); }
  int64_t num_blocks() const override { return decoder_->num_blocks(); }
  bool deterministic() const override { return decoder_->deterministic(); }
  Result<std::shared_ptr<const DecoderWeights>> Prepare(const WeightSet& weights) const override {
    return decoder_->Prepare(weights);
  }
  void Install(std::shared_ptr<const DecoderWeights> weights) override {
    decoder_->Install(std::move(weights));
  }
  Result<PassResult> Run(const Pass& pass) override {
    gate_.Pass();
    return decoder_->Run(pass);
  }
  void CopyBlocks(std::span<const BlockCopy> copies) override { decoder_->CopyBlocks(copies); }

 private:
  Result<std::vector<float>> RunCached(std::span<const ScoreRequest> scores) override {
    return decoder_->ScoreCached(scores);
  }
  const std::unique_ptr<Decoder> decoder_;
  PassGate& gate_;
};

inline ModelConfig HostConfig() {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  config.vocab_size = 27;  // 26 letters and an end
  config.max_positions = 256;
  config.eos = {26};
  return config;
}

inline WeightSet HostWeights(uint64_t seed) {
  return RandomWeights(HostConfig(), seed, 0.3);
}

// A folder with these weights.
inline std::string SaveWeights(const std::string& folder, uint64_t seed) {
  const Status status =
      SaveModel(folder, HostConfig(), HostWeights(seed), Dtype::kF32, int64_t{1} << 30);
  EXPECT_TRUE(status.ok()) << status.message();
  return folder;
}

inline std::unique_ptr<EngineCore> HostCore(PassGate& gate, int64_t max_pass_tokens = 64) {
  Result<std::unique_ptr<Decoder>> decoder =
      CreateCpuDecoder(HostConfig(), {.dtype = Dtype::kF32, .num_blocks = 64});
  EXPECT_TRUE(decoder.ok()) << decoder.status().message();
  return std::make_unique<EngineCore>(
      std::make_unique<GatedDecoder>(std::move(decoder).value(), gate), LetterTokenizer(26),
      RolloutOptions{.sync_mode = SyncMode::kKeep,
                     .score_prefixes = false,
                     .max_pass_tokens = max_pass_tokens});
}

}  // namespace pace

#endif  // PACE_SERVE_TEST_HOST_H_
