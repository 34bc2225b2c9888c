#include "core/codec/numeric/choose.h"

#include <algorithm>
#include <array>

#include "core/codec/numeric/plan.h"

namespace cdd::numeric {
namespace {

constexpr std::size_t kPieces = 8;  // predictors are compared on a few runs of neighbouring values
constexpr std::size_t kPieceValues = 16;
constexpr std::uint32_t kMostReferring = 16;  // streams among which references are looked for

// Estimated bits of a value under a choice, from pieces of neighbouring values that have two rows before them
// in their run.
template <class T>
double estimate(const Columns<T>& columns, std::uint32_t s, const Choice& c, const Runs& runs,
                std::size_t all_pieces = kPieces) noexcept {
  const std::size_t width = columns.shape.width;
  constexpr std::size_t kBefore = 2;
  if (runs.run_rows <= kBefore) return c.predictor == Predictor::None ? 0 : sizeof(T) * 8;
  const std::size_t run_values = std::size_t{runs.run_rows} * width;
  const std::size_t usable = run_values - kBefore * width;
  const std::size_t pieces = std::max<std::size_t>(all_pieces / runs.runs, 1);
  std::array<std::int64_t, kPieces * kPieceValues> sample;
  std::size_t count = 0;
  for (std::size_t run = 0; run < runs.runs; ++run) {
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::size_t skipped = run * run_values + kBefore * width;
      const std::size_t first = usable * piece / pieces;
      const std::size_t end = std::min(usable * (piece + 1) / pieces, first + kPieceValues);
      columns.residuals(s, c, skipped + first, skipped + end, sample.data() + count);
      count += end - first;
    }
  }
  return estimate_bits({sample.data(), count});
}

template <class T>
Choice best_own(const Columns<T>& columns, std::uint32_t s, const Runs& runs) noexcept {
  Choice best{Predictor::None, 0, 0};
  best.bits = estimate(columns, s, best, runs);
  const auto consider = [&](Predictor p) {
    constexpr double kMargin = 0.2;  // no predictor decodes faster, and one difference faster than two
    Choice c{p, 0, 0};
    c.bits = estimate(columns, s, c, runs);
    if (c.bits + kMargin < best.bits) best = c;
  };
  consider(Predictor::Previous);
  consider(columns.shape.width > 1 ? Predictor::Row : Predictor::Second);
  return best;
}

// Lets streams refer to others where that saves most.
template <class T>
void refer(const Columns<T>& columns, const Runs& runs, std::vector<Choice>* choices) {
  constexpr double kMustSave = 0.3;  // bits of a value
  struct Edge {
    std::uint32_t from;
    Choice choice;
    double saved;
  };
  const Shape& shape = columns.shape;
  std::vector<Edge> edges;
  for (std::uint32_t s = 0; s < shape.streams; ++s) {
    if ((*choices)[s].bits < 2 * kMustSave) continue;
    for (std::uint32_t r = 0; r < shape.streams; ++r) {
      if (r == s || !columns.represented[s].comparable(columns.represented[r])) continue;
      for (const Predictor p : {Predictor::Stream, Predictor::StreamPrevious}) {
        if (p == Predictor::StreamPrevious && shape.width > 1) continue;
        Choice c{p, r, 0};
        // Few values look as if they took less than they do: what does not save by them never does.
        if ((*choices)[s].bits - estimate(columns, s, c, runs, kPieces / 4) <= kMustSave) continue;
        c.bits = estimate(columns, s, c, runs);
        const double saved = (*choices)[s].bits - c.bits;
        if (saved > kMustSave) edges.push_back({s, c, saved});
      }
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.saved > b.saved; });
  for (const Edge& e : edges) {
    if ((*choices)[e.from].refers()) continue;
    std::uint32_t end = e.choice.reference;
    while (end != e.from && (*choices)[end].refers()) end = (*choices)[end].reference;
    if (end != e.from) (*choices)[e.from] = e.choice;
  }
}

}  // namespace

template <class T>
std::vector<Choice> choose(const Columns<T>& columns, const Runs& runs) {
  const std::uint32_t n = columns.shape.streams;
  std::vector<Choice> choices(n);
  for (std::uint32_t s = 0; s < n; ++s) choices[s] = best_own(columns, s, runs);
  if (n > 1 && n <= kMostReferring) refer(columns, runs, &choices);
  return choices;
}

template std::vector<Choice> choose(const Columns<std::uint32_t>&, const Runs&);
template std::vector<Choice> choose(const Columns<std::uint64_t>&, const Runs&);

}  // namespace cdd::numeric
