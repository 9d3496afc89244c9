#include "runtime/remote_evaluation.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pace {
namespace {

// Waits look again this often; nothing depends on it.
constexpr std::chrono::seconds kPatience{1};

// Groups of evaluations have ids from here on, which no group of training reaches.
constexpr int64_t kFirstEvaluationGroup = int64_t{1} << 40;

bool IsOfEvaluation(GroupId group) {
  return group.value() >= kFirstEvaluationGroup;
}

}  // namespace

void RemoteEvaluation::Submit(GroupRequest request) {
  Group group;
  for (int64_t i = 0; i < request.num_members(); ++i) group.unfinished.insert(request.member(i));
  request.group = GroupId(kFirstEvaluationGroup + request.group.value());
  request.only_version = version_;
  group.request = std::move(request);
  const MutexLock lock(mutex_);
  groups_.emplace(group.request.group, std::move(group));
}

Result<std::vector<FinishedResponse>> RemoteEvaluation::Wait() {
  const MutexLock lock(mutex_);
  while (finished_.empty() && status_.ok()) {
    happened_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kPatience);
  }
  if (!status_.ok()) return status_;
  return std::exchange(finished_, {});
}

bool RemoteEvaluation::HasUnassigned() const {
  const MutexLock lock(mutex_);
  return status_.ok() && std::any_of(groups_.begin(), groups_.end(), [](const auto& entry) {
           return !entry.second.worker.has_value();
         });
}

void RemoteEvaluation::Assign(const std::vector<size_t>& workers, const Give& give) {
  const MutexLock lock(mutex_);
  for (auto& [id, group] : groups_) {
    if (group.worker.has_value()) continue;
    group.worker = workers[next_++ % workers.size()];
    GroupRequest request = group.request;
    request.members.assign(group.unfinished.begin(), group.unfinished.end());
    give(*group.worker, std::move(request));
  }
}

bool RemoteEvaluation::Has(GroupId group) const {
  const MutexLock lock(mutex_);
  return groups_.contains(group);
}

bool RemoteEvaluation::Finish(const FinishedResponse& response) {
  const MutexLock lock(mutex_);
  const auto found = groups_.find(response.id.group);
  if (found == groups_.end()) return false;
  if (found->second.unfinished.erase(response.id.member) == 0) return true;
  finished_.push_back(response);
  finished_.back().id.group = GroupId(response.id.group.value() - kFirstEvaluationGroup);
  if (found->second.unfinished.empty()) groups_.erase(found);
  happened_.NotifyAll();
  return true;
}

void RemoteEvaluation::Lose(size_t worker) {
  const MutexLock lock(mutex_);
  for (auto& [id, group] : groups_) {
    if (group.worker == worker) group.worker.reset();
  }
}

std::vector<std::pair<size_t, GroupId>> RemoteEvaluation::Fail(const Status& error) {
  const MutexLock lock(mutex_);
  if (status_.ok()) status_ = error;
  std::vector<std::pair<size_t, GroupId>> left;
  for (const auto& [id, group] : groups_) {
    if (group.worker.has_value()) left.emplace_back(*group.worker, id);
  }
  groups_.clear();
  happened_.NotifyAll();
  return left;
}

RemoteEvaluations::~RemoteEvaluations() {
  for (const auto& evaluation : evaluations_) {
    evaluation->abandoned_ = true;
    (void)evaluation->Fail(Unavailable("the run ends"));
  }
}

std::shared_ptr<RemoteEvaluation> RemoteEvaluations::Start(PolicyVersion version) {
  return evaluations_.emplace_back(std::make_shared<RemoteEvaluation>(version));
}

void RemoteEvaluations::End(PolicyVersion version) {
  std::erase_if(evaluations_,
                [&](const auto& evaluation) { return evaluation->version() == version; });
}

void RemoteEvaluations::Assign(PolicyVersion published) {
  for (const auto& evaluation : evaluations_) {
    if (!evaluation->HasUnassigned()) continue;
    std::vector<size_t> able;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].joined && slots_[i].given == evaluation->version()) able.push_back(i);
    }
    if (!able.empty()) {
      evaluation->Assign(able, [this](size_t worker, GroupRequest request) {
        slots_[worker].worker->Submit(std::move(request));
      });
    } else if (published > evaluation->version()) {
      Fail(*evaluation, Unavailable("no server has it any more"));
    }
  }
}

bool RemoteEvaluations::Take(const RolloutEvent& event) {
  if (const auto* finished = std::get_if<FinishedResponse>(&event)) {
    if (!IsOfEvaluation(finished->id.group)) return false;
    for (const auto& evaluation : evaluations_) {
      if (evaluation->Finish(*finished)) break;
    }
    return true;
  }
  if (const auto* refused = std::get_if<GroupRefused>(&event)) {
    if (!IsOfEvaluation(refused->group)) return false;
    for (const auto& evaluation : evaluations_) {
      if (evaluation->Has(refused->group)) Fail(*evaluation, refused->error);
    }
    return true;
  }
  const auto* cancelled = std::get_if<GroupCancelled>(&event);
  return cancelled != nullptr && IsOfEvaluation(cancelled->request.group);
}

void RemoteEvaluations::Lose(size_t worker) {
  for (const auto& evaluation : evaluations_) evaluation->Lose(worker);
}

void RemoteEvaluations::Fail(RemoteEvaluation& evaluation, const Status& error) {
  for (const auto& [worker, group] : evaluation.Fail(error)) {
    if (slots_[worker].worker != nullptr) slots_[worker].worker->Cancel(group);
  }
}

}  // namespace pace
