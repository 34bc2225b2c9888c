// The table of codecs, in order of id. codec.h says what a row holds.
#include <array>

#include "core/codec/book_xor.h"
#include "core/codec/bytes_codec.h"
#include "core/codec/codec.h"
#include "core/codec/raw.h"

namespace cdd {
namespace {

constexpr std::array kTable{&kRawCodec, &kBytesCodec, &kOkxObF16Codec, &kOkxObF32Codec, &kGenericObCodec};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kTable; }

const Codec* find_codec(std::uint16_t id) noexcept {
  for (const Codec* codec : kTable) {
    if (static_cast<std::uint16_t>(codec->id) == id) return codec;
  }
  return nullptr;
}

}  // namespace cdd
