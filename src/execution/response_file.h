// The responses of a checkpoint on disk: groups.bin and in_flight.bin.
//
// Little-endian throughout:
//
//   header    "PACERESP", u32 format (1), u32 kind (1 groups, 2 in flight)
//   record    u64 length, then that many bytes: one group (response_record.h)
//   ...
//   trailer   u64 0, u64 number of records, u32 CRC-32C of everything before it
//
// Files are written and read a group at a time, so neither takes memory beyond the
// groups themselves. Reading checks every record, the checksum, and that nothing follows.
// Thread-safety: functions.
#ifndef PACE_EXECUTION_RESPONSE_FILE_H_
#define PACE_EXECUTION_RESPONSE_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "core/status.h"
#include "execution/response_record.h"
#include "execution/trajectory.h"

namespace pace {

Result<FileSum> WriteGroups(const std::string& path, std::span<const GroupTrajectories> groups);
Result<FileSum> WriteInFlight(const std::string& path, std::span<const GroupInFlight> groups);

// Appends to `groups`. The sum is that of what was read.
Result<FileSum> ReadGroups(const std::string& path, std::vector<GroupTrajectories>& groups);
Result<FileSum> ReadInFlight(const std::string& path, std::vector<GroupInFlight>& groups);

}  // namespace pace

#endif  // PACE_EXECUTION_RESPONSE_FILE_H_
