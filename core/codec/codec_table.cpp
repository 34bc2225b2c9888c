// The table of codecs, in order of id. codec.h says what a row holds.
#include <array>

#include "core/codec/codec.h"
#include "core/codec/numeric.h"
#include "core/codec/raw.h"

namespace cdd {
namespace {

constexpr std::array<const Codec*, 2> kTable{&kRawCodec, &kNumericCodec};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kTable; }

const Codec* find_codec(std::uint16_t id) noexcept {
  for (const Codec* codec : kTable) {
    if (static_cast<std::uint16_t>(codec->id) == id) return codec;
  }
  return nullptr;
}

}  // namespace cdd
