// The table of codecs, in order of id. codec.h says what a row holds.
#include <array>

#include "core/codec/book/xor.h"
#include "core/codec/codec.h"
#include "core/codec/levels/levels.h"
#include "core/codec/numeric/numeric.h"
#include "core/codec/plain/bytes_codec.h"
#include "core/codec/plain/raw.h"

namespace cdd {
namespace {

constexpr std::array kTable{&kRawCodec,       &kBytesCodec,  &kOkxObF16Codec, &kOkxObF32Codec,
                            &kGenericObCodec, &kLevelsCodec, &kNumericCodec};

}  // namespace

std::span<const Codec* const> codecs() noexcept { return kTable; }

const Codec* find_codec(std::uint16_t id) noexcept {
  return id < kTable.size() && static_cast<std::uint16_t>(kTable[id]->id) == id ? kTable[id] : nullptr;
}

}  // namespace cdd
