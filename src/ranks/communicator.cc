#include "ranks/communicator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace pace {

template <typename Call>
Status Communicator::Checked(const char* what, const Call& call) {
  if (failure_.ok()) {
    failure_ = call().At(Concat("rank ", rank(), " of ", size(), ": ", what));
  }
  return failure_;
}

void Communicator::UseForGpus(std::unique_ptr<GpuCollectives> gpus) {
  gpus_ = std::move(gpus);
}

GpuCollectives* Communicator::CarrierOf(const at::Tensor& tensor) const {
  return tensor.is_cuda() ? gpus_.get() : nullptr;
}

Status Communicator::AllReduce(const at::Tensor& tensor) {
  GpuCollectives* const gpus = CarrierOf(tensor);
  return Checked("all-reduce",
                 [&] { return gpus == nullptr ? Sum(tensor) : gpus->Sum(tensor.view(-1)); });
}

PendingCollective Communicator::StartReduceScatter(const at::Tensor& all, const at::Tensor& own) {
  PACE_CHECK(all.numel() == size() * own.numel(), all.numel(), " of ", own.numel());
  constexpr auto kWhat = "reduce-scatter";
  if (!failure_.ok()) return {*this, kWhat, Completed(failure_)};
  GpuCollectives* const gpus = CarrierOf(all);
  return {*this, kWhat,
          gpus == nullptr ? SumParts(all.view(-1), own.view(-1))
                          : Completed(gpus->SumParts(all.view(-1), own.view(-1)))};
}

PendingCollective Communicator::StartAllGather(const at::Tensor& own, const at::Tensor& all) {
  PACE_CHECK(all.numel() == size() * own.numel(), all.numel(), " of ", own.numel());
  constexpr auto kWhat = "all-gather";
  if (!failure_.ok()) return {*this, kWhat, Completed(failure_)};
  GpuCollectives* const gpus = CarrierOf(own);
  return {*this, kWhat,
          gpus == nullptr ? Collect(own.view(-1), all.view(-1))
                          : Completed(gpus->Collect(own.view(-1), all.view(-1)))};
}

Status PendingCollective::Finish() {
  return ranks_->Checked(what_, std::exchange(completion_, nullptr));
}

Status Communicator::ReduceScatter(const at::Tensor& all, const at::Tensor& own) {
  return StartReduceScatter(all, own).Finish();
}

Status Communicator::AllGather(const at::Tensor& own, const at::Tensor& all) {
  return StartAllGather(own, all).Finish();
}

Status Communicator::Broadcast(const at::Tensor& tensor, int64_t root) {
  GpuCollectives* const gpus = CarrierOf(tensor);
  return Checked("broadcast", [&] {
    return gpus == nullptr ? Send(tensor, root, Patience::kCollective)
                           : gpus->Send(tensor.view(-1), root);
  });
}

Status Communicator::BroadcastBytes(std::string& bytes, int64_t root) {
  return SendBytes(bytes, root, Patience::kCollective);
}

Status Communicator::AwaitBytes(std::string& bytes, int64_t root) {
  return SendBytes(bytes, root, Patience::kIdle);
}

Status Communicator::SendBytes(std::string& bytes, int64_t root, Patience patience) {
  const at::Tensor length = at::full({1}, static_cast<int64_t>(bytes.size()), at::kLong);
  PACE_RETURN_IF_ERROR(Checked("broadcast", [&] { return Send(length, root, patience); }));
  const auto count = length.item<int64_t>();
  if (count == 0) {
    bytes.clear();
    return Status::Ok();
  }
  bytes.resize(static_cast<size_t>(count));
  const at::Tensor content = at::from_blob(bytes.data(), {count}, at::kByte);
  return Broadcast(content, root);
}

Result<std::vector<std::string>> Communicator::GatherBytes(const std::string& own) {
  const at::Tensor lengths = at::empty({size()}, at::kLong);
  PACE_RETURN_IF_ERROR(
      AllGather(at::full({1}, static_cast<int64_t>(own.size()), at::kLong), lengths));
  const auto* const counts = lengths.const_data_ptr<int64_t>();
  const int64_t longest = *std::max_element(counts, counts + size());
  std::vector<std::string> texts(static_cast<size_t>(size()));
  if (longest == 0) return texts;
  const at::Tensor padded = at::zeros({longest}, at::kByte);
  std::memcpy(padded.data_ptr(), own.data(), own.size());
  const at::Tensor all = at::empty({size() * longest}, at::kByte);
  PACE_RETURN_IF_ERROR(AllGather(padded, all));
  const char* const data = static_cast<const char*>(all.const_data_ptr());
  for (int64_t i = 0; i < size(); ++i) {
    texts[static_cast<size_t>(i)].assign(data + i * longest, static_cast<size_t>(counts[i]));
  }
  return texts;
}

}  // namespace pace
