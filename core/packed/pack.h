// CSV text or rows of fields made into packed rows of version 1.
//
// Text is packed in two passes, each by several threads where it is long: the first counts, so that the
// second writes each row straight to its place. The bytes do not depend on how many threads there are.
#pragma once

#include <functional>

#include "core/packed/csv/options.h"

namespace cdd::packed {

struct Packed1 {
  std::uint64_t rows = 0;
  std::uint64_t skipped = 0;  // rows dropped by Ragged::Skip
  std::uint32_t columns = 0;
  std::uint64_t bytes = 0;
};

// Gives the memory for a result of so many bytes, asked once, or again for more after all.
using GiveMemory = std::function<MutableBytes(std::uint64_t bytes)>;

// Packs the whole text. Throws Corrupt with row, field and offset; Limit; InvalidArgument for options; what
// `give` throws. Errors that version 2 would not have say so.
Packed1 pack_csv(const CsvOptions& options, Bytes text, const GiveMemory& give);

// How many rows there are, without packing them.
std::uint64_t count_csv_rows(const CsvOptions& options, Bytes text);

// Packs rows that are given one at a time.
class RowPacker {
 public:
  void add_field(Bytes field);
  // Throws InvalidArgument where the row has not as many fields as the first.
  void end_row();
  std::uint64_t rows() const noexcept { return starts_.size(); }
  std::uint32_t columns() const noexcept { return columns_; }
  std::uint64_t bytes() const noexcept;
  void write(MutableBytes out) const;  // bytes() of them

 private:
  std::vector<std::byte> fields_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t start_ = 0;
  std::uint32_t columns_ = 0;
  std::uint64_t in_row_ = 0;
};

}  // namespace cdd::packed
