#include "bench/train_peer.h"

#include <limits>

#include "bench/scripts.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

// Importing torch on a busy machine takes a while, and so may a slow step.
constexpr Seconds kTimeout(600);
constexpr double kAny = std::numeric_limits<double>::max();

void WriteSequence(JsonWriter& json, const TrainSequence& sequence) {
  json.BeginObject();
  json.Key("tokens");
  json.BeginArray();
  for (const TokenId id : sequence.tokens) json.Value(id);
  json.EndArray();
  json.Put("num_prompt_tokens", sequence.num_prompt_tokens);
  json.Key("rollout_logprobs");
  json.BeginArray();
  for (const float logprob : sequence.rollout_logprobs) json.Value(static_cast<double>(logprob));
  json.EndArray();
  json.Put("group", sequence.group);
  json.Put("reward", sequence.reward);
  json.EndObject();
}

std::string LoadRequest(const std::string& folder, const std::vector<TrainSequence>& sequences,
                        const TrainerOptions& options, int64_t token_budget) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Put("load", folder);
  json.Put("threads", options.num_threads);
  json.Put("token_budget", token_budget);
  json.Put("learning_rate", options.learning_rate);
  json.Key("betas");
  json.BeginArray();
  json.Value(options.adamw.beta1);
  json.Value(options.adamw.beta2);
  json.EndArray();
  json.Put("epsilon", options.adamw.epsilon);
  json.Put("weight_decay", options.adamw.weight_decay);
  json.Put("max_grad_norm", options.max_grad_norm);
  json.Key("sequences");
  json.BeginArray();
  for (const TrainSequence& sequence : sequences) WriteSequence(json, sequence);
  json.EndArray();
  json.EndObject();
  return request;
}

}  // namespace

std::string_view NameOf(PeerOrder order) {
  switch (order) {
    case PeerOrder::kPlain:
      return "plain";
    case PeerOrder::kSorted:
      return "sorted";
    case PeerOrder::kSingle:
      return "single";
  }
  return "";
}

Result<std::unique_ptr<TrainPeer>> TrainPeer::Start(const std::string& folder,
                                                    const std::vector<TrainSequence>& sequences,
                                                    const TrainerOptions& options,
                                                    int64_t token_budget) {
  PACE_ASSIGN_OR_RETURN(PeerProcess process,
                        PeerProcess::Start(PeerPython(), TrainPeerSource(), {}, ""));
  auto peer = std::unique_ptr<TrainPeer>(new TrainPeer(std::move(process)));
  PACE_RETURN_IF_ERROR(peer->process_.Send(LoadRequest(folder, sequences, options, token_budget)));
  PACE_RETURN_IF_ERROR(peer->ReadLoaded());
  return peer;
}

Status TrainPeer::ReadLoaded() {
  PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kTimeout));
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "version") {
      scan.Text(version_);
      continue;
    }
    size_t count = 0;
    scan.EnterArray();
    while (scan.NextItem()) {
      if (count == kPeerOrders.size()) {
        scan.Fail("more than it was asked for");
      } else {
        scan.Real(0, 1, "", padding_[kPeerOrders[count++]]);
      }
    }
  }
  return scan.ok() ? Status::Ok() : scan.status().At("train_peer.py");
}

Result<TrainStep> TrainPeer::Step(PeerOrder order, bool measure_memory) {
  PACE_RETURN_IF_ERROR(
      process_.Send(Concat("{\"step\": \"", NameOf(order),
                           "\", \"measure_memory\": ", measure_memory ? "true" : "false", "}")));
  PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kTimeout));
  TrainStep step;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "seconds") {
      scan.Real(0, kAny, "", step.seconds);
    } else if (scan.key() == "loss") {
      scan.Real(-kAny, kAny, "", step.loss);
    } else if (scan.key() == "grad_norm") {
      scan.Real(0, kAny, "", step.grad_norm);
    } else {
      scan.Integer(0, std::numeric_limits<int64_t>::max(), "", step.peak_bytes.emplace());
    }
  }
  if (!scan.ok()) return scan.status().At("train_peer.py");
  return step;
}

}  // namespace pace
