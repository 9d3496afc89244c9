// JSON records: a type lists its keys once, and the list is walked both to write and to read.
//
//   std::string text = JsonOf(sizes);
//   PACE_RETURN_IF_ERROR(FromJson(text, sizes));
//
// The list of a record is a template, JsonKeys(V& v, Dispatch& dispatch), that calls
// v("prompt", dispatch.prompt) for each key, and v.Optional("note", dispatch.note, write) for
// keys that may be missing; json_record_test.cc has one of every kind.
//
// Reading is strict: a missing, doubled or unknown key is an error. Keys that were added
// later are Optional: where they are missing the value stays as it was, its default. With
// v.SkipUnknown() a later version may add keys that this one passes over.
// Types with JsonItems list the items of an array instead: [version, tokens].
//
// Values: bool, std::string, integers in [0, 2^53], doubles >= 0, Seconds, versions, ids;
// optional (null), vector, array and map (an object) of values; records; Within for other
// bounds, AsNumber and AsName for enums. Other types overload WriteJson and ReadJson. All of these
// functions stand in the type's namespace.
// Thread-safety: functions.
#ifndef PACE_CORE_JSON_RECORD_H_
#define PACE_CORE_JSON_RECORD_H_

#include <string>
#include <string_view>

#include "core/json_record_reader.h"
#include "core/json_record_writer.h"
#include "core/status.h"

namespace pace {

// One value, as part of a larger text.
template <typename T>
void PutJson(JsonWriter& json, const T& value) {
  json_internal::Writer(json).Put(value);
}
// The keys of a record, into an object that was begun.
template <typename T>
void PutJsonKeys(JsonWriter& json, const T& record) {
  json_internal::Writer writer(json);
  JsonKeys(writer, const_cast<T&>(record));  // a Writer changes nothing
}
// Errors stay in the scanner.
template <typename T>
void GetJson(JsonScanner& scan, T& value) {
  json_internal::Reader(scan).Get(value);
}

// A whole text, without a newline.
template <typename T>
std::string JsonOf(const T& value) {
  std::string out;
  JsonWriter json(out);
  PutJson(json, value);
  return out;
}
template <typename T>
Status FromJson(std::string_view text, T& value) {
  JsonScanner scan(text);
  GetJson(scan, value);
  scan.End();
  return scan.status();
}

}  // namespace pace

#endif  // PACE_CORE_JSON_RECORD_H_
