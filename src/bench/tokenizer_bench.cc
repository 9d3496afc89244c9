#include "bench/tokenizer_bench.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bench/bench_report.h"
#include "bench/measurement.h"
#include "bench/peer_process.h"
#include "bench/scripts.h"
#include "core/clock.h"
#include "core/json_scanner.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kPeerTimeout(600);

// The strings of one line's object, nested ones left out.
Status AddTexts(const std::string& line, std::vector<std::string>& texts) {
  JsonScanner scan(line);
  scan.EnterObject();
  while (scan.NextKey()) {
    if (scan.NextKind() == JsonScanner::Kind::kText) {
      scan.Text(texts.emplace_back());
    } else {
      scan.Skip();
    }
  }
  scan.End();
  return scan.status();
}

Result<std::vector<std::string>> ReadTexts(const std::string& path) {
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  } else {
    files.emplace_back(path);
  }
  std::vector<std::string> texts;
  for (const fs::path& file : files) {
    std::ifstream in(file);
    if (!in) return NotFound(file.string(), ": cannot be read");
    std::string line;
    for (int64_t number = 1; std::getline(in, line); ++number) {
      PACE_RETURN_IF_ERROR(AddTexts(line, texts).At(Concat(file.string(), ":", number)));
    }
  }
  if (texts.empty()) return InvalidArgument(path, ": holds no texts (a .jsonl file of objects)");
  return texts;
}

// The package, with the texts in a file that goes when it goes.
class TokenizersPeer {
 public:
  static Result<std::unique_ptr<TokenizersPeer>> Start(const std::string& tokenizer,
                                                       const std::vector<std::string>& texts) {
    auto peer = std::unique_ptr<TokenizersPeer>(new TokenizersPeer);
    std::ofstream out(peer->texts_);
    for (const std::string& text : texts) {
      std::string line;
      AppendJsonText(line, text);
      out << line << '\n';
    }
    if (!out.flush()) return Unavailable(peer->texts_.string(), ": cannot be written");
    PACE_ASSIGN_OR_RETURN(
        PeerProcess process,
        PeerProcess::Start(PeerPython(), TokenizersPeerSource(),
                           {tokenizer + "/tokenizer.json", peer->texts_.string()}, ""));
    peer->process_.emplace(std::move(process));
    PACE_ASSIGN_OR_RETURN(const Answer ready, peer->Read());
    peer->version_ = ready.version;
    return peer;
  }
  ~TokenizersPeer() {
    std::error_code ignored;
    fs::remove(texts_, ignored);
  }

  struct Answer {
    double seconds = 0;
    int64_t num_ids = 0;
    std::string version;
  };
  Result<Answer> Measure() {
    PACE_RETURN_IF_ERROR(process_->Send("again"));
    return Read();
  }
  const std::string& version() const { return version_; }

 private:
  TokenizersPeer() = default;

  Result<Answer> Read() {
    PACE_ASSIGN_OR_RETURN(const std::string line, process_->ReadLine(kPeerTimeout));
    Answer answer;
    JsonScanner scan(line);
    scan.EnterObject();
    while (scan.NextKey()) {
      if (scan.key() == "seconds") {
        scan.Real(0, 1e9, "", answer.seconds);
      } else if (scan.key() == "num_ids") {
        scan.Integer(0, std::numeric_limits<int64_t>::max(), "", answer.num_ids);
      } else {
        scan.Text(answer.version);
      }
    }
    if (!scan.ok()) return scan.status().At("tokenizers_peer.py");
    return answer;
  }

  const fs::path texts_ = fs::temp_directory_path() / Concat("pace-texts-", getpid(), ".jsonl");
  std::optional<PeerProcess> process_;
  std::string version_;
};

Result<int64_t> EncodeAll(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  int64_t num_ids = 0;
  for (const std::string& text : texts) {
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text));
    num_ids += static_cast<int64_t>(ids.size());
  }
  return num_ids;
}

Measurement Speed(std::string name) {
  return {.name = std::move(name),
          .unit = "MB/s",
          .limit = std::nullopt,
          .limit_kind = Limit::kAtLeast};
}

}  // namespace

Result<std::string> RunTokenizerBench(const TokenizerBenchOptions& options) {
  PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.tokenizer));
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadTexts(options.texts));
  if (options.repetitions < 1) return InvalidArgument("repetitions: must be at least 1");
  double megabytes = 0;
  for (const std::string& text : texts) megabytes += 1e-6 * static_cast<double>(text.size());

  Result<std::unique_ptr<TokenizersPeer>> peer = Unavailable("not asked for");
  if (options.python) peer = TokenizersPeer::Start(options.tokenizer, texts);

  Measurement ours = Speed("encode");
  Measurement theirs = Speed("encode_tokenizers_package");
  int64_t num_ids = 0;
  for (int64_t round = 0; round < options.repetitions; ++round) {
    const WallClock clock;
    PACE_ASSIGN_OR_RETURN(const int64_t encoded, EncodeAll(tokenizer, texts));
    num_ids = encoded;
    ours.repetitions.push_back(megabytes / clock.Now().count());
    if (!peer.ok()) continue;
    PACE_ASSIGN_OR_RETURN(const TokenizersPeer::Answer answer, (*peer)->Measure());
    theirs.repetitions.push_back(megabytes / answer.seconds);
    if (answer.num_ids != num_ids) {
      return DataLoss(options.tokenizer, ": ", num_ids, " ids here, ", answer.num_ids,
                      " by the tokenizers package");
    }
  }
  std::vector<Measurement> all = {ours};
  if (peer.ok()) {
    all.push_back(theirs);
    all.push_back(RatioOf(ours, theirs, "times_the_tokenizers_package", 1.0));
    all.back().limit_kind = Limit::kAtLeast;
  }
  return BenchReport(
      "tokenizer", all,
      [&](JsonWriter& json) {
        json.BeginObject();
        json.Put("repetitions", options.repetitions);
        json.Put("threads", 1);
        json.Put("num_texts", texts.size());
        json.Put("megabytes", megabytes);
        json.Put("num_ids", num_ids);
        json.EndObject();
      },
      [&](JsonWriter& json) {
        json.Put("peer", peer.ok() ? (*peer)->version() : peer.status().message());
      });
}

}  // namespace pace
