#include "cluster/decode_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/file.h"
#include "core/json_scanner.h"
#include "core/line_reader.h"

namespace pace {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 24;
constexpr int64_t kLargestCount = 100000000;
// Of one decode iteration.
constexpr double kSmallestSeconds = 1e-9;
constexpr double kLargestSeconds = 1e6;

struct Line {
  int64_t batch = 0;
  int64_t context = 0;
  double seconds = 0;
};

Result<Line> ParseLine(std::string_view text) {
  std::optional<int64_t> batch, context;
  std::optional<double> seconds;
  JsonScanner scan(text);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "batch" && !batch.has_value()) {
      scan.Integer(1, kLargestCount, "", batch.emplace());
    } else if (scan.key() == "context" && !context.has_value()) {
      scan.Integer(0, kLargestCount, "", context.emplace());
    } else if (scan.key() == "seconds" && !seconds.has_value()) {
      scan.Real(kSmallestSeconds, kLargestSeconds, "", seconds.emplace());
    } else {
      scan.FailUnknownKey();
    }
  }
  scan.End();
  if (!scan.ok()) return scan.status();
  if (!batch.has_value()) return InvalidArgument("batch: is missing");
  if (!context.has_value()) return InvalidArgument("context: is missing");
  if (!seconds.has_value()) return InvalidArgument("seconds: is missing");
  return Line{*batch, *context, *seconds};
}

}  // namespace

Result<DecodeTable> DecodeTable::Parse(std::string_view text, const std::string& name) {
  std::map<std::pair<int64_t, int64_t>, double> cells;
  PACE_RETURN_IF_ERROR(ForEachLine(text, [&](std::string_view line, int64_t number) -> Status {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return Status::Ok();
    const auto parsed = ParseLine(line);
    if (!parsed.ok()) return parsed.status().At(Concat(name, ":", number));
    if (!cells.emplace(std::pair(parsed->batch, parsed->context), parsed->seconds).second) {
      return InvalidArgument(name, ":", number, ": batch ", parsed->batch, " at context ",
                             parsed->context, " stands twice");
    }
    return Status::Ok();
  }));
  if (cells.empty()) return InvalidArgument(name, ": must hold at least one line");

  DecodeTable table;
  for (const auto& [key, seconds] : cells) {
    if (table.batches_.empty() || table.batches_.back() != key.first) {
      table.batches_.push_back(key.first);
    }
    if (key.first == table.batches_.front()) table.contexts_.push_back(key.second);
  }
  for (const int64_t batch : table.batches_) {
    double last = 0;
    for (const int64_t context : table.contexts_) {
      const auto cell = cells.find({batch, context});
      if (cell == cells.end()) {
        return InvalidArgument(name, ": batch ", batch, " has no line for context ", context,
                               " (every batch needs the same contexts)");
      }
      if (cell->second < last) {
        return InvalidArgument(name, ": batch ", batch, " at context ", context,
                               ": seconds = ", cell->second, " must not fall as context grows");
      }
      last = cell->second;
      table.seconds_.push_back(last);
    }
  }
  if (table.seconds_.size() != cells.size()) {
    return InvalidArgument(name, ": every batch needs the same contexts as batch ",
                           table.batches_.front());
  }
  return table;
}

Result<DecodeTable> DecodeTable::Load(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return text.status().At("cluster.decode_table");
  return Parse(*text, path);
}

double DecodeTable::AtBatch(size_t row, double context) const {
  const double* seconds = &seconds_[row * contexts_.size()];
  if (contexts_.size() == 1) return seconds[0];
  size_t i = 0;
  while (i + 2 < contexts_.size() && context >= static_cast<double>(contexts_[i + 1])) ++i;
  const double left = static_cast<double>(contexts_[i]);
  const double slope =
      (seconds[i + 1] - seconds[i]) / (static_cast<double>(contexts_[i + 1]) - left);
  // Below the first line nothing is known: hold its value.
  return seconds[i] + slope * std::max(0.0, context - left);
}

double DecodeTable::Seconds(double batch, double context) const {
  if (batch <= static_cast<double>(batches_.front())) return AtBatch(0, context);
  if (batch >= static_cast<double>(batches_.back())) return AtBatch(batches_.size() - 1, context);
  size_t i = 0;
  while (batch >= static_cast<double>(batches_[i + 1])) ++i;
  const double left = static_cast<double>(batches_[i]);
  const double share = (batch - left) / (static_cast<double>(batches_[i + 1]) - left);
  return (1 - share) * AtBatch(i, context) + share * AtBatch(i + 1, context);
}

DecodeCurve DecodeTable::Curve(int64_t batch) const {
  const double n = static_cast<double>(batch);
  std::vector<int64_t> knots = {0};
  for (const int64_t context : contexts_) {
    if (context > 0) knots.push_back(context);
  }
  std::vector<DecodePiece> pieces;
  for (const int64_t knot : knots) {
    // Two points of the piece give its line over the total context.
    const double left = static_cast<double>(knot);
    const double at = Seconds(n, left);
    const double slope = (Seconds(n, left + 0.5) - at) / 0.5 / n;
    pieces.push_back({knot * batch, at - slope * left * n, slope});
  }
  return {batch, std::move(pieces)};
}

}  // namespace pace
