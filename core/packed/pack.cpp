#include "core/packed/pack.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/format/packed/rows.h"
#include "core/packed/csv/plan.h"
#include "core/packed/csv/rows.h"
#include "core/threads/for_each.h"

namespace cdd::packed {
namespace {

using ull = unsigned long long;

[[noreturn]] void fail_version1(const Place& place, const char* what) {
  fail_at(place, ErrorCode::Corrupt, "row %llu: %s: version 2 takes it", static_cast<ull>(place.number),
          what);
}

void put_header1(std::uint64_t rows, std::uint32_t columns, std::uint64_t bytes, MutableBytes out) {
  if (rows > 0xffffffff)
    fail_version1({Place::Kind::Row, rows, {}, {}}, "version 1 has at most 2^32 - 1 rows");
  put_header({1, static_cast<std::uint32_t>(rows), rows == 0 ? 0 : columns, bytes}, out.data());
}

// Each part to its place. False where the kernel cannot: what is wrong the other way says.
bool pack_parts(const CsvOptions& options, Bytes text, const CsvPlan& plan, MutableBytes out) {
  const std::uint64_t rows = plan.cuts.back().before.rows;
  const std::uint64_t fields_at = kHeaderBytes + 4 * rows;
  const auto offset_of = [&](const CsvCut& cut) {
    return fields_at + 2 * cut.fields() + cut.content_bytes();
  };
  std::atomic<bool> whole{true};
  const auto pack_part = [&](std::size_t p) {
    const CsvCut& cut = plan.cuts[p];
    const CsvCut& next = plan.cuts[p + 1];
    const simd::CsvPackTarget target{out.data() + offset_of(cut),
                                     out.data() + offset_of(next),
                                     out.data() + kHeaderBytes + 4 * cut.before.rows,
                                     static_cast<std::size_t>(next.before.rows - cut.before.rows),
                                     offset_of(cut),
                                     plan.columns};
    const simd::CsvPackedRows packed =
        simd::pack_csv(options.dialect, text.data() + cut.at, next.at - cut.at, text.size() - cut.at, target);
    const bool full = packed.rows == target.max_rows && packed.bytes == offset_of(next) - offset_of(cut);
    if (!packed.whole || !full) whole = false;
  };
  const std::size_t parts = plan.cuts.size() - 1;
  if (parts < 4) {
    for (std::size_t p = 0; p < parts; ++p) pack_part(p);
  } else {
    for_each(parts, pack_part);
  }
  return whole;
}

// Whatever the options ask for, one row after another.
Packed1 pack_rows(const CsvOptions& options, Bytes text, std::size_t text_offset, const GiveMemory& give) {
  CsvProgress progress;
  progress.text_offset = text_offset;
  CsvRows reader(options, text, true, progress);
  RowPacker packer;
  for (CsvBlock block; reader.next(&block);) {
    const simd::CsvCell* cell = block.cells;
    for (std::size_t r = 0; r < block.rows; ++r) {
      for (std::uint32_t c = 0; c < block.columns; ++c, ++cell) {
        if (cell->bytes > kMaxField1) {
          const std::uint64_t row = block.first_row + r;
          const std::uint32_t field = options.columns.empty() ? c : options.columns[c];
          const std::uint64_t offset = text_offset + block.begin +
                                       find_field(options, text.subspan(block.begin, block.end - block.begin),
                                                  r, progress.columns, field);
          fail_at({Place::Kind::Row, row, field, offset}, ErrorCode::Corrupt,
                  "row %llu, field %u at 0x%llx has %u bytes, version 1 at most %zu: version 2 takes it",
                  static_cast<ull>(row), field, static_cast<ull>(offset), cell->bytes, kMaxField1);
        }
        packer.add_field({cell->data, cell->bytes});
      }
      packer.end_row();
    }
  }
  const MutableBytes out = give(packer.bytes());
  packer.write(out);
  return {packer.rows(), progress.skipped, packer.columns(), packer.bytes()};
}

}  // namespace

Packed1 pack_csv(const CsvOptions& options, Bytes text, const GiveMemory& give) {
  check_options(options);
  const std::size_t begin = csv_begin(options, text, true);
  const Bytes rows_text = text.subspan(begin);
  if (options.plain()) {
    if (const auto plan = plan_csv(options, rows_text)) {
      const CsvCut& all = plan->cuts.back();
      const std::uint64_t bytes = kHeaderBytes + 4 * all.before.rows + 2 * all.fields() + all.content_bytes();
      const MutableBytes out = give(bytes);
      put_header1(all.before.rows, plan->columns, bytes, out);
      if (pack_parts(options, rows_text, *plan, out))
        return {all.before.rows, 0, all.before.rows == 0 ? 0 : plan->columns, bytes};
    }
  }
  return pack_rows(options, rows_text, begin, give);
}

std::uint64_t count_csv_rows(const CsvOptions& options, Bytes text) {
  check_options(options);
  const std::size_t begin = csv_begin(options, text, true);
  if (options.plain()) {
    if (const auto plan = plan_csv(options, text.subspan(begin))) return plan->cuts.back().before.rows;
  }
  CsvProgress progress;
  progress.text_offset = begin;
  CsvRows reader(options, text.subspan(begin), true, progress);
  for (CsvBlock block; reader.next(&block);) {
  }
  return progress.rows;
}

void RowPacker::add_field(Bytes field) {
  if (field.size() > kMaxField1) {
    fail_at({Place::Kind::Row, starts_.size(), in_row_, Place::kNone}, ErrorCode::Corrupt,
            "row %zu, field %llu has %zu bytes, version 1 at most %zu: version 2 takes it", starts_.size(),
            static_cast<ull>(in_row_), field.size(), kMaxField1);
  }
  const auto length = static_cast<std::uint16_t>(field.size());
  const std::byte* const p = as_bytes(&length);
  fields_.insert(fields_.end(), p, p + sizeof length);
  fields_.insert(fields_.end(), field.begin(), field.end());
  ++in_row_;
}

void RowPacker::end_row() {
  if (starts_.empty()) {
    columns_ = static_cast<std::uint32_t>(in_row_);
  } else if (in_row_ != columns_) {
    fail_at({Place::Kind::Row, starts_.size(), std::min<std::uint64_t>(in_row_, columns_), Place::kNone},
            ErrorCode::InvalidArgument, "row %zu has %llu fields, the first row %u", starts_.size(),
            static_cast<ull>(in_row_), columns_);
  }
  starts_.push_back(start_);
  start_ = fields_.size();
  in_row_ = 0;
}

std::uint64_t RowPacker::bytes() const noexcept { return kHeaderBytes + 4 * starts_.size() + fields_.size(); }

void RowPacker::write(MutableBytes out) const {
  put_header1(starts_.size(), columns_, bytes(), out);
  const std::uint64_t fields_at = kHeaderBytes + 4 * starts_.size();
  if (!starts_.empty() && fields_at + starts_.back() > 0xffffffff) {
    const auto found = std::upper_bound(starts_.begin(), starts_.end(), 0xffffffff - fields_at);
    fail_version1({Place::Kind::Row, static_cast<std::uint64_t>(found - starts_.begin()), Place::kNone,
                   fields_at + *found},
                  "it would begin beyond 2^32 - 1, the last offset of version 1");
  }
  for (std::size_t r = 0; r < starts_.size(); ++r) {
    store<std::uint32_t>(out.data() + kHeaderBytes + 4 * r,
                         static_cast<std::uint32_t>(fields_at + starts_[r]));
  }
  if (!fields_.empty()) std::memcpy(out.data() + fields_at, fields_.data(), fields_.size());
}

}  // namespace cdd::packed
