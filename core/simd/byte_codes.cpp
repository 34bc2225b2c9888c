#include "core/simd/byte_codes.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/byte_codes.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cdd::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits from the lowest of each byte on.
struct BitsOut {
  std::byte* at;
  std::uint64_t bits = 0;
  std::uint64_t count = 0;  // the lowest eight bits; above them a bit for each byte without a code

  HWY_INLINE void Add(std::uint64_t code, std::uint64_t length) {
    bits |= code << (count & 63);
    count += length;
  }
  // At most 7 bits are left.
  HWY_INLINE void Flush() {
    std::memcpy(at, &bits, sizeof bits);
    at += (count & 0xff) / 8;
    bits >>= count & 0x38;
    count &= 7;
  }
};

// One at a time, five between two stores. False where one has no code. A code comes in at the top and moves
// those before it down by its length, so a step takes nothing but the entry of its byte: the lengths below
// the codes are of nine bits, and leave at the bottom when up to 55 bits are moved there.
HWY_INLINE bool PackOnes(const ByteCodes& codes, const std::byte* bytes, std::size_t n, BitsOut& out) {
  static_assert(5 * kMostByteCodeBits + 9 <= 64);
  std::uint32_t all_lengths = 0;
  const auto add = [&](const std::byte* few, std::size_t count) HWY_ATTR {
    std::uint64_t from_top = 0;
    std::uint32_t lengths = 0;
    while (count-- > 0) {
      const std::uint64_t code = codes.whole[static_cast<std::uint8_t>(few[count])];
      from_top = from_top >> (code & 63) | code;
      lengths += static_cast<std::uint32_t>(code);
    }
    all_lengths |= lengths;
    out.Add(from_top >> (-lengths & 63), lengths);
    out.Flush();
  };
  const std::size_t rest = n % 5;
  if (rest != 0) add(bytes + (n - rest), rest);
  for (n -= rest; n != 0; n -= 5) add(bytes + (n - 5), 5);
  return all_lengths < ByteCodes::kNone;
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define CDD_BYTE_CODES_VECTORS 1

// Codes and lengths of 64 bytes from tables of 256 in registers; then pairs, then fours, a multiplication by
// 2^length being the shift. Fours have at most 44 bits and are written one after the other.
class Vectors {
  using D8 = hn::FixedTag<std::uint8_t, 64>;
  using D16 = hn::FixedTag<std::uint16_t, 32>;
  using I16 = hn::FixedTag<std::int16_t, 32>;
  using I32 = hn::FixedTag<std::int32_t, 16>;
  using D64 = hn::FixedTag<std::uint64_t, 8>;
  using V8 = hn::Vec<D8>;
  using V64 = hn::Vec<D64>;

 public:
  static constexpr std::size_t kMostBlocks = 8;

  HWY_INLINE explicit Vectors(const ByteCodes& codes) {
    for (std::size_t k = 0; k < 4; ++k) {
      low_[k] = hn::LoadU(D8(), codes.low.data() + 64 * k);
      rest_[k] = hn::LoadU(D8(), codes.rest.data() + 64 * k);
    }
  }

  // `blocks` times 64 bytes, up to kMostBlocks. All is computed before any of it is written: what was stored
  // just before as a vector is slow to load as single numbers.
  HWY_INLINE void Pack(const std::byte* bytes, std::size_t blocks, BitsOut& out) {
    alignas(64) std::uint64_t fours[16 * kMostBlocks], counts[16 * kMostBlocks];
    for (std::size_t i = 0; i < blocks; ++i) Join(bytes + 64 * i, fours + 16 * i, counts + 16 * i);
    for (std::size_t i = 16 * blocks; i-- > 0;) {
      out.Add(fours[i], counts[i] & 0xff);
      out.Flush();
    }
  }

  HWY_INLINE bool HasAll() const { return hn::AllFalse(D8(), hn::Eq(least_, hn::Zero(D8()))); }

 private:
  template <class Mask, class Places>
  static HWY_INLINE V8 Found(const V8* table, Mask is_high, Places places) {
    return hn::IfThenElse(is_high, hn::TwoTablesLookupLanes(D8(), table[2], table[3], places),
                          hn::TwoTablesLookupLanes(D8(), table[0], table[1], places));
  }

  // The codes of 64 bytes by fours, and how many bits each has.
  HWY_INLINE void Join(const std::byte* bytes, std::uint64_t* fours, std::uint64_t* counts) {
    const V8 v = hn::LoadU(D8(), reinterpret_cast<const std::uint8_t*>(bytes));
    const auto is_high = hn::Ge(v, hn::Set(D8(), 128));
    const auto places = hn::IndicesFromVec(D8(), hn::And(v, hn::Set(D8(), 127)));
    const V8 low = Found(low_, is_high, places), rest = Found(rest_, is_high, places);
    least_ = hn::Min(least_, rest);
    const V8 lengths = hn::ShiftRight<4>(rest), high = hn::And(rest, hn::Set(D8(), 15));
    const V8 zero = hn::Zero(D8());
    V64 four[2], count[2];
    JoinHalf(hn::InterleaveLower(D8(), low, high), hn::InterleaveLower(D8(), lengths, zero), four[0],
             count[0]);
    JoinHalf(hn::InterleaveUpper(D8(), low, high), hn::InterleaveUpper(D8(), lengths, zero), four[1],
             count[1]);
    StoreInOrder(four, fours);
    StoreInOrder(count, counts);
  }

  // Of lanes of 16 bits with codes and their lengths. Of each four the last is lowest.
  static HWY_INLINE void JoinHalf(V8 codes8, V8 lengths8, V64& fours, V64& counts) {
    const auto lengths = hn::BitCast(I16(), lengths8);
    const auto of_next = hn::ShiftRight<16>(hn::BitCast(hn::FixedTag<std::uint32_t, 16>(), lengths8));
    const auto factors = hn::BitCast(I16(), hn::Shl(hn::Set(D16(), 1), hn::BitCast(D16(), of_next)));
    const auto pairs =
        hn::BitCast(D64(), hn::WidenMulPairwiseAdd(I32(), hn::BitCast(I16(), codes8), factors));
    const auto pair_counts = hn::BitCast(D64(), hn::WidenMulPairwiseAdd(I32(), lengths, hn::Set(I16(), 1)));
    const auto last_count = hn::ShiftRight<32>(pair_counts);
    const auto first = hn::And(pairs, hn::Set(D64(), 0xffffffff));
    fours = hn::Or(hn::ShiftRight<32>(pairs), hn::Shl(first, last_count));
    counts = hn::Add(pair_counts, last_count);
  }

  // Halves of each 16 bytes stand in one vector each; here one behind the other.
  static HWY_INLINE void StoreInOrder(const V64* halves, std::uint64_t* to) {
    constexpr std::uint64_t kFirst[8] = {0, 1, 8, 9, 2, 3, 10, 11}, kSecond[8] = {4, 5, 12, 13, 6, 7, 14, 15};
    hn::Store(hn::TwoTablesLookupLanes(D64(), halves[0], halves[1], hn::SetTableIndices(D64(), kFirst)),
              D64(), to);
    hn::Store(hn::TwoTablesLookupLanes(D64(), halves[0], halves[1], hn::SetTableIndices(D64(), kSecond)),
              D64(), to + 8);
  }

  V8 low_[4], rest_[4];
  V8 least_ = hn::Set(D8(), 255);
};
#else
#define CDD_BYTE_CODES_VECTORS 0
#endif

std::byte* PackByteCodes(const ByteCodes& codes, const std::byte* bytes, std::size_t n, std::byte* to) {
  BitsOut out{to};
#if CDD_BYTE_CODES_VECTORS
  const std::size_t tail = n % 64;
  bool has_all = PackOnes(codes, bytes + (n - tail), tail, out);
  Vectors vectors(codes);
  for (n /= 64; n != 0;) {
    const std::size_t blocks = HWY_MIN(n, Vectors::kMostBlocks);
    n -= blocks;
    vectors.Pack(bytes + 64 * n, blocks, out);
  }
  has_all = has_all && vectors.HasAll();
#else
  const bool has_all = PackOnes(codes, bytes, n, out);
#endif
  out.Add(1, 1);
  out.Flush();
  if (!has_all) return nullptr;
  return out.at + (out.count != 0);
}
#undef CDD_BYTE_CODES_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace cdd::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cdd::simd {

HWY_EXPORT(PackByteCodes);

std::byte* pack_byte_codes(const ByteCodes& codes, const std::byte* bytes, std::size_t n,
                           std::byte* out) noexcept {
  return HWY_DYNAMIC_DISPATCH(PackByteCodes)(codes, bytes, n, out);
}

std::byte* reference::pack_byte_codes(const ByteCodes& codes, const std::byte* bytes, std::size_t n,
                                      std::byte* out) noexcept {
  std::size_t count = 0;
  const auto add = [&](bool bit) {
    if (count % 8 == 0) out[count / 8] = std::byte{0};
    if (bit) out[count / 8] |= std::byte{1} << count % 8;
    ++count;
  };
  while (n-- > 0) {
    const std::uint64_t code = codes.whole[static_cast<std::uint8_t>(bytes[n])];
    if (code == ByteCodes::kNone) return nullptr;
    const unsigned length = code & 0xff;
    for (unsigned bit = 64 - length; bit < 64; ++bit) add((code >> bit & 1) != 0);
  }
  add(true);
  return out + (count + 7) / 8;
}

}  // namespace cdd::simd
#endif  // HWY_ONCE
