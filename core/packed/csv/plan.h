// The first pass over CSV text that the kernels alone read: how many rows, fields and bytes there are before
// each place where a part may begin. Several threads where the text is long.
#pragma once

#include <optional>

#include "core/packed/csv/options.h"

namespace cdd::packed {

// Where a row begins, and what lies before it.
struct CsvCut {
  std::size_t at = 0;  // of the text
  simd::CsvCounts before;

  std::uint64_t fields() const noexcept { return before.delimiters + before.rows; }
  // Of the fields' content, unescaped.
  std::uint64_t content_bytes() const noexcept {
    return at - before.delimiters - before.ends - before.quoted_fields - before.quotes / 2;
  }
};

struct CsvPlan {
  std::vector<CsvCut> cuts;   // the parts' begins, and the end of the text
  std::uint32_t columns = 0;  // fields of the first row
};

// Nothing where the kernels do not read the text alone: a quote out of place or never closed, rows that can
// not all have as many fields as the first, bytes that are no UTF-8 where options.utf8.
std::optional<CsvPlan> plan_csv(const CsvOptions& options, Bytes text);

}  // namespace cdd::packed
