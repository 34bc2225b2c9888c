#include "core/base/row_layout.h"

#include <algorithm>

#include "core/base/bytes.h"

namespace cdd {
namespace {

constexpr const char* kKindNames[] = {"unset",      "bool",       "int8",       "uint8",   "int16",
                                      "uint16",     "int32",      "uint32",     "int64",   "uint64",
                                      "float16",    "bfloat16",   "float32",    "float64", "complex64",
                                      "complex128", "datetime64", "timedelta64"};
constexpr const char* kUnitNames[kTimeUnits] = {"",  "Y",  "M",  "W",  "D",  "h",  "m",
                                                "s", "ms", "us", "ns", "ps", "fs", "as"};

}  // namespace

RowLayout::RowLayout(DType dtype, std::span<const std::uint32_t> dims, ErrorCode blame) : dtype_(dtype) {
  if (!dtype.is_known()) fail(blame, "unknown dtype code 0x%04x", unsigned{dtype.code()});
  if (dims.size() > kMaxRowDims) {
    fail(blame, "a row has at most %zu dimensions, got %zu", kMaxRowDims, dims.size());
  }
  std::uint64_t items = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) fail(blame, "dimension %zu of a row is 0: nothing to store", i + 1);
    if (!checked_mul(items, dims[i], &items) || items > kMaxChunkRawBytes / dtype.item_bytes()) {
      fail(blame, "a row of more than 2 GiB cannot be stored");
    }
  }
  ndim_ = static_cast<std::uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
  row_items_ = static_cast<std::uint32_t>(items);
  row_bytes_ = static_cast<std::uint32_t>(items * dtype.item_bytes());
}

std::string to_string(const RowLayout& layout) {
  const DType dtype = layout.dtype();
  std::string text = kKindNames[layout.is_set() ? static_cast<std::size_t>(dtype.kind()) : 0];
  if (dtype.unit() != 0) text.append("[").append(kUnitNames[dtype.unit()]).append("]");
  text += " (";
  const auto dims = layout.dims();
  for (std::size_t i = 0; i < dims.size(); ++i)
    text.append(i == 0 ? "" : ", ").append(std::to_string(dims[i]));
  return text + (dims.size() == 1 ? ",)" : ")");
}

void check_addressable(std::uint64_t raw_bytes, std::uint64_t stored_bytes) {
  if (raw_bytes <= kAddressableChunkBytes && stored_bytes <= 2 * kAddressableChunkBytes) return;
  fail(ErrorCode::Unsupported,
       "chunk of %llu raw and %llu stored bytes: this build has %zu-bit addresses and takes %llu raw ones at "
       "most",
       static_cast<unsigned long long>(raw_bytes), static_cast<unsigned long long>(stored_bytes),
       8 * sizeof(std::size_t), static_cast<unsigned long long>(kAddressableChunkBytes));
}

}  // namespace cdd
