#include "execution/response_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"
#include "core/file.h"

namespace pace {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr int64_t kLargest = int64_t{1} << 53;
constexpr uint8_t kNone = 255;

// --- values as bytes ---

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// One array, from one value of each of many items.
template <typename T, typename Items, typename Get>
void PutAll(std::string& out, const Items& items, const Get& get) {
  const size_t at = out.size();
  out.resize(at + items.size() * sizeof(T));
  char* to = out.data() + at;
  for (const auto& item : items) {
    const T value = get(item);
    std::memcpy(to, &value, sizeof(value));
    to += sizeof(value);
  }
}

// Takes values off the front of a record. The first error sticks: later values are 0.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Take() {
    T value{};
    if (!Has(sizeof(T))) return value;
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return value;
  }
  int64_t TakeCount(std::string_view what) {
    const auto value = Take<int64_t>();
    if (value < 0 || value > kLargest) Fail(Concat(what, " = ", value, ": is out of range"));
    return ok() ? value : 0;
  }
  bool TakeBool(std::string_view what) {
    const auto value = Take<uint8_t>();
    if (value > 1) Fail(Concat(what, ": must be 0 or 1"));
    return value == 1;
  }
  double TakeReal(double minimum, std::string_view what) {
    const auto value = Take<double>();
    if (!std::isfinite(value) || value < minimum) Fail(Concat(what, ": is out of range"));
    return value;
  }
  // How many items of this size follow; never more than there are bytes for.
  size_t TakeSize(size_t item_bytes, std::string_view what) {
    const auto size = Take<uint64_t>();
    if (size > left_.size() / item_bytes) Fail(Concat(what, ": are cut off"));
    return ok() ? static_cast<size_t>(size) : 0;
  }
  // An array in place.
  std::string_view TakeArray(size_t num_bytes) {
    if (!Has(num_bytes)) return {};
    const std::string_view array = left_.substr(0, num_bytes);
    left_.remove_prefix(num_bytes);
    return array;
  }

  void Fail(const std::string& what) {
    if (status_.ok()) status_ = DataLoss(what);
    left_ = {};
  }
  bool ok() const { return status_.ok(); }
  Status End() {
    if (ok() && !left_.empty()) Fail(Concat(left_.size(), " bytes too many"));
    return status_;
  }

 private:
  bool Has(size_t num_bytes) {
    if (ok() && left_.size() < num_bytes) Fail("is cut off");
    return ok();
  }

  std::string_view left_;
  Status status_;
};

template <typename T>
T ElementAt(std::string_view array, size_t index) {
  T value{};
  std::memcpy(&value, array.data() + index * sizeof(T), sizeof(T));
  return value;
}

// --- one response ---

void PutRuns(std::string& out, const std::vector<TokenRecord>& tokens) {
  const size_t at = out.size();
  Put<uint64_t>(out, 0);
  uint64_t num_runs = 0;
  for (size_t i = 0; i < tokens.size(); ++num_runs) {
    size_t end = i + 1;
    while (end < tokens.size() && tokens[end].version == tokens[i].version &&
           tokens[end].is_tool == tokens[i].is_tool) {
      ++end;
    }
    Put<int64_t>(out, tokens[i].version.step());
    Put<uint8_t>(out, tokens[i].is_tool ? 1 : 0);
    Put<uint64_t>(out, end - i);
    i = end;
  }
  std::memcpy(out.data() + at, &num_runs, sizeof(num_runs));
}

void PutResponse(std::string& out, const PartialResponse& response) {
  const std::vector<TokenRecord>& tokens = response.tokens;
  Put<uint64_t>(out, tokens.size());
  PutAll<int32_t>(out, tokens, [](const TokenRecord& token) { return token.id; });
  PutRuns(out, tokens);
  const bool same = std::all_of(tokens.begin(), tokens.end(), [](const TokenRecord& token) {
    return std::bit_cast<uint32_t>(token.logprob) == std::bit_cast<uint32_t>(token.sampled_logprob);
  });
  Put<uint8_t>(out, same ? 1 : 0);
  PutAll<float>(out, tokens, [](const TokenRecord& token) { return token.logprob; });
  if (!same) PutAll<float>(out, tokens, [](const TokenRecord& t) { return t.sampled_logprob; });
  Put<uint8_t>(out, response.prefix_score.has_value() ? 1 : 0);
  Put<double>(out, response.prefix_score.value_or(0));
  Put<uint8_t>(out, response.awaits_score ? 1 : 0);
  Put<int64_t>(out, response.num_interrupts);
  Put<uint8_t>(out, response.paused.has_value() ? static_cast<uint8_t>(*response.paused) : kNone);
}

FinishReason TakeReason(uint8_t value, Bytes& in) {
  if (value > static_cast<uint8_t>(FinishReason::kMaxTokens)) in.Fail("reason: is out of range");
  return static_cast<FinishReason>(value);
}

// Versions and whether a token was given, over `tokens`.
void TakeRuns(Bytes& in, std::vector<TokenRecord>& tokens) {
  const size_t num_runs = in.TakeSize(sizeof(int64_t) + 1 + sizeof(uint64_t), "runs of versions");
  size_t at = 0;
  for (size_t run = 0; run < num_runs && in.ok(); ++run) {
    const PolicyVersion version(in.TakeCount("version"));
    const bool is_tool = in.TakeBool("given");
    const auto count = in.Take<uint64_t>();
    if (count == 0 || count > tokens.size() - at) return in.Fail("runs of versions: do not fit");
    for (const size_t end = at + static_cast<size_t>(count); at < end; ++at) {
      tokens[at].version = version;
      tokens[at].is_tool = is_tool;
    }
  }
  if (at != tokens.size()) in.Fail("runs of versions: do not fit");
}

void TakeResponse(Bytes& in, PartialResponse& response) {
  const size_t size = in.TakeSize(sizeof(int32_t), "tokens");
  const std::string_view ids = in.TakeArray(size * sizeof(int32_t));
  if (!in.ok()) return;
  std::vector<TokenRecord>& tokens = response.tokens;
  tokens.resize(size);
  for (size_t i = 0; i < size; ++i) {
    tokens[i].id = ElementAt<int32_t>(ids, i);
    if (tokens[i].id < 0) return in.Fail(Concat("token ", i, ": id = ", tokens[i].id));
  }
  TakeRuns(in, tokens);
  const bool same = in.TakeBool("same log-probabilities");
  const std::string_view logprobs = in.TakeArray(size * sizeof(float));
  const std::string_view sampled = same ? logprobs : in.TakeArray(size * sizeof(float));
  if (!in.ok()) return;
  for (size_t i = 0; i < size; ++i) {
    tokens[i].logprob = ElementAt<float>(logprobs, i);
    tokens[i].sampled_logprob = ElementAt<float>(sampled, i);
  }
  const bool scored = in.TakeBool("scored");
  const double score = in.TakeReal(0, "prefix score");
  if (scored) response.prefix_score = score;
  response.awaits_score = in.TakeBool("awaits_score");
  response.num_interrupts = in.TakeCount("num_interrupts");
  const auto rests = in.Take<uint8_t>();
  if (rests == kNone || !in.ok()) return;
  response.paused = TakeReason(rests, in);
  if (*response.paused == FinishReason::kMaxTokens) in.Fail("rests: the longest response ends");
}

FinishedTrajectory TakeMember(Bytes& in) {
  Trajectory member;
  member.reason = TakeReason(in.Take<uint8_t>(), in);
  member.correct = in.TakeBool("correct");
  member.reward = in.TakeReal(-std::numeric_limits<double>::max(), "reward");
  member.completed = PolicyVersion(in.TakeCount("completed"));
  TakeResponse(in, member.response);
  return member;
}

}  // namespace

void AppendRecord(std::string& out, const GroupTrajectories& group) {
  Put<int64_t>(out, group.group.value());
  Put<int64_t>(out, group.prompt.value());
  Put<int64_t>(out, group.worker.value());
  Put<uint8_t>(out, group.greedy_last ? 1 : 0);
  Put<uint64_t>(out, group.prompt_tokens.size());
  PutAll<int32_t>(out, group.prompt_tokens, [](TokenId id) { return id; });
  Put<uint64_t>(out, group.members.size());
  for (const FinishedTrajectory& member : group.members) {
    Put<uint8_t>(out, member.has_value() ? 1 : 0);
    if (!member.has_value()) continue;
    Put<uint8_t>(out, static_cast<uint8_t>(member->reason));
    Put<uint8_t>(out, member->correct ? 1 : 0);
    Put<double>(out, member->reward);
    Put<int64_t>(out, member->completed.step());
    PutResponse(out, member->response);
  }
  Put<uint64_t>(out, group.tools.size());
  for (const ToolRecord& tools : group.tools) {
    Put<int64_t>(out, tools.num_calls);
    Put<int64_t>(out, tools.num_failures);
    Put<double>(out, tools.time.count());
  }
}

Status ReadRecord(std::string_view bytes, GroupTrajectories& group) {
  Bytes in(bytes);
  group.group = GroupId(in.TakeCount("group"));
  group.prompt = PromptIndex(in.TakeCount("prompt"));
  group.worker = WorkerId(in.TakeCount("worker"));
  group.greedy_last = in.TakeBool("greedy_last");
  const size_t num_prompt = in.TakeSize(sizeof(int32_t), "prompt tokens");
  const std::string_view prompt = in.TakeArray(num_prompt * sizeof(int32_t));
  for (size_t i = 0; i < num_prompt && in.ok(); ++i) {
    group.prompt_tokens.push_back(ElementAt<int32_t>(prompt, i));
    if (group.prompt_tokens.back() < 0) in.Fail("prompt tokens: must be >= 0");
  }
  const size_t num_members = in.TakeSize(1, "members");
  for (size_t i = 0; i < num_members && in.ok(); ++i) {
    group.members.push_back(in.TakeBool("finished") ? TakeMember(in) : FinishedTrajectory());
  }
  const size_t num_tools = in.TakeSize(sizeof(int64_t) * 3, "tools");
  for (size_t i = 0; i < num_tools && in.ok(); ++i) {
    ToolRecord& tools = group.tools.emplace_back();
    tools.num_calls = in.TakeCount("tool calls");
    tools.num_failures = in.TakeCount("failed tool calls");
    tools.time = Seconds(in.TakeReal(0, "tool time"));
    if (tools.num_failures > tools.num_calls) in.Fail("more tool calls failed than were made");
  }
  PACE_RETURN_IF_ERROR(in.End());
  return CheckShape(group);
}

void AppendRecord(std::string& out, const GroupInFlight& group) {
  Put<int64_t>(out, group.group.value());
  Put<uint64_t>(out, group.members.size());
  for (size_t i = 0; i < group.members.size(); ++i) {
    Put<int64_t>(out, group.members[i]);
    PutResponse(out, group.responses[i]);
  }
}

Status ReadRecord(std::string_view bytes, GroupInFlight& group) {
  Bytes in(bytes);
  group.group = GroupId(in.TakeCount("group"));
  const size_t num_members = in.TakeSize(sizeof(int64_t), "members");
  for (size_t i = 0; i < num_members && in.ok(); ++i) {
    group.members.push_back(in.TakeCount("member"));
    TakeResponse(in, group.responses.emplace_back());
  }
  return in.End();
}

namespace {

// --- the file ---

constexpr std::string_view kMagic = "PACERESP";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kGroups = 1;
constexpr uint32_t kInFlight = 2;
constexpr size_t kBlockBytes = size_t{1} << 20;

// Writes a file of records, and sums it up on the way.
class RecordWriter {
 public:
  static Result<RecordWriter> Create(const std::string& path, uint32_t kind) {
    PACE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
    RecordWriter writer(std::move(file));
    writer.buffer_ = kMagic;
    Put(writer.buffer_, kFormat);
    Put(writer.buffer_, kind);
    return writer;
  }

  template <typename Group>
  Status Add(const Group& group) {
    const size_t at = buffer_.size();
    Put<uint64_t>(buffer_, 0);
    AppendRecord(buffer_, group);
    const uint64_t length = buffer_.size() - at - sizeof(uint64_t);
    std::memcpy(buffer_.data() + at, &length, sizeof(length));
    ++num_records_;
    return buffer_.size() >= kBlockBytes ? WriteOut() : Status::Ok();
  }

  Result<FileSum> Finish() {
    Put<uint64_t>(buffer_, 0);
    Put<uint64_t>(buffer_, num_records_);
    PACE_RETURN_IF_ERROR(WriteOut());
    Put<uint32_t>(buffer_, sum_.crc32c);
    PACE_RETURN_IF_ERROR(WriteOut());
    PACE_RETURN_IF_ERROR(file_.Commit());
    return sum_;
  }

 private:
  explicit RecordWriter(AtomicFile file) : file_(std::move(file)) {}

  Status WriteOut() {
    sum_.Add(buffer_);
    PACE_RETURN_IF_ERROR(file_.Append(buffer_));
    buffer_.clear();
    return Status::Ok();
  }

  AtomicFile file_;
  std::string buffer_;
  FileSum sum_;
  uint64_t num_records_ = 0;
};

// Reads a file of records a block at a time, and sums it up on the way.
class RecordReader {
 public:
  static Result<RecordReader> Open(const std::string& path, uint32_t kind) {
    Files& files = Files::Default();
    const FileInfo info = files.Stat(path);
    if (info.kind != FileKind::kRegular && info.kind != FileKind::kMissing) {
      return InvalidArgument(path, ": must be a regular file");
    }
    PACE_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenToRead(path));
    RecordReader reader(path, std::move(file), info.num_bytes);
    PACE_ASSIGN_OR_RETURN(const std::string_view magic, reader.TakeBytes(kMagic.size()));
    if (magic != kMagic) return DataLoss(path, ": is no file of responses");
    PACE_ASSIGN_OR_RETURN(const uint32_t format, reader.Take<uint32_t>());
    if (format != kFormat) {
      return DataLoss(path, ": format ", format, ": written by another version of pace");
    }
    PACE_ASSIGN_OR_RETURN(const uint32_t found, reader.Take<uint32_t>());
    if (found != kind) return DataLoss(path, ": kind ", found, ": must be ", kind);
    return reader;
  }

  // The next record, valid until the next call; none after the last.
  Result<std::optional<std::string_view>> Next() {
    PACE_ASSIGN_OR_RETURN(const uint64_t length, Take<uint64_t>());
    if (length == 0) {
      PACE_RETURN_IF_ERROR(ReadTrailer());
      return std::optional<std::string_view>();
    }
    PACE_ASSIGN_OR_RETURN(const std::string_view record, TakeBytes(length));
    ++num_records_;
    return std::optional<std::string_view>(record);
  }

  std::string Place() const { return Concat(path_, ": record ", num_records_); }
  const FileSum& sum() const { return sum_; }

 private:
  RecordReader(std::string path, std::unique_ptr<ReadableFile> file, int64_t num_bytes)
      : path_(std::move(path)),
        file_(std::move(file)),
        num_left_(static_cast<uint64_t>(num_bytes)) {}

  // Valid until the next call. A length is believed only as far as the file has bytes.
  Result<std::string_view> TakeBytes(uint64_t num_bytes) {
    if (num_bytes > num_left_) return DataLoss(Place(), ": is cut off");
    const auto wanted = static_cast<size_t>(num_bytes);
    PACE_RETURN_IF_ERROR(Fill(wanted));
    const std::string_view taken = std::string_view(buffer_).substr(at_, wanted);
    at_ += wanted;
    num_left_ -= num_bytes;
    sum_.Add(taken);
    return taken;
  }
  template <typename T>
  Result<T> Take() {
    PACE_ASSIGN_OR_RETURN(const std::string_view bytes, TakeBytes(sizeof(T)));
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  // At least `wanted` bytes of the file are in buffer_ from at_ on.
  Status Fill(size_t wanted) {
    if (buffer_.size() - at_ >= wanted) return Status::Ok();
    buffer_.erase(0, at_);
    at_ = 0;
    size_t filled = buffer_.size();
    buffer_.resize(std::max(wanted, kBlockBytes));
    while (filled < wanted) {
      PACE_ASSIGN_OR_RETURN(const size_t count, file_->Read(std::span(buffer_).subspan(filled)));
      if (count == 0) return DataLoss(Place(), ": is cut off");
      filled += count;
    }
    buffer_.resize(filled);
    return Status::Ok();
  }

  Status ReadTrailer() {
    PACE_ASSIGN_OR_RETURN(const uint64_t count, Take<uint64_t>());
    const uint32_t expected = sum_.crc32c;
    PACE_ASSIGN_OR_RETURN(const uint32_t written, Take<uint32_t>());
    if (count != num_records_) {
      return DataLoss(path_, ": has ", num_records_, " records of ", count);
    }
    if (written != expected) {
      return DataLoss(path_, ": is damaged (its checksum is not the one written)");
    }
    return num_left_ == 0 ? Status::Ok() : DataLoss(path_, ": ", num_left_, " bytes too many");
  }

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  uint64_t num_left_;  // bytes of the file that were not taken
  std::string buffer_;
  size_t at_ = 0;  // what comes before it in buffer_ was taken
  FileSum sum_;
  uint64_t num_records_ = 0;
};

template <typename Group>
Result<FileSum> Write(const std::string& path, uint32_t kind, std::span<const Group> groups) {
  PACE_ASSIGN_OR_RETURN(RecordWriter writer, RecordWriter::Create(path, kind));
  for (const Group& group : groups) PACE_RETURN_IF_ERROR(writer.Add(group));
  return writer.Finish();
}

template <typename Group>
Result<FileSum> Read(const std::string& path, uint32_t kind, std::vector<Group>& groups) {
  PACE_ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path, kind));
  while (true) {
    PACE_ASSIGN_OR_RETURN(const std::optional<std::string_view> record, reader.Next());
    if (!record.has_value()) return reader.sum();
    Group group;
    PACE_RETURN_IF_ERROR(ReadRecord(*record, group).At(reader.Place()));
    groups.push_back(std::move(group));
  }
}

}  // namespace

Result<FileSum> WriteGroups(const std::string& path, std::span<const GroupTrajectories> groups) {
  return Write(path, kGroups, groups);
}

Result<FileSum> WriteInFlight(const std::string& path, std::span<const GroupInFlight> groups) {
  return Write(path, kInFlight, groups);
}

Result<FileSum> ReadGroups(const std::string& path, std::vector<GroupTrajectories>& groups) {
  return Read(path, kGroups, groups);
}

Result<FileSum> ReadInFlight(const std::string& path, std::vector<GroupInFlight>& groups) {
  return Read(path, kInFlight, groups);
}

}  // namespace pace
