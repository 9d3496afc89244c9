#include "bench/transformers_peer.h"

#include <limits>

#include "bench/scripts.h"
#include "core/json_scanner.h"
#include "core/json_writer.h"

namespace pace {
namespace {

// Importing torch on a busy machine takes a while, and so may a slow batch.
constexpr Seconds kTimeout(600);
constexpr int64_t kGemmSize = 2048;

std::string_view TorchName(Dtype dtype) {
  return dtype == Dtype::kBF16 ? "bfloat16" : "float32";
}

void WriteRows(JsonWriter& json, const TokenRows& rows) {
  json.BeginArray();
  for (const std::vector<TokenId>& row : rows) {
    json.BeginArray();
    for (const TokenId id : row) json.Value(id);
    json.EndArray();
  }
  json.EndArray();
}

void ScanRows(JsonScanner& scan, TokenRows& rows) {
  scan.EnterArray();
  while (scan.NextItem()) {
    std::vector<TokenId>& row = rows.emplace_back();
    scan.EnterArray();
    while (scan.NextItem()) {
      int64_t id = 0;
      scan.Integer(0, std::numeric_limits<TokenId>::max(), "", id);
      row.push_back(static_cast<TokenId>(id));
    }
  }
}

}  // namespace

Result<std::unique_ptr<TransformersPeer>> TransformersPeer::Start(const std::string& folder,
                                                                  int64_t num_threads) {
  PACE_ASSIGN_OR_RETURN(PeerProcess process,
                        PeerProcess::Start(PeerPython(), TransformersPeerSource(), {}, ""));
  auto peer = std::unique_ptr<TransformersPeer>(new TransformersPeer(std::move(process)));
  for (const Dtype dtype : {Dtype::kF32, Dtype::kBF16}) {
    PACE_RETURN_IF_ERROR(peer->Load(folder, num_threads, dtype));
  }
  return peer;
}

Status TransformersPeer::Load(const std::string& folder, int64_t num_threads, Dtype dtype) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Put("load", folder);
  json.Put("dtype", TorchName(dtype));
  json.Put("threads", num_threads);
  json.EndObject();
  PACE_RETURN_IF_ERROR(process_.Send(request));
  PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kTimeout));
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) scan.Text(version_);
  return scan.status();
}

Result<Generation> TransformersPeer::Generate(const TokenRows& prompts, int64_t new_tokens,
                                              Dtype dtype) {
  std::string request;
  JsonWriter json(request);
  json.BeginObject();
  json.Key("generate");
  WriteRows(json, prompts);
  json.Put("new_tokens", new_tokens);
  json.Put("dtype", TorchName(dtype));
  json.EndObject();
  PACE_RETURN_IF_ERROR(process_.Send(request));
  PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kTimeout));
  Generation generation;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.key() == "seconds") {
      scan.Real(0, 1e9, "", generation.seconds);
    } else {
      ScanRows(scan, generation.ids);
    }
  }
  if (!scan.ok()) return scan.status().At("transformers_peer.py");
  return generation;
}

Result<double> TransformersPeer::GemmGigaflops(Dtype dtype) {
  PACE_RETURN_IF_ERROR(
      process_.Send(Concat("{\"gemm\": [", kGemmSize, ", ", kGemmSize, ", ", kGemmSize,
                           "], \"dtype\": \"", TorchName(dtype), "\"}")));
  PACE_ASSIGN_OR_RETURN(const std::string line, process_.ReadLine(kTimeout));
  double gigaflops = 0;
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) scan.Real(0, 1e12, "", gigaflops);
  if (!scan.ok()) return scan.status().At("transformers_peer.py");
  return gigaflops;
}

}  // namespace pace
