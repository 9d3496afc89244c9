// NcclCalls: the functions of libnccl.so.2 that this program uses, as a table.
//
//   PACE_ASSIGN_OR_RETURN(const NcclCalls* const nccl, LoadNccl());
//   int version = 0;
//   const bool answers = nccl->get_version(&version) == kNcclSuccess;
//
// The library is loaded when it is first asked for, under its soname: a process that has one loaded
// already, LibTorch's or another of LD_PRELOAD, uses that one; LD_LIBRARY_PATH counts otherwise.
// Linking would fix the choice when the program is built, and would add a library to every build
// with CUDA. The declarations below are the part of NCCL's binary interface that has been the same
// since 2.14; so nccl.h is not needed.
// Thread-safety: a table of functions of NCCL, which are safe from any thread, one call of a
// communicator at a time.
#ifndef PACE_NCCL_NCCL_LIBRARY_H_
#define PACE_NCCL_NCCL_LIBRARY_H_

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace pace {

// ncclResult_t.
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;

// ncclDataType_t.
enum class NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kInt64 = 4,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};

// ncclRedOp_t.
inline constexpr int kNcclSum = 0;

// ncclUniqueId: names a group that is to be made.
struct NcclId {
  std::array<char, 128> bytes = {};
};

using NcclComm = void*;

// The first fields of ncclConfig_t. NCCL reads `size` bytes of them and uses its defaults for the
// fields that are younger than `version`.
struct NcclConfig {
  size_t size = 20;  // without the padding
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // calls return at once, with kNcclInProgress where they are not done
  int padding = INT_MIN;
};
static_assert(offsetof(NcclConfig, padding) == 20);

struct NcclCalls {
  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(NcclId* id) = nullptr;
  int (*comm_init_rank_config)(NcclComm* comm, int size, NcclId id, int rank,
                               NcclConfig* config) = nullptr;
  int (*comm_finalize)(NcclComm comm) = nullptr;
  int (*comm_abort)(NcclComm comm) = nullptr;
  int (*comm_get_async_error)(NcclComm comm, int* error) = nullptr;
  const char* (*get_error_string)(int result) = nullptr;
  const char* (*get_last_error)(NcclComm comm) = nullptr;
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int op, NcclComm comm,
                    void* stream) = nullptr;
  int (*reduce_scatter)(const void* from, void* to, size_t to_count, int type, int op,
                        NcclComm comm, void* stream) = nullptr;
  int (*all_gather)(const void* from, void* to, size_t from_count, int type, NcclComm comm,
                    void* stream) = nullptr;
  int (*broadcast)(const void* from, void* to, size_t count, int type, int root, NcclComm comm,
                   void* stream) = nullptr;
};

// The table of the process, or one line that says why there is none.
Result<const NcclCalls*> LoadNccl();

// "2.28.9"; of NCCL's number for it, 22809.
std::string NcclVersionText(int version);

}  // namespace pace

#endif  // PACE_NCCL_NCCL_LIBRARY_H_
