#include "bench/machine_costs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <vector>

#include "core/json_writer.h"
#include "execution/engine_maker.h"

namespace pace {
namespace {

constexpr size_t kNumCosts = 4;
constexpr int kRepetitions = 5;
using Row = std::array<double, kNumCosts>;

Row FeaturesOf(const PassSample& pass) {
  return {1, pass.rows, pass.context_tokens, pass.prefill_rows};
}

// Solves A x = b by elimination; the columns that are not `used` stay 0.
Row SolveNormal(std::span<const PassSample> passes, const std::array<bool, kNumCosts>& used) {
  std::array<std::array<double, kNumCosts + 1>, kNumCosts> matrix = {};
  for (const PassSample& pass : passes) {
    const Row features = FeaturesOf(pass);
    // Relative errors count: a small pass is as good a witness as a large one.
    const double weight = 1 / std::max(1e-12, pass.seconds * pass.seconds);
    for (size_t i = 0; i < kNumCosts; ++i) {
      for (size_t j = 0; j < kNumCosts; ++j) matrix[i][j] += weight * features[i] * features[j];
      matrix[i][kNumCosts] += weight * features[i] * pass.seconds;
    }
  }
  for (size_t i = 0; i < kNumCosts; ++i) {
    if (used[i]) continue;
    matrix[i] = {};
    matrix[i][i] = 1;
    for (size_t j = 0; j < kNumCosts; ++j) {
      if (j != i) matrix[j][i] = 0;
    }
  }
  for (size_t i = 0; i < kNumCosts; ++i) {
    if (std::abs(matrix[i][i]) < 1e-300) continue;
    for (size_t j = 0; j < kNumCosts; ++j) {
      if (j == i) continue;
      const double factor = matrix[j][i] / matrix[i][i];
      for (size_t k = i; k <= kNumCosts; ++k) matrix[j][k] -= factor * matrix[i][k];
    }
  }
  Row out = {};
  for (size_t i = 0; i < kNumCosts; ++i) {
    if (std::abs(matrix[i][i]) > 1e-300) out[i] = matrix[i][kNumCosts] / matrix[i][i];
  }
  return out;
}

GroupRequest RequestOf(int64_t group, const Settings& settings, const Policy& policy) {
  GroupRequest request;
  request.group = GroupId(group);
  request.prompt = PromptIndex(group);
  request.seed = 1;
  for (int64_t i = 0; i < 8 + group % 9; ++i) {
    request.prompt_tokens.push_back(
        static_cast<TokenId>((7 * i + group) % policy.config.vocab_size));
  }
  request.num_responses = settings.batch.group_size;
  // Lengths differ, so that passes of every size occur.
  request.stop.max_tokens = 4 + (group * 13) % (settings.generation.max_tokens - 4);
  return request;
}

// The passes of one generation that fills every slot.
Result<std::vector<PassSample>> GenerateOnce(const Settings& settings, const Policy& policy) {
  PACE_ASSIGN_OR_RETURN(std::unique_ptr<EngineCore> engine, MakeEngine(settings, policy));
  PACE_ASSIGN_OR_RETURN(std::shared_ptr<const DecoderWeights> weights,
                        engine->decoder().Prepare(policy.weights));
  PACE_RETURN_IF_ERROR(engine->Sync(PolicyVersion(0), weights));
  const int64_t num_groups = settings.engine.slots / settings.batch.group_size;
  for (int64_t group = 0; group < num_groups; ++group) {
    PACE_RETURN_IF_ERROR(engine->Submit(RequestOf(group, settings, policy)));
  }
  std::vector<PassSample> passes;
  while (engine->busy()) {
    const auto begin = std::chrono::steady_clock::now();
    PACE_ASSIGN_OR_RETURN(const StepReport report, engine->Step());
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    passes.push_back({static_cast<double>(report.num_decode_rows),
                      static_cast<double>(report.num_decode_context_tokens),
                      static_cast<double>(report.num_prefill_rows), time.count()});
  }
  return passes;
}

}  // namespace

RolloutCosts FitCosts(std::span<const PassSample> passes) {
  std::array<bool, kNumCosts> used;
  used.fill(true);
  Row fit = SolveNormal(passes, used);
  for (size_t round = 0; round < kNumCosts; ++round) {
    const auto lowest = std::min_element(fit.begin(), fit.end());
    if (*lowest >= 0) break;
    used[static_cast<size_t>(lowest - fit.begin())] = false;
    fit = SolveNormal(passes, used);
  }
  RolloutCosts out{fit[0], fit[1], fit[2], fit[3]};
  double error = 0;
  double total = 0;
  for (const PassSample& pass : passes) {
    const Row features = FeaturesOf(pass);
    double predicted = 0;
    for (size_t i = 0; i < kNumCosts; ++i) predicted += fit[i] * features[i];
    error += std::abs(predicted - pass.seconds);
    total += pass.seconds;
  }
  out.residual = total > 0 ? error / total : 0;
  return out;
}

Result<RolloutCosts> MeasureRolloutCosts(const Settings& settings, const Policy& policy) {
  std::vector<PassSample> fastest;
  for (int round = 0; round < kRepetitions; ++round) {
    PACE_ASSIGN_OR_RETURN(std::vector<PassSample> passes, GenerateOnce(settings, policy));
    if (round == 0) fastest = passes;
    for (size_t i = 0; i < fastest.size(); ++i) {
      fastest[i].seconds = std::min(fastest[i].seconds, passes[i].seconds);
    }
  }
  return FitCosts(fastest);
}

Status ApplyCosts(const RolloutCosts& costs, const Policy& policy, const std::string& path,
                  Settings& settings) {
  const int64_t slots = settings.engine.slots;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (int64_t batch = 1;; batch = std::min(slots, 2 * batch)) {
    for (const int64_t context : {int64_t{1}, policy.config.max_positions}) {
      std::string line;
      JsonWriter json(line);
      json.BeginObject();
      json.Put("batch", batch);
      json.Put("context", context);
      json.Put("seconds",
               costs.pass + static_cast<double>(batch) *
                                (costs.row + static_cast<double>(context) * costs.context_token));
      json.EndObject();
      file << line << "\n";
    }
    if (batch == slots) break;
  }
  file.close();
  if (!file) return Unavailable(path, ": cannot be written");
  settings.cluster.layout = Layout::kDisjoint;
  settings.cluster.rollout_gpus = settings.cluster.trainer_gpus = 1;
  settings.cluster.slots = slots;
  settings.cluster.decode_costs = DecodeCosts::kTable;
  settings.cluster.decode_table = path;
  settings.cluster.sync_overhead_s = settings.cluster.train_overhead_s = 0;
  settings.cluster.sync_gb_per_s = settings.gpu.node_gb_per_s = 1e6;
  settings.cluster.recompute_activations = false;
  settings.cluster.train_seconds.reset();
  settings.gpu.prefill_mfu = 1;
  // Two operations for each parameter of the layers.
  const double flops = 2 * static_cast<double>(policy.config.num_parameters());
  settings.gpu.peak_tflops = 1e-12 * flops / std::max(1e-12, costs.prefill_row);
  settings.gpu.memory_tb_per_s = 1e3;  // updates are part of the training time
  return settings.Validate();
}

}  // namespace pace
