// `pace bench checkpoint`: how fast the responses of a checkpoint are written and read,
// beside writing and reading the same bytes plainly in the same rounds, and how much memory
// that takes beyond the responses themselves.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/benches.h"
#include "bench/machine.h"
#include "core/clock.h"
#include "execution/response_file.h"

namespace pace {
namespace {

constexpr int64_t kGroupSize = 16;
constexpr double kRequiredRate = 200;  // MB/s
constexpr double kMemoryFactor = 1.2;  // of the responses in memory
constexpr size_t kBlock = size_t{1} << 20;

std::vector<GroupTrajectories> MakeGroups(const BenchOptions& options) {
  std::vector<GroupTrajectories> groups;
  uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525 + 1013904223; };
  for (int64_t done = 0; done < options.num_responses;) {
    GroupTrajectories& group = groups.emplace_back();
    group.group = GroupId(static_cast<int64_t>(groups.size()));
    group.prompt_tokens.assign(64, 7);
    for (int64_t i = 0; i < kGroupSize && done < options.num_responses; ++i, ++done) {
      Trajectory member;
      member.response.tokens.resize(static_cast<size_t>(options.num_tokens));
      int64_t at = 0;
      for (TokenRecord& token : member.response.tokens) {
        token.id = static_cast<TokenId>(next() >> 15);
        token.version = PolicyVersion(at++ / 256);
        // Truncated sampling, which takes more bytes.
        token.logprob = -static_cast<float>(next() >> 8) * 0x1p-20F;
        token.sampled_logprob = token.logprob * 0.5F;
      }
      group.members.push_back(std::move(member));
    }
  }
  return groups;
}

// Bytes of the tokens in memory.
double DataBytes(const BenchOptions& options) {
  return static_cast<double>(options.num_responses) * static_cast<double>(options.num_tokens) *
         static_cast<double>(sizeof(TokenRecord));
}

// Of this process so far: on a busy machine a rate says less than what it cost.
double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status Failed(const std::string& path) {
  return Unavailable(path, ": ", std::strerror(errno));
}

// The same bytes, a block at a time, and on the disk.
Status WritePlainly(const std::string& path, int64_t num_bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return Failed(path);
  const std::string block(kBlock, 'x');
  bool ok = true;
  for (int64_t left = num_bytes; left > 0 && ok;) {
    const size_t size = std::min(kBlock, static_cast<size_t>(left));
    ok = ::write(file, block.data(), size) == static_cast<ssize_t>(size);
    left -= static_cast<int64_t>(size);
  }
  ok = ok && ::fsync(file) == 0;
  ::close(file);
  return ok ? Status::Ok() : Failed(path);
}

Status ReadPlainly(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failed(path);
  std::string block(kBlock, '\0');
  ssize_t size = 0;
  while ((size = ::read(file, block.data(), block.size())) > 0) Keep(block[0]);
  ::close(file);
  return size == 0 ? Status::Ok() : Failed(path);
}

// A folder that goes with its content.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& wanted) {
    std::string pattern =
        (wanted.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(wanted))
            .string() +
        "/pace-bench-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Results {
  Measurement write = Rate("write", "MB/s", kRequiredRate);
  Measurement read = Rate("read", "MB/s", kRequiredRate);
  Measurement plain_write = Rate("plain_write", "MB/s");
  Measurement plain_read = Rate("plain_read", "MB/s");
  Measurement write_memory{.name = "write_peak_over_data", .unit = "x", .limit = kMemoryFactor};
  Measurement read_memory{.name = "read_peak_over_data", .unit = "x", .limit = kMemoryFactor};
  double bytes_per_token = 0;
};

Status RunOnce(const BenchOptions& options, const std::string& folder, Results& out) {
  const std::string ours = folder + "/groups.bin";
  const std::string plain = folder + "/plain.bin";
  const double data = DataBytes(options);
  const auto time = [](const std::function<Status()>& work, const FileSum& file,
                       Measurement& rate) -> Status {
    const WallClock clock;
    const double cpu = CpuSeconds();
    PACE_RETURN_IF_ERROR(work());
    const double seconds = clock.Now().count();
    rate.Add(static_cast<double>(file.num_bytes) / 1e6 / seconds);
    rate.cpu_shares.push_back(std::min(1.0, (CpuSeconds() - cpu) / seconds));
    return Status::Ok();
  };
  FileSum sum;
  {
    const PeakMemory peak;
    const std::vector<GroupTrajectories> groups = MakeGroups(options);
    const auto write = [&]() -> Status {
      const Result<FileSum> written = WriteGroups(ours, groups);
      if (written.ok()) sum = *written;
      return written.status();
    };
    PACE_RETURN_IF_ERROR(time(write, sum, out.write));
    if (const auto bytes = peak.Bytes()) {
      out.write_memory.Add(static_cast<double>(*bytes) / data);
    }
  }
  out.bytes_per_token =
      static_cast<double>(sum.num_bytes) / (data / static_cast<double>(sizeof(TokenRecord)));
  PACE_RETURN_IF_ERROR(
      time([&] { return WritePlainly(plain, sum.num_bytes); }, sum, out.plain_write));
  PACE_RETURN_IF_ERROR(time([&] { return ReadPlainly(plain); }, sum, out.plain_read));
  const PeakMemory peak;
  std::vector<GroupTrajectories> groups;
  PACE_RETURN_IF_ERROR(time([&] { return ReadGroups(ours, groups).status(); }, sum, out.read));
  if (const auto bytes = peak.Bytes()) {
    out.read_memory.Add(static_cast<double>(*bytes) / data);
  }
  return Status::Ok();
}

}  // namespace

Status RunCheckpointBench(const BenchOptions& options, BenchReport& report) {
  PACE_RETURN_IF_ERROR(options.Validate());
  const ScratchFolder folder(options.folder);
  if (folder.path().empty()) return Unavailable("a temporary folder cannot be made");
  Results results;
  for (int64_t round = 0; round < options.repetitions; ++round) {
    PACE_RETURN_IF_ERROR(RunOnce(options, folder.path(), results));
  }
  report.measurements = {results.write,
                         results.plain_write,
                         results.read,
                         results.plain_read,
                         RatioOf(results.write, results.plain_write, "write_over_plain"),
                         RatioOf(results.read, results.plain_read, "read_over_plain")};
  for (const Measurement& memory : {results.write_memory, results.read_memory}) {
    if (!memory.repetitions.empty()) report.measurements.push_back(memory);
  }
  JsonWriter& settings = report.settings();
  settings.Put("repetitions", options.repetitions);
  settings.Put("responses", options.num_responses);
  settings.Put("tokens", options.num_tokens);
  settings.Put("group_size", kGroupSize);
  report.more().Put("bytes_per_token", results.bytes_per_token);
  return Status::Ok();
}

}  // namespace pace
