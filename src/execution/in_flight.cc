#include <utility>

#include "execution/checkpoint.h"
#include "formats/safetensors.h"

namespace pace {

GroupInFlight InFlightOf(GroupRequest request) {
  GroupInFlight group;
  group.group = request.group;
  for (int64_t i = 0; i < request.num_members(); ++i) {
    group.members.push_back(request.member(i));
    group.responses.push_back(request.resumed.empty()
                                  ? PartialResponse{}
                                  : std::move(request.resumed[static_cast<size_t>(i)]));
  }
  return group;
}

Result<ResumedGroup> ResumeGroup(GroupInFlight group, const TrajectoryStore& store,
                                 const PromptSource& prompt_source, int64_t attempt) {
  const GroupTrajectories* const known = store.Find(group.group);
  if (known == nullptr) return DataLoss("group ", group.group.value(), ": has no record");
  PACE_ASSIGN_OR_RETURN(GroupRequest request,
                        prompt_source.RequestFor(group.group, known->prompt, attempt));
  request.members = std::move(group.members);
  request.resumed = std::move(group.responses);
  return ResumedGroup{.worker = known->worker, .request = std::move(request)};
}

Result<WeightSet> LoadServedWeights(const ModelConfig& config, const std::string& folder) {
  PACE_ASSIGN_OR_RETURN(SafetensorsFile file,
                        SafetensorsFile::Open(folder + "/served.safetensors"));
  const auto held = std::make_shared<const SafetensorsFile>(std::move(file));
  return WeightSet::Create(config, TensorViews(held->tensors()), held);
}

}  // namespace pace
