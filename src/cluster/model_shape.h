// Parameters, bytes and operations of a network, from its shape.
//
// Counts are doubles: they end in divisions, and the largest models stay below
// 2^53. Thread-safety: pure functions.
#ifndef PACE_CLUSTER_MODEL_SHAPE_H_
#define PACE_CLUSTER_MODEL_SHAPE_H_

#include "config/cluster_options.h"

namespace pace {

// All parameters, norms included.
double NumParameters(const ModelOptions& model);

// Parameters that one token is multiplied with: the experts it passes through
// and the output projection, but not the input embedding, which is a lookup.
double NumActiveParameters(const ModelOptions& model);

// Parameters that a decode iteration over `batch` tokens has to read. With
// experts chosen evenly, a layer reads E (1 - (1 - k/E)^batch) of its E.
double NumParametersRead(const ModelOptions& model, double batch);

double KvBytesPerToken(const ModelOptions& model);
double WeightBytes(const ModelOptions& model);

// Operations of attention per (query token, context token) pair, all layers.
double AttentionFlopsPerPair(const ModelOptions& model);

// Operations of the output projection for one token.
double VocabularyFlopsPerToken(const ModelOptions& model);

}  // namespace pace

#endif  // PACE_CLUSTER_MODEL_SHAPE_H_
