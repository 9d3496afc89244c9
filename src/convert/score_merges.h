// From the scores of a SentencePiece vocabulary to the merges of BPE.
//
// SentencePiece, llama.cpp and llama2.c join the adjacent pair whose joined token
// has the highest score, the leftmost among equals. BPE joins the pair of the
// lowest rank. So every way to make a token of two others becomes a merge, in
// falling order of the token's score, then of its id.
//
// The ways to make one token have one score, and BPE must put them in some order
// where the others take the leftmost. Two of them can meet in x y z only if
// x + y = y + z; the one that begins with x then comes first, unless the token
// repeats one word and both orders are needed (x = z); then the longer left part
// comes first, which is right for what joining from the left leaves.
// Thread-safety: pure functions.
#ifndef PACE_CONVERT_SCORE_MERGES_H_
#define PACE_CONVERT_SCORE_MERGES_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pace {

// REQUIRES: as many scores as tokens, none NaN; tokens are UTF-8, each once
std::vector<std::pair<std::string, std::string>> MergesFromScores(
    std::span<const std::string> tokens, std::span<const float> scores);

}  // namespace pace

#endif  // PACE_CONVERT_SCORE_MERGES_H_
