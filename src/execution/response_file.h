// The responses of a checkpoint on disk: groups.bin and in_flight.bin.
//
// Little-endian throughout:
//
//   header    "PACERESP", u32 format (1), u32 kind (1 groups, 2 in flight)
//   record    u64 length, then that many bytes: one group
//   ...
//   trailer   u64 0, u64 number of records, u32 CRC-32C of everything before it
//
// A record takes about 8 bytes a token, or 12 where sampling truncates the distribution: an
// id, its log-probability, and where it differs the one it was sampled with. Versions are
// written once for each run of tokens. Log-probabilities keep their bits, infinities and NaNs
// too. Files are written and read a group at a time, so neither takes memory beyond the
// groups themselves. Reading checks every length, id and range, the checksum, and that
// nothing follows.
// Thread-safety: functions.
#ifndef PACE_EXECUTION_RESPONSE_FILE_H_
#define PACE_EXECUTION_RESPONSE_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/crc32c.h"
#include "core/status.h"
#include "execution/trajectory.h"

namespace pace {

// Unfinished responses of one group on one worker.
struct GroupInFlight {
  GroupId group{};
  std::vector<int64_t> members = {};
  std::vector<PartialResponse> responses = {};  // one each
};

Result<FileSum> WriteGroups(const std::string& path, std::span<const GroupTrajectories> groups);
Result<FileSum> WriteInFlight(const std::string& path, std::span<const GroupInFlight> groups);

// Appends to `groups`. The sum is that of what was read.
Result<FileSum> ReadGroups(const std::string& path, std::vector<GroupTrajectories>& groups);
Result<FileSum> ReadInFlight(const std::string& path, std::vector<GroupInFlight>& groups);

// One record, for tests and fuzzing. Reads into an empty group.
void AppendRecord(std::string& out, const GroupTrajectories& group);
void AppendRecord(std::string& out, const GroupInFlight& group);
Status ReadRecord(std::string_view bytes, GroupTrajectories& group);
Status ReadRecord(std::string_view bytes, GroupInFlight& group);

}  // namespace pace

#endif  // PACE_EXECUTION_RESPONSE_FILE_H_
