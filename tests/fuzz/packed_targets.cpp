// Fuzz targets for CSV text and packed rows: the kernels give what the reference gives, every way of reading
// text gives the same rows, and a file in memory of exact size is read or refused.
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/packed/columns.h"
#include "core/packed/csv/rows.h"
#include "core/packed/csv_text.h"
#include "core/packed/file2.h"
#include "core/packed/pack.h"
#include "tests/fuzz/target.h"

namespace cdd::fuzz {
namespace {

using namespace cdd::packed;

// What packing gives, or nothing where the text is refused.
Buffer packed_or_none(const CsvOptions& options, Bytes text) {
  Buffer out;
  try {
    const Packed1 made = pack_csv(options, text, [&](std::uint64_t bytes) {
      out.assign(static_cast<std::size_t>(bytes), std::byte{0xa5});
      return MutableBytes(out);
    });
    require(made.bytes == out.size(), "the size that is asked for is the size that is used");
  } catch (const Error&) {
    out.clear();
  }
  return out;
}

// Typed columns, or nothing where the text is refused.
std::optional<Columns> columns_or_none(const CsvOptions& options, Bytes text) {
  try {
    ColumnsState state;
    return read_columns(options, {}, {}, text, true, state);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool same_bytes(const Pages& a, const Pages& b, std::size_t bytes) {
  if (bytes == 0) return true;
  if (a.data() == nullptr || b.data() == nullptr) return a.data() == b.data();
  return std::memcmp(a.data(), b.data(), bytes) == 0;
}

void require_same(const Columns& a, const Columns& b) {
  require(a.rows == b.rows && a.names == b.names && a.columns.size() == b.columns.size(),
          "columns by their ends are those of the machine");
  const auto rows = static_cast<std::size_t>(a.rows);
  for (std::size_t c = 0; c < a.columns.size(); ++c) {
    const Column& x = a.columns[c];
    const Column& y = b.columns[c];
    require(x.type == y.type && x.nulls == y.nulls && x.text_bytes == y.text_bytes,
            "types and nulls are the same");
    const bool is_text = x.type == Type::Text;
    require(same_bytes(x.values, y.values, is_text ? 8 * (rows + 1) : rows * item_bytes(x.type)) &&
                same_bytes(x.text, y.text, static_cast<std::size_t>(x.text_bytes)) &&
                same_bytes(x.valid, y.valid, x.nulls > 0 ? rows : 0),
            "items are the same");
  }
}

}  // namespace

void csv_text(Bytes input) {
  Choices choices(input.first(std::min<std::size_t>(input.size(), 4)));
  CsvOptions options;
  options.strict = choices.byte() % 2 == 0;
  options.ragged = static_cast<Ragged>(choices.byte() % 3);
  options.utf8 = choices.byte() % 2 == 0;
  const Buffer exact(input.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(input.size(), 4)),
                     input.end());
  const Bytes text(exact);
  require(simd::scan_csv(options.dialect, text.data(), text.size(), {}) ==
              simd::reference::scan_csv(options.dialect, text.data(), text.size(), {}),
          "the kernel counts as the reference");
  const Buffer by_kernel = packed_or_none(options, text);
  CsvOptions machine = options;
  machine.has_comment = true;
  machine.comment = 1;
  const bool has_comment = std::find(text.begin(), text.end(), std::byte{1}) != text.end();
  if (!has_comment) require(packed_or_none(machine, text) == by_kernel, "the machine reads as the kernels");
  if (!by_kernel.empty()) {
    check_rows(open_version1(by_kernel), options.utf8 ? Check::Utf8 : Check::Full);
  }
  const std::optional<Columns> columns = columns_or_none(options, text);
  if (has_comment) return;
  const std::optional<Columns> again = columns_or_none(machine, text);
  require(columns.has_value() == again.has_value(), "the machine takes what the kernels take");
  if (columns) require_same(*columns, *again);
}

void packed_file(Bytes input) {
  const Buffer exact(input.begin(), input.end());
  try {
    const std::unique_ptr<PackedFile> file = PackedFile::open(exact);
    const std::uint64_t rows = std::min<std::uint64_t>(file->rows(), 1000);
    std::vector<std::byte> text;
    for (std::uint64_t row = 0; row < rows; ++row) {
      try {
        append_csv({}, *file, row, 1, &text);
      } catch (const Error&) {
      }
    }
    if (const auto* const typed = dynamic_cast<const File2*>(file.get())) typed->read_columns(0, rows);
    file->check(Check::Utf8);
  } catch (const Error&) {
  }
}

}  // namespace cdd::fuzz
