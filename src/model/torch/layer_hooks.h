// LayerHooks: told when a pass needs a layer's parameters and when it is done with them, so that
// they need not be there all the time and their gradients can leave as soon as they are complete.
//
// Forward: BeforeForward(i), the layer, AfterForward(i), layers rising. Backward, where gradients
// are enabled: BeforeBackward(i), the layer's gradients, AfterBackward(i), layers falling. By then
// all gradients of the layer's parameters are in their .grad().
// Thread-safety: calls come one after the other, from the threads that compute.
#ifndef PACE_MODEL_TORCH_LAYER_HOOKS_H_
#define PACE_MODEL_TORCH_LAYER_HOOKS_H_

#include <cstdint>

namespace pace {

class LayerHooks {
 public:
  virtual ~LayerHooks() = default;
  virtual void BeforeForward(int64_t layer) = 0;
  virtual void AfterForward(int64_t layer) = 0;
  virtual void BeforeBackward(int64_t layer) = 0;
  virtual void AfterBackward(int64_t layer) = 0;
};

}  // namespace pace

#endif  // PACE_MODEL_TORCH_LAYER_HOOKS_H_
