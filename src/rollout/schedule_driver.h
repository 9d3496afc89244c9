// ScheduleDriver, for tests: runs an EngineCore through a random life.
//
// Groups arrive, weights are synced, groups and members are cancelled (and
// perhaps come back), the engine is torn down and its unfinished responses go
// on in another of a different size, the device fails, responses rest and are given
// tokens or ended; engines score prefixes at either moment. Invariants are checked
// after every call. Beside the engine the driver keeps its own books: each
// step's tokens, interrupts and scores that are due. A finished response must
// agree with them, and with the reference of the world, which knows no cache,
// no batch and no schedule.
#ifndef PACE_ROLLOUT_SCHEDULE_DRIVER_H_
#define PACE_ROLLOUT_SCHEDULE_DRIVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rollout/engine_core.h"

namespace pace {

class ScheduleRandom {
 public:
  explicit ScheduleRandom(uint64_t seed) : bits_(seed * 0x9e3779b97f4a7c15u + 1) {}
  // 0 to n - 1.
  int64_t Below(int64_t n) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(n)); }
  // low to high.
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(double p) { return static_cast<double>(bits_() >> 11) * 0x1p-53 < p; }

 private:
  std::mt19937_64 bits_;
};

// A decoder and what it should compute.
class ScheduleWorld {
 public:
  virtual ~ScheduleWorld() = default;
  virtual const ModelConfig& config() const = 0;
  virtual std::unique_ptr<Decoder> MakeDecoder(int64_t num_blocks, SyncMode mode) = 0;
  virtual std::shared_ptr<const DecoderWeights> Weights(PolicyVersion version) = 0;
  // Makes a pass of the newest decoder fail; false if it cannot.
  virtual bool FailSoon() { return false; }

  // What a member's tokens [first, end) should have been, given those before
  // each, under one version.
  virtual std::vector<Sampled> Resample(const GroupRequest& request, int64_t member,
                                        const std::vector<TokenRecord>& tokens, int64_t first,
                                        int64_t end, PolicyVersion version) = 0;
  // Log-probabilities of its first num_scored tokens under one version, of those
  // that were given too.
  virtual std::vector<float> Rescore(const GroupRequest& request,
                                     const std::vector<TokenRecord>& tokens, int64_t num_scored,
                                     PolicyVersion version) = 0;
};

struct ScheduleOptions {
  SyncMode sync_mode = SyncMode::kReprefill;
  int64_t num_groups = 4;
  int64_t max_prompt = 40;
  int64_t max_tokens = 30;
  int64_t max_responses = 4;
  int64_t max_pass_tokens = 40;  // at most; each engine draws its own
  int64_t min_scored = 4;
  int64_t max_scored = 12;
  int64_t max_spare_blocks = 20;  // beyond what one response needs
  double sync_chance = 0.05;
  double cancel_chance = 0.02;
  double restart_chance = 0.02;
  double failure_chance = 0.01;
  std::optional<Tokenizer> tokenizer;  // for stop strings of up to three letters
};

class ScheduleDriver {
 public:
  ScheduleDriver(ScheduleWorld& world, const ScheduleOptions& options, uint64_t seed);

  // Until every group has come and ended. False: failure() says why.
  bool Run();
  const std::string& failure() const { return failure_; }

  int64_t num_steps() const { return num_steps_; }
  int64_t num_finished() const { return num_finished_; }
  int64_t num_scored() const { return num_scored_; }
  int64_t num_interrupted() const { return num_interrupted_; }
  int64_t num_preempted() const { return num_preempted_; }
  int64_t num_continued() const { return num_continued_; }

 private:
  struct DueScore {
    PolicyVersion version;
    int64_t end = 0;  // the sampled ones among the first `end` tokens
  };
  // The driver's own books of one unfinished response.
  struct Book {
    std::vector<TokenRecord> tokens;
    int64_t num_interrupts = 0;
    std::optional<DueScore> due;    // of the tokens that a sync interrupted
    std::optional<DueScore> score;  // what was due when a token was sampled last
    bool paused = false;
    std::vector<size_t> turns;  // numbers of tokens at which it paused

    int64_t num_sampled() const;
    // Where the first `most` sampled tokens end, or those before this version.
    int64_t ScoredEnd(int64_t most, PolicyVersion version) const;
  };

  void Fail(const std::string& what);
  void Disturb();
  void NewEngine();
  GroupRequest RandomRequest();
  void Submit(GroupRequest request);
  void Sync();
  void OnSynced(PolicyVersion version);
  void Cancel();
  void BringBack();
  void Restart();
  // Resumes or finishes every paused response, sooner or later.
  void Answer();
  bool AnyRests() const;
  void Step();
  void CheckSampled(const StepReport& report);
  void CheckCancelled(const GroupRequest& request);
  void CheckFinished(const FinishedResponse& finished);
  void CheckReason(const GroupRequest& request, const FinishedResponse& finished, const Book& book);
  // The rule that the last of these tokens meets, if any.
  std::optional<FinishReason> ReasonAt(const StopRules& stop, std::span<const TokenId> turn,
                                       size_t num_tokens) const;
  void CheckAgainstReference(const GroupRequest& request, const FinishedResponse& finished);
  double ReferenceScore(const GroupRequest& request, const std::vector<TokenRecord>& tokens,
                        const DueScore& due);

  ScheduleWorld& world_;
  const ScheduleOptions options_;
  ScheduleRandom random_;
  std::unique_ptr<EngineCore> engine_;
  int64_t num_blocks_ = 0;
  PolicyVersion version_;
  std::map<GroupId, GroupRequest> requests_;  // as first submitted
  std::map<MemberId, Book> books_;            // of unfinished responses
  std::vector<GroupRequest> set_aside_;       // cancelled, to come back
  int64_t num_submitted_ = 0;

  int64_t num_steps_ = 0;
  int64_t num_finished_ = 0;
  int64_t num_scored_ = 0;
  int64_t num_interrupted_ = 0;
  int64_t num_preempted_ = 0;
  int64_t num_continued_ = 0;
  std::string failure_;
};

}  // namespace pace

#endif  // PACE_ROLLOUT_SCHEDULE_DRIVER_H_
