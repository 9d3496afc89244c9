#include "model/speculative_pass.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

namespace pace {
namespace {

constexpr TokenId kStop = 3;

// A sequence that is generated: its tokens, the blocks it holds, its name.
struct Sequence {
  int64_t id = 0;
  std::vector<TokenId> tokens;
  int64_t num_cached = 0;
  std::vector<BlockId> blocks;
};

// Adds all that is not in the cache, and a sample after it.
void Add(const Sequence& sequence, Pass& pass, bool samples = true) {
  const int64_t num_tokens = std::ssize(sequence.tokens) - sequence.num_cached;
  pass.tokens.insert(pass.tokens.end(), sequence.tokens.begin() + sequence.num_cached,
                     sequence.tokens.end());
  pass.chunks.push_back(
      {.start = sequence.num_cached, .num_tokens = num_tokens, .blocks = sequence.blocks});
  if (!samples) return;
  pass.samples.push_back(
      {.row = std::ssize(pass.tokens) - 1,
       .options = {},
       .key = {
           .seed = 1, .prompt = sequence.id, .response = 0, .token = std::ssize(sequence.tokens)}});
}

Sequence OneOf(int64_t id, int64_t num_tokens, int64_t num_cached, int64_t num_blocks) {
  Sequence sequence;
  sequence.id = id;
  sequence.num_cached = num_cached;
  for (int64_t i = 0; i < num_tokens; ++i) {
    sequence.tokens.push_back(static_cast<TokenId>(10 + (id + i) % 7));
  }
  for (int64_t i = 0; i < num_blocks; ++i) {
    sequence.blocks.push_back(static_cast<BlockId>(100 * id + i));
  }
  return sequence;
}

Pass PassOf(const std::vector<Sequence>& sequences) {
  Pass pass;
  for (const Sequence& sequence : sequences) Add(sequence, pass);
  return pass;
}

TEST(SpeculativePassTest, EveryRowMovesOnePlace) {
  const std::vector<Sequence> sequences = {OneOf(1, 5, 4, 1), OneOf(2, 20, 0, 2)};
  const SpeculativePass ahead(PassOf(sequences));
  ASSERT_EQ(ahead.pass().chunks.size(), 2);
  EXPECT_EQ(ahead.pass().chunks[0].start, 5);
  EXPECT_EQ(ahead.pass().chunks[1].start, 20);
  EXPECT_EQ(ahead.pass().chunks[1].num_tokens, 1);
  EXPECT_EQ(ahead.pass().samples[1].row, 1);
  EXPECT_EQ(ahead.pass().samples[1].key.token, 21);
  EXPECT_EQ(ahead.sources()[1], 1);
}

TEST(SpeculativePassTest, ARowWithoutRoomIsLeftOut) {
  // The first has one block, and it is full.
  const SpeculativePass ahead(PassOf({OneOf(1, 16, 15, 1), OneOf(2, 16, 15, 2)}));
  ASSERT_EQ(ahead.pass().chunks.size(), 1);
  EXPECT_EQ(ahead.sources()[0], 1);
}

TEST(SpeculativePassTest, NothingWhereAChunkAsksForNoSample) {
  Pass pass = PassOf({OneOf(1, 5, 4, 1)});
  Add(OneOf(2, 9, 0, 1), pass, /*samples=*/false);
  EXPECT_TRUE(SpeculativePass(pass).empty());
  Pass scored = PassOf({OneOf(1, 5, 4, 1)});
  scored.scores.push_back({.row = 0, .target = 1});
  EXPECT_TRUE(SpeculativePass(scored).empty());
}

// One sequence whose next token is `token`, after a pass ahead after token 12.
std::vector<int32_t> FoundAfter(const std::function<void(Sequence&, Pass&)>& change) {
  Sequence sequence = OneOf(1, 5, 4, 1);
  SpeculativePass ahead(PassOf({sequence}));
  const std::vector<Sampled> sampled = {{.token = 12}};
  ahead.SetTokens(sampled, std::vector<TokenId>{kStop});
  sequence.num_cached = 5;
  sequence.tokens.push_back(12);
  Pass next;
  change(sequence, next);
  if (next.chunks.empty()) Add(sequence, next);
  return ahead.Find(next);
}

TEST(SpeculativePassTest, FindsWhatGoesOnAndNothingElse) {
  const std::vector<int32_t> yes = {0};
  const std::vector<int32_t> no = {-1};
  EXPECT_EQ(FoundAfter([](Sequence&, Pass&) {}), yes);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.blocks.push_back(77); }), yes);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.tokens.back() = 13; }), no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.id = 9; }), no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.blocks[0] = 5; }), no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.num_cached = 0; }), no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass&) { s.tokens.push_back(12); }), no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass& pass) {
              Add(s, pass);
              pass.samples[0].options.temperature = 0.5;
            }),
            no);
  EXPECT_EQ(FoundAfter([](Sequence& s, Pass& pass) {
              Add(s, pass);
              pass.scores.push_back({.row = 0, .target = 1});
            }),
            no);
}

TEST(SpeculativePassTest, BehindAStopNothingWasRun) {
  Sequence sequence = OneOf(1, 5, 4, 1);
  SpeculativePass ahead(PassOf({sequence}));
  ahead.SetTokens(std::vector<Sampled>{{.token = kStop}}, std::vector<TokenId>{kStop});
  sequence.num_cached = 5;
  sequence.tokens.push_back(kStop);
  EXPECT_EQ(ahead.Find(PassOf({sequence})), std::vector<int32_t>{-1});
}

// A device whose answer depends on all that a row may depend on, and that runs ahead
// as decoders do.
class AheadDevice {
 public:
  static PassResult Answer(const Pass& pass) {
    PassResult result;
    int64_t row = -1;
    size_t sample = 0;
    for (const Chunk& chunk : pass.chunks) {
      row += chunk.num_tokens;
      if (sample == pass.samples.size() || pass.samples[sample].row != row) continue;
      const SampleKey& key = pass.samples[sample++].key;
      uint64_t hash = static_cast<uint64_t>(chunk.start + chunk.num_tokens) * 31 +
                      static_cast<uint64_t>(pass.tokens[static_cast<size_t>(row)]) * 7;
      hash += static_cast<uint64_t>(key.prompt * 1009 + key.token * 101);
      const int64_t num_blocks = (chunk.start + chunk.num_tokens + 15) / 16;
      for (int64_t i = 0; i < num_blocks; ++i) {
        hash = hash * 1000003 + static_cast<uint64_t>(chunk.blocks[static_cast<size_t>(i)]);
      }
      result.samples.push_back(
          {.token = static_cast<TokenId>(hash % 11), .logprob = static_cast<float>(hash % 1013)});
    }
    return result;
  }

  PassResult Run(const Pass& pass) {
    const std::vector<int32_t> found = ahead_.Find(pass);
    const Pass rest = WithoutFound(pass, found);
    num_found_ += std::ssize(pass.chunks) - std::ssize(rest.chunks);
    const PassResult result = JoinFound(pass, found, answers_.samples, Answer(rest));
    ahead_ = SpeculativePass(pass);
    ahead_.SetTokens(result.samples, std::vector<TokenId>{kStop});
    answers_ = Answer(ahead_.pass());
    return result;
  }
  int64_t num_found() const { return num_found_; }

 private:
  SpeculativePass ahead_;
  PassResult answers_;
  int64_t num_found_ = 0;
};

TEST(SpeculativePassTest, AnswersAreThoseOfTheWholePassWhateverHappensBetween) {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  AheadDevice device;
  std::vector<Sequence> sequences;
  int64_t num_begun = 0;
  int64_t num_chunks = 0;
  for (int step = 0; step < 3000; ++step) {
    while (sequences.empty() || (sequences.size() < 12 && pick(6) == 0)) {
      sequences.push_back(OneOf(++num_begun, 1 + pick(40), 0, 4));
    }
    Pass pass;
    std::vector<size_t> asked;
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& sequence = sequences[i];
      const int what = pick(40);
      if (what == 0) continue;                                 // it waits
      if (what == 1) sequence.tokens.back() = 4;               // another token
      if (what == 2) sequence.num_cached = 0;                  // computed again
      if (what == 3) sequence.blocks.back() = 100'000 + step;  // moved
      const bool samples = what != 4;                          // a part of its prompt
      Add(sequence, pass, samples);
      if (samples) asked.push_back(i);
    }
    if (pass.chunks.empty()) continue;
    num_chunks += std::ssize(pass.chunks);
    const PassResult result = device.Run(pass);
    const PassResult direct = AheadDevice::Answer(pass);
    ASSERT_EQ(result.samples.size(), asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      ASSERT_EQ(result.samples[i].token, direct.samples[i].token) << "step " << step;
      ASSERT_EQ(result.samples[i].logprob, direct.samples[i].logprob) << "step " << step;
      Sequence& sequence = sequences[asked[i]];
      sequence.num_cached = std::ssize(sequence.tokens);
      sequence.tokens.push_back(result.samples[i].token);
    }
    std::erase_if(sequences, [&](const Sequence& sequence) {
      return sequence.tokens.back() == kStop || sequence.tokens.size() > 60;
    });
  }
  EXPECT_GT(device.num_found(), num_chunks / 3);
}

}  // namespace
}  // namespace pace
