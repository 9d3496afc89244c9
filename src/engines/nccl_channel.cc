#include "engines/nccl_channel.h"

#include <atomic>
#include <random>
#include <utility>

namespace pace {
namespace {

// A server refuses a name that it has seen, also that of a group whose other end is gone.
std::string NewGroupName() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::random_device device;
  std::string name = "pace-";
  for (int i = 0; i < 12; ++i) name += kDigits[device() % kDigits.size()];
  return name;
}

class NcclChannel final : public WeightChannel {
 public:
  NcclChannel(const NcclCalls& calls, NcclSender::Gpus gpus, std::optional<GroupMeeting> meeting)
      : calls_(calls), gpus_(std::move(gpus)), meeting_(std::move(meeting)) {}
  ~NcclChannel() override {
    if (meeting_.has_value()) meeting_->remove(IdKeyOf(group_));
  }
  Status Invite(NcclSenderOptions options) {
    options.lost = [this] {
      return cancelled_ ? Unavailable("the transfer of weights was given up") : Status::Ok();
    };
    options.greets = !meeting_.has_value();
    PACE_ASSIGN_OR_RETURN(invitation_, NcclInvitation::Make(calls_, options));
    return meeting_.has_value() ? meeting_->put(IdKeyOf(group_), Id()) : Status::Ok();
  }

  ChannelInvitation Invitation() const override {
    const NcclSenderOptions& options = invitation_.options;
    ChannelInvitation told{.num_workers = options.num_workers,
                           .id = Id(),
                           .group = group_,
                           .packed = options.packed,
                           .buffer_bytes = options.buffer_bytes};
    if (meeting_.has_value()) {
      told.address = meeting_->address;
      told.port = meeting_->port;
    }
    return told;
  }
  Status Join() override { return meeting_.has_value() ? Status::Ok() : JoinGroup(); }
  Status Send(const WeightSet& weights, std::span<const WeightChunk> chunks) override {
    if (sender_ == nullptr) PACE_RETURN_IF_ERROR(JoinGroup());
    return sender_->Send(weights, chunks);
  }
  void Cancel() override { cancelled_ = true; }

 private:
  std::string Id() const { return {invitation_.id.bytes.data(), invitation_.id.bytes.size()}; }
  // Once: what a failure leaves is of no more use.
  Status JoinGroup() {
    PACE_RETURN_IF_ERROR(failure_);
    Result<std::unique_ptr<NcclSender>> joined =
        NcclSender::Join(calls_, std::move(gpus_), invitation_);
    if (!joined.ok()) return failure_ = joined.status();
    sender_ = std::move(joined).value();
    return Status::Ok();
  }

  const NcclCalls& calls_;
  std::atomic<bool> cancelled_ = false;  // the sender asks for it to its end
  NcclSender::Gpus gpus_;                // until the group is joined
  const std::optional<GroupMeeting> meeting_;
  const std::string group_ = NewGroupName();
  NcclInvitation invitation_;
  Status failure_ = {};  // to join
  std::unique_ptr<NcclSender> sender_;
};

}  // namespace

std::string IdKeyOf(const std::string& group) {
  return Concat(group, "/", group, "//cuda//0");
}

Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclSenderOptions& options,
                                                       std::optional<GroupMeeting> meeting) {
  PACE_ASSIGN_OR_RETURN(const NcclCalls* const calls, LoadNccl());
  NcclSender::Gpus gpus;
  for (auto& gpu : gpus) {
    PACE_ASSIGN_OR_RETURN(gpu, OpenTransferGpu());
  }
  return OpenNcclChannel(*calls, std::move(gpus), options, std::move(meeting));
}

Result<std::unique_ptr<WeightChannel>> OpenNcclChannel(const NcclCalls& calls,
                                                       NcclSender::Gpus gpus,
                                                       const NcclSenderOptions& options,
                                                       std::optional<GroupMeeting> meeting) {
  auto channel = std::make_unique<NcclChannel>(calls, std::move(gpus), std::move(meeting));
  PACE_RETURN_IF_ERROR(channel->Invite(options));
  return std::unique_ptr<WeightChannel>(std::move(channel));
}

}  // namespace pace
