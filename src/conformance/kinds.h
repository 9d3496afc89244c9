// The kinds of reference files that pace-conformance checks, one file each.
//
//   Tally tally;
//   const Status status = CheckHermes({.paths = {"hermes_cases.json"}}, tally);
//
// A check reads its arguments, compares every case, adds a line per failure and
// counts. It never stops at the first: one run shows all there is to mend.
#ifndef PACE_CONFORMANCE_KINDS_H_
#define PACE_CONFORMANCE_KINDS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace pace {

struct Tally {
  int64_t num_passed = 0;
  int64_t num_failed = 0;
  int64_t num_skipped = 0;
  std::vector<std::string> failures;  // "FILE: case: what differs", a line each
  std::vector<std::string> notes;     // what a reader may want to know, for stderr

  void Pass() { ++num_passed; }
  void Skip() { ++num_skipped; }
  void Fail(std::string line) {
    ++num_failed;
    failures.push_back(std::move(line));
  }
};

// The arguments after KIND: files or folders, and options by name.
struct KindArguments {
  std::vector<std::string> paths;
  std::string tokenizer = {};      // --tokenizer DIR; empty = the file's folder
  std::string chat_template = {};  // --template FILE
  std::string config = {};         // --config NAME, for models
  std::string device = {};         // --device NAME, for models; empty = cpu
};

// An error Status means that the check itself could not run (a file is not
// there, or is not of the kind).
Status CheckAdmission(const KindArguments& arguments, Tally& tally);
Status CheckTokenizers(const KindArguments& arguments, Tally& tally);
Status CheckChat(const KindArguments& arguments, Tally& tally);
Status CheckHermes(const KindArguments& arguments, Tally& tally);
Status CheckTruncation(const KindArguments& arguments, Tally& tally);
Status CheckSafetensors(const KindArguments& arguments, Tally& tally);
Status CheckModels(const KindArguments& arguments, Tally& tally);
Status CheckNumerics(const KindArguments& arguments, Tally& tally);
Status CheckDapo(const KindArguments& arguments, Tally& tally);
Status CheckEquivalence(const KindArguments& arguments, Tally& tally);

struct ConformanceKind {
  const char* name;
  const char* what;   // what is compared, for --help
  const char* paths;  // what the paths are
  Status (*check)(const KindArguments&, Tally&);
};

// Every kind but `models`, which checks the network of LibTorch where the build has it.
// golden_test.cc holds each of them against the files of tests/golden.
std::span<const ConformanceKind> TorchFreeKinds();

}  // namespace pace

#endif  // PACE_CONFORMANCE_KINDS_H_
