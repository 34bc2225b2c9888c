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

constinit const Codec kNumericCodec{
    CodecId::Numeric,          "numeric", accepts, numeric::bound, encode, numeric::decode_rows_into,
    numeric::decode_cells_into};

}  // namespace cdd
