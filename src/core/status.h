// Status and Result: how a call says that the world failed.
//
// Expected outcomes are plain values (a Decision, say); defects of ours are
// PACE_CHECK. A Status is for the rest: a file that is not there, a field that
// breaks its rule. Its message is one line that names what, where, which rule
// and what to do: "supply.threshold = -1: must be >= 0 (0 means on-policy)".
//
//   PACE_ASSIGN_OR_RETURN(Settings settings, LoadSettings(path, {}));
//   PACE_RETURN_IF_ERROR(settings.Validate());
//
// Thread-safety: values, as safe as an int. Stable: docs/library.md.
#ifndef PACE_CORE_STATUS_H_
#define PACE_CORE_STATUS_H_

#include <optional>
#include <string>
#include <utility>

#include "core/check.h"

namespace pace {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // the caller's input breaks a rule
  kNotFound,         // a named thing is not there
  kDataLoss,         // a file is truncated or corrupt
  kUnavailable,      // the machine lacks something, or a call failed
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status Ok() { return {}; }

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same error with `where` and ": " in front; Ok stays Ok.
  Status At(const std::string& where) const {
    return ok() ? *this : Status(code_, where + ": " + message_);
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return {StatusCode::kInvalidArgument, Concat(parts...)};
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return {StatusCode::kNotFound, Concat(parts...)};
}
template <typename... Parts>
Status DataLoss(const Parts&... parts) {
  return {StatusCode::kDataLoss, Concat(parts...)};
}
template <typename... Parts>
Status Unavailable(const Parts&... parts) {
  return {StatusCode::kUnavailable, Concat(parts...)};
}

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    PACE_CHECK(!status_.ok(), "a Result without a value needs an error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  // REQUIRES: ok()
  const T& value() const& {
    PACE_CHECK(ok(), status_.message());
    return *value_;
  }
  T& value() & {
    PACE_CHECK(ok(), status_.message());
    return *value_;
  }
  T&& value() && {
    PACE_CHECK(ok(), status_.message());
    return *std::move(value_);
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pace

#define PACE_RETURN_IF_ERROR(expression)         \
  do {                                           \
    ::pace::Status pace_status_ = (expression);  \
    if (!pace_status_.ok()) return pace_status_; \
  } while (false)

// Declares or assigns: PACE_ASSIGN_OR_RETURN(const Table table, ReadTable(file)), or
// PACE_ASSIGN_OR_RETURN(parts.table, ReadTable(file)).
#define PACE_ASSIGN_OR_RETURN(target, ...) \
  PACE_ASSIGN_OR_RETURN_(PACE_JOIN_(pace_result_, __LINE__), target, __VA_ARGS__)
#define PACE_ASSIGN_OR_RETURN_(result, target, ...) \
  auto result = (__VA_ARGS__);                      \
  if (!result.ok()) return result.status();         \
  target = std::move(result).value()
#define PACE_JOIN_(a, b) PACE_JOIN_AGAIN_(a, b)
#define PACE_JOIN_AGAIN_(a, b) a##b

#endif  // PACE_CORE_STATUS_H_
