#include "sandbox/program_control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "core/json_scanner.h"
#include "core/json_writer.h"
#include "core/printable.h"
#include "core/utf8.h"

namespace pace {
namespace {

// Fetched files are at most 16 MiB, written as hexadecimal digits.
constexpr size_t kMaxFrame = size_t{40} << 20;
constexpr size_t kHeader = 5;

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool FromHex(std::string_view text, std::string& bytes) {
  if (text.size() % 2 != 0) return false;
  bytes.clear();
  bytes.reserve(text.size() / 2);
  for (size_t at = 0; at < text.size(); at += 2) {
    const int high = HexDigit(text[at]);
    const int low = HexDigit(text[at + 1]);
    if (high < 0 || low < 0) return false;
    bytes += static_cast<char>(high * 16 + low);
  }
  return true;
}

void ReadFiles(JsonScanner& scan, std::vector<ProgramFile>& files) {
  std::string digits;
  scan.EnterObject();
  while (scan.NextKey()) {
    ProgramFile file{.path = std::string(scan.key()), .content = ""};
    if (scan.Text(digits) && !FromHex(digits, file.content)) scan.Fail("must be hexadecimal");
    files.push_back(std::move(file));
  }
}

}  // namespace

std::string ProgramRequestText(const ProgramRequest& request, int64_t memory_bytes) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject();
  json.Put("code", ReplaceIllFormed(request.code));
  json.Put("memory_bytes", memory_bytes);
  json.Key("files");
  json.BeginObject();
  for (const ProgramFile& file : request.files) {
    std::string key;
    AppendJsonText(key, ReplaceIllFormed(file.path));
    json.Put(std::string_view(key).substr(1, key.size() - 2), ToHex(file.content));
  }
  json.EndObject();
  json.Key("fetch");
  json.BeginArray();
  for (const std::string& path : request.fetch) json.Value(ReplaceIllFormed(path));
  json.EndArray();
  json.EndObject();
  return text;
}

Result<ProgramEnd> ReadProgramEnd(std::string_view text) {
  ProgramEnd end;
  double time = 0;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "return_code") {
      scan.Integer(-255, 255, "", end.return_code);
    } else if (scan.key() == "time") {
      scan.Real(0, std::numeric_limits<double>::max(), "", time);
    } else if (scan.key() == "files") {
      ReadFiles(scan, end.files);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  end.time = Seconds(time);
  return end;
}

Status ProgramControl::Receive() {
  char buffer[65536];
  char space[CMSG_SPACE(sizeof(int) * 4)];
  while (!closed_) {
    iovec part{buffer, sizeof(buffer)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);
    const ssize_t count = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return TakeFrames();
    if (count <= 0) closed_ = true;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); count > 0 && header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const size_t num = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t index = 0; index < num; ++index) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header) + index * sizeof(int), sizeof(int));
        FileDescriptor received(number);
        // One is expected, before the program runs; more are closed.
        if (!process_.valid()) process_ = std::move(received);
      }
    }
    if (count > 0) received_.append(buffer, static_cast<size_t>(count));
    if (received_.size() > kMaxFrame) return DataLoss("a program's result is too long");
  }
  return TakeFrames();
}

Status ProgramControl::TakeFrames() {
  size_t at = 0;
  while (received_.size() - at >= kHeader) {
    uint32_t size = 0;
    for (size_t index = 0; index < 4; ++index) {
      size |= uint32_t{static_cast<unsigned char>(received_[at + index])} << (8 * index);
    }
    if (size > kMaxFrame) return DataLoss("a program's result is too long");
    if (received_.size() - at - kHeader < size) break;
    const std::string_view text = std::string_view(received_).substr(at + kHeader, size);
    PACE_RETURN_IF_ERROR(TakeFrame(received_[at + 4], text));
    at += kHeader + size;
  }
  received_.erase(0, at);
  return Status::Ok();
}

Status ProgramControl::TakeFrame(char kind, std::string_view text) {
  if (kind == 'p') return Status::Ok();  // its descriptor came beside it
  if (kind == 's') {
    started_ = true;
    return Status::Ok();
  }
  if (kind == 'e') {
    failure_ = Printable(text);
    return Status::Ok();
  }
  if (kind != 'r') return DataLoss("a program's first process sent nonsense");
  Result<ProgramEnd> end = ReadProgramEnd(text);
  if (!end.ok()) return end.status().At("a program's result");
  end_ = std::move(end).value();
  return Status::Ok();
}

}  // namespace pace
