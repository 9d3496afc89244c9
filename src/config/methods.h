// Methods: named bundles of settings that a run takes or a comparison runs side
// by side. One table (`pace config --methods` prints it) holds names, titles and
// one line of meaning; docs/policies.md describes the rules of other systems.
//
//   Result<Settings> run = ApplyMethod(settings, "pace", "--method");
//   MethodTitle("effective");  // "PACE"
//
// Thread-safety: pure functions. Stable: docs/library.md.
#ifndef PACE_CONFIG_METHODS_H_
#define PACE_CONFIG_METHODS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "core/status.h"

namespace pace {

struct Method {
  std::string_view name;   // "effective"; "stale-K" where a number K follows
  std::string_view alias;  // another name for the same settings, or empty
  std::string_view title;  // for pages and terminals: "PACE", "Stale-K"
  std::string_view doc;    // one line
};
const std::vector<Method>& Methods();

// What pages and terminals call a method: "PACE" for `effective` and `pace`,
// "Stale-2" for `stale-2`. A name that is no method's comes back as it is.
std::string MethodTitle(std::string_view method);

// One line for each method, in the order of Methods().
std::string DescribeMethods();

// The settings of one run of a comparison: the method's bundle, then the
// entries of compare.overrides that name it, then Validate. compare.methods
// and compare.overrides come back empty, so the result runs as it stands.
// `where` is what the user wrote the name in: an error begins with it.
Result<Settings> ApplyMethod(const Settings& settings, const std::string& method,
                             std::string_view where = "method");

// The step time that compare.reference gives for a method, if any.
Result<std::optional<double>> ReferenceSeconds(const CompareOptions& options,
                                               std::string_view method);

}  // namespace pace

#endif  // PACE_CONFIG_METHODS_H_
