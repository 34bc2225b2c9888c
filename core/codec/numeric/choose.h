// NUMERIC, choosing: the integers of a chunk's streams, and the predictor that suits each by estimate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/codec/numeric/format.h"
#include "core/codec/numeric/represent.h"

namespace cdd::numeric {

// As a signed number, in a type at least as wide.
template <class Out, class T>
Out widened(T v) noexcept {
  return static_cast<Out>(static_cast<std::make_signed_t<T>>(v));
}

// How a stream is predicted, and what a value then takes by estimate.
struct Choice {
  Predictor predictor = Predictor::None;
  std::uint32_t reference = 0;
  double bits = 0;

  bool refers() const noexcept { return predictor >= Predictor::Stream; }
};

// Rows that stand for a chunk: `runs` times `run_rows` neighbouring ones.
struct Runs {
  std::uint32_t runs;
  std::uint32_t run_rows;
  std::uint32_t rows() const noexcept { return runs * run_rows; }
};

// The integers of all streams of a chunk or of rows that stand for it, stream after stream.
template <class T>
struct Columns {
  const Items& items;
  Shape shape;
  T* values;
  std::vector<Represented> represented;

  const T* stream(std::uint32_t s) const noexcept { return values + s * shape.values(); }

  // out[i - first] = residual i, for i in [first, end); the values before `first` are those the predictor
  // wants.
  template <class Out>
  void residuals(std::uint32_t s, const Choice& c, std::size_t first, std::size_t end,
                 Out* out) const noexcept {
    const T* const v = stream(s) + first;
    const auto less = [&](const T* from) {
      for (std::size_t i = 0; i < end - first; ++i) out[i] = widened<Out>(static_cast<T>(v[i] - from[i]));
    };
    switch (c.predictor) {
      case Predictor::None:
        for (std::size_t i = 0; i < end - first; ++i) out[i] = widened<Out>(v[i]);
        break;
      case Predictor::Previous:
        less(v - 1);
        break;
      case Predictor::Row:
        less(v - shape.width);
        break;
      case Predictor::Second:
        for (std::size_t i = 0; i < end - first; ++i) {
          const T* const at = v + i;
          out[i] = widened<Out>(static_cast<T>(at[0] - 2 * at[-1] + at[-2]));
        }
        break;
      case Predictor::Stream:
        less(stream(c.reference) + first);
        break;
      case Predictor::StreamPrevious:
        less(stream(c.reference) + first - 1);
        break;
    }
  }
};

// `values` has room for all items of `rows`; the result points to it.
template <class T>
Columns<T> load_columns(const Items& items, Bytes rows, const Shape& shape, T* values) {
  Columns<T> columns{items, shape, values, {}};
  columns.represented.reserve(shape.streams);
  for (std::uint32_t s = 0; s < shape.streams; ++s) {
    columns.represented.push_back(represent(items, rows.data() + s * std::size_t{items.bytes}, shape.streams,
                                            shape.values(), values + s * shape.values()));
  }
  return columns;
}

// The choice for each stream; references never form a circle.
template <class T>
std::vector<Choice> choose(const Columns<T>& columns, const Runs& runs);

extern template std::vector<Choice> choose(const Columns<std::uint32_t>&, const Runs&);
extern template std::vector<Choice> choose(const Columns<std::uint64_t>&, const Runs&);

}  // namespace cdd::numeric
