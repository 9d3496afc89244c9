#include "execution/tiny_model.h"

// Places a folder's files into the read-only data as they are.
#define PACE_EMBED(name, folder) \
  __asm__(                       \
      ".section .rodata\n"       \
      ".balign 64\n"             \
      "pace_" name               \
      "_weights_begin:\n"        \
      ".incbin \"" folder        \
      "/model.safetensors\"\n"   \
      "pace_" name               \
      "_weights_end:\n"          \
      "pace_" name               \
      "_config_begin:\n"         \
      ".incbin \"" folder        \
      "/config.json\"\n"         \
      "pace_" name               \
      "_config_end:\n"           \
      ".previous\n")
#define PACE_DECLARE(name)                              \
  extern "C" {                                          \
  extern const std::byte pace_##name##_weights_begin[]; \
  extern const std::byte pace_##name##_weights_end[];   \
  extern const char pace_##name##_config_begin[];       \
  extern const char pace_##name##_config_end[];         \
  }
#define PACE_FILES(name)                                                           \
  {                                                                                \
    .config = {pace_##name##_config_begin, pace_##name##_config_end}, .weights = { \
      pace_##name##_weights_begin,                                                 \
      pace_##name##_weights_end                                                    \
    }                                                                              \
  }

#ifdef PACE_MODEL_TINY
PACE_EMBED("tiny", PACE_MODEL_TINY);
PACE_DECLARE(tiny)
#endif
#ifdef PACE_MODEL_TINY_RETOOL
PACE_EMBED("tiny_retool", PACE_MODEL_TINY_RETOOL);
PACE_DECLARE(tiny_retool)
#endif

namespace pace {

TinyModelFiles EmbeddedTinyModel() {
#ifdef PACE_MODEL_TINY
  return PACE_FILES(tiny);
#else
  return {.config = {}, .weights = {}};
#endif
}

TinyModelFiles EmbeddedRetoolModel() {
#ifdef PACE_MODEL_TINY_RETOOL
  return PACE_FILES(tiny_retool);
#else
  return {.config = {}, .weights = {}};
#endif
}

}  // namespace pace
