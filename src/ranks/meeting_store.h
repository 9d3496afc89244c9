// MeetingStore: a store of keys and values in this process, which PyTorch processes elsewhere read.
//
//   PACE_ASSIGN_OR_RETURN(const std::unique_ptr<MeetingStore> store, OpenMeetingStore({}));
//   PACE_RETURN_IF_ERROR(store->Put("group/0", id));
//   // Elsewhere: torch.distributed.TCPStore(host, store->port()).get("group/0")
//
// It is the server of c10d's TCPStore, on every address of this machine. Whoever reaches the port
// can read and write: it belongs on a private network. A key holds any bytes. A thread of this
// process answers the calls.
// Thread-safety: every method.
#ifndef PACE_RANKS_MEETING_STORE_H_
#define PACE_RANKS_MEETING_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"

namespace pace {

struct MeetingStoreOptions {
  int64_t port = 0;                            // 0: any that is free
  std::chrono::milliseconds deadline{10'000};  // of opening it
};

class MeetingStore {
 public:
  // Closes the port and every connection.
  virtual ~MeetingStore() = default;
  virtual int64_t port() const = 0;
  virtual Status Put(const std::string& key, const std::string& value) = 0;
  // Of a key that is not there: nothing.
  virtual Status Remove(const std::string& key) = 0;
};

// An error if the port is in use.
Result<std::unique_ptr<MeetingStore>> OpenMeetingStore(const MeetingStoreOptions& options);

}  // namespace pace

#endif  // PACE_RANKS_MEETING_STORE_H_
