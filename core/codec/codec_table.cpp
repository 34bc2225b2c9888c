// The table of codecs, in order of preference where two cost the same. codec.h says what a row holds.
#include <array>

#include "core/codec/book/xor.h"
#include "core/codec/codec.h"
#include "core/codec/levels/levels.h"
#include "core/codec/numeric/numeric.h"
#include "core/codec/plain/bytes_codec.h"
#include "core/codec/plain/raw.h"

namespace cdd {
namespace {

constexpr std::array kTable{&kRawCodec,      &kLevelsCodec,   &kNumericCodec,  &kBytesCodec,
                            &kOkxObF32Codec, &kOkxObF16Codec, &kGenericObCodec};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kTable; }

const Codec* find_codec(std::uint16_t id) noexcept {
  for (const Codec* const codec : kTable) {
    if (static_cast<std::uint16_t>(codec->id) == id) return codec;
  }
  return nullptr;
}

}  // namespace cdd
