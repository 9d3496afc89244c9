#include "engines/weight_folder.h"

#include <atomic>
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

void RemoveFolder(const std::string& path) {
  // What cannot be removed takes room and does no other harm.
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

class WeightFolder::Version {
 public:
  explicit Version(std::string path) : path_(std::move(path)) {}
  ~Version() {
    if (is_old_) RemoveFolder(path_);
  }
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;

  const std::string& path() const { return path_; }
  // From now on it is removed with its last holder.
  void Retire() { is_old_ = true; }

 private:
  const std::string path_;
  std::atomic<bool> is_old_ = false;
};

WeightFolder::WeightFolder(std::string folder, int64_t keep, Dtype dtype)
    : folder_(std::move(folder)), keep_(keep), dtype_(dtype) {}
WeightFolder::WeightFolder(WeightFolder&&) noexcept = default;
WeightFolder::~WeightFolder() = default;

Result<HeldFolder> WeightFolder::Write(PolicyVersion version, const ModelConfig& config,
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
  std::erase_if(newest_, [&](const auto& own) { return own->path() == target; });
  newest_.push_back(std::make_shared<Version>(target));
  HeldFolder held{.path = target, .hold = newest_.back()};
  while (std::ssize(newest_) > keep_) {
    newest_.front()->Retire();
    newest_.erase(newest_.begin());
  }
  return held;
}

void WeightFolder::Clear() {
  for (const auto& own : std::exchange(newest_, {})) RemoveFolder(own->path());
}

}  // namespace pace
