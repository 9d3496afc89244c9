// ConnectRanks: c10d's ProcessGroupGloo, from the wheel.
//
// Two groups: one for the calls, one on which a thread tells the others that this rank is there
// (RankWatch). A killed rank closes its connections, and a stopped one misses the deadline; either
// ends a call on the second group, in every rank in turn, also while the first is not in use.
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "core/mutex.h"
#include "ranks/c10d_errors.h"
#include "ranks/communicator.h"

namespace pace {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kWatchInterval{500};

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

Group MakeGroup(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name,
                const RankEnvironment& place, milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  const std::optional<std::string> interface = ProcessVariable("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface.has_value()
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(*interface)
                                 : c10d::ProcessGroupGloo::createDefaultDevice());
  options->threads = 1;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::PrefixStore>(name, store), static_cast<int>(place.rank),
      static_cast<int>(place.size), options);
}

class RankWatch {
 public:
  RankWatch(Group group, const RankEnvironment& place, const RankOptions& options)
      : group_(std::move(group)), place_(place), options_(options), thread_([this] { Run(); }) {}
  // `agreed`: waits until every rank leaves.
  void Leave(bool agreed) {
    {
      const MutexLock lock(mutex_);
      (agreed ? leaves_ : stops_) = true;
      wake_.NotifyAll();
    }
    if (thread_.joinable()) thread_.join();
  }
  Status lost() const {
    const MutexLock lock(mutex_);
    return lost_;
  }

 private:
  struct Wish {
    bool leaves = false;
    bool stops = false;
  };
  Wish Next() {
    const MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + kWatchInterval;
    while (!leaves_ && !stops_ && wake_.WaitUntil(mutex_, deadline)) {
    }
    return {leaves_, stops_};
  }

  void Tell(const Status& status) {
    {
      const MutexLock lock(mutex_);
      lost_ = status;
    }
    if (options_.on_lost) options_.on_lost(status);
  }

  void Run() {
    auto left_at = std::chrono::steady_clock::time_point::max();
    for (;;) {
      const Wish wish = Next();
      const auto now = std::chrono::steady_clock::now();
      if (wish.leaves && left_at > now) left_at = now;
      if (wish.stops || (wish.leaves && now - left_at > options_.collective)) return;
      std::vector<at::Tensor> leaving = {at::full({1}, wish.leaves ? 1 : 0, at::kLong)};
      const Status status = Caught([&] {
        c10d::AllreduceOptions sum;
        sum.timeout = options_.silence;
        group_->allreduce(leaving, sum)->wait();
      });
      if (!status.ok()) {
        // One that left without the others' consent meets the same error.
        if (!wish.leaves) {
          Tell(Unavailable("rank ", place_.rank, " of ", place_.size,
                           ": another rank ended or is silent: ", status.message()));
        }
        return;
      }
      if (leaving.front().item<int64_t>() == place_.size) return;
      if (wish.leaves) std::this_thread::sleep_for(milliseconds(20));
    }
  }

  const Group group_;
  const RankEnvironment place_;
  const RankOptions options_;
  mutable Mutex mutex_;
  CondVar wake_;
  Status lost_ PACE_GUARDED_BY(mutex_) = {};
  bool leaves_ PACE_GUARDED_BY(mutex_) = false;
  bool stops_ PACE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member: it uses the others
};

class GlooRanks final : public Communicator {
 public:
  GlooRanks(const RankEnvironment& place, const RankOptions& options,
            c10::intrusive_ptr<c10d::Store> store, Group group, Group watched)
      : place_(place),
        options_(options),
        store_(std::move(store)),
        group_(std::move(group)),
        watch_(std::move(watched), place, options) {}
  ~GlooRanks() override { watch_.Leave(/*agreed=*/failure().ok()); }

  int64_t rank() const override { return place_.rank; }
  int64_t size() const override { return place_.size; }
  Status lost() const override { return watch_.lost(); }

 protected:
  Status Sum(const at::Tensor& tensor) override {
    return Caught([&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::AllreduceOptions options;
      options.timeout = options_.collective;
      group_->allreduce(tensors, options)->wait();
    });
  }
  // Each rank sends its parts directly to the others: with 24 MB on two ranks gloo's own
  // reduce-scatter took three times as long, and its all-gather twice. The order of addition of a
  // part depends on its rank and the number of ranks alone.
  Completion SumParts(const at::Tensor& all, const at::Tensor& own) override {
    auto exchanges = std::make_shared<std::vector<PartExchange>>();
    const Status started = Caught([&] {
      CopyUnlessSame(PartOf(all, rank()), own);
      for (int64_t distance = 1; distance < size(); ++distance) {
        exchanges->push_back(
            Exchange(PartOf(all, RankAt(distance)), distance, at::empty_like(own)));
      }
      ++num_exchanged_;
    });
    return [this, started, exchanges, own] {
      if (!started.ok()) return started;
      return Caught([&] {
        const at::NoGradGuard no_grad;
        for (const PartExchange& exchange : *exchanges) own.add_(Received(exchange));
      });
    };
  }
  Completion Collect(const at::Tensor& own, const at::Tensor& all) override {
    auto exchanges = std::make_shared<std::vector<PartExchange>>();
    const Status started = Caught([&] {
      CopyUnlessSame(own, PartOf(all, rank()));
      for (int64_t distance = 1; distance < size(); ++distance) {
        exchanges->push_back(Exchange(own, distance, PartOf(all, RankAt(-distance))));
      }
      ++num_exchanged_;
    });
    return [this, started, exchanges] {
      if (!started.ok()) return started;
      return Caught([&] {
        for (const PartExchange& exchange : *exchanges) (void)Received(exchange);
      });
    };
  }
  Status Send(const at::Tensor& tensor, int64_t root, Patience patience) override {
    return Caught([&] {
      std::vector<at::Tensor> tensors = {tensor};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      options.timeout = patience == Patience::kIdle ? milliseconds(options_.idle)
                                                    : milliseconds(options_.collective);
      group_->broadcast(tensors, options)->wait();
    });
  }

 private:
  // Rank rank() + distance, modulo size().
  int64_t RankAt(int64_t distance) const { return (rank() + distance + size()) % size(); }
  at::Tensor PartOf(const at::Tensor& all, int64_t rank) const {
    const int64_t count = all.numel() / size();
    return all.narrow(0, rank * count, count);
  }
  static void CopyUnlessSame(const at::Tensor& from, const at::Tensor& to) {
    if (from.const_data_ptr() != to.const_data_ptr()) to.copy_(from);
  }
  // A part on its way to one rank, and another one from one rank. Both are tensors of this process
  // that the transfer reads and writes.
  struct PartExchange {
    at::Tensor sent;
    at::Tensor received;
    c10::intrusive_ptr<c10d::Work> sending;
    c10::intrusive_ptr<c10d::Work> receiving;
  };
  // Sends to the rank at `distance`, and receives from the one at as large a distance before.
  PartExchange Exchange(const at::Tensor& own, int64_t distance, const at::Tensor& received) {
    std::vector<at::Tensor> from = {own};
    std::vector<at::Tensor> to = {received};
    // Every rank makes the same calls, so each pair agrees on the tags.
    const int tag = static_cast<int>(num_exchanged_ % kNumTags);
    auto receiving = group_->recv(to, static_cast<int>(RankAt(-distance)), tag);
    auto sending = group_->send(from, static_cast<int>(RankAt(distance)), tag);
    return {own, received, std::move(sending), std::move(receiving)};
  }
  const at::Tensor& Received(const PartExchange& exchange) const {
    exchange.receiving->wait(options_.collective);
    exchange.sending->wait(options_.collective);
    return exchange.received;
  }

  static constexpr int64_t kNumTags = 1024;  // far more than collectives pending at a time

  const RankEnvironment place_;
  const RankOptions options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const Group group_;
  RankWatch watch_;
  int64_t num_exchanged_ = 0;  // collectives of parts
};

}  // namespace

Result<std::unique_ptr<Communicator>> ConnectRanks(const RankEnvironment& environment,
                                                   const RankOptions& options) {
  SilenceC10d();
  std::unique_ptr<Communicator> ranks;
  const Status status = Caught([&] {
    c10d::TCPStoreOptions meeting;
    meeting.port = static_cast<uint16_t>(environment.port);
    meeting.isServer = !environment.agent_store && environment.rank == 0;
    meeting.waitWorkers = false;
    meeting.timeout = options.join;
    c10::intrusive_ptr<c10d::Store> store =
        c10::make_intrusive<c10d::TCPStore>(environment.address, meeting);
    // The agent's store outlives a start of the group.
    store =
        c10::make_intrusive<c10d::PrefixStore>(Concat("pace/", environment.num_restarts), store);
    store->setTimeout(options.join);
    Group group = MakeGroup(store, "calls", environment, options.join);
    Group watched = MakeGroup(store, "watch", environment, options.join);
    ranks = std::make_unique<GlooRanks>(environment, options, store, std::move(group),
                                        std::move(watched));
  });
  if (!status.ok()) {
    return Unavailable("rank ", environment.rank, " of ", environment.size,
                       ": the ranks did not meet at ", environment.address, ":", environment.port,
                       " within ", options.join.count(), " s: ", status.message());
  }
  return ranks;
}

}  // namespace pace
