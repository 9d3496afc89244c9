#include "config/learning_options.h"

#include <array>
#include <string_view>

namespace pace {
namespace {

constexpr std::array<std::string_view, 2> kComputeNames = {"float32", "bf16"};
constexpr std::array<std::string_view, 2> kDeviceNames = {"cpu", "cuda"};
constexpr std::array<std::string_view, 3> kSyncNames = {"rebuild", "keep", "drain"};
constexpr std::array<std::string_view, 2> kQuantizationNames = {"none", "fp8"};
constexpr std::string_view kServerNames[] = {"vllm", "sglang"};
constexpr std::string_view kTransferNames[] = {"folder", "nccl"};

}  // namespace

std::vector<Field> PolicyOptions::Fields() {
  return {
      Field::Text(
          "model", model,
          "A model's folder (Hugging Face layout), or a built-in model: tiny, tiny-retool."),
      Field::Enum("device", device, kDeviceNames,
                  "Where responses are generated and the model is trained; cuda needs a build with "
                  "it. `device` alone means this key."),
      Field::Enum("compute", compute, kComputeNames,
                  "Of generation and training; master weights are float32 in both."),
  };
}

std::vector<Field> ResponseOptions::Fields() {
  return {
      Field::Real("temperature", temperature, "Of training responses.").Above(0).AtMost(100),
      Field::Int("top_k", top_k, "Sample from the k likeliest tokens; 0 = all.").AtLeast(0),
      Field::Real("top_p", top_p, "Sample from the likeliest tokens of this mass.")
          .Above(0)
          .AtMost(1),
      Field::Real("min_p", min_p, "Drop tokens less likely than this share of the likeliest.")
          .AtLeast(0)
          .AtMost(1),
      Field::Int("max_tokens", max_tokens, "Longest response.").AtLeast(1).AtMost(1e7),
      Field::Real("mean_tokens", mean_tokens,
                  "To measure speed: responses end after a random number of tokens of this "
                  "mean, exponential up to max_tokens, whatever they sample. 0 = off.")
          .AtLeast(0)
          .AtMost(1e7),
  };
}

std::vector<Field> EngineSettings::Fields() {
  return {
      Field::Int("count", count, "Rollout engines (runtime; the lab has the cluster's).")
          .AtLeast(1)
          .AtMost(1024),
      Field::Int("threads", threads, "Threads of each.").AtLeast(1).AtMost(4096),
      Field::Int("slots", slots,
                 "Responses decoded at once; 0 = as memory allows. More: higher throughput, each "
                 "response takes longer.")
          .AtLeast(0),
      Field::Int("pass_tokens", pass_tokens, "Rows of one forward pass.").AtLeast(1).AtMost(1e6),
      Field::Int("kv_mib", kv_mib, "Hard bound of each engine's KV cache.").AtLeast(1).AtMost(1e7),
      Field::Enum("sync", sync, kSyncNames,
                  "Interrupted responses at a sync: rebuild or keep their KV, or finish first."),
      Field::Enum("quantization", quantization, kQuantizationNames,
                  "Weights that responses are sampled from: the policy's, or fp8, its layers' "
                  "matrices in 8 bits with a scale per output; set train.ratio=recomputed with it "
                  "(docs/rollout.md). Training and evaluation keep the policy's."),
      Field::TextList("urls", urls,
                      "Servers that generate instead of engines in this process: http://HOST:PORT, "
                      "... (docs/engines.md)."),
      Field::Int("fleet", fleet,
                 "Start this many `pace serve` processes on this machine and generate there; 0 = "
                 "engines in this process, or urls.")
          .AtLeast(0)
          .AtMost(64),
      Field::Int("requests", requests, "Requests in flight at each server.")
          .AtLeast(1)
          .AtMost(100000),
      Field::Enum("server", server, kServerNames,
                  "What they are: vllm (also `pace serve`) or sglang."),
      Field::Text("token_file", token_file,
                  "File with the bearer token of the servers; empty = PACE_ENGINE_TOKEN, if set."),
      Field::Text("ca_file", ca_file, "Certificates to trust for https; empty = the system's."),
      Field::Text("weights", weights,
                  "Folder on a disk that the servers share, for the weights of each sync; empty = "
                  "`weights` in the run's folder."),
      Field::Enum("transfer", transfer, kTransferNames,
                  "How weights reach the servers: folder, or nccl from the trainer's GPU to theirs "
                  "(vLLM and SGLang)."),
      Field::Int("transfer_mib", transfer_mib,
                 "With nccl: weights are sent in pieces of this size; each server, and the trainer "
                 "for each server, has two buffers of it.")
          .AtLeast(1)
          .AtMost(65536),
      Field::Text("transfer_address", transfer_address,
                  "With nccl and SGLang: host name or address by which the servers' workers reach "
                  "this process; empty = its address on the way to each server."),
      Field::Int("transfer_port", transfer_port,
                 "With nccl and SGLang: the port that they reach there; 0 = any that is free.")
          .AtLeast(0)
          .AtMost(65535),
      Field::Real("join_s", join_s, "Seconds that servers have to be ready when a run starts.")
          .Above(0)
          .AtMost(1e5),
      Field::Real("generate_s", generate_s, "Longest time of one response on a server.")
          .Above(0)
          .AtMost(1e6),
      Field::Real("load_s", load_s, "Longest time of loading weights on a server.")
          .Above(0)
          .AtMost(1e6),
      Field::Real("control_s", control_s, "Longest time of every other call to a server.")
          .Above(0)
          .AtMost(1e5),
  };
}

std::vector<Field> SftOptions::Fields() {
  return {
      Field::Int("num_steps", num_steps, "Updates of supervised training.").AtLeast(1).AtMost(1e9),
      Field::Int("batch_size", batch_size, "Examples of one update.").AtLeast(1).AtMost(1e6),
      Field::Bool("cosine_decay", cosine_decay, "The learning rate falls to 0 over the run."),
  };
}

std::vector<Field> EvaluationOptions::Fields() {
  return {
      Field::Int("num_responses", num_responses,
                 "Responses to each problem: k of mean@k and pass@k.")
          .AtLeast(1)
          .AtMost(65536),
      Field::Real("temperature", temperature, "0 = greedy.").AtLeast(0).AtMost(100),
      Field::Real("top_p", top_p, "Sample from the likeliest tokens of this mass.")
          .Above(0)
          .AtMost(1),
      Field::Bool("greedy", greedy, "One more response to each problem, greedy, scored by itself."),
      Field::Int("max_problems", max_problems, "Problems of each benchmark; 0 = all.").AtLeast(0),
  };
}

std::vector<Field> CheckpointOptions::Fields() {
  return {
      Field::Int("keep", keep, "The newest checkpoints to keep; 0 = all.").AtLeast(0),
  };
}

std::vector<Field> RuntimeOptions::Fields() {
  return {
      Field::Bool("pin_threads", pin_threads, "Engines and trainer on cores of their own."),
      Field::Real(
          "stall_s", stall_s,
          "Seconds without an event after which the run reports who waits for whom; 0 = never.")
          .AtLeast(0),
  };
}

}  // namespace pace
