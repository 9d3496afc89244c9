#include "execution/response_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/atomic_file.h"
#include "record/crc32c.h"

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
    sum_.crc32c = Crc32c(buffer_, sum_.crc32c);
    sum_.num_bytes += static_cast<int64_t>(buffer_.size());
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
    std::error_code error;
    // Anything but a plain file might never end, or never begin.
    if (!std::filesystem::is_regular_file(path, error)) {
      return NotFound(path, ": is no plain file");
    }
    const auto size = std::filesystem::file_size(path, error);
    std::FILE* const file = error ? nullptr : std::fopen(path.c_str(), "rbe");
    if (file == nullptr) return Unavailable(path, ": cannot be read: ", std::strerror(errno));
    RecordReader reader(path, file, size);
    char magic[8] = {};
    PACE_RETURN_IF_ERROR(reader.Fill(magic, sizeof(magic)));
    if (std::string_view(magic, sizeof(magic)) != kMagic) {
      return DataLoss(path, ": is no file of responses");
    }
    PACE_ASSIGN_OR_RETURN(const uint32_t format, reader.Take<uint32_t>());
    if (format != kFormat) {
      return DataLoss(path, ": format ", format, ": written by another version of pace");
    }
    PACE_ASSIGN_OR_RETURN(const uint32_t found, reader.Take<uint32_t>());
    if (found != kind) return DataLoss(path, ": kind ", found, ": must be ", kind);
    return reader;
  }

  // The next record, valid until the next call; none behind the last.
  Result<std::optional<std::string_view>> Next() {
    PACE_ASSIGN_OR_RETURN(const uint64_t length, Take<uint64_t>());
    if (length == 0) {
      PACE_RETURN_IF_ERROR(ReadTrailer());
      return std::optional<std::string_view>();
    }
    if (length > left_) return DataLoss(Place(), ": is cut off");
    buffer_.resize(static_cast<size_t>(length));
    PACE_RETURN_IF_ERROR(Fill(buffer_.data(), buffer_.size()));
    ++num_records_;
    return std::optional<std::string_view>(buffer_);
  }

  std::string Place() const { return Concat(path_, ": record ", num_records_); }
  const FileSum& sum() const { return sum_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  RecordReader(std::string path, std::FILE* file, uint64_t size)
      : path_(std::move(path)), file_(file), left_(size) {
    std::setvbuf(file, nullptr, _IOFBF, size_t{1} << 16);
  }

  Status Fill(void* to, size_t num_bytes) {
    if (num_bytes > left_) return DataLoss(Place(), ": is cut off");
    if (std::fread(to, 1, num_bytes, file_.get()) != num_bytes) {
      return std::ferror(file_.get()) != 0
                 ? Unavailable(path_, ": cannot be read: ", std::strerror(errno))
                 : DataLoss(Place(), ": is cut off");
    }
    left_ -= num_bytes;
    sum_.crc32c = Crc32c({static_cast<const char*>(to), num_bytes}, sum_.crc32c);
    sum_.num_bytes += static_cast<int64_t>(num_bytes);
    return Status::Ok();
  }
  template <typename T>
  Result<T> Take() {
    T value{};
    PACE_RETURN_IF_ERROR(Fill(&value, sizeof(value)));
    return value;
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
    return left_ == 0 ? Status::Ok() : DataLoss(path_, ": ", left_, " bytes too many");
  }

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  uint64_t left_;
  std::string buffer_;
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
