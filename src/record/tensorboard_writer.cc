#include "record/tensorboard_writer.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "core/crc32c.h"

namespace pace {
namespace {

// Protobuf: a field begins with (number << 3 | wire type).
enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint32_t kEventWallTime = 1;
constexpr uint32_t kEventStep = 2;
constexpr uint32_t kEventFileVersion = 3;
constexpr uint32_t kEventSummary = 5;
constexpr uint32_t kSummaryValue = 1;
constexpr uint32_t kValueTag = 1;
constexpr uint32_t kValueSimple = 2;

constexpr std::string_view kFileVersion = "brain.Event:2";
constexpr uint32_t kMaskDelta = 0xa282ead8;

void AppendVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <typename Unsigned>
void AppendFixed(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>(value >> (8 * i));
}

void AppendTag(std::string& out, uint32_t field, Wire wire) {
  AppendVarint(out, field << 3 | static_cast<uint32_t>(wire));
}

void AppendBytes(std::string& out, uint32_t field, std::string_view bytes) {
  AppendTag(out, field, Wire::kBytes);
  AppendVarint(out, bytes.size());
  out += bytes;
}

void AppendTime(std::string& event, double time) {
  AppendTag(event, kEventWallTime, Wire::kFixed64);
  AppendFixed(event, std::bit_cast<uint64_t>(time));
}

std::string SummaryOf(std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    if (!std::isfinite(number)) continue;
    std::string value;
    AppendBytes(value, kValueTag, tag);
    AppendTag(value, kValueSimple, Wire::kFixed32);
    AppendFixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    AppendBytes(summary, kSummaryValue, value);
  }
  return summary;
}

uint32_t Masked(uint32_t crc) {
  return std::rotr(crc, 15) + kMaskDelta;
}

}  // namespace

std::string TensorBoardWriter::FileName(int64_t start) {
  return Concat("events.out.tfevents.", start, ".pace");
}

Result<TensorBoardWriter> TensorBoardWriter::Create(const std::string& directory, int64_t start) {
  PACE_ASSIGN_OR_RETURN(
      auto file,
      Files::Default().OpenToWrite(Concat(directory, "/", FileName(start)), WriteMode::kReplace));
  TensorBoardWriter writer(start, 0, std::move(file));
  std::string event;
  AppendTime(event, static_cast<double>(start));
  AppendBytes(event, kEventFileVersion, kFileVersion);
  PACE_RETURN_IF_ERROR(writer.WriteRecord(event));
  return writer;
}

Result<TensorBoardWriter> TensorBoardWriter::Append(const std::string& directory, int64_t start) {
  const std::string path = Concat(directory, "/", FileName(start));
  const int64_t num_bytes = Files::Default().Stat(path).num_bytes;
  PACE_ASSIGN_OR_RETURN(auto file, Files::Default().OpenToWrite(path, WriteMode::kAppend));
  return TensorBoardWriter(start, num_bytes, std::move(file));
}

Status TensorBoardWriter::Add(int64_t step, Seconds time, std::span<const Scalar> scalars) {
  std::string event;
  AppendTime(event, static_cast<double>(start_) + time.count());
  AppendTag(event, kEventStep, Wire::kVarint);
  AppendVarint(event, static_cast<uint64_t>(step));
  AppendBytes(event, kEventSummary, SummaryOf(scalars));
  return WriteRecord(event);
}

Status TensorBoardWriter::WriteRecord(std::string_view event) {
  if (!status_.ok()) return status_;
  std::string record;
  AppendFixed(record, static_cast<uint64_t>(event.size()));
  AppendFixed(record, Masked(Crc32c(record)));
  record += event;
  AppendFixed(record, Masked(Crc32c(event)));
  status_ = file_->Append(record);
  num_bytes_ += static_cast<int64_t>(record.size());
  return status_;
}

Result<int64_t> TensorBoardWriter::FlushToDisk() {
  if (file_ != nullptr && status_.ok()) status_ = file_->FlushToDisk();
  if (!status_.ok()) return status_;
  return num_bytes_;
}

Status TensorBoardWriter::Close() {
  if (file_ == nullptr) return status_;
  const Status closed = file_->Close();
  file_.reset();
  if (status_.ok()) status_ = closed;
  return status_;
}

}  // namespace pace
