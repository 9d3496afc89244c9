// Settings of real learning: the policy, how it generates, how it is trained
// (train_options.h) and how it is measured. The simulator does not read them.
// Fields() documents each.
#ifndef PACE_CONFIG_LEARNING_OPTIONS_H_
#define PACE_CONFIG_LEARNING_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "config/train_options.h"

namespace pace {

enum class ComputeType { kFloat32, kBfloat16 };
enum class PolicyDevice { kCpu, kCuda };

struct PolicyOptions {
  std::string model = "tiny";
  PolicyDevice device = PolicyDevice::kCpu;
  ComputeType compute = ComputeType::kFloat32;

  [[nodiscard]] std::vector<Field> Fields();
};

// How training responses are sampled.
struct ResponseOptions {
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  int64_t max_tokens = 64;
  double mean_tokens = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class SyncRule { kRebuild, kKeep, kDrain };
// Rollout engines of a run on real hardware. In the lab, their number and their
// slots are the cluster's.
enum class ServerKind { kVllm, kSglang };
// Weights of engines in this process: as the policy's, or rounded to eight bits.
enum class EngineQuantization { kNone, kFp8 };
// How weights reach servers: through a folder that they share, or from GPU to GPU.
enum class WeightTransfer { kFolder, kNccl };

struct EngineSettings {
  int64_t count = 1;
  int64_t threads = 1;
  int64_t slots = 0;
  int64_t pass_tokens = 512;
  int64_t kv_mib = 512;
  SyncRule sync = SyncRule::kRebuild;
  EngineQuantization quantization = EngineQuantization::kNone;
  // Servers elsewhere instead of engines in this process.
  std::vector<std::string> urls = {};
  int64_t fleet = 0;
  int64_t requests = 256;
  ServerKind server = ServerKind::kVllm;
  std::string token_file = {};
  std::string ca_file = {};
  std::string weights = {};
  WeightTransfer transfer = WeightTransfer::kFolder;
  int64_t transfer_mib = 256;
  std::string transfer_address = {};
  int64_t transfer_port = 0;
  double join_s = 120;
  double generate_s = 600;
  double load_s = 120;
  double control_s = 10;

  // Whether servers generate, not engines in this process.
  bool IsElsewhere() const { return fleet > 0 || !urls.empty(); }

  [[nodiscard]] std::vector<Field> Fields();
};

// Supervised training (`pace sft`).
struct SftOptions {
  int64_t num_steps = 1000;
  int64_t batch_size = 64;
  bool cosine_decay = true;

  [[nodiscard]] std::vector<Field> Fields();
};

struct EvaluationOptions {
  int64_t num_responses = 4;
  double temperature = 1;
  double top_p = 1;
  bool greedy = false;
  int64_t max_problems = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

struct CheckpointOptions {
  int64_t keep = 2;

  [[nodiscard]] std::vector<Field> Fields();
};

// A run on real hardware.
struct RuntimeOptions {
  bool pin_threads = false;
  double stall_s = 60;

  [[nodiscard]] std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_LEARNING_OPTIONS_H_
