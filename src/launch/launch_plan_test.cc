#include "launch/launch_plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "launch/launch_files.h"

namespace pace {
namespace {

Settings Load(const std::string& preset, const std::vector<std::string>& overrides = {}) {
  Result<Settings> settings = LoadSettings(preset, overrides);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() ? *settings : Settings();
}

LaunchPlan Plan(const std::string& preset, Launcher launcher,
                const std::vector<std::string>& overrides = {}) {
  Result<LaunchPlan> plan = PlanLaunch(Load(preset, overrides), launcher, "/shared/job");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? *plan : LaunchPlan();
}

std::string Refusal(const std::string& preset, Launcher launcher,
                    const std::vector<std::string>& overrides = {}) {
  const Result<LaunchPlan> plan = PlanLaunch(Load(preset, overrides), launcher, "/shared/job");
  return plan.ok() ? "accepted" : plan.status().message();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(LaunchPlanTest, TheRunHasTheSimulatedLayout) {
  const LaunchPlan plan = Plan("math-8b", Launcher::kSlurm, {"cluster.slots=128"});
  EXPECT_EQ(static_cast<int64_t>(plan.placement.engines.size()),
            Load("math-8b").cluster.NumEngines());
  EXPECT_EQ(plan.NumRanks(), Load("math-8b").cluster.TrainingGpus());
  EXPECT_EQ(plan.settings.engine.requests, 128);
  EXPECT_EQ(plan.settings.run.checkpoint_every, 25);
  EXPECT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.settings.engine.weights, "/shared/job/weights");
  // run.yaml loads back, and simulates the same.
  Settings again;
  ASSERT_TRUE(ApplyYaml(again, ToYaml(plan.settings), "run.yaml").ok());
  EXPECT_EQ(again.cluster.rollout_gpus, 12);
  EXPECT_EQ(again.engine.token_file, "/shared/job/token");
}

TEST(LaunchPlanTest, ASlurmScriptHasAStepForEveryEngineAndOneForTheRanks) {
  const std::string text = SlurmScript(Plan(
      "math-8b", Launcher::kSlurm, {"launch.sbatch=[--partition=gpu]", "launch.time=24:00:00"}));
  EXPECT_EQ(text.find("#!/bin/bash\n#SBATCH --job-name=pace\n#SBATCH --nodes=2\n"), 0U);
  EXPECT_HAS(text, "#SBATCH --gpus-per-node=8\n");
  EXPECT_HAS(text, "#SBATCH --time=24:00:00\n");
  EXPECT_HAS(text, "#SBATCH --partition=gpu\n");
  EXPECT_EQ(Count(text, "\nkeep_engine "), 12U);
  EXPECT_HAS(text,
             "--nodelist=\"${nodes[1]}\" python3 -m vllm.entrypoints.openai.api_server "
             "--model models/Qwen3-8B --host 0.0.0.0 --port 8007 --enable-scale-out");
  EXPECT_HAS(text, "export VLLM_API_KEY=\"$(cat \"$folder/token\")\"");
  EXPECT_HAS(text, "http://${nodes[0]}:8000,http://${nodes[0]}:8001");
  EXPECT_HAS(text, "--gpus-per-task=1 --nodes=1 --ntasks=4 --ntasks-per-node=4");
  EXPECT_HAS(text,
             "pace train /shared/job/run.yaml --out /shared/job/run train.shard=full "
             "\"engine.urls=$urls\"");
  EXPECT_HAS(text, "pace train --resume /shared/job/run \"engine.urls=$urls\"");
  EXPECT_HAS(text, "export MASTER_ADDR=\"${nodes[0]}\" MASTER_PORT=29500");
}

TEST(LaunchPlanTest, ASlurmScriptWithoutGpusAsksForNone) {
  const std::vector<std::string> two = {"launch.engine=pace", "cluster.rollout_gpus=2",
                                        "cluster.trainer_gpus=2", "launch.cpus=3"};
  const std::string text = SlurmScript(Plan("tiny", Launcher::kSlurm, two));
  EXPECT_EQ(text.find("gpus"), std::string::npos) << text;
  EXPECT_HAS(text, "#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=3\n");
  EXPECT_HAS(text, "--ntasks=2 --ntasks-per-node=2");
  EXPECT_HAS(text, "train.shard=optimizer");
  EXPECT_HAS(text, "pace serve tiny --host 0.0.0.0 --port 8001 policy.device=cpu");
  EXPECT_EQ(SlurmScript(Plan("tiny", Launcher::kSlurm, {"launch.engine=pace"})).find("shard"),
            std::string::npos);
}

TEST(LaunchPlanTest, ALocalScriptGivesEveryProcessItsGpus) {
  const LaunchPlan plan = Plan("math-4b", Launcher::kLocal, {"launch.engine=sglang"});
  const std::string text = LocalScript(plan);
  EXPECT_HAS(text, "keep_engine 0 env CUDA_VISIBLE_DEVICES=2 python3 -m sglang.launch_server");
  EXPECT_HAS(text, "keep_engine 3 env CUDA_VISIBLE_DEVICES=5 ");
  EXPECT_HAS(text, "--api-key \"$PACE_API_KEY\"");
  EXPECT_HAS(text,
             "exec env CUDA_VISIBLE_DEVICES=0,1 torchrun --no-python --nnodes=1 "
             "--nproc-per-node=2 --master-port=29500 pace train");
  EXPECT_EQ(plan.settings.engine.urls.back(), "http://127.0.0.1:8003");
  EXPECT_EQ(plan.settings.engine.server, ServerKind::kSglang);
}

TEST(LaunchPlanTest, EnginesThatGetWeightsOverNcclAreToldSo) {
  const std::string text = LocalScript(Plan("math-4b", Launcher::kLocal, {"engine.transfer=nccl"}));
  EXPECT_HAS(text, R"(--weight-transfer-config '{"backend":"nccl"}')");
  EXPECT_EQ(LocalScript(Plan("math-4b", Launcher::kLocal, {})).find("weight-transfer"),
            std::string::npos);
  // SGLang's need no option.
  const std::string sglang = LocalScript(
      Plan("math-4b", Launcher::kLocal, {"engine.transfer=nccl", "launch.engine=sglang"}));
  EXPECT_HAS(sglang, "sglang.launch_server");
  EXPECT_EQ(sglang.find("weight-transfer"), std::string::npos);
  EXPECT_HAS(Refusal("math-4b", Launcher::kLocal, {"engine.transfer=nccl", "launch.engine=pace"}),
             "engine.transfer = nccl: needs launch.engine=vllm or sglang");
}

TEST(LaunchPlanTest, EnginesOfSeveralGpusAreNamedTogether) {
  const std::string text = LocalScript(
      Plan("math-4b", Launcher::kLocal, {"cluster.tensor_parallel=2", "launch.port=9000"}));
  EXPECT_HAS(text, "keep_engine 1 env CUDA_VISIBLE_DEVICES=4,5 ");
  EXPECT_HAS(text, "--port 9001 ");
  EXPECT_HAS(text, "--tensor-parallel-size 2");
}

TEST(LaunchPlanTest, KubernetesObjectsNameEveryEngine) {
  const LaunchPlan plan =
      Plan("math-8b", Launcher::kKubernetes,
           {"launch.image=my/pace:1", "launch.volume=shared", "launch.engine_image=vllm/vllm:1"});
  const std::string text = KubernetesObjects(plan, "se\"cret");
  EXPECT_EQ(Count(text, "\nkind: "), 6U);
  EXPECT_HAS(text, "token: \"se\\\"cret\"");
  EXPECT_HAS(text, "replicas: 12\n");
  EXPECT_HAS(text, "nvidia.com/gpu: 4\n");
  EXPECT_HAS(text, "image: \"vllm/vllm:1\"");
  EXPECT_HAS(text, "--nproc-per-node=4 --master-addr=pace-trainer-0.pace-trainer");
  EXPECT_EQ(plan.settings.engine.urls.at(11), "http://pace-engine-11.pace-engine:8000");
}

TEST(LaunchPlanTest, OnlyTheTokenIsSecret) {
  const std::vector<LaunchFile> files = LaunchFiles(Plan("math-4b", Launcher::kSlurm), "abc");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_TRUE(files[0].is_program && !files[0].is_secret);
  EXPECT_EQ(files[0].text.find("abc"), std::string::npos);
  EXPECT_EQ(files[1].text.find("abc"), std::string::npos);
  EXPECT_TRUE(files[2].is_secret);
  EXPECT_EQ(files[2].text, "abc\n");
}

TEST(LaunchPlanTest, WhatCannotBeLaunchedIsRefusedInOneLine) {
  EXPECT_EQ(Refusal("math-8b", Launcher::kLocal),
            "cluster: 16 GPUs on machines of 8 are 2 machines; local has one (pace launch slurm, "
            "or set cluster.gpus_per_node)");
  EXPECT_EQ(Refusal("math-8b", Launcher::kKubernetes).find("launch.image = \"\": must be set"), 0U);
  EXPECT_EQ(Refusal("math-8b", Launcher::kSlurm, {"cluster.trainer_gpus=2"})
                .find("each of 2 trainer ranks with train.shard = full needs "),
            0U);
  EXPECT_EQ(Refusal("math-8b", Launcher::kSlurm, {"cluster.layout=colocated"})
                .find("cluster.layout = colocated: "),
            0U);
  EXPECT_EQ(Refusal("math-4b", Launcher::kSlurm, {"launch.name=My Job"})
                .find("launch.name = My Job: must be lower-case letters"),
            0U);
  EXPECT_EQ(Refusal("math-4b", Launcher::kSlurm, {"launch.sbatch=[partition]"}),
            "launch.sbatch = partition: must be options of sbatch, as in --partition=gpu");
  EXPECT_EQ(Refusal("math-4b", Launcher::kSlurm, {"launch.port=29498"}),
            "launch.port = 29498: engine 2 would have port 29500, which is launch.master_port");
  EXPECT_EQ(Refusal("math-4b", Launcher::kSlurm, {"launch.port=65533"}),
            "launch.port = 65533: engine 3 would have port 65536, which is none");
  EXPECT_EQ(Refusal("moe-30b", Launcher::kSlurm, {"launch.engine=pace"})
                .find("cluster.tensor_parallel = 2: must be 1 with launch.engine = pace"),
            0U);
  EXPECT_EQ(PlanLaunch(Load("math-4b"), Launcher::kSlurm, "job").status().message(),
            "folder job: must be an absolute path");
}

// What a shell reads back is what was written.
TEST(LaunchPlanTest, ShellWordsSurvive) {
  const std::vector<std::string> texts = {"plain", "a b", "it's",        "$HOME", "`id`",
                                          "a\"b",  "",    "back\\slash", "*",     "a;b&c|d",
                                          "[1,2]", "~",   "#x",          "!x",    "n\nn"};
  std::vector<Word> words = {{"printf"}, {"%s\\0"}};
  for (const std::string& text : texts) words.push_back({text});
  FILE* pipe = ::popen(ShellLine(words).c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string found(4096, '\0');
  found.resize(std::fread(found.data(), 1, found.size(), pipe));
  ASSERT_EQ(::pclose(pipe), 0);
  std::string expected;
  for (const std::string& text : texts) expected += text + '\0';
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace pace
