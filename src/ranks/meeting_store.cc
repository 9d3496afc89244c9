#include "ranks/meeting_store.h"

#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "ranks/c10d_errors.h"

namespace pace {
namespace {

class TcpMeetingStore final : public MeetingStore {
 public:
  explicit TcpMeetingStore(c10::intrusive_ptr<c10d::TCPStore> store) : store_(std::move(store)) {}

  int64_t port() const override { return store_->getPort(); }
  Status Put(const std::string& key, const std::string& value) override {
    return Caught([&] { store_->set(key, std::vector<uint8_t>(value.begin(), value.end())); });
  }
  Status Remove(const std::string& key) override {
    return Caught([&] { store_->deleteKey(key); });
  }

 private:
  const c10::intrusive_ptr<c10d::TCPStore> store_;
};

}  // namespace

Result<std::unique_ptr<MeetingStore>> OpenMeetingStore(const MeetingStoreOptions& options) {
  SilenceC10d();
  c10::intrusive_ptr<c10d::TCPStore> store;
  const Status status = Caught([&] {
    c10d::TCPStoreOptions meeting;
    meeting.port = static_cast<uint16_t>(options.port);
    meeting.isServer = true;
    meeting.waitWorkers = false;
    meeting.timeout = options.deadline;
    // The address by which this process calls its own server.
    store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", meeting);
  });
  if (!status.ok()) {
    return Unavailable("port ", options.port,
                       ": the store of meetings cannot be opened there: ", status.message());
  }
  return std::unique_ptr<MeetingStore>(std::make_unique<TcpMeetingStore>(std::move(store)));
}

}  // namespace pace
