// The log: structured records handed to a sink that the program chose.
//
// Library code never prints. It takes a LogSink& (NullLog() where nobody
// listens) and the command line decides where words go.
#ifndef PACE_CORE_LOG_H_
#define PACE_CORE_LOG_H_

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace pace {

enum class Severity { kInfo, kWarning, kError };

struct LogRecord {
  Severity severity = Severity::kInfo;
  std::string component;  // the folder that speaks: "coordinator"
  std::string message;
  std::vector<std::pair<std::string, std::string>> fields;
};

// Thread-safety: Write may be called from any thread.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(const LogRecord& record) = 0;
};

// "warning: coordinator: message key=value" and a newline, one write each.
std::string FormatLogLine(const LogRecord& record);

// Drops everything.
LogSink& NullLog();

// Lines on a C stream; the stream outlives the sink.
class StreamLog final : public LogSink {
 public:
  explicit StreamLog(std::FILE* stream) : stream_(stream) {}
  void Write(const LogRecord& record) override;

 private:
  Mutex mutex_;
  std::FILE* const stream_ PACE_PT_GUARDED_BY(mutex_);
};

}  // namespace pace

#endif  // PACE_CORE_LOG_H_
