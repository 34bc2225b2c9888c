#include "core/store/tail.h"

namespace cdd {

Bytes Tail::run(RowSource& more, std::uint64_t first, std::uint64_t count) {
  if (first >= rows_) return more.at(first - rows_, count);
  const std::uint64_t held = bytes_.size() / row_bytes_;
  if (first + count > held) {
    const Bytes next = more.at(held - rows_, first + count - held);
    bytes_.insert(bytes_.end(), next.begin(), next.end());
  }
  return Bytes(bytes_).subspan(bytes_of(first), bytes_of(count));
}

Tail Tail::rest(RowSource& more, std::uint64_t first, std::uint64_t count) {
  const Bytes rows = run(more, first, count);
  Tail rest(row_bytes_);
  rest.bytes_.assign(rows.begin(), rows.end());
  rest.rows_ = count;
  return rest;
}

void Tail::extend(RowSource& more, std::uint64_t count) {
  drop_copies();
  const Bytes rows = more.at(0, count);
  bytes_.insert(bytes_.end(), rows.begin(), rows.end());
  rows_ += count;
}

void Tail::clear() noexcept {
  bytes_.clear();
  rows_ = 0;
}

}  // namespace cdd
