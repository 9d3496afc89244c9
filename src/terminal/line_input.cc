#include "terminal/line_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/utf8.h"

namespace pace {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr size_t kReadBytes = size_t{64} << 10;

constexpr size_t kMaxWaitingBytes = size_t{1} << 16;

Status WriteOut(std::string& out) {
  std::fwrite(out.data(), 1, out.size(), stdout);
  out.clear();
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  return Status::Ok();
}

}  // namespace

Result<LineInput> LineInput::Open(const std::string& path) {
  if (path.empty() || path == "-") return LineInput("stdin", FileDescriptor());
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return NotFound(path, ": cannot be read: ", std::strerror(errno));
  return LineInput(path, std::move(file));
}

std::string LineInput::where() const {
  return Concat(name_, ":", number_);
}

bool LineInput::TakeLine(std::string& line) {
  std::optional<std::string_view> taken = buffer_.Next();
  if (!taken.has_value() && at_end_) taken = buffer_.Rest();
  if (!taken.has_value()) return false;
  line.assign(number_ == 0 ? WithoutByteOrderMark(*taken) : *taken);
  if (line.ends_with('\r')) line.pop_back();
  ++number_;
  return true;
}

Result<bool> LineInput::Fill(bool wait) {
  const int descriptor = file_.valid() ? file_.get() : STDIN_FILENO;
  // Files are always ready.
  pollfd ready[] = {{descriptor, POLLIN, 0}, {wake_, POLLIN, 0}};
  const int num_ready = ::poll(ready, std::size(ready), wait ? -1 : 0);
  if (num_ready <= 0 || ready[1].revents != 0 || ready[0].revents == 0) return false;
  if (buffer_.pending() > kMaxLineBytes) {
    return InvalidArgument(name_, ":", number_ + 1, ": longer than ", kMaxLineBytes, " bytes");
  }
  const std::span<char> room = buffer_.Room(kReadBytes);
  const ssize_t count = ::read(descriptor, room.data(), room.size());
  if (count < 0 && errno == EINTR) return false;
  if (count < 0) return Unavailable(name_, ": cannot be read: ", std::strerror(errno));
  buffer_.Filled(static_cast<size_t>(count));
  at_end_ = count == 0;
  return count > 0;
}

Result<LineInput::Read> LineInput::Next(bool wait, std::string& line) {
  while (!TakeLine(line)) {
    if (at_end_) return Read::kEnd;
    PACE_ASSIGN_OR_RETURN(const bool more, Fill(wait));
    if (!more && !at_end_) return Read::kNotYet;
  }
  return Read::kLine;
}

Status AnswerLines(LineInput& input, const LineAnswer& answer) {
  std::string line;
  std::string out;
  while (true) {
    const Result<LineInput::Read> read = input.Next(/*wait=*/out.empty(), line);
    Status status = read.status();
    const bool has_line = read.ok() && *read == LineInput::Read::kLine;
    if (has_line && !line.empty()) {
      const size_t answered = out.size();
      status = answer(line, out).At(input.where());
      if (!status.ok()) out.resize(answered);
    }
    if (has_line && status.ok() && out.size() < kMaxWaitingBytes) continue;
    PACE_RETURN_IF_ERROR(WriteOut(out));
    if (!status.ok()) return status;
    if (*read == LineInput::Read::kEnd) return Status::Ok();
  }
}

}  // namespace pace
