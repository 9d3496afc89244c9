#include "launch/fleet_check.h"

#include <gtest/gtest.h>

namespace pace {
namespace {

EngineFacts Engine(const std::string& url) {
  EngineFacts engine;
  engine.url = url;
  engine.facts = {.version = "0.32.0",
                  .model = "m",
                  .max_tokens = 4096,
                  .probe = std::vector<TokenId>{1, 2, 3},
                  .tells_versions = true,
                  .shape = {.vocabulary = 50, .hidden_size = 64, .num_layers = 2}};
  engine.clock_offset = 0.5;
  return engine;
}

FleetFacts Fleet() {
  FleetFacts fleet;
  fleet.engines = {Engine("http://a:1"), Engine("http://b:1")};
  fleet.shape = NetworkShape{.vocabulary = 50, .hidden_size = 64, .num_layers = 2};
  fleet.probe = std::vector<TokenId>{1, 2, 3};
  fleet.max_context = 4096;
  fleet.weights = FolderFacts{.path = "/w", .free_bytes = 100, .needed_bytes = 90};
  fleet.nccl = std::string("libnccl.so.2 2.28.9");
  return fleet;
}

std::vector<std::string> Failures(const FleetFacts& fleet) {
  std::vector<std::string> failures;
  for (const FleetLine& line : CheckFleet(fleet)) {
    if (line.failed) failures.push_back(Concat(line.part, " ", line.text));
  }
  return failures;
}
using Texts = std::vector<std::string>;

TEST(FleetCheckTest, AFleetInOrderHasNoFailure) {
  EXPECT_EQ(Failures(Fleet()), Texts{});
  // What a server or this machine does not know is not held against it.
  FleetFacts fleet = Fleet();
  fleet.engines[0].facts.shape = {};
  fleet.engines[0].facts.probe.reset();
  fleet.engines[1].clock_offset.reset();
  fleet.nccl = NotFound("libnccl.so.2: cannot be loaded");
  EXPECT_EQ(Failures(fleet), Texts{});
}

TEST(FleetCheckTest, EachFailureIsOneLine) {
  const auto with = [](void (*change)(FleetFacts&)) {
    FleetFacts fleet = Fleet();
    change(fleet);
    return Failures(fleet);
  };
  EXPECT_EQ(with([](FleetFacts& f) { f.engines[1].status = Unavailable("connection refused"); }),
            (Texts{"http://b:1 reached: connection refused"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.engines[1].facts.version = "0.31.0"; }),
            (Texts{"fleet version: http://b:1 has 0.31.0, http://a:1 has 0.32.0"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.shape->num_layers = 3; }),
            (Texts{"http://a:1 shape: vocabulary 50, width 64, 2 layers, but policy.model has "
                   "vocabulary 50, width 64, 3 layers",
                   "http://b:1 shape: vocabulary 50, width 64, 2 layers, but policy.model has "
                   "vocabulary 50, width 64, 3 layers"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.engines[0].facts.max_tokens = 1024; }),
            (Texts{"http://a:1 context: 1024 tokens; the run needs 4096 (prompt.max_tokens + "
                   "generation.max_tokens)"}));
  EXPECT_EQ(with([](FleetFacts& f) {
              f.probe.reset();
              f.engines[0].facts.probe = std::vector<TokenId>{9};
            }),
            (Texts{"fleet vocabulary: http://b:1 has another, http://a:1 has one tokenizer"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.engines[0].facts.probe = std::vector<TokenId>{9}; }).size(),
            2U);
  EXPECT_EQ(with([](FleetFacts& f) { f.engines[0].clock_offset = -61; }),
            (Texts{"http://a:1 clock: 61.0 s behind this machine's (let both follow a time "
                   "server)"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.weights->needed_bytes = int64_t{1} << 40; }),
            (Texts{"weights /w: 0.0 GiB free, 1024.0 GiB needed (engine.weights names another)"}));
  EXPECT_EQ(with([](FleetFacts& f) { f.weights->status = Unavailable("/w: Permission denied"); }),
            (Texts{"weights /w: Permission denied"}));
  EXPECT_EQ(with([](FleetFacts& f) {
              f.sends_weights = true;
              f.engines[0].facts.no_channel = "dp_size = 2: must be 1";
            }),
            (Texts{"http://a:1 transfer: dp_size = 2: must be 1"}));
  EXPECT_EQ(with([](FleetFacts& f) {
              f.needs_nccl = true;
              f.nccl = NotFound("libnccl.so.2: cannot be loaded");
            }),
            (Texts{"nccl libnccl.so.2: cannot be loaded"}));
}

}  // namespace
}  // namespace pace
