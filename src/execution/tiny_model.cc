#include "execution/tiny_model.h"

#ifdef PACE_TINY_MODEL

// The files, placed into the read-only data as they are.
__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "pace_tiny_weights_begin:\n"
    ".incbin \"" PACE_TINY_MODEL
    "/model.safetensors\"\n"
    "pace_tiny_weights_end:\n"
    "pace_tiny_config_begin:\n"
    ".incbin \"" PACE_TINY_MODEL
    "/config.json\"\n"
    "pace_tiny_config_end:\n"
    ".previous\n");

extern "C" {
extern const std::byte pace_tiny_weights_begin[];
extern const std::byte pace_tiny_weights_end[];
extern const char pace_tiny_config_begin[];
extern const char pace_tiny_config_end[];
}

namespace pace {

TinyModelFiles EmbeddedTinyModel() {
  return {.config = {pace_tiny_config_begin, pace_tiny_config_end},
          .weights = {pace_tiny_weights_begin, pace_tiny_weights_end}};
}

}  // namespace pace

#else

namespace pace {

TinyModelFiles EmbeddedTinyModel() {
  return {.config = {}, .weights = {}};
}

}  // namespace pace

#endif
