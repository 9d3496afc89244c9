#include "sim/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cluster/tool_pool.h"
#include "core/exact_math.h"
#include "core/file.h"
#include "core/json_scanner.h"
#include "core/line_reader.h"

namespace pace {
namespace {

// Streams of the run's seed that the workload draws from.
enum WorkloadStream : uint32_t {
  kDifficulty = 0x5701,
  kPromptLength,
  kLength,
  kPass,
  kTurns,
  kTool,  // ToolLatency
  kPromptDrift,
  kMemberDrift,
};

// Members count below this, so (member, turn) packs into one counter.
constexpr uint64_t kTurnsPerMember = 1024;
constexpr size_t kMaxFileBytes = size_t{1} << 28;
// Drifts of smaller lags are computed once; larger ones are rare.
constexpr int64_t kTabulatedLags = 64;

uint64_t Key(PromptIndex prompt) {
  return static_cast<uint64_t>(prompt.value());
}
uint64_t Key(int64_t member) {
  return static_cast<uint64_t>(member);
}

// Mean 1 for every sigma.
double LognormalFactor(double normal, double sigma) {
  return exact::Exp(sigma * normal - 0.5 * sigma * sigma);
}

constexpr int64_t kLargestLength = 10000000;

Result<int64_t> ParseLength(std::string_view text) {
  int64_t length = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, length);
  if (error != std::errc() || stop != end) {
    if (!text.starts_with('{')) {
      return InvalidArgument("must be an integer or {\"length\": integer}");
    }
    bool found = false;
    JsonScanner scan(text);
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() != "length" || found) {
        scan.FailUnknownKey();
        break;
      }
      found = true;
      scan.Integer(1, kLargestLength, "", length);
    }
    scan.End();
    if (!scan.ok()) return scan.status();
    if (!found) return InvalidArgument("length: is missing");
  }
  if (length < 1 || length > kLargestLength) {
    return InvalidArgument("length = ", length, ": must be between 1 and ", kLargestLength);
  }
  return length;
}

Result<std::vector<int64_t>> LoadLengths(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return text.status().At("workload.lengths_file");
  return ParseLengths(*text, path);
}

}  // namespace

Workload::Workload(const WorkloadOptions& options, uint64_t seed)
    : options_(options),
      log_mean_(exact::Log(options.mean_tokens) - 0.5 * options.sigma * options.sigma),
      prompt_weight_(std::sqrt(options.prompt_share)),
      member_weight_(std::sqrt(1 - options.prompt_share)),
      logit_pass_(exact::Log(options.pass_rate / (1 - options.pass_rate))),
      difficulty_(seed, kDifficulty),
      prompt_length_(seed, kPromptLength),
      length_(seed, kLength),
      pass_(seed, kPass),
      turns_(seed, kTurns),
      prompt_drift_(seed, kPromptDrift),
      member_drift_(seed, kMemberDrift),
      seed_(seed) {
  for (int64_t lag = 0; lag < kTabulatedLags; ++lag) drift_at_.push_back(DriftAt(lag));
}

Result<Workload> Workload::Create(const WorkloadOptions& options, uint64_t seed) {
  PACE_RETURN_IF_ERROR(options.Validate());
  Workload workload(options, seed);
  if (options.length == LengthLaw::kFile) {
    PACE_ASSIGN_OR_RETURN(workload.lengths_, LoadLengths(options.lengths_file));
  }
  return workload;
}

PromptTraits Workload::Prompt(PromptIndex prompt) const {
  PromptTraits traits;
  traits.difficulty = difficulty_.Normal(Key(prompt));
  const double rho = options_.difficulty_correlation;
  const double own = prompt_length_.Normal(Key(prompt));
  traits.length_shift = prompt_weight_ * (rho * traits.difficulty + std::sqrt(1 - rho * rho) * own);
  const double logit = logit_pass_ - options_.pass_slope * traits.difficulty;
  traits.pass_rate = 1 / (1 + exact::Exp(-logit));
  traits.drift_factor =
      LognormalFactor(prompt_drift_.Normal(Key(prompt)), options_.drift_prompt_sigma);
  return traits;
}

double Workload::Length(double normal) const {
  switch (options_.length) {
    case LengthLaw::kLognormal:
      return exact::Exp(log_mean_ + options_.sigma * normal);
    case LengthLaw::kExponential:
      // The upper tail of a normal maps to the upper tail of the lengths.
      return -options_.mean_tokens * exact::Log(std::max(exact::NormalCdf(-normal), 1e-300));
    case LengthLaw::kFixed:
      return options_.mean_tokens;
    case LengthLaw::kFile: {
      const auto size = static_cast<double>(lengths_.size());
      const auto index = static_cast<size_t>(std::min(size - 1, exact::NormalCdf(normal) * size));
      return static_cast<double>(lengths_[index]);
    }
  }
  return options_.mean_tokens;
}

double Workload::DriftAt(int64_t lag) const {
  if (lag < static_cast<int64_t>(drift_at_.size())) return drift_at_[static_cast<size_t>(lag)];
  return options_.drift_floor +
         options_.drift * exact::Pow(static_cast<double>(lag), options_.drift_power);
}

ResponseTraits Workload::Response(PromptIndex prompt, int64_t member, const PromptTraits& traits,
                                  double length) const {
  ResponseTraits response;
  const double normal =
      traits.length_shift + member_weight_ * length_.Normal(Key(prompt), Key(member));
  const double wanted = std::round(std::min(Length(normal) * length, 1e9));
  if (options_.max_turns > 1) {
    const double p = (options_.mean_turns - 1) / static_cast<double>(options_.max_turns - 1);
    for (int64_t turn = 1; turn < options_.max_turns; ++turn) {
      const uint64_t counter = Key(member) * kTurnsPerMember + static_cast<uint64_t>(turn);
      if (turns_.Uniform(Key(prompt), counter) < p) ++response.num_turns;
    }
  }
  // Tool tokens count in the same budget.
  const int64_t budget = options_.max_tokens - (response.num_turns - 1) * options_.tool_tokens;
  response.truncated = wanted >= static_cast<double>(budget);
  response.num_tokens = response.truncated ? budget : static_cast<int64_t>(wanted);
  const int64_t least = std::min(budget, std::max(options_.min_tokens, response.num_turns));
  response.num_tokens = std::max(response.num_tokens, least);
  return response;
}

bool Workload::Correct(PromptIndex prompt, int64_t member, const PromptTraits& traits,
                       const ResponseTraits& response) const {
  return !response.truncated && pass_.Uniform(Key(prompt), Key(member)) < traits.pass_rate;
}

Seconds Workload::ToolLatency(PromptIndex prompt, int64_t member, int64_t turn) const {
  return pace::ToolLatency(options_, seed_, prompt, member, turn);
}

std::optional<double> Workload::PrefixScore(PromptIndex prompt, int64_t member, double drift_factor,
                                            std::span<const Segment> segments,
                                            const PrefixOptions& prefix) const {
  size_t interruption = segments.size();
  int64_t num_before = 0, num_tokens = 0;
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    num_tokens += segments[i].num_tokens;
    if (num_tokens < prefix.min_tokens) continue;
    interruption = i;
    num_before = num_tokens;
  }
  if (interruption == segments.size()) return std::nullopt;

  const PolicyVersion scorer = segments[interruption + 1].version;
  const int64_t num_scored = std::min(num_before, prefix.max_tokens);
  int64_t left = num_scored;
  double sum = 0;
  for (size_t i = 0; left > 0; ++i) {
    const int64_t here = std::min(left, segments[i].num_tokens);
    sum += static_cast<double>(here) * DriftAt(Lag(segments[i].version, scorer));
    left -= here;
  }
  const double factor =
      drift_factor *
      LognormalFactor(member_drift_.Normal(Key(prompt), Key(member)), options_.drift_member_sigma);
  return factor * sum / static_cast<double>(num_scored);
}

Result<std::vector<int64_t>> ParseLengths(std::string_view text, const std::string& name) {
  std::vector<int64_t> lengths;
  PACE_RETURN_IF_ERROR(ForEachLine(text, [&](std::string_view line, int64_t number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return Status::Ok();
    const size_t last = line.find_last_not_of(" \t\r");
    const auto length = ParseLength(line.substr(first, last - first + 1));
    if (length.ok()) lengths.push_back(*length);
    return length.status().At(Concat(name, ":", number));
  }));
  if (lengths.empty()) return InvalidArgument(name, ": must hold at least one length");
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

}  // namespace pace
