#include "config/admission_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "core/json_scanner.h"

namespace pace {
namespace {

constexpr std::array<std::string_view, 6> kPolicyNames = {
    "pace", "stale_k", "accept_all", "oldest_token", "pace_fair", "start_window"};
constexpr std::array<std::string_view, 3> kWeightNames = {"prefix", "one", "zero"};
constexpr std::array<std::string_view, 2> kCutoffNames = {"window", "pool"};
constexpr std::array<std::string_view, 2> kTieNames = {"strict", "fractional"};
constexpr std::array<std::string_view, 2> kScopeNames = {"group", "member"};
constexpr std::array<std::string_view, 3> kWaitNames = {"auto", "all", "pool"};
constexpr std::array<std::string_view, 2> kMeasureNames = {"mean", "max_member"};

struct NamedVariant {
  std::string_view name;
  AdmissionVariant variant;
};
constexpr std::array<NamedVariant, 4> kVariants = {{
    {"effective", {1, GenerationWeight::kPrefix}},
    {"raw", {1, GenerationWeight::kOne}},
    {"generation", {0, GenerationWeight::kPrefix}},
    {"waiting", {1, GenerationWeight::kZero}},
}};

// A window larger than this would not fit the memory of any machine we know.
constexpr double kLargestWindow = 1e8;

}  // namespace

std::vector<Field> AdmissionOptions::Fields() {
  return {
      Field::Enum("policy", policy, kPolicyNames, "Which groups a step may train on.")
          .OrText("python:FILE:CLASS", {[this] { return python_class; },
                                        [this](std::string text) {
                                          if (!text.empty()) policy = AdmissionKind::kPython;
                                          python_class = std::move(text);
                                        }}),
      Field::OptionalInt("target_occupancy", target_occupancy,
                         "N_tar: groups in the pool above which rejection starts; auto = "
                         "target_batches batches. Larger: fewer waits for data, older data.")
          .AtLeast(0),
      Field::Real("target_batches", target_batches, "N_tar in batches, where it is auto.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Real("beta", beta, "Weight of the past in the smoothed rejection rate.")
          .AtLeast(0)
          .AtMost(1),
      Field::Real("max_budget", max_budget, "Largest share of draws a step may plan to reject.")
          .AtLeast(0)
          .AtMost(1),
      Field::Bool("reserve_batch", reserve_batch,
                  "Never plan to reject what this batch needs: budget <= 1 - batch/occupancy."),
      Field::Real("wait_weight", wait_weight, "w1: what waiting staleness counts for.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Enum("wait_measure", wait_measure, kWaitNames,
                  "Waiting that counts: all of it, or that in the pool, without the wait for a "
                  "group's slowest member; auto = pool under pace_fair, else all."),
      Field::Enum("generation_weight", generation_weight, kWeightNames,
                  "What generation staleness counts for: F of the prefix score, 1, or 0."),
      Field::Real("gamma", gamma, "Sharpness of F.").AtLeast(0).AtMost(100),
      Field::Real("unscored_weight", unscored_weight,
                  "Weight of generation staleness without a prefix score; 1 = no discount without "
                  "an observation.")
          .AtLeast(0)
          .AtMost(1e6),
      Field::Enum("weight_scope", weight_scope, kScopeNames,
                  "Compute F on group means, or per member and then take the mean."),
      Field::Enum("cutoff", cutoff, kCutoffNames,
                  "pace: reject scores above a quantile of recently drawn groups, or the stalest "
                  "groups of the pool, exactly as many as the budget allows."),
      Field::OptionalInt("window", window,
                         "Groups remembered in each window, of prefix scores members where "
                         "weight_scope is member; auto = max(512, 32 * batch).")
          .AtLeast(1)
          .AtMost(kLargestWindow),
      Field::Int(
          "min_observations", min_observations,
          "Fewer scores than this in a window: it is not used yet, and everything is admitted.")
          .AtLeast(1),
      Field::Enum("ties", ties, kTieNames,
                  "A score equal to the cutoff: admit, or reject with the probability that meets "
                  "the budget."),
      Field::Int("num_strata", num_strata,
                 "pace_fair: strata of response length that groups are ranked within.")
          .AtLeast(1)
          .AtMost(64),
      Field::Real("k", k, "Largest lag that stale_k, oldest_token and start_window admit.")
          .AtLeast(0, "0 admits on-policy data only"),
      Field::Enum("k_measure", k_measure, kMeasureNames,
                  "stale_k compares the mean lag of a group, or that of its stalest member."),
      Field::Bool("observe", observe,
                  "accept_all: compute scores and windows without filtering, to compare runs. "
                  "python: compute prefix scores for the policy to read."),
      Field::Text("python", python,
                  "The interpreter of a policy in Python; a bare name is looked up in PATH."),
      Field::Real("timeout", timeout,
                  "Seconds of one call of a policy in Python; then the run ends.")
          .Above(0)
          .AtMost(86400),
      Field::Real("start_timeout", start_timeout,
                  "Seconds until a policy in Python has been imported and made.")
          .Above(0)
          .AtMost(86400),
  };
}

int64_t AdmissionOptions::Window(int64_t batch) const {
  return window.value_or(std::max<int64_t>(512, 32 * batch));
}

bool AdmissionOptions::ComputesScores() const {
  return policy == AdmissionKind::kPace || policy == AdmissionKind::kPaceFair ||
         (policy == AdmissionKind::kAcceptAll && observe);
}

bool AdmissionOptions::UsesPrefixScores() const {
  const bool reads = ComputesScores() || (policy == AdmissionKind::kPython && observe);
  return reads && generation_weight == GenerationWeight::kPrefix;
}

std::optional<AdmissionVariant> VariantFromName(std::string_view name) {
  if (name == "pace") name = "effective";  // the variant that is PACE
  for (const NamedVariant& known : kVariants) {
    if (known.name == name) return known.variant;
  }
  return std::nullopt;
}

std::string MethodName(const AdmissionOptions& options) {
  if (options.policy == AdmissionKind::kPace) {
    for (const NamedVariant& known : kVariants) {
      if (known.variant.wait_weight == options.wait_weight &&
          known.variant.generation_weight == options.generation_weight) {
        return std::string(known.name);
      }
    }
  }
  if (options.policy == AdmissionKind::kPython) {
    return "python:" + options.python_class.substr(options.python_class.rfind(':') + 1);
  }
  return std::string(kPolicyNames.at(static_cast<size_t>(options.policy)));
}

namespace {

// Reads whatever value is next as far as a field can take it.
FieldValue ScanValue(JsonScanner& scan) {
  if (scan.TakeNull()) return nullptr;
  switch (scan.NextKind()) {
    case JsonScanner::Kind::kText: {
      std::string text;
      scan.Text(text);
      return text;
    }
    case JsonScanner::Kind::kBool: {
      bool value = false;
      scan.Bool(value);
      return value;
    }
    default: {
      double value = 0;
      constexpr double kLargest = std::numeric_limits<double>::max();
      scan.Real(-kLargest, kLargest, "", value);
      return value;
    }
  }
}

void ScanConfig(JsonScanner& scan, AdmissionOptions& options) {
  const std::vector<Field> fields = options.Fields();
  std::vector<std::string> keys;
  for (const Field& field : fields) keys.push_back(field.key());
  std::set<std::string, std::less<>> seen;
  scan.EnterObject();
  while (scan.NextKey()) {
    const std::string key(scan.key());
    if (!seen.insert(key).second) {
      scan.Fail("given twice");
      return;
    }
    const Field* field = nullptr;
    for (const Field& candidate : fields) {
      if (candidate.key() == key) field = &candidate;
    }
    if (field == nullptr) {
      scan.Fail(Concat("unknown key (nearest: ", Nearest(key, keys), ")"));
      return;
    }
    const FieldValue value = ScanValue(scan);
    if (!scan.ok()) return;
    const Status set = field->Set(value, "config." + key);
    if (!set.ok()) {
      scan.FailWith(set);
      return;
    }
  }
}

}  // namespace

Result<AdmissionOptions> AdmissionFromJson(std::string_view json, const std::string& name) {
  AdmissionOptions options;
  bool has_config = false;
  JsonScanner scan(json);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "config" && !has_config) {
      has_config = true;
      ScanConfig(scan, options);
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status().At(name);
  if (!has_config) return InvalidArgument(name, ": config: missing (must be an object)");
  return options;
}

}  // namespace pace
