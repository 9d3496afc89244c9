// The commands that train, in a build without LibTorch.
#include "cli/commands.h"

namespace pace {
namespace {

int FailWithoutTorch() {
  return Fail(Unavailable("this build of pace has no LibTorch (build it without PACE_CORE_ONLY)"));
}

}  // namespace

int RunTrainCommand(const TrainArguments& /*arguments*/) {
  return FailWithoutTorch();
}

int RunCompareCommand(const CompareArguments& /*arguments*/) {
  return FailWithoutTorch();
}

int RunResultsCommand(const ResultsArguments& /*arguments*/) {
  return FailWithoutTorch();
}

int RunEvalCommand(const EvalArguments& /*arguments*/) {
  return FailWithoutTorch();
}

int RunDataCommand(const DataArguments& /*arguments*/) {
  return FailWithoutTorch();
}

int RunSftCommand(const SftArguments& /*arguments*/) {
  return FailWithoutTorch();
}

}  // namespace pace
