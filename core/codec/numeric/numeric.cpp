#include "core/codec/numeric/numeric.h"

#include "core/codec/numeric/decode.h"
#include "core/codec/numeric/encode.h"

namespace cdd {
namespace {

bool accepts(const RowLayout&) noexcept { return true; }

std::size_t encode(const RowLayout& layout, Bytes rows, std::uint32_t n_rows, EncodeContext&,
                   MutableBytes out) {
  return numeric::encode(layout, rows, n_rows, out);
}

}  // namespace

constexpr StepCost kCost{0.12, 1.3};
constexpr NamedScheme kNumericSchemes[] = {{"numeric", Compressor::None, kCost},
                                           {"numeric+zstd", Compressor::Zstd, kCost}};

constinit const Codec kNumericCodec{.id = CodecId::Numeric,
                                    .name = "numeric",
                                    .schemes = kNumericSchemes,
                                    .in_auto = true,
                                    .is_checked = true,
                                    .accepts = accepts,
                                    .bound = numeric::bound,
                                    .encode = encode,
                                    .decode_rows_into = numeric::decode_rows_into,
                                    .decode_cells_into = numeric::decode_cells_into};

}  // namespace cdd
