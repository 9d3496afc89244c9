#include "ranks/rank_environment.h"

#include <gtest/gtest.h>

#include <map>

namespace pace {
namespace {

using Variables = std::map<std::string, std::string>;

Result<std::optional<RankEnvironment>> Read(const Variables& variables) {
  return ReadRankEnvironment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

RankEnvironment Found(const Variables& variables) {
  const Result<std::optional<RankEnvironment>> read = Read(variables);
  EXPECT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read.ok() && read->has_value());
  return read.ok() && read->has_value() ? **read : RankEnvironment();
}

std::string ErrorOf(const Variables& variables) {
  return Read(variables).status().message();
}

const Variables kTorchrun = {
    {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(RankEnvironmentTest, AProcessWithoutALauncherIsAlone) {
  EXPECT_FALSE(Read({})->has_value());
  EXPECT_FALSE(Read({{"RANK", "0"}, {"WORLD_SIZE", "1"}})->has_value());
  EXPECT_FALSE(Read({{"RANK", "3"}})->has_value());
}

TEST(RankEnvironmentTest, TorchrunNamesRankAndMeetingPoint) {
  EXPECT_EQ(Found(kTorchrun),
            (RankEnvironment{
                .launcher = "torchrun", .rank = 2, .size = 4, .address = "node7", .port = 29500}));
}

TEST(RankEnvironmentTest, TheAgentsStoreAndItsRestartsAreRecognised) {
  const RankEnvironment found = Found(With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                                                       {"TORCHELASTIC_MAX_RESTARTS", "3"}}));
  EXPECT_TRUE(found.agent_store);
  EXPECT_EQ(found.num_restarts, 1);
  EXPECT_TRUE(found.may_be_restarted);
}

TEST(RankEnvironmentTest, TheNumberOnTheMachineIsTheLaunchers) {
  EXPECT_EQ(Found(kTorchrun).local_rank, 0);
  EXPECT_EQ(Found(With(kTorchrun, {{"LOCAL_RANK", "1"}})).local_rank, 1);
  const Variables meeting = {{"MASTER_ADDR", "n"}, {"MASTER_PORT", "1234"}};
  EXPECT_EQ(
      Found(With(meeting,
                 {{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}}))
          .local_rank,
      1);
  EXPECT_EQ(Found(With(meeting, {{"OMPI_COMM_WORLD_RANK", "5"},
                                 {"OMPI_COMM_WORLD_SIZE", "8"},
                                 {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}}))
                .local_rank,
            3);
  EXPECT_EQ(Found(With(meeting, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "2"}}))
                .local_rank,
            2);
  EXPECT_NE(ErrorOf(With(kTorchrun, {{"LOCAL_RANK", "x"}})).find("LOCAL_RANK = x"),
            std::string::npos);
}

TEST(RankEnvironmentTest, ABatchScriptOfSlurmIsNotARank) {
  EXPECT_FALSE(
      Read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "17"}})->has_value());
}

TEST(RankEnvironmentTest, SrunMeetsOnTheFirstNodeOfTheStep) {
  const Variables step = {{"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "2"},
                          {"SLURM_STEP_NODELIST", "gpu[07-08,12]"},
                          {"SLURM_JOB_ID", "41"},
                          {"SLURM_STEP_ID", "3"}};
  EXPECT_EQ(Found(step),
            (RankEnvironment{
                .launcher = "srun", .rank = 1, .size = 2, .address = "gpu07", .port = 20044}));
  const RankEnvironment named = Found(With(step, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}}));
  EXPECT_EQ(named.address, "a");
  EXPECT_EQ(named.port, 5);
}

TEST(RankEnvironmentTest, TheFirstHostOfACompressedList) {
  EXPECT_EQ(FirstHost("n1"), "n1");
  EXPECT_EQ(FirstHost("n1,n2"), "n1");
  EXPECT_EQ(FirstHost("n[01-03,7]x,m2"), "n01x");
  EXPECT_EQ(FirstHost("r[2]n[5,6]"), "r2n5");
  EXPECT_EQ(FirstHost("n[01"), "");
  EXPECT_EQ(FirstHost(""), "");
}

TEST(RankEnvironmentTest, MpirunOnOneMachineNeedsAPortAlone) {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"MASTER_PORT", "4000"}};
  EXPECT_EQ(Found(open_mpi),
            (RankEnvironment{
                .launcher = "mpirun", .rank = 1, .size = 2, .address = "127.0.0.1", .port = 4000}));
  const Variables mpich = {
      {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}};
  EXPECT_EQ(Found(mpich).size, 2);
}

TEST(RankEnvironmentTest, BadValuesAreRefusedByName) {
  EXPECT_NE(ErrorOf(With(kTorchrun, {{"RANK", "4"}})).find("RANK = 4"), std::string::npos);
  EXPECT_NE(ErrorOf(With(kTorchrun, {{"WORLD_SIZE", "two"}})).find("WORLD_SIZE"),
            std::string::npos);
  EXPECT_NE(ErrorOf(With(kTorchrun, {{"MASTER_PORT", "65536"}})).find("MASTER_PORT"),
            std::string::npos);
  EXPECT_NE(ErrorOf({{"WORLD_SIZE", "2"}}).find("RANK is not set"), std::string::npos);
  EXPECT_NE(ErrorOf({{"WORLD_SIZE", "2"}, {"RANK", "0"}}).find("MASTER_ADDR"), std::string::npos);
  EXPECT_NE(ErrorOf({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "h"}}).find("MASTER_PORT"),
            std::string::npos);
}

}  // namespace
}  // namespace pace
