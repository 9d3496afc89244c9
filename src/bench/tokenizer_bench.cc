// `pace bench tokenizer`: encoding speed beside the `tokenizers` package, on one thread
// each, over the same texts in the same run.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/benches.h"
#include "bench/peer.h"
#include "core/clock.h"
#include "core/json_scanner.h"
#include "text/tokenizer/tokenizer.h"

namespace pace {
namespace {

namespace fs = std::filesystem;

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

// The texts, a JSON string per line, in a file that is removed at its end.
class TextFile {
 public:
  explicit TextFile(const std::vector<std::string>& texts) {
    std::ofstream out(path_);
    for (const std::string& text : texts) {
      std::string line;
      AppendJsonText(line, text);
      out << line << '\n';
    }
    if (!out.flush()) status_ = Unavailable(path_.string(), ": cannot be written");
  }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  ~TextFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  const Status& status() const { return status_; }

 private:
  const fs::path path_ = fs::temp_directory_path() / Concat("pace-texts-", getpid(), ".jsonl");
  Status status_;
};

Result<Peer> StartPeer(const std::string& tokenizer, const TextFile& texts) {
  PACE_RETURN_IF_ERROR(texts.status());
  PACE_ASSIGN_OR_RETURN(
      Peer peer, Peer::Start("tokenizers_peer.py", {tokenizer + "/tokenizer.json", texts.path()}));
  PACE_RETURN_IF_ERROR(peer.Ask("version").status());
  return peer;
}

Result<int64_t> EncodeAll(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  int64_t num_ids = 0;
  for (const std::string& text : texts) {
    PACE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, tokenizer.Encode(text));
    num_ids += static_cast<int64_t>(ids.size());
  }
  return num_ids;
}

}  // namespace

Status RunTokenizerBench(const BenchOptions& options, BenchReport& report) {
  if (options.tokenizer.empty() || options.texts.empty()) {
    return InvalidArgument("bench tokenizer: --tokenizer DIR and --texts PATH must be given");
  }
  PACE_RETURN_IF_ERROR(options.Validate());
  PACE_ASSIGN_OR_RETURN(const Tokenizer tokenizer, Tokenizer::Load(options.tokenizer));
  PACE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, ReadTexts(options.texts));
  double megabytes = 0;
  for (const std::string& text : texts) megabytes += 1e-6 * static_cast<double>(text.size());

  const TextFile file(texts);
  Result<Peer> peer = Unavailable("not asked for");
  if (options.python) peer = StartPeer(options.tokenizer, file);

  Measurement ours = Rate("encode", "MB/s");
  Measurement theirs = Rate("encode_tokenizers_package", "MB/s");
  int64_t num_ids = 0;
  for (int64_t round = 0; round < options.repetitions; ++round) {
    const WallClock clock;
    PACE_ASSIGN_OR_RETURN(num_ids, EncodeAll(tokenizer, texts));
    ours.Add(megabytes / clock.Now().count());
    if (!peer.ok()) continue;
    PACE_ASSIGN_OR_RETURN(const PeerAnswer answer, peer->Ask("encode", {"seconds", "num_ids"}));
    theirs.Add(megabytes / answer.numbers.at("seconds"));
    const auto peer_ids = static_cast<int64_t>(answer.numbers.at("num_ids"));
    if (peer_ids != num_ids) {
      return DataLoss(options.tokenizer, ": ", num_ids, " ids here, ", peer_ids,
                      " by the tokenizers package");
    }
  }
  report.measurements = {ours};
  if (peer.ok()) {
    report.measurements.push_back(theirs);
    report.measurements.push_back(
        RatioOf(ours, theirs, "times_the_tokenizers_package", 1.0, Limit::kAtLeast));
  }
  JsonWriter& settings = report.settings();
  settings.Put("repetitions", options.repetitions);
  settings.Put("threads", 1);
  settings.Put("num_texts", texts.size());
  settings.Put("megabytes", megabytes);
  settings.Put("num_ids", num_ids);
  report.more().Put("peer", DescriptionOf(peer));
  return Status::Ok();
}

}  // namespace pace
