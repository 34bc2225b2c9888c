#include "core/simd/numeric/numeric.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/numeric/numeric.cpp"
#include <hwy/foreach_target.h>

#include "core/simd/numeric/convert-inl.h"
#include "core/simd/numeric/numeric-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd::HWY_NAMESPACE {

bool DecodeNumeric32(const NumericSegment<uint32_t>& segment, uint32_t* values) {
  return DecodeSegment(segment, values);
}
bool DecodeNumeric64(const NumericSegment<uint64_t>& segment, uint64_t* values) {
  return DecodeSegment(segment, values);
}
void ConvertNumeric32(const NumericConversion& c, const uint32_t* values, size_t n, std::byte* out,
                      size_t stride) {
  Convert(c, values, n, out, stride);
}
void ConvertNumeric64(const NumericConversion& c, const uint64_t* values, size_t n, std::byte* out,
                      size_t stride) {
  Convert(c, values, n, out, stride);
}

}  // namespace cdd::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace cdd::simd {

HWY_EXPORT(DecodeNumeric32);
HWY_EXPORT(DecodeNumeric64);
HWY_EXPORT(ConvertNumeric32);
HWY_EXPORT(ConvertNumeric64);

bool decode_numeric32(const NumericSegment<std::uint32_t>& segment, std::uint32_t* values) noexcept {
  return HWY_DYNAMIC_DISPATCH(DecodeNumeric32)(segment, values);
}
bool decode_numeric64(const NumericSegment<std::uint64_t>& segment, std::uint64_t* values) noexcept {
  return HWY_DYNAMIC_DISPATCH(DecodeNumeric64)(segment, values);
}
void convert_numeric32(const NumericConversion& conversion, const std::uint32_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept {
  HWY_DYNAMIC_DISPATCH(ConvertNumeric32)(conversion, values, n, out, stride);
}
void convert_numeric64(const NumericConversion& conversion, const std::uint64_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept {
  HWY_DYNAMIC_DISPATCH(ConvertNumeric64)(conversion, values, n, out, stride);
}

namespace reference {

bool decode_numeric32(const NumericSegment<std::uint32_t>& segment, std::uint32_t* values) noexcept {
  return reference_decode(segment, values);
}
bool decode_numeric64(const NumericSegment<std::uint64_t>& segment, std::uint64_t* values) noexcept {
  return reference_decode(segment, values);
}
void convert_numeric32(const NumericConversion& conversion, const std::uint32_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept {
  reference_convert(conversion, values, n, out, stride);
}
void convert_numeric64(const NumericConversion& conversion, const std::uint64_t* values, std::size_t n,
                       std::byte* out, std::size_t stride) noexcept {
  reference_convert(conversion, values, n, out, stride);
}

}  // namespace reference
}  // namespace cdd::simd

#endif  // HWY_ONCE
