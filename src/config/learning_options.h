// Settings of real learning: the policy, how it generates, how it is trained
// (train_options.h) and how it is measured. The simulator does not read them.
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
  // A model's folder (Hugging Face layout), or `tiny` or `tiny-retool`, which
  // are inside pace.
  std::string model = "tiny";
  // Where responses are generated and the model is trained.
  PolicyDevice device = PolicyDevice::kCpu;
  // Of generation and training; master weights are float32 in both.
  ComputeType compute = ComputeType::kFloat32;

  [[nodiscard]] std::vector<Field> Fields();
};

// How training responses are sampled.
struct ResponseOptions {
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  int64_t max_tokens = 64;  // of one response
  // Not 0: a response ends where a draw from an exponential distribution of this mean
  // says, at most max_tokens, whatever it samples.
  double mean_tokens = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

enum class SyncRule { kRebuild, kKeep, kDrain };
// Rollout engines of a run on real hardware. In the lab, their number and their
// slots are the cluster's.
struct EngineSettings {
  int64_t count = 1;
  int64_t threads = 1;  // of each
  // Responses decoded at once; 0 = as memory allows. More: higher throughput,
  // each response takes longer.
  int64_t slots = 0;
  int64_t pass_tokens = 512;  // rows of one pass
  int64_t kv_mib = 512;       // hard bound of each cache
  SyncRule sync = SyncRule::kRebuild;

  [[nodiscard]] std::vector<Field> Fields();
};

// Supervised training (`pace sft`).
struct SftOptions {
  int64_t num_steps = 1000;
  int64_t batch_size = 64;   // examples of one update
  bool cosine_decay = true;  // of the learning rate, to 0

  [[nodiscard]] std::vector<Field> Fields();
};

struct EvaluationOptions {
  int64_t num_responses = 4;  // k of mean@k and pass@k, per problem
  double temperature = 1;
  double top_p = 1;
  // Problems of each benchmark; 0 = all.
  int64_t max_problems = 0;

  [[nodiscard]] std::vector<Field> Fields();
};

struct CheckpointOptions {
  int64_t keep = 2;  // the newest ones; 0 = all

  [[nodiscard]] std::vector<Field> Fields();
};

// A run on real hardware.
struct RuntimeOptions {
  // Each engine and the trainer on cores of its own.
  bool pin_threads = false;
  // Nothing happened for so long: say who waits for whom. 0 = never.
  double stall_s = 60;

  [[nodiscard]] std::vector<Field> Fields();
};

}  // namespace pace

#endif  // PACE_CONFIG_LEARNING_OPTIONS_H_
