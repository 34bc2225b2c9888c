// Coded streams of LEVELS: streams of uint32 as prefix codes, for the profile `dense`.
//
// The heads of a segment's streams are one stream of bits. Behind them stand the bodies of those that are
// packed, then the specials, then four lanes that the values of all the others are dealt out to.
// Specification: docs/codecs.md, "LEVELS", "Coded segments".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/codec/levels/pack.h"
#include "core/codec/levels/prefix_code.h"

namespace cdd::levels {

// How a segment's numbers and streams are stored: packed for speed, or coded for size.
enum class Coding : std::uint8_t { Packed, Coded };

enum class CodedForm : std::uint8_t {
  Packed = 0,   // values of equal width
  Classes = 1,  // bins by bit length
  Bins = 2,     // bins of any widths
  Lookup = 3,   // indices into a sorted list of values
};

// Bits of the fields of heads.
inline constexpr unsigned kFormBits = 2, kNumberBits = 6, kPackedBits = 7, kHighBits = 21;
inline constexpr unsigned kClassBits = 4, kBinBits = 9;

// What a stream's values come from, unless it is packed and no more.
struct CodedValues {
  const std::uint32_t* values = nullptr;  // all of them
  const std::uint32_t* lookup = nullptr;  // if not null, the values are indices into this
  std::uint32_t n_lookup = 0;
  // Where there are no values yet, the last stream is still in the lanes.
  CodeTable table{};
  simd::CodeLanes lanes;
};

// Takes the coded streams of a segment.
class CodedReader {
 public:
  // `most_values` are all streams' together, `n_streams` how many there are.
  CodedReader(const Cursor& in, std::size_t most_values, std::size_t n_streams);

  // The head of the next stream, of n values. Corrupt when it is none that encoding makes.
  void take_head(std::size_t n, bool may_be_delta, Stream& stream);
  // Behind all heads: the bodies, past `special_bytes` bytes, and what is in the lanes. Says where those
  // bytes are. The streams' values last until the next reader.
  const std::byte* take_bodies(std::size_t special_bytes);

 private:
  struct Part;  // a stream, or one of the two that a lookup has

  std::uint32_t bits(unsigned n);
  std::uint32_t number();
  void take_part(std::size_t n, CodedForm form, Stream& stream);
  void take_bins(CodedForm form, Part& part);
  void take_lookup(std::size_t n, Stream& stream);
  void decode(Part& part, bool is_last);
  template <class T>
  T* room(std::size_t n) noexcept;

  const std::byte* bytes_;
  std::size_t bit_ = 0, end_;  // of bytes_, in bits
  std::byte* next_room_;
  Part* parts_;
  std::size_t n_parts_ = 0, n_coded_ = 0;
  simd::CodeLanes lanes_;
};

// The values of a coded stream that read_stream() is asked for.
void read_coded(const simd::LevelsKernels& kernels, const Stream& stream, std::size_t first,
                std::size_t count, std::uint32_t* out);

// Takes the streams of a segment, which `for_each` calls with what to do with each: visit(stream, its number
// of values, whether it may be relative to others). Returns the bytes of the specials.
template <class ForEach>
const std::byte* take_streams(Cursor in, Coding coding, std::size_t special_bytes, const ForEach& for_each) {
  if (coding == Coding::Packed) {
    for_each([&](Stream& s, std::size_t n, bool) { take_stream_head(in, n, s); });
    for_each([&](Stream& s, std::size_t, bool) { take_stream_body(in, s); });
    return in.take(special_bytes);
  }
  std::size_t values = 0, streams = 0;
  for_each([&](Stream&, std::size_t n, bool) { values += n, ++streams; });
  CodedReader reader(in, values, streams);
  for_each([&](Stream& s, std::size_t n, bool may_be_delta) { reader.take_head(n, may_be_delta, s); });
  return reader.take_bodies(special_bytes);
}

// How encoding would code `values`, and at what cost.
struct CodedPlan {
  std::span<const std::uint32_t> values;
  CodedForm form = CodedForm::Packed;
  bool zigzag = false;
  bool is_delta = false, may_be_delta = false;
  std::uint32_t base = 0;
  StreamHead packed{};     // Packed
  unsigned width = 0;      // Classes: of the first two bins
  std::size_t n_bins = 0;  // Classes, Bins
  std::array<Bin, kMaxBins> bins;
  std::vector<std::uint32_t> gaps, indices;
  std::unique_ptr<CodedPlan> gaps_plan, indices_plan;
  std::size_t bits = 0;  // at most
};
CodedPlan plan_coded(const StreamPlan& stream);

// Writes streams of bits; `out` needs 8 bytes behind what is written.
class BitWriter {
 public:
  explicit BitWriter(std::byte* out) noexcept : out_(out) {}
  void put(std::uint64_t v, unsigned n) noexcept {  // n <= 41
    word_ |= v << filled_;
    filled_ += n;
    store<std::uint64_t>(out_, word_);
    const unsigned done = filled_ / 8;
    out_ += done;
    word_ = done == 8 ? 0 : word_ >> done * 8;
    filled_ %= 8;
  }
  std::byte* to_byte() noexcept {
    if (filled_ != 0) ++out_;
    word_ = 0;
    filled_ = 0;
    return out_;
  }

 private:
  std::byte* out_;
  std::uint64_t word_ = 0;
  unsigned filled_ = 0;
};

// Plans of streams, and what they are written by: heads, bodies, `specials` as they are, lanes. Returns the
// end of it.
std::byte* write_coded(std::span<const CodedPlan* const> plans, std::span<const std::byte> specials,
                       std::byte* out);
// What the lanes of a segment and their sizes take beside what plans say.
inline constexpr std::size_t kLanesBytes = 20;

}  // namespace cdd::levels
