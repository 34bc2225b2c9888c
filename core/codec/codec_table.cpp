#include <array>

#include "core/codec/codec.h"
#include "core/codec/levels.h"
#include "core/codec/raw.h"

namespace cdd {
namespace {

constexpr std::array<const Codec*, 2> kTable{&kRawCodec, &kLevelsCodec};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kTable; }

const Codec* find_codec(std::uint16_t id) noexcept {
  for (const Codec* codec : kTable) {
    if (static_cast<std::uint16_t>(codec->id) == id) return codec;
  }
  return nullptr;
}

}  // namespace cdd
