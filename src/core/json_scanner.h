// JsonScanner reads one JSON text piece by piece, strictly (RFC 8259).
//
// The caller asks for what it expects; the scanner keeps the path, so every
// error is one line that names field, value and rule:
// "members[2].completed = -1: must be >= 0 (versions count steps)".
//
//   JsonScanner scan(line);
//   scan.EnterObject();
//   while (scan.NextKey()) {
//     if (scan.key() == "step") scan.Integer(0, kMaxStep, "", step);
//     else scan.FailUnknownKey();
//   }
//   scan.End();
//   if (!scan.ok()) return scan.status();
//
// The first error sticks: every later call does nothing and returns false.
// Memory and time are linear in the text; nothing recurses.
// Thread-safety: none.
#ifndef PACE_CORE_JSON_SCANNER_H_
#define PACE_CORE_JSON_SCANNER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pace {

class JsonScanner {
 public:
  // Borrows the text.
  explicit JsonScanner(std::string_view text) : text_(text) {}

  // Begins an object; NextKey moves to its next key and, after the last one,
  // ends the object and returns false.
  bool EnterObject();
  bool NextKey();
  // The key NextKey found, unescaped.
  std::string_view key() const { return path_.back().key; }

  // The same for arrays.
  bool EnterArray();
  bool NextItem();

  // Values, with their bounds (inclusive). `hint` is shown behind a broken rule.
  bool Integer(int64_t minimum, int64_t maximum, std::string_view hint, int64_t& out);
  bool Real(double minimum, double maximum, std::string_view hint, double& out);
  bool Bool(bool& out);
  bool Text(std::string& out);
  // Consumes a null if one is next; otherwise changes nothing.
  bool TakeNull();
  // What the next value is, by its first character.
  enum class Kind { kObject, kArray, kText, kBool, kNull, kNumber };
  Kind NextKind();
  // Passes over any one value, however deep.
  bool Skip();

  // Nothing but space may follow.
  bool End();

  // Errors of the caller's own: at the current path, about the value there,
  // about a field of the object there.
  bool Fail(std::string_view rule);
  bool FailValue(std::string_view value, std::string_view rule, std::string_view hint);
  bool FailField(std::string_view field, std::string_view value, std::string_view rule);
  bool FailUnknownKey();
  // An error found elsewhere, as it stands.
  bool FailWith(const Status& status);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }

 private:
  // Where the scanner stands: one frame per open object or array.
  struct Frame {
    bool is_object = false;
    int64_t count = 0;  // keys or items begun
    std::string key;
  };

  void SkipSpace();
  char Peek();
  bool Literal(std::string_view word);
  bool NextEntry(char close);
  bool ScanString(std::string& out);
  bool ScanEscape(std::string& out);
  bool ScanHex(uint32_t& out);
  bool ScanUtf8(std::string& out);
  // The number that is next, as written; empty after an error.
  std::string_view ScanNumber(std::string_view expected);
  bool FailSyntax(std::string_view rule);
  std::string Path() const;

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Frame> path_;
  std::string scratch_;
  Status status_;
};

}  // namespace pace

#endif  // PACE_CORE_JSON_SCANNER_H_
