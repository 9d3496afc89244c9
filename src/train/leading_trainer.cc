#include "train/leading_trainer.h"

#include <string>
#include <utility>
#include <vector>

#include "train/rank_messages.h"

namespace pace {

LeadingTrainer::LeadingTrainer(std::unique_ptr<TorchTrainer> own, Communicator& ranks)
    : own_(std::move(own)), ranks_(ranks) {}

LeadingTrainer::~LeadingTrainer() {
  // Whoever does not hear it notices that this rank is gone.
  if (ranks_.failure().ok()) static_cast<void>(Tell(Call::kStop));
}

Status LeadingTrainer::Tell(Call call, std::span<const TrainSequence> sequences) const {
  std::string message(1, static_cast<char>(call));
  if (!sequences.empty()) message += EncodeSequences(sequences);
  return ranks_.AwaitBytes(message, 0);
}

Result<MetricList> LeadingTrainer::Step(std::span<const TrainSequence> sequences) {
  PACE_RETURN_IF_ERROR(Tell(Call::kStep, sequences));
  return own_->Step(sequences);
}

Result<MetricList> LeadingTrainer::Imitate(std::span<const TrainSequence> sequences) {
  PACE_RETURN_IF_ERROR(Tell(Call::kImitate, sequences));
  return own_->Imitate(sequences);
}

Result<double> LeadingTrainer::MeanLogProb(std::span<const TrainSequence> sequences) {
  PACE_RETURN_IF_ERROR(Tell(Call::kMeanLogProb, sequences));
  return own_->MeanLogProb(sequences);
}

Result<WeightSet> LeadingTrainer::Snapshot() const {
  if (!own_->has_whole_weights()) PACE_RETURN_IF_ERROR(Tell(Call::kWeights));
  return own_->Snapshot();
}

Result<WeightSet> LeadingTrainer::HostSnapshot() const {
  if (!own_->has_whole_weights()) PACE_RETURN_IF_ERROR(Tell(Call::kWeights));
  return own_->HostSnapshot();
}

Result<TrainerState> LeadingTrainer::Copy() const {
  if (!own_->has_whole_state()) PACE_RETURN_IF_ERROR(Tell(Call::kState));
  return own_->Copy();
}

Status LeadingTrainer::Restore(const TrainerState& state) {
  PACE_RETURN_IF_ERROR(Tell(Call::kRestore));
  return own_->Restore(state);
}

Status Follow(TorchTrainer& trainer, Communicator& ranks) {
  using Call = LeadingTrainer::Call;
  for (;;) {
    std::string message;
    PACE_RETURN_IF_ERROR(ranks.AwaitBytes(message, 0));
    if (message.empty()) return DataLoss("a call of rank 0 without a name");
    std::vector<TrainSequence> sequences;
    if (message.size() > 1) {
      PACE_ASSIGN_OR_RETURN(sequences, DecodeSequences(std::string_view(message).substr(1)));
    }
    Status status;
    switch (static_cast<Call>(message.front())) {
      case Call::kStop:
        return Status::Ok();
      case Call::kStep:
        status = trainer.Step(sequences).status();
        break;
      case Call::kImitate:
        status = trainer.Imitate(sequences).status();
        break;
      case Call::kMeanLogProb:
        status = trainer.MeanLogProb(sequences).status();
        break;
      case Call::kWeights:
        status = trainer.GatherWeights(/*keep=*/false).status();
        break;
      case Call::kState:
        status = trainer.GatherState(/*keep=*/false).status();
        break;
      case Call::kRestore:
        status = trainer.Restore({});
        break;
      default:
        return DataLoss("call ", static_cast<int>(message.front()), " of rank 0 is unknown");
    }
    PACE_RETURN_IF_ERROR(status);
  }
}

}  // namespace pace
