#include "engines/weight_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"

namespace pace {
namespace {

constexpr int64_t kShardBytes = int64_t{4} << 30;

std::string NameOf(PolicyVersion version) {
  std::string digits = Concat(version.step());
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return "v" + digits;
}

}  // namespace

Result<std::string> WeightFolder::Write(PolicyVersion version, const ModelConfig& config,
                                        const WeightSet& weights) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(folder_, error);
  if (error) return Unavailable(folder_, ": ", error.message());
  const std::string target = (folder / NameOf(version)).string();
  // A run that continues writes a version again that it had written before.
  PACE_ASSIGN_OR_RETURN(AtomicFolder made,
                        AtomicFolder::Create(target, AtomicFolder::Existing::kReplace));
  PACE_RETURN_IF_ERROR(
      SaveModel(made.path().string(), config, weights, dtype_, kShardBytes, TiedHead::kWrite));
  PACE_RETURN_IF_ERROR(made.Commit());
  std::erase(written_, target);
  written_.push_back(target);
  while (std::ssize(written_) > keep_) {
    Remove(written_.front());
    written_.erase(written_.begin());
  }
  return target;
}

void WeightFolder::Clear() {
  for (const std::string& path : std::exchange(written_, {})) Remove(path);
}

void WeightFolder::Remove(const std::string& path) {
  // What cannot be removed takes room and does no other harm.
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace pace
