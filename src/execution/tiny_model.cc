#include "execution/tiny_model.h"

#include <vector>

// Places a folder's files into the read-only data as they are. The labels are global and
// hidden: AArch64 reaches an `extern` array through the global offset table, where GNU as
// resolves a local label to its section and the address comes out wrong.
#define PACE_LABEL(label) ".globl " label "\n.hidden " label "\n" label ":\n"
#define PACE_EMBED(name, folder)                                                             \
  __asm__(                                                                                   \
      ".section .rodata\n"                                                                   \
      ".balign 64\n" PACE_LABEL(                                                             \
          "pace_" name                                                                       \
          "_weights_begin") ".incbin \"" folder                                              \
                            "/model.safetensors\"\n" PACE_LABEL("pace_" name "_weights_end") \
                                PACE_LABEL("pace_" name                                      \
                                           "_config_begin") ".incbin \"" folder              \
                                                            "/config.json\"\n" PACE_LABEL(   \
                                                                "pace_" name                 \
                                                                "_config_end") ".previous\n")
#define PACE_DECLARE(name)                              \
  extern "C" {                                          \
  extern const std::byte pace_##name##_weights_begin[]; \
  extern const std::byte pace_##name##_weights_end[];   \
  extern const char pace_##name##_config_begin[];       \
  extern const char pace_##name##_config_end[];         \
  }
#define PACE_MODEL(text, symbol)                                                        \
  BuiltInModel {                                                                        \
    .name = text, .config = {pace_##symbol##_config_begin, pace_##symbol##_config_end}, \
    .weights = {                                                                        \
      pace_##symbol##_weights_begin,                                                    \
      pace_##symbol##_weights_end                                                       \
    }                                                                                   \
  }

#ifdef PACE_MODEL_TINY
PACE_EMBED("tiny", PACE_MODEL_TINY);
PACE_DECLARE(tiny)
#endif
#ifdef PACE_MODEL_TINY_RETOOL
PACE_EMBED("tiny_retool", PACE_MODEL_TINY_RETOOL);
PACE_DECLARE(tiny_retool)
#endif
#ifdef PACE_MODEL_SKILL
PACE_EMBED("skill", PACE_MODEL_SKILL);
PACE_DECLARE(skill)
#endif
#ifdef PACE_MODEL_STAGED
PACE_EMBED("staged", PACE_MODEL_STAGED);
PACE_DECLARE(staged)
#endif

namespace pace {

const BuiltInModel* FindBuiltInModel(std::string_view name) {
  static const std::vector<BuiltInModel> models = {
#ifdef PACE_MODEL_TINY
      PACE_MODEL("tiny", tiny),
#endif
#ifdef PACE_MODEL_TINY_RETOOL
      PACE_MODEL("tiny-retool", tiny_retool),
#endif
#ifdef PACE_MODEL_SKILL
      PACE_MODEL("skill", skill),
#endif
#ifdef PACE_MODEL_STAGED
      PACE_MODEL("staged", staged),
#endif
  };
  for (const BuiltInModel& model : models) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace pace
