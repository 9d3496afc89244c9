#include "core/file_descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pace {

void FileDescriptor::Close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Status ErrnoStatus(std::string_view what, int error) {
  return Unavailable(what, ": ", std::strerror(error));
}

Status ErrnoStatus(std::string_view what) {
  return ErrnoStatus(what, errno);
}

Result<DescriptorPair> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus("pipe");
  DescriptorPair pair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
  // Each end has its own flags: the program's stays as programs expect it.
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus("pipe");
  return pair;
}

Result<DescriptorPair> MakeSocketPair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return ErrnoStatus("socketpair");
  return DescriptorPair{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Result<FileDescriptor> SealedFile(std::string_view content) {
  FileDescriptor file(::memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return ErrnoStatus("file in memory");
  size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = ::pwrite(file.get(), content.data() + written, content.size() - written,
                                   static_cast<off_t>(written));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ErrnoStatus("file in memory");
    written += static_cast<size_t>(count);
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
      0) {
    return ErrnoStatus("file in memory");
  }
  return file;
}

Status SendDescriptors(int socket, std::string_view text, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  std::vector<char> space(CMSG_SPACE(descriptors.size() * sizeof(int)));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return ErrnoStatus("sending a program to its interpreter");
  }
  return Status::Ok();
}

}  // namespace pace
