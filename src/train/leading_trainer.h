// LeadingTrainer: rank 0's trainer of several. Each call is first told to the other ranks, with
// its sequences, and then carried out by all; they are in Follow. Calls that rank 0 can answer by
// itself are not told.
//
//   LeadingTrainer trainer(std::move(own), ranks);            // on rank 0
//   PACE_RETURN_IF_ERROR(Follow(*own, ranks));                // on the others
//
// The destructor ends Follow, unless a call between the ranks has failed.
// Thread-safety: as Trainer's.
#ifndef PACE_TRAIN_LEADING_TRAINER_H_
#define PACE_TRAIN_LEADING_TRAINER_H_

#include <memory>
#include <span>

#include "ranks/communicator.h"
#include "train/torch_trainer.h"
#include "train/trainer.h"

namespace pace {

class LeadingTrainer final : public Trainer {
 public:
  // `ranks` outlive it.
  LeadingTrainer(std::unique_ptr<TorchTrainer> own, Communicator& ranks);
  ~LeadingTrainer() override;

  Result<MetricList> Step(std::span<const TrainSequence> sequences) override;
  Result<MetricList> Imitate(std::span<const TrainSequence> sequences) override;
  Result<double> MeanLogProb(std::span<const TrainSequence> sequences) override;
  double learning_rate() const override { return own_->learning_rate(); }
  Result<WeightSet> Snapshot() const override;
  Result<WeightSet> HostSnapshot() const override;
  Result<TrainerState> Copy() const override;
  Status Restore(const TrainerState& state) override;

 private:
  enum class Call : uint8_t { kStop, kStep, kImitate, kMeanLogProb, kWeights, kState, kRestore };
  friend Status Follow(TorchTrainer& trainer, Communicator& ranks);
  Status Tell(Call call, std::span<const TrainSequence> sequences = {}) const;

  const std::unique_ptr<TorchTrainer> own_;
  Communicator& ranks_;
};

// Until rank 0's is destroyed.
Status Follow(TorchTrainer& trainer, Communicator& ranks);

}  // namespace pace

#endif  // PACE_TRAIN_LEADING_TRAINER_H_
