// Fuzzes the reader of decode tables: what is accepted must give finite times.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "cluster/decode_table.h"
#include "core/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = pace::DecodeTable::Parse(text, "fuzz");
  if (!table.ok()) {
    PACE_CHECK(table.status().message().find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  for (const double batch : {1.0, 3.0, 1e6}) {
    for (const double context : {0.0, 100.0, 1e6}) {
      PACE_CHECK(std::isfinite(table->Seconds(batch, context)), "at batch ", batch);
    }
  }
  return 0;
}
