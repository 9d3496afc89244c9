// Dialect: how one kind of inference server is spoken to.
//
// Pure: values in, HTTP calls out, and bodies back into values. Whatever a server answers,
// reading it ends with a value or with one line that says what is wrong with it; that a value
// makes sense for the request is for the caller to check (remote_core.h).
//
// Thread-safety: immutable.
#ifndef PACE_ENGINES_DIALECT_H_
#define PACE_ENGINES_DIALECT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "core/token_id.h"
#include "engines/weight_channel.h"
#include "http/client.h"
#include "model/sampling.h"
#include "model/weight_set.h"

namespace pace {

// What a server answered.
struct ServerAnswer {
  int64_t status = 0;  // of HTTP
  std::string body = {};
  std::optional<int64_t> unix_seconds = {};  // by its clock, where it says
};

// One response, from its beginning or from where it was interrupted.
struct GenerateCall {
  std::string id = {};               // unique in the life of the server
  std::vector<TokenId> tokens = {};  // the prompt, then the response so far
  SamplingOptions sampling = {};
  std::optional<uint64_t> seed = {};  // none: the server draws one
  int64_t max_tokens = 0;             // more
  std::vector<TokenId> stop_tokens = {};
  std::vector<std::string> stop_strings = {};
  // Log-probabilities of tokens[first_scored...] under the present weights are wanted.
  std::optional<int64_t> first_scored = {};
};

// Tokens [start, end) of an answer were sampled by the weights of this label.
struct VersionSpan {
  std::string label = {};
  int64_t start = 0;
  int64_t end = 0;
};

enum class AnswerEnd { kStop, kLength, kAbort };

struct GenerateAnswer {
  std::vector<TokenId> tokens = {};
  std::vector<float> logprobs = {};  // one per token
  AnswerEnd end = AnswerEnd::kAbort;
  std::vector<VersionSpan> spans = {};  // empty: the server does not say
  std::vector<float> scores = {};       // of tokens[first_scored...]; empty: none came
};

// What must agree before weights are exchanged. 0: not known.
struct NetworkShape {
  int64_t vocabulary = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
};

// What a server says of itself when a run joins it. Empty: it does not say.
struct ServerFacts {
  std::string version = {};
  std::string model = {};
  std::optional<int64_t> max_tokens = {};          // of a prompt with its response
  std::optional<std::vector<TokenId>> probe = {};  // kProbeText in its tokens
  bool tells_versions = false;                     // which weights sampled which token
  bool takes_seeds = false;                        // of single requests
  bool fetches = false;                            // reads weights ahead of the pause
  int64_t num_workers = 1;                         // processes that hold a part of the weights
  std::string no_channel = {};                     // why none can be opened to it; empty: one can
  NetworkShape shape = {};
};

// Requests that have a token, and the sum of their times to it, since the server started.
struct FirstTokens {
  int64_t count = 0;
  Seconds time{0};
};

// Tokenizers that agree on this text are taken to be the same.
inline constexpr std::string_view kProbeText =
    "Add 12 and 7.5: it's \"19.5\" — naïve? ∑ 你好\n\n  end";

// What a weight sync does with the requests in flight.
enum class InFlightRule {
  kEnd,        // they end, and answer with the tokens they have
  kRecompute,  // they go on with a cache that is computed again
  kKeep,       // they go on with the cache of the old weights
};

// A call of an update over a channel.
struct UpdateCall {
  HttpCall http = {};
  // Answered when these tensors, which are sent meanwhile, have been received. Empty: none are.
  std::vector<WeightChunk> sends = {};
  bool may_be_refused = false;  // an answer of 400 ends it as well
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;

  // Calls to make, one after another, when a run joins. Each answer adds to the facts; an error
  // refuses the server.
  virtual std::vector<HttpCall> Join() const = 0;
  virtual Status ReadJoin(size_t index, const ServerAnswer& answer, ServerFacts& facts) const = 0;

  virtual HttpCall Generate(const GenerateCall& call) const = 0;
  virtual Result<GenerateAnswer> ReadGenerate(const GenerateCall& call,
                                              std::string_view body) const = 0;
  // Ends these requests early: each answers with the tokens it has.
  virtual std::vector<HttpCall> Abort(std::span<const std::string> ids) const = 0;

  // Asks a server that can read weights ahead of a sync to begin, and later whether it has
  // finished: ReadFetch then returns true.
  virtual HttpCall Fetch(const std::string& folder) const = 0;
  virtual Result<bool> ReadFetch(std::string_view body) const = 0;
  // Calls of a weight sync, in order: requests in flight stop, the weights of the folder are
  // loaded and labelled, the server goes on.
  virtual HttpCall Pause(InFlightRule mode) const = 0;
  virtual std::vector<HttpCall> Load(const std::string& folder, const std::string& label,
                                     InFlightRule mode, bool fetched) const = 0;
  // The same over a channel (weight_channel.h): once, a call with the invitation, answered when the
  // server's workers know the group; then for each version these calls, in order.
  virtual HttpCall OpenChannel(const ChannelInvitation& invitation) const = 0;
  virtual std::vector<UpdateCall> Update(const WeightSet& weights, const std::string& label,
                                         InFlightRule mode,
                                         const ChannelInvitation& channel) const = 0;
  virtual HttpCall Resume() const = 0;

  // The label of the weights that the server has.
  virtual HttpCall Label() const = 0;
  virtual Result<std::string> ReadLabel(std::string_view body) const = 0;
  virtual HttpCall Health() const = 0;
  // What the server measured itself; zeros where it does not say.
  virtual HttpCall Metrics() const = 0;
  virtual FirstTokens ReadMetrics(std::string_view body) const = 0;

  // What an answer with another status than 200 says, in one line.
  virtual std::string ReadError(std::string_view body) const = 0;
};

// vLLM from 0.32 on, and `pace serve`.
const Dialect& VllmDialect();
// SGLang from 0.5.23 on.
const Dialect& SglangDialect();

}  // namespace pace

#endif  // PACE_ENGINES_DIALECT_H_
