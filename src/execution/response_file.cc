#include "execution/response_file.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/atomic_file.h"

namespace pace {
namespace {

constexpr std::string_view kMagic = "PACERESP";
constexpr uint32_t kFormat = 1;
constexpr uint32_t kGroups = 1;
constexpr uint32_t kInFlight = 2;
constexpr size_t kWriteBytes = size_t{1} << 20;

template <typename T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

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
    return buffer_.size() >= kWriteBytes ? WriteOut() : Status::Ok();
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

class RecordReader {
 public:
  static Result<RecordReader> Open(const std::string& path, uint32_t kind) {
    PACE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    RecordReader reader(std::move(file));
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

  // The next record, valid as long as the reader; none after the last.
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

  std::string Place() const { return Concat(file_.path(), ": record ", num_records_); }
  const FileSum& sum() const { return sum_; }

 private:
  explicit RecordReader(MappedFile file) : file_(std::move(file)), left_(file_.text()) {}

  Result<std::string_view> TakeBytes(uint64_t num_bytes) {
    if (num_bytes > left_.size()) return DataLoss(Place(), ": is cut off");
    const std::string_view taken = left_.substr(0, static_cast<size_t>(num_bytes));
    left_.remove_prefix(taken.size());
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

  Status ReadTrailer() {
    const std::string& path = file_.path();
    PACE_ASSIGN_OR_RETURN(const uint64_t count, Take<uint64_t>());
    const uint32_t expected = sum_.crc32c;
    PACE_ASSIGN_OR_RETURN(const uint32_t written, Take<uint32_t>());
    if (count != num_records_) {
      return DataLoss(path, ": has ", num_records_, " records of ", count);
    }
    if (written != expected) {
      return DataLoss(path, ": is damaged (its checksum is not the one written)");
    }
    return left_.empty() ? Status::Ok() : DataLoss(path, ": ", left_.size(), " bytes too many");
  }

  MappedFile file_;
  std::string_view left_;  // of the file's bytes
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
