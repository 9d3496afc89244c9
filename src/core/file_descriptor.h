// FileDescriptor owns one descriptor. The functions create pipes, socket pairs and sealed files;
// all are closed on exec. Cancellation names a descriptor to wait for.
// Thread-safety: none.
#ifndef PACE_CORE_FILE_DESCRIPTOR_H_
#define PACE_CORE_FILE_DESCRIPTOR_H_

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pace {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() { Close(); }

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  void Close();

 private:
  int number_ = -1;
};

// "what: No such file or directory", from errno.
Status ErrnoStatus(std::string_view what);
Status ErrnoStatus(std::string_view what, int error);

struct DescriptorPair {
  FileDescriptor first;
  FileDescriptor second;
};
// first reads what second writes; reading does not block.
Result<DescriptorPair> MakePipe();
// `type`: SOCK_STREAM or SOCK_SEQPACKET. Both ends block.
Result<DescriptorPair> MakeSocketPair(int type);

// A file in memory that holds `content` and can no longer be changed.
Result<FileDescriptor> SealedFile(std::string_view content);

// Sends `text` and the descriptors, which the receiver gets copies of, at once.
Status SendDescriptors(int socket, std::string_view text, const std::vector<int>& descriptors);

// How a caller says that it no longer wants a result: a descriptor that becomes ready, such
// as a connection that its client closed. The default never becomes ready.
//
//   runner.Run(request, {.descriptor = connection, .events = POLLRDHUP});
struct Cancellation {
  int descriptor = -1;
  int16_t events = POLLIN;
};

}  // namespace pace

#endif  // PACE_CORE_FILE_DESCRIPTOR_H_
