#include "core/codec/numeric/decode.h"

#include <bitset>
#include <new>

#include "core/codec/cells.h"
#include "core/codec/numeric/format.h"
#include "core/codec/numeric/stream.h"
#include "core/codec/work.h"

namespace cdd::numeric {
namespace {

constexpr std::size_t kVectorBytes = 64;

template <class T>
bool decode_segment(const simd::NumericSegment<T>& segment, T* values) {
  if constexpr (sizeof(T) == 8) {
    return simd::decode_numeric64(segment, values);
  } else {
    return simd::decode_numeric32(segment, values);
  }
}
template <class T>
void convert(const simd::NumericConversion& c, const T* values, std::size_t n, std::byte* out,
             std::size_t stride) {
  if constexpr (sizeof(T) == 8) {
    simd::convert_numeric64(c, values, n, out, stride);
  } else {
    simd::convert_numeric32(c, values, n, out, stride);
  }
}

// Everything one call decodes with. T is the integer: 64 bits for items of 8 bytes, else 32.
template <class T>
class Decoder {
 public:
  Decoder(const Items& items, std::uint32_t n_rows, Bytes payload, RowRange range, std::byte* out)
      : items_(items), shape_(take_shape(items, n_rows, &payload, &orders_)), range_(range), out_(out) {
    const std::size_t most_blocks = std::max(shape_.segment_blocks, Shape::blocks_of(shape_.values_of(0)));
    const MutableBytes memory =
        scratch<CodecWork2>().get(shape_.streams * sizeof(Stream) + most_blocks * sizeof(simd::NumericBlock));
    streams_ = reinterpret_cast<Stream*>(memory.data());
    blocks_ = reinterpret_cast<simd::NumericBlock*>(memory.data() + shape_.streams * sizeof(Stream));

    ByteReader in(payload);
    const Bytes order = orders_ ? in.take(shape_.streams) : Bytes();
    std::size_t before = 1;  // values that must fit in front of a segment
    std::size_t table_entries = 0;
    std::bitset<kMaxStreams> placed;
    for (std::uint32_t s = 0; s < shape_.streams; ++s) {
      Stream& stream = *new (streams_ + s) Stream(take_stream(in, items_, shape_, s));
      stream.first_item = orders_ ? std::to_integer<std::uint32_t>(order[s]) : s;
      if (stream.first_item >= shape_.streams || placed[stream.first_item])
        fail(ErrorCode::Corrupt, "numeric stream of item %u, which is none or another's", stream.first_item);
      placed.set(stream.first_item);
      stream.table_at = table_entries;
      table_entries += stream.n_table;
      if (stream.predictor == Predictor::Row) before = shape_.width;
      keeps_values_ |= stream.predictor == Predictor::Stream || stream.predictor == Predictor::StreamPrevious;
    }
    if (in.left() != 0) fail(ErrorCode::Corrupt, "numeric payload has %zu bytes too many", in.left());
    before_ = static_cast<std::size_t>(align_up(before, kVectorBytes / sizeof(T)));
    buffer_values_ = before_ + most_blocks * kBlockValues + kVectorBytes / sizeof(T);
    const std::size_t buffers = keeps_values_ ? shape_.streams : 1;
    const std::size_t all = buffers * buffer_values_ + table_entries;
    values_ = reinterpret_cast<T*>(scratch<CodecWork>().get(all * sizeof(T)).data());
    tables_ = values_ + buffers * buffer_values_;
    for (std::uint32_t s = 0; s < shape_.streams; ++s) fill_table(streams_[s]);
  }

  // Leaves out streams of which no cell is wanted, whose items then stay what they are.
  void want(const RowLayout& layout, const Cells& cells) {
    const std::uint32_t parts = items_.per_row / layout.row_items();  // of an item: a complex one has two
    std::bitset<kMaxStreams> items;
    for (std::uint32_t i = 0; i < cells.levels(); ++i) {
      const std::uint32_t level = cells.level_begin + i * cells.level_step;
      for (std::uint32_t feature = cells.feature_begin; feature < cells.feature_end; ++feature) {
        const std::uint32_t item = (level * layout.features() + feature) * parts;
        for (std::uint32_t part = 0; part < parts; ++part) items.set((item + part) % shape_.streams);
      }
    }
    std::bitset<kMaxStreams> streams;
    for (std::uint32_t s = shape_.streams; s-- > 0;) {
      const Stream& stream = streams_[s];
      if (items.test(stream.first_item)) streams.set(s);
      const bool refers =
          stream.predictor == Predictor::Stream || stream.predictor == Predictor::StreamPrevious;
      if (streams.test(s) && refers) streams.set(stream.reference);
    }
    left_out_ = ~streams;
  }

  void decode() {
    const std::size_t first = range_.first / shape_.segment_rows;
    const std::size_t last = (range_.end() - 1) / shape_.segment_rows;
    for (std::uint32_t s = 0; s < shape_.streams; ++s) {
      if (left_out_.test(s)) continue;
      seek(streams_[s], first * shape_.segment_blocks);
      find_patch(streams_[s], range_.first * shape_.width);
    }
    for (std::size_t segment = first; segment <= last; ++segment) {
      for (std::uint32_t s = 0; s < shape_.streams; ++s) {
        if (!left_out_.test(s)) decode_segment_of(s, segment);
      }
    }
    const bool to_the_end = range_.first + range_.count == shape_.n_rows;
    for (std::uint32_t s = 0; to_the_end && s < shape_.streams; ++s) {
      if (!left_out_.test(s) && streams_[s].next_patch != streams_[s].n_patches)
        fail(ErrorCode::Corrupt, "numeric stream %u has patches of values that it has not", s);
    }
  }

 private:
  static Shape take_shape(const Items& items, std::uint32_t n_rows, Bytes* payload, bool* orders) {
    ByteReader in(*payload);
    const unsigned version = in.take<std::uint8_t>();
    if (version != kVersion) fail(ErrorCode::Corrupt, "numeric payload of version %u", version);
    const unsigned segments = in.take<std::uint8_t>();
    *orders = (segments & kHasOrder) != 0;
    const unsigned segment_log2 = segments & ~kHasOrder;
    const std::uint64_t streams = take_varint(in);
    if (segment_log2 > kMaxSegmentLog2 || streams == 0 || streams > kMaxStreams ||
        items.per_row % streams != 0) {
      fail(ErrorCode::Corrupt, "numeric payload of %llu streams, segments of 2^%u rows",
           static_cast<unsigned long long>(streams), segment_log2);
    }
    *payload = in.rest();
    return Shape(items, n_rows, static_cast<std::uint32_t>(streams), segment_log2);
  }

  void fill_table(const Stream& stream) const {
    T* const table = tables_ + stream.table_at;
    if (stream.n_table != 0) table[0] = static_cast<T>(stream.table_first);
    for (std::size_t i = 1; i < stream.n_table; ++i) {
      table[i] = static_cast<T>(table[i - 1] + static_cast<T>(stream.table_gaps[i - 1]));
    }
  }

  // Indices to integers; one that is too large, which no encoder writes, becomes the last.
  void look_up(const Stream& stream, T* values, std::size_t n) const {
    const T* const table = tables_ + stream.table_at;
    const T last = static_cast<T>(stream.n_table - 1);
    for (std::size_t i = 0; i < n; ++i) values[i] = table[std::min(values[i], last)];
  }

  void seek(Stream& stream, std::size_t block) const {
    while (stream.next_block < block) take_block(shape_, stream);
  }

  T* buffer(std::uint32_t stream) const {
    return values_ + (keeps_values_ ? stream : 0) * buffer_values_ + before_;
  }

  void decode_segment_of(std::uint32_t s, std::size_t segment) {
    const std::size_t first_row = segment * shape_.segment_rows;
    const std::size_t row_end = std::min(range_.end(), first_row + shape_.segment_rows);
    const std::size_t skipped = range_.first > first_row ? (range_.first - first_row) * shape_.width : 0;
    const std::size_t n = (row_end - first_row) * shape_.width;
    Stream& stream = streams_[s];
    T* const values = buffer(s);

    simd::NumericSegment<T> work{};
    // Where streams are told by others, values before the range count, too: those are told by the one before.
    const std::size_t unneeded = skipped - std::min<std::size_t>(skipped, keeps_values_ ? shape_.streams : 0);
    work.first = unneeded;
    work.end = n;
    work.n_blocks = Shape::blocks_of(n);
    for (std::size_t b = 0; b < work.n_blocks; ++b) blocks_[b] = take_block(shape_, stream);
    work.blocks = blocks_;
    work.bins = &stream.bins;
    work.exception_width = stream.exception_width;
    work.exception_base = static_cast<T>(stream.exception_base);
    prepare(stream, segment, values, &work);
    if (!decode_segment(work, values)) fail(ErrorCode::Corrupt, "numeric block is shorter than its values");

    if (stream.n_table != 0) look_up(stream, values + unneeded, n - unneeded);
    const std::size_t out_row = first_row + skipped / shape_.width - range_.first;
    std::byte* const out = out_ + (out_row * items_.per_row + stream.first_item) * items_.bytes;
    convert(stream.conversion, values + skipped, n - skipped, out, shape_.streams);
    if (stream.n_patches != 0) patch(stream, shape_.first_value(segment) + skipped, n - skipped, out);
  }

  // What came before the segment, where the kernel looks for it.
  void prepare(const Stream& stream, std::size_t segment, T* values, simd::NumericSegment<T>* work) const {
    switch (stream.predictor) {
      case Predictor::None:
        work->predictor = simd::NumericPredictor::None;
        break;
      case Predictor::Second:
        work->predictor = simd::NumericPredictor::Second;
        work->difference = static_cast<T>(stream.differences[segment]);
        values[-1] = static_cast<T>(stream.starts[segment]);
        break;
      case Predictor::Previous:
        work->predictor = simd::NumericPredictor::Previous;
        values[-1] = static_cast<T>(stream.starts[segment]);
        break;
      case Predictor::Row: {
        work->predictor = simd::NumericPredictor::Row;
        work->distance = shape_.width;
        T* const before = values - shape_.width;
        for (std::size_t i = 0; i < shape_.width; ++i) {
          before[i] = static_cast<T>(stream.starts[segment * shape_.width + i]);
        }
        break;
      }
      case Predictor::Stream:
        work->predictor = simd::NumericPredictor::Stream;
        work->reference = buffer(stream.reference);
        break;
      case Predictor::StreamPrevious: {
        work->predictor = simd::NumericPredictor::Stream;
        T* const reference = buffer(stream.reference);
        reference[-1] = static_cast<T>(stream.starts[segment]);
        work->reference = reference - 1;
        break;
      }
    }
  }

  // The first patch at or behind a value.
  void find_patch(Stream& stream, std::size_t value) const {
    std::size_t low = 0;
    for (std::size_t high = stream.n_patches; low < high;) {
      const std::size_t middle = low + (high - low) / 2;
      if (stream.patch_positions[middle] < value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    stream.next_patch = low;
  }

  // Items of values [first, first + n) that their integers do not give, from `out` on. Positions ascend: else
  // it would depend on the range which of them are found.
  void patch(Stream& stream, std::size_t first, std::size_t n, std::byte* out) const {
    std::uint64_t least = first;
    for (; stream.next_patch < stream.n_patches; ++stream.next_patch) {
      const std::uint64_t position = stream.patch_positions[stream.next_patch];
      if (position < least) fail(ErrorCode::Corrupt, "numeric patches are not in order");
      if (position - first >= n) break;
      const std::uint64_t bits = stream.patch_bits[stream.next_patch];
      std::memcpy(out + (position - first) * shape_.streams * items_.bytes, &bits, items_.bytes);
      least = position + 1;
    }
  }

  const Items items_;
  bool orders_ = false;  // the streams are not in the order of their items
  const Shape shape_;
  const RowSpan range_;
  std::byte* const out_;
  Stream* streams_ = nullptr;
  simd::NumericBlock* blocks_ = nullptr;
  T* values_ = nullptr;
  T* tables_ = nullptr;
  std::size_t before_ = 0;
  std::size_t buffer_values_ = 0;
  bool keeps_values_ = false;
  std::bitset<kMaxStreams> left_out_;
};

// `cells` null: all of each row.
void decode_rows(const RowLayout& layout, std::uint32_t n_rows, Bytes payload, RowRange range,
                 const Cells* cells, std::byte* out) {
  const Items items = items_of(layout);
  const auto decode = [&](auto decoder) {
    if (cells != nullptr) decoder.want(layout, *cells);
    decoder.decode();
  };
  if (items.bytes == 8) {
    decode(Decoder<std::uint64_t>(items, n_rows, payload, range, out));
  } else {
    decode(Decoder<std::uint32_t>(items, n_rows, payload, range, out));
  }
}

}  // namespace

void decode_rows_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                      RowRange range, std::byte* out) {
  if (range.count == 0) return;
  decode_rows(layout, n_rows, payload, range, nullptr, out);
}

void decode_cells_into(const RowLayout& layout, std::uint32_t n_rows, std::uint64_t, Bytes payload,
                       RowRange range, const Cells& cells, std::byte* out) {
  decode_in_blocks(layout, range, cells, out, [&](RowRange block, std::byte* rows) {
    decode_rows(layout, n_rows, payload, block, &cells, rows);
  });
}

}  // namespace cdd::numeric
