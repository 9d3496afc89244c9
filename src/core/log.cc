#include "core/log.h"

namespace pace {

std::string FormatLogLine(const LogRecord& record) {
  std::string line;
  if (record.severity == Severity::kWarning) line += "warning: ";
  if (record.severity == Severity::kError) line += "error: ";
  line += record.component;
  line += ": ";
  line += record.message;
  for (const auto& [key, value] : record.fields) {
    line += ' ';
    line += key;
    line += '=';
    line += value;
  }
  line += '\n';
  return line;
}

LogSink& NullLog() {
  class Null final : public LogSink {
   public:
    void Write(const LogRecord&) override {}
  };
  static Null null;
  return null;
}

void StreamLog::Write(const LogRecord& record) {
  const std::string line = FormatLogLine(record);
  const MutexLock lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), stream_);
  std::fflush(stream_);
}

}  // namespace pace
