#include "config/methods.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

namespace pace {
namespace {

struct Bundle {
  std::string_view name;
  std::vector<std::string> assignments;
};

const std::vector<Bundle>& Bundles() {
  static const std::vector<Bundle> bundles = {
      {"sync",
       {"supply.threshold=0", "supply.sync_interval=1", "admission.policy=accept_all",
        "admission.observe=true"}},
      {"async", {"admission.policy=accept_all", "admission.observe=true"}},
      {"m2po",
       {"admission.policy=accept_all", "admission.observe=true", "train.loss=m2po",
        "train.loss_settings="}},
      {"raw", {"admission.variant=raw"}},
      {"generation", {"admission.variant=generation"}},
      {"waiting", {"admission.variant=waiting"}},
      {"effective", {"admission.variant=effective"}},
      {"fair", {"admission.policy=pace_fair"}},
      {"vcpo",
       {"admission.policy=accept_all", "admission.observe=true", "train.ess_learning_rate=true",
        "train.opob=true"}},
      {"dis",
       {"admission.policy=accept_all", "admission.observe=true", "train.loss=dis",
        "train.loss_settings="}},
  };
  return bundles;
}

// Methods with a number behind their name: "stale-4". It stands for every #.
const std::vector<Bundle>& BoundedBundles() {
  static const std::vector<Bundle> bundles = {
      {"stale-", {"admission.policy=stale_k", "admission.k=#"}},
      {"oldest-", {"admission.policy=oldest_token", "admission.k=#"}},
      {"areal-",
       {"supply.policy=quota", "supply.bound=#", "admission.policy=accept_all",
        "admission.observe=true", "train.loss=decoupled_ppo",
        "train.loss_settings=", "train.ratio=recomputed"}},
      {"dora-",
       {"supply.policy=version_window", "supply.bound=#", "admission.policy=accept_all",
        "admission.observe=true"}},
      {"april-",
       {"supply.policy=over_sampling", "supply.over_sampling=#", "admission.policy=accept_all",
        "admission.observe=true"}},
      {"prime-",
       {"supply.policy=cancelling", "supply.bound=#", "admission.policy=oldest_token",
        "admission.k=#"}},
      {"nemo-", {"admission.policy=start_window", "admission.k=#", "pool.draw_order=lowest_score"}},
      {"miles-",
       {"admission.policy=accept_all", "pool.draw_order=lowest_score", "pool.max_groups=#"}},
  };
  return bundles;
}

std::optional<double> ToNumber(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

Status ApplyBounded(Settings& settings, std::string_view method, const Bundle& bundle) {
  const std::string_view bound = method.substr(bundle.name.size());
  if (!ToNumber(bound).has_value()) {
    return InvalidArgument("method ", method, ": must be ", bundle.name, "K with K a number");
  }
  for (std::string assignment : bundle.assignments) {
    const size_t place = assignment.find('#');
    if (place != std::string::npos) assignment.replace(place, 1, bound);
    PACE_RETURN_IF_ERROR(ApplyOverride(settings, assignment));
  }
  return Status::Ok();
}

Status ApplyBundle(Settings& settings, std::string_view method) {
  std::vector<std::string> names;
  std::string known;
  for (const Bundle& bundle : Bundles()) {
    names.emplace_back(bundle.name);
    known += Concat(bundle.name, ", ");
    if (bundle.name != method) continue;
    for (const std::string& assignment : bundle.assignments) {
      PACE_RETURN_IF_ERROR(ApplyOverride(settings, assignment));
    }
    return Status::Ok();
  }
  for (const Bundle& bundle : BoundedBundles()) {
    if (method.starts_with(bundle.name)) return ApplyBounded(settings, method, bundle);
    names.push_back(Concat(bundle.name, "8"));
    known += Concat(bundle.name, "K, ");
  }
  known.resize(known.size() - 2);
  return InvalidArgument("method ", method, ": must be one of ", known,
                         " (nearest: ", Nearest(method, names), ")");
}

// The part behind "method:" when the entry names this method.
Result<std::optional<std::string_view>> EntryFor(std::string_view entry, std::string_view method,
                                                 std::string_view key) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return InvalidArgument(key, " = ", entry, ": must start with a method and a colon");
  }
  if (entry.substr(0, colon) != method) return std::optional<std::string_view>();
  return std::optional(entry.substr(colon + 1));
}

}  // namespace

Result<Settings> ApplyMethod(const Settings& settings, const std::string& method) {
  Settings out = settings;
  PACE_RETURN_IF_ERROR(ApplyBundle(out, method).At("compare.methods"));
  for (const std::string& entry : settings.compare.overrides) {
    const auto assignment = EntryFor(entry, method, "compare.overrides");
    if (!assignment.ok()) return assignment.status();
    if (!assignment->has_value()) continue;
    PACE_RETURN_IF_ERROR(ApplyOverride(out, **assignment).At("compare.overrides"));
  }
  out.compare.methods.clear();
  out.compare.overrides.clear();
  PACE_RETURN_IF_ERROR(out.Validate());
  return out;
}

Result<std::optional<double>> ReferenceSeconds(const CompareOptions& options,
                                               std::string_view method) {
  for (const std::string& entry : options.reference) {
    const auto text = EntryFor(entry, method, "compare.reference");
    if (!text.ok()) return text.status();
    if (!text->has_value()) continue;
    const auto seconds = ToNumber(**text);
    if (!seconds.has_value() || *seconds < 0) {
      return InvalidArgument("compare.reference = ", entry, ": must be method:seconds");
    }
    return seconds;
  }
  return std::optional<double>();
}

}  // namespace pace
