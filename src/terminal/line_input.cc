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
  if (path.empty() || path == "-") return LineInput("stdin", STDIN_FILENO);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return NotFound(path, ": cannot be read: ", std::strerror(errno));
  return LineInput(path, descriptor);
}

LineInput::LineInput(LineInput&& other) noexcept
    : name_(std::move(other.name_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      wake_(other.wake_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      scanned_(other.scanned_),
      at_end_(other.at_end_),
      number_(other.number_) {}

LineInput::~LineInput() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

std::string LineInput::where() const {
  return Concat(name_, ":", number_);
}

bool LineInput::TakeLine(std::string& line) {
  const size_t end = buffer_.find('\n', scanned_);
  if (end == std::string::npos) {
    scanned_ = buffer_.size();
    if (!at_end_ || begin_ == buffer_.size()) return false;
  }
  const size_t stop = end == std::string::npos ? buffer_.size() : end;
  std::string_view taken = std::string_view(buffer_).substr(begin_, stop - begin_);
  if (number_ == 0) taken = WithoutByteOrderMark(taken);
  line.assign(taken);
  if (line.ends_with('\r')) line.pop_back();
  begin_ = end == std::string::npos ? stop : stop + 1;
  scanned_ = begin_;
  ++number_;
  return true;
}

Result<bool> LineInput::Fill(bool wait) {
  // Files are always ready.
  pollfd ready[] = {{descriptor_, POLLIN, 0}, {wake_, POLLIN, 0}};
  const int num_ready = ::poll(ready, std::size(ready), wait ? -1 : 0);
  if (num_ready <= 0 || ready[1].revents != 0 || ready[0].revents == 0) return false;
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  const size_t size = buffer_.size();
  if (size > kMaxLineBytes) {
    return InvalidArgument(name_, ":", number_ + 1, ": longer than ", kMaxLineBytes, " bytes");
  }
  buffer_.resize(size + kReadBytes);
  const ssize_t count = ::read(descriptor_, buffer_.data() + size, kReadBytes);
  const int reason = errno;
  buffer_.resize(size + static_cast<size_t>(count < 0 ? 0 : count));
  if (count < 0 && reason == EINTR) return false;
  if (count < 0) return Unavailable(name_, ": cannot be read: ", std::strerror(reason));
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
