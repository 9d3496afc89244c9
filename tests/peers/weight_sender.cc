// NcclSender for the Python programs beside this file:
//
//   weight_sender cuts BYTES                       sizes of tensors on stdin; a line per chunk:
//                                                  first tensor, number of tensors, bytes
//   weight_sender send SHAPE FORM BYTES DEADLINE   random bfloat16 weights of a shape (tiny, 0.6b,
//                                                  4b), packed or unpacked, DEADLINE in ms
//   weight_sender buckets SHAPE BYTES DEADLINE     the same for SGLang
//   weight_sender meet                             an id for a group of two, and nothing else
//
// `send` prints the body of /update_weights, an object with two checksums per tensor and the body
// of /init_weight_transfer_engine, a line each. It joins and prints "joined". For each line "go" on
// stdin it sends the weights once and prints "sent SECONDS" or "failed SECONDS REASON". "engine
// FORM BYTES" makes it leave the group and print a new invitation. It ends with stdin.
//
// `buckets` prints the checksums, then the body of /init_weights_update_group and a list of the
// bodies of /update_weights_from_distributed. "go" is as for `send`; its first also joins. "engine"
// makes it leave the group and print both bodies of a new one. `meet` prints the body of
// /init_weights_update_group with the id, in hexadecimal digits, as "id", and waits for the end of
// stdin; it needs no GPU.
//
// Checksums of a tensor of little-endian int16 x: sum of x[i], sum of x[i] * (i % 65521).
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engines/dialect.h"
#include "engines/nccl_channel.h"
#include "engines/nccl_sender.h"
#include "engines/packed_chunks.h"
#include "model/tiny_configs.h"
#include "nccl/nccl_library.h"
#include "ranks/meeting_store.h"

namespace pace {
namespace {

constexpr int64_t kModulus = 65521;

Status PrintCuts(int64_t buffer_bytes) {
  std::vector<int64_t> sizes;
  for (int64_t size = 0; std::cin >> size;) sizes.push_back(size);
  for (const WeightChunk& chunk : CutChunks(sizes, buffer_bytes)) {
    std::cout << chunk.first << " " << chunk.count << " " << chunk.num_bytes << "\n";
  }
  return Status::Ok();
}

Result<ModelConfig> ShapeOf(const std::string& name) {
  ModelConfig config = TinyModel(Architecture::kQwen3);
  if (name == "tiny") return config;
  if (name != "0.6b" && name != "4b") return InvalidArgument("shape ", name, ": tiny, 0.6b or 4b");
  const bool is_large = name == "4b";
  config.vocab_size = 151936;
  config.hidden_size = is_large ? 2560 : 1024;
  config.intermediate_size = is_large ? 9728 : 3072;
  config.num_layers = is_large ? 36 : 28;
  config.num_heads = is_large ? 32 : 16;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.tied = true;
  return config;
}

// Weights on the GPU, made on the host; the checksums are of the host's.
struct SentWeights {
  std::unique_ptr<TransferGpu> memory = {};
  WeightSet set = {};
  std::string checksums = {};  // JSON
};

Result<SentWeights> MakeWeights(const ModelConfig& config) {
  SentWeights made;
  PACE_ASSIGN_OR_RETURN(made.memory, OpenTransferGpu());
  const std::vector<Parameter> parameters = ParametersOf(config);
  size_t total = 0;
  const auto count_of = [](const Parameter& parameter) {
    size_t count = 1;
    for (const int64_t size : parameter.shape) count *= static_cast<size_t>(size);
    return count;
  };
  for (const Parameter& parameter : parameters) {
    total += (2 * count_of(parameter) + 255) / 256 * 256;
  }
  PACE_ASSIGN_OR_RETURN(void* const memory, made.memory->Buffer(total));
  auto* next = static_cast<std::byte*>(memory);
  TensorViews views;
  std::vector<int16_t> values;
  uint64_t state = 0x9e3779b97f4a7c15;
  std::string text = "{";
  for (const Parameter& parameter : parameters) {
    const size_t count = count_of(parameter);
    values.resize(count);
    int64_t sum = 0;
    int64_t weighted = 0;
    int64_t place = 0;
    for (int16_t& value : values) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      value = static_cast<int16_t>(state >> 48);
      sum += value;
      weighted += value * place;
      if (++place == kModulus) place = 0;
    }
    PACE_RETURN_IF_ERROR(made.memory->Copy(next, values.data(), 2 * count));
    // The copy must be done before the host's memory is used again.
    for (;;) {
      PACE_ASSIGN_OR_RETURN(const bool idle, made.memory->IsIdle());
      if (idle) break;
    }
    views.emplace(parameter.name, TensorView{.dtype = Dtype::kBF16,
                                             .shape = parameter.shape,
                                             .bytes = std::span(next, 2 * count)});
    text += Concat(text.size() > 1 ? ", " : "", "\"", parameter.name, "\": [", sum, ", ", weighted,
                   "]");
    next += (2 * count + 255) / 256 * 256;
  }
  made.checksums = text + "}";
  PACE_ASSIGN_OR_RETURN(made.set,
                        WeightSet::Create(config, std::move(views), nullptr, Residence::kDevice));
  return made;
}

// "" at the end of stdin.
std::string NextLine() {
  std::string line;
  return std::getline(std::cin, line) ? line : std::string();
}

template <typename Send>
void TimeSend(const Send& send) {
  const auto start = std::chrono::steady_clock::now();
  const Status status = send();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::cout << (status.ok() ? "sent " : "failed ") << seconds.count() << " " << status.message()
            << "\n"
            << std::flush;
}

Status Serve(const NcclCalls& calls, const SentWeights& weights, const NcclSenderOptions& options,
             std::string& line) {
  PACE_ASSIGN_OR_RETURN(const NcclInvitation invitation, NcclInvitation::Make(calls, options));
  const HttpCall open = VllmDialect().OpenChannel(
      {.num_workers = options.num_workers,
       .id = std::string(invitation.id.bytes.data(), invitation.id.bytes.size()),
       .packed = options.packed,
       .buffer_bytes = options.buffer_bytes});
  const std::vector<WeightChunk> chunks = ChunksOf(weights.set, options.buffer_bytes);
  std::cout << open.body << "\n" << std::flush;
  NcclSender::Gpus gpus;
  for (auto& gpu : gpus) {
    PACE_ASSIGN_OR_RETURN(gpu, OpenTransferGpu());
  }
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<NcclSender> sender,
                        NcclSender::Join(calls, std::move(gpus), invitation));
  std::cout << "joined\n" << std::flush;
  for (line = NextLine(); line == "go"; line = NextLine()) {
    TimeSend([&] { return sender->Send(weights.set, chunks); });
  }
  return Status::Ok();
}

Status ServeBuckets(MeetingStore& store, const SentWeights& weights,
                    const NcclSenderOptions& options, std::string& line) {
  PACE_ASSIGN_OR_RETURN(
      const std::unique_ptr<WeightChannel> channel,
      OpenNcclChannel(
          options,
          GroupMeeting{
              .address = "127.0.0.1",
              .port = store.port(),
              .put = [&](const std::string& key,
                         const std::string& value) { return store.Put(key, value); },
              .remove = [&](const std::string& key) { static_cast<void>(store.Remove(key)); }}));
  const ChannelInvitation invitation = channel->Invitation();
  const std::vector<UpdateCall> calls =
      SglangDialect().Update(weights.set, "run:0", InFlightRule::kEnd, invitation);
  std::string bodies = "[";
  for (const UpdateCall& call : calls) {
    if (call.sends.empty()) continue;
    bodies += Concat(bodies.size() > 1 ? ", " : "", call.http.body);
  }
  std::cout << SglangDialect().OpenChannel(invitation).body << "\n"
            << bodies << "]\n"
            << std::flush;
  PACE_RETURN_IF_ERROR(channel->Join());
  for (line = NextLine(); line == "go"; line = NextLine()) {
    TimeSend([&] {
      for (const UpdateCall& call : calls) {
        if (!call.sends.empty()) PACE_RETURN_IF_ERROR(channel->Send(weights.set, call.sends));
      }
      return Status::Ok();
    });
  }
  return Status::Ok();
}

Status SendBuckets(const std::vector<std::string>& arguments) {
  NcclSenderOptions options;
  options.buffer_bytes = std::stoll(arguments[1]);
  options.deadline = options.join = std::chrono::milliseconds(std::stoll(arguments[2]));
  PACE_ASSIGN_OR_RETURN(const ModelConfig config, ShapeOf(arguments[0]));
  PACE_ASSIGN_OR_RETURN(const SentWeights weights, MakeWeights(config));
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<MeetingStore> store, OpenMeetingStore({}));
  std::cout << weights.checksums << "\n";
  for (std::string line = "engine"; line == "engine";) {
    PACE_RETURN_IF_ERROR(ServeBuckets(*store, weights, options, line));
  }
  return Status::Ok();
}

Status Meet() {
  PACE_ASSIGN_OR_RETURN(const std::unique_ptr<MeetingStore> store, OpenMeetingStore({}));
  const ChannelInvitation invitation{
      .group = "pace-meet", .address = "127.0.0.1", .port = store->port()};
  // With 0, and with bytes that are no text.
  std::string id;
  std::string digits;
  for (int i = 0; i < 128; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    id += static_cast<char>(2 * i);
    digits += {kDigits[static_cast<size_t>(2 * i / 16)], kDigits[static_cast<size_t>(2 * i % 16)]};
  }
  PACE_RETURN_IF_ERROR(store->Put(IdKeyOf(invitation.group), id));
  std::string body = SglangDialect().OpenChannel(invitation).body;
  body.pop_back();
  std::cout << body << ", \"id\": \"" << digits << "\"}\n" << std::flush;
  while (!NextLine().empty()) {
  }
  return Status::Ok();
}

Status SendWeights(const std::vector<std::string>& arguments) {
  NcclSenderOptions options;
  options.deadline = std::chrono::milliseconds(std::stoll(arguments[3]));
  PACE_ASSIGN_OR_RETURN(const ModelConfig config, ShapeOf(arguments[0]));
  PACE_ASSIGN_OR_RETURN(const SentWeights weights, MakeWeights(config));
  PACE_ASSIGN_OR_RETURN(const NcclCalls* const calls, LoadNccl());
  const std::vector<UpdateCall> update =
      VllmDialect().Update(weights.set, "run:0", InFlightRule::kEnd, {});
  std::cout << update[1].http.body << "\n" << weights.checksums << "\n";
  std::string line = Concat("engine ", arguments[1], " ", arguments[2]);
  while (line.starts_with("engine ")) {
    std::istringstream words(line.substr(7));
    std::string form;
    words >> form >> options.buffer_bytes;
    options.packed = form == "packed";
    const Status status = Serve(*calls, weights, options, line);
    if (status.ok()) continue;
    std::cout << "failed 0 " << status.message() << "\n" << std::flush;
    line = NextLine();
  }
  return Status::Ok();
}

Status Run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "cuts") return PrintCuts(std::stoll(arguments[1]));
  if (arguments.size() == 5 && arguments[0] == "send") {
    return SendWeights({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.size() == 4 && arguments[0] == "buckets") {
    return SendBuckets({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.size() == 1 && arguments[0] == "meet") return Meet();
  return InvalidArgument(
      "weight_sender: cuts BYTES, send SHAPE FORM BYTES DEADLINE, buckets SHAPE BYTES DEADLINE or "
      "meet");
}

}  // namespace
}  // namespace pace

int main(int argc, char** argv) {
  const pace::Status status = pace::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 2;
}
