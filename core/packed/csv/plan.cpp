#include "core/packed/csv/plan.h"

#include <algorithm>
#include <atomic>

#include "core/base/text.h"
#include "core/threads/for_each.h"

namespace cdd::packed {
namespace {

using simd::CsvCounts;
using simd::CsvScan;
using simd::CsvState;

constexpr std::size_t kBlockBytes = 256 << 10;

void add(CsvCounts& to, const CsvCounts& counts) noexcept {
  to.delimiters += counts.delimiters;
  to.ends += counts.ends;
  to.rows += counts.rows;
  to.quotes += counts.quotes;
  to.quoted_fields += counts.quoted_fields;
}

struct Blocks {
  const simd::CsvDialect& dialect;
  Bytes text;

  std::size_t count() const noexcept { return (text.size() + kBlockBytes - 1) / kBlockBytes; }
  Bytes block(std::size_t b) const noexcept {
    return text.subspan(b * kBlockBytes, std::min(kBlockBytes, text.size() - b * kBlockBytes));
  }
  CsvScan scan(std::size_t b, bool inside) const noexcept {
    const Bytes bytes = block(b);
    const CsvState state =
        b == 0 ? CsvState{}
               : simd::csv_state_after(dialect, static_cast<std::uint8_t>(text[b * kBlockBytes - 1]), inside);
    return simd::scan_csv(dialect, bytes.data(), bytes.size(), state);
  }
};

// Each block as the state that it begins in has it. Blocks are counted as if they began outside quotes, at
// the same time; the few that do not are counted again.
std::vector<CsvScan> scan_blocks(const Blocks& blocks) {
  std::vector<CsvScan> scans(blocks.count());
  if (scans.size() < 4 || threads() == 1) {
    bool inside = false;
    for (std::size_t b = 0; b < scans.size(); ++b) {
      scans[b] = blocks.scan(b, inside);
      inside = scans[b].after.inside;
    }
    return scans;
  }
  for_each(scans.size(), [&](std::size_t b) { scans[b] = blocks.scan(b, false); });
  std::vector<std::size_t> again;
  bool inside = false;
  for (std::size_t b = 0; b < scans.size(); ++b) {
    if (inside) again.push_back(b);
    inside = inside != scans[b].after.inside;
  }
  for_each(again.size(), [&](std::size_t k) { scans[again[k]] = blocks.scan(again[k], true); });
  return scans;
}

// Where the character ends that may lie across `at`.
std::size_t next_character(Bytes text, std::size_t at) noexcept {
  for (int i = 0; i < 3 && at < text.size() && (static_cast<unsigned>(text[at]) & 0xc0) == 0x80; ++i) ++at;
  return at;
}

bool is_utf8(const Blocks& blocks, const std::vector<CsvScan>& scans) {
  std::atomic<bool> good{true};
  std::vector<std::size_t> others;
  for (std::size_t b = 0; b < scans.size(); ++b) {
    if (!scans[b].ascii) others.push_back(b);
  }
  for_each(others.size(), [&](std::size_t k) {
    const std::size_t b = others[k];
    const std::size_t begin = b == 0 ? 0 : next_character(blocks.text, b * kBlockBytes);
    const std::size_t end = next_character(blocks.text, std::min((b + 1) * kBlockBytes, blocks.text.size()));
    if (begin >= end) return;
    const Bytes bytes = blocks.text.subspan(begin, end - begin);
    if (utf8_error(bytes) != bytes.size()) good = false;
  });
  return good;
}

}  // namespace

std::optional<CsvPlan> plan_csv(const CsvOptions& options, Bytes text) {
  CsvPlan plan;
  plan.cuts.push_back({});
  if (text.empty()) return plan;
  const Blocks blocks{options.dialect, text};
  const std::vector<CsvScan> scans = scan_blocks(blocks);
  CsvCounts before;
  for (std::size_t b = 0; b < scans.size(); ++b) {
    const CsvScan& scan = scans[b];
    if (scan.first_bad != simd::kCsvNone) return std::nullopt;
    if (scan.first_end != simd::kCsvNone) {
      CsvCut cut{b * kBlockBytes + scan.first_end, before};
      add(cut.before, scan.at_first_end);
      if (plan.columns == 0)
        plan.columns =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(cut.before.delimiters + 1, 0xffffffff));
      if (b > 0) plan.cuts.push_back(cut);
    }
    add(before, scan.total);
  }
  const CsvState& after = scans.back().after;
  if (after.inside) return std::nullopt;
  if (!after.after_end) {  // the last row has no line end
    ++before.rows;
    if (plan.columns == 0)
      plan.columns = static_cast<std::uint32_t>(std::min<std::uint64_t>(before.delimiters + 1, 0xffffffff));
  }
  plan.cuts.push_back({text.size(), before});
  if (plan.columns > options.max_columns) return std::nullopt;
  if (before.delimiters + before.rows != before.rows * plan.columns) return std::nullopt;
  if (options.utf8 && !is_utf8(blocks, scans)) return std::nullopt;
  return plan;
}

}  // namespace cdd::packed
