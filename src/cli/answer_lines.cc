#include "cli/answer_lines.h"

#include <cstdio>

namespace pace {
namespace {

constexpr size_t kMaxWaitingBytes = size_t{1} << 16;

Status WriteOut(std::string& out) {
  std::fwrite(out.data(), 1, out.size(), stdout);
  out.clear();
  if (std::fflush(stdout) != 0) return Unavailable("stdout: cannot be written");
  return Status::Ok();
}

}  // namespace

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
