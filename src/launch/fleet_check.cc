#include "launch/fleet_check.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "core/printable.h"

namespace pace {
namespace {

// HTTP gives whole seconds, and a call takes a moment.
constexpr double kMaxClockOffset = 3;

std::string Decimal(double value, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, unit);
  return text.data();
}

// "vocabulary 18, width 128, 4 layers", of what is known.
std::string ShapeText(const NetworkShape& shape) {
  std::string text;
  const auto add = [&](const std::string& part) { text += Concat(text.empty() ? "" : ", ", part); };
  if (shape.vocabulary > 0) add(Concat("vocabulary ", shape.vocabulary));
  if (shape.hidden_size > 0) add(Concat("width ", shape.hidden_size));
  if (shape.num_layers > 0) add(Concat(shape.num_layers, " layers"));
  return text.empty() ? "does not say" : text;
}

bool Agree(const NetworkShape& a, const NetworkShape& b) {
  const auto same = [](int64_t x, int64_t y) { return x == 0 || y == 0 || x == y; };
  return same(a.vocabulary, b.vocabulary) && same(a.hidden_size, b.hidden_size) &&
         same(a.num_layers, b.num_layers);
}

class CheckLines {
 public:
  void Ok(const std::string& part, std::string text) { lines_.push_back({part, std::move(text)}); }
  void Fail(const std::string& part, std::string text) {
    lines_.push_back({part, std::move(text), true});
  }
  std::vector<FleetLine> Take() { return std::move(lines_); }

 private:
  std::vector<FleetLine> lines_;
};

void CheckClock(CheckLines& lines, const std::string& part, std::optional<double> offset) {
  if (!offset.has_value()) {
    lines.Ok(part, "clock: does not say");
  } else if (std::abs(*offset) > kMaxClockOffset) {
    lines.Fail(part, Concat("clock: ", Decimal(std::abs(*offset), "s "),
                            *offset > 0 ? "ahead of" : "behind",
                            " this machine's (let both follow a time server)"));
  } else {
    lines.Ok(part, "clock: agrees");
  }
}

void CheckEngine(CheckLines& lines, const FleetFacts& fleet, const EngineFacts& engine) {
  const std::string& url = engine.url;
  if (!engine.status.ok()) {
    lines.Fail(url, Concat("reached: ", engine.status.message()));
    return;
  }
  const ServerFacts& facts = engine.facts;
  lines.Ok(url, Concat("reached: in ", Decimal(engine.latency.count() * 1000, "ms")));
  lines.Ok(url, Concat("version: ", Printable(facts.version), ", model ", Printable(facts.model),
                       facts.tells_versions ? "" : ", does not tell versions of tokens"));
  if (!fleet.shape.has_value() || Agree(facts.shape, *fleet.shape)) {
    lines.Ok(url, Concat("shape: ", ShapeText(facts.shape)));
  } else {
    lines.Fail(url, Concat("shape: ", ShapeText(facts.shape), ", but policy.model has ",
                           ShapeText(*fleet.shape)));
  }
  if (facts.max_tokens.has_value() && *facts.max_tokens < fleet.max_context) {
    lines.Fail(url, Concat("context: ", *facts.max_tokens, " tokens; the run needs ",
                           fleet.max_context, " (prompt.max_tokens + generation.max_tokens)"));
  } else if (facts.max_tokens.has_value()) {
    lines.Ok(url, Concat("context: ", *facts.max_tokens, " tokens"));
  }
  if (!facts.probe.has_value()) {
    lines.Ok(url, "vocabulary: cannot be compared");
  } else if (fleet.probe.has_value() && *facts.probe != *fleet.probe) {
    lines.Fail(url, "vocabulary: another tokenizer than policy.model has");
  } else {
    lines.Ok(url, fleet.probe.has_value() ? "vocabulary: that of policy.model"
                                          : "vocabulary: has a tokenizer");
  }
  if (fleet.sends_weights && !facts.no_channel.empty()) {
    lines.Fail(url, Concat("transfer: ", facts.no_channel));
  } else if (fleet.sends_weights) {
    lines.Ok(url, Concat("transfer: to ", facts.num_workers,
                         facts.num_workers == 1 ? " worker" : " workers"));
  }
  CheckClock(lines, url, engine.clock_offset);
  if (engine.answers_without_token) {
    lines.Ok(url, "access: control routes answer without a token (keep it on a private network)");
  }
}

// Servers against each other.
void CheckTogether(CheckLines& lines, const FleetFacts& fleet) {
  const EngineFacts* first = nullptr;
  bool alike = true;
  int64_t num_reached = 0;
  for (const EngineFacts& engine : fleet.engines) {
    if (!engine.status.ok()) continue;
    ++num_reached;
    if (first == nullptr) {
      first = &engine;
      continue;
    }
    const auto differ = [&](std::string_view what, const std::string& one,
                            const std::string& other) {
      lines.Fail("fleet", Concat(what, ": ", engine.url, " has ", Printable(other), ", ",
                                 first->url, " has ", Printable(one)));
      alike = false;
    };
    if (engine.facts.version != first->facts.version) {
      differ("version", first->facts.version, engine.facts.version);
    }
    if (!Agree(engine.facts.shape, first->facts.shape)) {
      differ("shape", ShapeText(first->facts.shape), ShapeText(engine.facts.shape));
    }
    if (engine.facts.probe.has_value() && first->facts.probe.has_value() &&
        *engine.facts.probe != *first->facts.probe) {
      differ("vocabulary", "one tokenizer", "another");
    }
  }
  if (alike && num_reached > 1) lines.Ok("fleet", Concat(num_reached, " servers are alike"));
}

void CheckFolder(CheckLines& lines, const FolderFacts& folder) {
  constexpr double kGibibyte = 1024.0 * 1024 * 1024;
  if (!folder.status.ok()) {
    lines.Fail("weights", folder.status.message());
    return;
  }
  const std::string room =
      Concat(Decimal(static_cast<double>(folder.free_bytes) / kGibibyte, "GiB free"), ", ",
             Decimal(static_cast<double>(folder.needed_bytes) / kGibibyte, "GiB needed"));
  if (folder.free_bytes < folder.needed_bytes) {
    lines.Fail("weights", Concat(folder.path, ": ", room, " (engine.weights names another)"));
  } else {
    lines.Ok("weights", Concat(folder.path, ": can be written, ", room));
  }
  CheckClock(lines, "weights", folder.clock_offset);
}

}  // namespace

std::vector<FleetLine> CheckFleet(const FleetFacts& facts) {
  CheckLines lines;
  for (const EngineFacts& engine : facts.engines) CheckEngine(lines, facts, engine);
  CheckTogether(lines, facts);
  if (facts.weights.has_value()) CheckFolder(lines, *facts.weights);
  if (facts.nccl.ok()) {
    lines.Ok("nccl", *facts.nccl);
  } else if (facts.needs_nccl) {
    lines.Fail("nccl", facts.nccl.status().message());
  } else {
    lines.Ok("nccl", Concat("not needed here; ", facts.nccl.status().message()));
  }
  return lines.Take();
}

}  // namespace pace
