#include "config/methods.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/printable.h"

namespace pace {
namespace {

// A method with its settings. The number after the name stands for every #. One that ends in ? is
// set where the others allow it.
struct Bundle {
  Method method;
  std::vector<std::string> assignments;
};

std::vector<std::string> With(std::vector<std::string> assignments,
                              const std::vector<std::string>& more) {
  assignments.insert(assignments.end(), more.begin(), more.end());
  return assignments;
}

const std::vector<Bundle>& Bundles() {
  static const std::vector<std::string> lean = {
      "supply.policy=just_in_time", "admission.variant=raw",      "admission.cutoff=pool",
      "admission.beta=0",           "admission.target_batches=2", "train.skip_equal_rewards=true?"};
  static const std::vector<Bundle> bundles = {
      {{"sync", "", "Sync", "strictly on-policy: supply threshold 0, every group admitted"},
       {"supply.threshold=0", "supply.sync_interval=1", "admission.policy=accept_all",
        "admission.observe=true"}},
      {{"async", "", "Async", "every group admitted; scores are observed"},
       {"admission.policy=accept_all", "admission.observe=true"}},
      {{"effective", "pace", "PACE", "rejects by effective staleness, within the budget"},
       {"admission.variant=effective"}},
      {{"raw", "", "PACE raw", "PACE without prefix scores: waiting + generation staleness"},
       {"admission.variant=raw"}},
      {{"generation", "", "PACE generation", "PACE by weighted generation staleness alone"},
       {"admission.variant=generation"}},
      {{"waiting", "", "PACE waiting", "PACE by waiting staleness alone"},
       {"admission.variant=waiting"}},
      {{"fair", "", "PACE fair", "PACE within strata of response length"},
       {"admission.policy=pace_fair"}},
      {{"pool", "", "PACE pool", "PACE by rank in the pool: the budget is met in every step"},
       {"admission.variant=effective", "admission.cutoff=pool"}},
      {{"jit", "", "Just-in-time", "as many groups at once as keep the trainer busy; all admitted"},
       {"supply.policy=just_in_time", "admission.policy=accept_all", "admission.observe=true"}},
      {{"lean", "", "Lean",
        "just-in-time supply, bursts cut by age, nothing computed without a gradient"},
       lean},
      {{"lean-m2po", "", "Lean with M2PO", "lean with the M2PO loss"},
       With({"train.loss=m2po", "train.loss_settings="}, lean)},
      {{"m2po", "", "M2PO", "Async with the M2PO loss"},
       {"admission.policy=accept_all", "admission.observe=true", "train.loss=m2po",
        "train.loss_settings="}},
      {{"vcpo", "", "VCPO", "Async with VCPO's learning rate and baseline"},
       {"admission.policy=accept_all", "admission.observe=true", "train.ess_learning_rate=true",
        "train.opob=true"}},
      {{"dis", "", "DIS", "Async with SAO's loss: tokens inside a band of ratios"},
       {"admission.policy=accept_all", "admission.observe=true", "train.loss=dis",
        "train.loss_settings="}},
      {{"stale-K", "", "Stale-K", "rejects groups whose mean lag exceeds K"},
       {"admission.policy=stale_k", "admission.k=#"}},
      {{"oldest-K", "", "Oldest-K", "rejects groups with a token older than K versions"},
       {"admission.policy=oldest_token", "admission.k=#"}},
      {{"areal-K", "", "AReaL-K", "AReaL: a quota on started groups, decoupled PPO"},
       {"supply.policy=quota", "supply.bound=#", "admission.policy=accept_all",
        "admission.observe=true", "train.loss=decoupled_ppo",
        "train.loss_settings=", "train.ratio=recomputed"}},
      {{"dora-K", "", "DORA-K", "DORA: at most K policy versions alive"},
       {"supply.policy=version_window", "supply.bound=#", "admission.policy=accept_all",
        "admission.observe=true"}},
      {{"april-K", "", "APRIL-K", "APRIL: starts K batches for each, resumes the rest"},
       {"supply.policy=over_sampling", "supply.over_sampling=#", "admission.policy=accept_all",
        "admission.observe=true"}},
      {{"prime-K", "", "prime-rl-K", "prime-rl: cancels groups with a token older than K"},
       {"supply.policy=cancelling", "supply.bound=#", "admission.policy=oldest_token",
        "admission.k=#"}},
      {{"nemo-K", "", "NeMo-RL-K", "NeMo RL: trained within K versions of the start, oldest first"},
       {"admission.policy=start_window", "admission.k=#", "pool.draw_order=lowest_score"}},
      {{"miles-K", "", "miles-K", "miles: freshest first from a pool of at most K groups"},
       {"admission.policy=accept_all", "pool.draw_order=lowest_score", "pool.max_groups=#"}},
  };
  return bundles;
}

// "stale-" of "stale-K"; nothing where no number follows.
std::optional<std::string_view> NumberedPrefix(std::string_view name) {
  if (!name.ends_with("-K")) return std::nullopt;
  return name.substr(0, name.size() - 1);
}

bool Names(const Bundle& bundle, std::string_view method) {
  if (const auto prefix = NumberedPrefix(bundle.method.name)) return method.starts_with(*prefix);
  return bundle.method.name == method ||
         (!bundle.method.alias.empty() && bundle.method.alias == method);
}

const Bundle* FindBundle(std::string_view method) {
  for (const Bundle& bundle : Bundles()) {
    if (Names(bundle, method)) return &bundle;
  }
  return nullptr;
}

// Two names of the same settings.
bool SameMethod(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const Bundle* const bundle = FindBundle(a);
  return bundle != nullptr && bundle == FindBundle(b) && !NumberedPrefix(bundle->method.name);
}

std::optional<double> ToNumber(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

Status UnknownMethod(std::string_view method) {
  std::vector<std::string> names;
  std::string known;
  for (const Method& entry : Methods()) {
    const auto prefix = NumberedPrefix(entry.name);
    names.push_back(prefix ? Concat(*prefix, "8") : std::string(entry.name));
    known += Concat(known.empty() ? "" : ", ", entry.name);
    if (entry.alias.empty()) continue;
    names.emplace_back(entry.alias);
    known += Concat(" or ", entry.alias);
  }
  return InvalidArgument("must be one of ", known, " (nearest: ", Nearest(method, names),
                         "; one line each: pace config --methods)");
}

Status ApplyBundle(Settings& settings, std::string_view method) {
  const Bundle* const bundle = FindBundle(method);
  if (bundle == nullptr) return UnknownMethod(method);
  std::string_view number;
  if (const auto prefix = NumberedPrefix(bundle->method.name)) {
    number = method.substr(prefix->size());
    if (!ToNumber(number).has_value()) {
      return InvalidArgument("must be ", bundle->method.name, " with K a number");
    }
  }
  for (std::string assignment : bundle->assignments) {
    const size_t place = assignment.find('#');
    if (place != std::string::npos) assignment.replace(place, 1, number);
    const bool optional = assignment.ends_with('?');
    if (optional) assignment.pop_back();
    Settings applied = settings;
    PACE_RETURN_IF_ERROR(ApplyOverride(applied, assignment));
    if (!optional || applied.Validate().ok()) settings = std::move(applied);
  }
  return Status::Ok();
}

// The part after "method:" when the entry names this method.
Result<std::optional<std::string_view>> EntryFor(std::string_view entry, std::string_view method,
                                                 std::string_view key) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return InvalidArgument(key, " = ", entry, ": must start with a method and a colon");
  }
  if (!SameMethod(entry.substr(0, colon), method)) return std::optional<std::string_view>();
  return std::optional(entry.substr(colon + 1));
}

}  // namespace

const std::vector<Method>& Methods() {
  static const std::vector<Method> methods = [] {
    std::vector<Method> out;
    for (const Bundle& bundle : Bundles()) out.push_back(bundle.method);
    return out;
  }();
  return methods;
}

std::string MethodTitle(std::string_view method) {
  const Bundle* const bundle = FindBundle(method);
  if (bundle == nullptr) return std::string(method);
  std::string title(bundle->method.title);
  if (const auto prefix = NumberedPrefix(bundle->method.name)) {
    title.replace(title.size() - 1, 1, method.substr(prefix->size()));
  }
  return title;
}

std::string DescribeMethods() {
  std::string out;
  for (const Method& method : Methods()) {
    std::string name(method.name);
    if (!method.alias.empty()) name = Concat(method.alias, ", ", name);
    name.resize(std::max<size_t>(name.size(), 16), ' ');
    out += Concat(name, " ", method.doc, "\n");
  }
  return out;
}

Result<Settings> ApplyMethod(const Settings& settings, const std::string& method,
                             std::string_view where) {
  Settings out = settings;
  if (settings.admission.policy == AdmissionKind::kPython) {
    return InvalidArgument("admission.policy = ", Printable(settings.admission.python_class), ": ",
                           where, " ", Printable(method),
                           " names a policy of its own (give one of the two)");
  }
  PACE_RETURN_IF_ERROR(ApplyBundle(out, method).At(Concat(where, " ", Printable(method))));
  for (const std::string& entry : settings.compare.overrides) {
    PACE_ASSIGN_OR_RETURN(const auto assignment, EntryFor(entry, method, "compare.overrides"));
    if (!assignment.has_value()) continue;
    PACE_RETURN_IF_ERROR(ApplyOverride(out, *assignment).At("compare.overrides"));
  }
  out.compare.methods.clear();
  out.compare.overrides.clear();
  PACE_RETURN_IF_ERROR(out.Validate());
  return out;
}

Result<std::optional<double>> ReferenceSeconds(const CompareOptions& options,
                                               std::string_view method) {
  for (const std::string& entry : options.reference) {
    PACE_ASSIGN_OR_RETURN(const auto text, EntryFor(entry, method, "compare.reference"));
    if (!text.has_value()) continue;
    const auto seconds = ToNumber(*text);
    if (!seconds.has_value() || *seconds < 0) {
      return InvalidArgument("compare.reference = ", entry, ": must be method:seconds");
    }
    return seconds;
  }
  return std::optional<double>();
}

}  // namespace pace
