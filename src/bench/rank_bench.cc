// `pace bench ranks`: training speed of two ranks with one thread each, beside PyTorch's FSDP2 on
// as many ranks and beside one rank with two threads, on the same weights and sequences, in the
// same rounds.
//
// All sides must report the same loss and gradient norm; if not, there is an error instead of a
// report.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_model.h"
#include "bench/benches.h"
#include "bench/peer.h"
#include "bench/train_loop.h"
#include "ranks/communicator.h"

namespace pace {
namespace {

constexpr int64_t kNumRanks = 2;
constexpr int64_t kRankTokenBudget = 2048;  // tokens in flight, over all ranks or threads
constexpr double kRankTolerance = 1e-3;     // of losses and gradient norms, relative
constexpr double kLeastOverFsdp = 1.5;
constexpr double kLeastOverThreads = 0.85;
constexpr std::array<std::pair<ShardMode, const char*>, 3> kModes = {
    {{ShardMode::kNone, "none"}, {ShardMode::kGradients, "gradients"}, {ShardMode::kFull, "full"}}};

int64_t FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(listener);
  return bound ? ntohs(address.sin_port) : 0;
}

RankEnvironment PlaceOf(int64_t rank, int64_t port) {
  return {
      .launcher = "bench", .rank = rank, .size = kNumRanks, .address = "127.0.0.1", .port = port};
}

TrainerOptions RankOptionsOf(ShardMode mode) {
  TrainerOptions options = BenchTrainerOptions(1, kRankTokenBudget / kNumRanks);
  options.shard = mode;
  return options;
}

// One way to train.
struct RankedSide {
  std::string name = {};
  Measurement speed = {.name = {}, .unit = "tokens/s"};
  TrainStep first = {};
  std::unique_ptr<Communicator> ranks = {};
  std::unique_ptr<TrainLoop> loop = {};  // ends before its ranks
  int64_t port = 0;
  pid_t follower = 0;
};

// The other rank is a child, forked while this process has no threads yet.
void StartFollower(const BenchModel& model, ShardMode mode, RankedSide& side) {
  side.port = FreePort();
  side.follower = fork();
  if (side.follower != 0) return;
  const auto end = [](const Status& status) { std::_Exit(status.ok() ? 0 : 1); };
  Result<std::unique_ptr<Communicator>> ranks =
      ConnectRanks(PlaceOf(1, side.port), {.on_lost = end});
  if (!ranks.ok()) end(ranks.status());
  const Status status = FollowTrainer(model.config, model.weights, RankOptionsOf(mode), **ranks);
  if (status.ok()) ranks->reset();
  end(status);
}

Status CheckSameStep(const TrainStep& own, const TrainStep& other, const std::string& name) {
  const auto differ = [](double a, double b) {
    return std::abs(a - b) > kRankTolerance * std::max(std::abs(b), 1e-6);
  };
  if (!differ(own.loss, other.loss) && !differ(own.grad_norm, other.grad_norm)) return Status::Ok();
  return DataLoss(name, ": loss ", other.loss, ", gradient norm ", other.grad_norm,
                  ", but one rank has ", own.loss, " and ", own.grad_norm);
}

Result<Peer> StartFsdp(const BenchModel& model, const std::vector<TrainSequence>& sequences) {
  PACE_ASSIGN_OR_RETURN(Peer peer, Peer::Start("fsdp_peer.py"));
  TrainerOptions options = RankOptionsOf(ShardMode::kFull);
  options.num_threads = kNumRanks;
  PACE_RETURN_IF_ERROR(
      peer.Ask(TrainLoadRequest(model.folder, sequences, options, kRankTokenBudget / kNumRanks))
          .status());
  return peer;
}

}  // namespace

Status RunRankBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<BenchModel> model, BenchModel::Load(options.model));
  std::vector<RankedSide> sides(kModes.size());
  for (size_t i = 0; i < kModes.size(); ++i) {
    sides[i].name = Concat("train_ranks_", kNumRanks, "_", kModes[i].second);
    StartFollower(*model, kModes[i].first, sides[i]);
    if (sides[i].follower < 0) return Unavailable("a rank cannot be started");
  }
  std::vector<TrainSequence> sequences = MakeTrainBatch(model->config, {});
  PACE_RETURN_IF_ERROR(RecordLogProbs(model->config, model->weights, sequences));
  for (size_t i = 0; i < kModes.size(); ++i) {
    PACE_ASSIGN_OR_RETURN(sides[i].ranks, ConnectRanks(PlaceOf(0, sides[i].port), {}));
    PACE_ASSIGN_OR_RETURN(sides[i].loop,
                          TrainLoop::Create(model->config, model->weights, Dtype::kF32,
                                            RankOptionsOf(kModes[i].first), sides[i].ranks.get()));
  }
  RankedSide& threads = sides.emplace_back();
  threads.name = Concat("train_threads_", kNumRanks);
  PACE_ASSIGN_OR_RETURN(threads.loop,
                        TrainLoop::Create(model->config, model->weights, Dtype::kF32,
                                          BenchTrainerOptions(kNumRanks, kRankTokenBudget)));
  Result<Peer> peer = options.python ? StartFsdp(*model, sequences) : Unavailable("not asked for");
  Measurement fsdp{.name = Concat("train_fsdp2_", kNumRanks), .unit = "tokens/s"};
  const auto num_tokens = static_cast<double>(CountTokens(sequences));
  // The first round warms up.
  for (int64_t round = 0; round <= options.repetitions; ++round) {
    for (RankedSide& side : sides) {
      PACE_ASSIGN_OR_RETURN(const TrainStep step,
                            side.loop->Step(sequences, /*measure_memory=*/false));
      if (round == 0) side.first = step;
      if (round > 0) side.speed.Add(num_tokens / step.seconds);
    }
    if (!peer.ok()) continue;
    PACE_ASSIGN_OR_RETURN(const PeerAnswer answer,
                          peer->Ask(R"({"step": "plain"})", {"seconds", "loss", "grad_norm"}));
    if (round > 0) fsdp.Add(num_tokens / answer.numbers.at("seconds"));
    if (round > 0) continue;
    PACE_RETURN_IF_ERROR(CheckSameStep(
        sides.back().first,
        {.loss = answer.numbers.at("loss"), .grad_norm = answer.numbers.at("grad_norm")},
        fsdp.name));
  }
  for (RankedSide& side : sides) {
    PACE_RETURN_IF_ERROR(CheckSameStep(sides.back().first, side.first, side.name));
    side.speed.name = side.name;
    report.measurements.push_back(side.speed);
    const bool is_ranks = side.follower > 0;
    if (is_ranks) {
      report.measurements.push_back(RatioOf(side.speed, sides.back().speed,
                                            side.name + "_times_threads", kLeastOverThreads,
                                            Limit::kAtLeast));
    }
    if (is_ranks && peer.ok()) {
      report.measurements.push_back(RatioOf(side.speed, fsdp, side.name + "_times_fsdp2",
                                            std::optional<double>(kLeastOverFsdp),
                                            Limit::kAtLeast));
    }
  }
  if (peer.ok()) report.measurements.push_back(fsdp);
  for (RankedSide& side : sides) {
    side.loop.reset();
    side.ranks.reset();
    if (side.follower > 0) waitpid(side.follower, nullptr, 0);
  }
  JsonWriter& settings = report.settings();
  settings.Put("num_parameters", model->config.num_parameters());
  settings.Put("repetitions", options.repetitions);
  settings.Put("ranks", kNumRanks);
  settings.Put("token_budget", kRankTokenBudget);
  settings.Put("num_tokens", CountTokens(sequences));
  report.more().Put("peer", DescriptionOf(peer));
  return Status::Ok();
}

}  // namespace pace
