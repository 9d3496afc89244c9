#include "engines/nccl_channel.h"

#include <atomic>
#include <utility>

namespace pace {
namespace {

class NcclChannel final : public WeightChannel {
 public:
  NcclChannel(const NcclCalls& calls, NcclSender::Gpus gpus)
      : calls_(calls), gpus_(std::move(gpus)) {}
  Status Invite(NcclSenderOptions options) {
    options.lost = [this] {
      return cancelled_ ? Unavailable("the transfer of weights was given up") : Status::Ok();
    };
    PACE_ASSIGN_OR_RETURN(invitation_, NcclInvitation::Make(calls_, options));
    return Status::Ok();
  }

  std::string Invitation() const override { return invitation_.InitInfo(); }
  Status Join() override {
    PACE_ASSIGN_OR_RETURN(sender_, NcclSender::Join(calls_, std::move(gpus_), invitation_));
    return Status::Ok();
  }
  Status Send(const WeightSet& weights) override { return sender_->Send(weights); }
  void Cancel() override { cancelled_ = true; }

 private:
  const NcclCalls& calls_;
  std::atomic<bool> cancelled_ = false;  // the sender asks for it to its end
  NcclSender::Gpus gpus_;                // until Join
  NcclInvitation invitation_;
  std::unique_ptr<NcclSender> sender_;
};

}  // namespace

Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclSenderOptions& options) {
  PACE_ASSIGN_OR_RETURN(const NcclCalls* const calls, LoadNccl());
  NcclSender::Gpus gpus;
  for (auto& gpu : gpus) {
    PACE_ASSIGN_OR_RETURN(gpu, OpenTransferGpu());
  }
  return OpenNcclChannel(*calls, std::move(gpus), options);
}

Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclCalls& calls,
                                                       NcclSender::Gpus gpus,
                                                       const NcclSenderOptions& options) {
  auto channel = std::make_unique<NcclChannel>(calls, std::move(gpus));
  PACE_RETURN_IF_ERROR(channel->Invite(options));
  return std::unique_ptr<WeightChannel>(std::move(channel));
}

}  // namespace pace
