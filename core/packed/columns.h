// CSV text made into typed columns, without packed rows in between. Several threads where the text is long;
// the result does not depend on how many there are.
#pragma once

#include <string>
#include <vector>

#include "core/os/pages.h"
#include "core/packed/csv/rows.h"

namespace cdd::packed {

// In the order in which a type is found: the first that all fields of a column are of. Epochs are times given
// as numbers of a unit; they are never found, only asked for. Float32 is for writing alone.
enum class Type : std::uint8_t {
  Bool,
  Int64,
  UInt64,
  Float64,
  Time,
  Text,
  EpochS,
  EpochMs,
  EpochUs,
  EpochNs,
  Auto,
  Float32
};

constexpr std::size_t item_bytes(Type type) noexcept {
  return type == Type::Bool ? 1 : type == Type::Float32 ? 4 : 8;
}

// A type that is asked for. exact: only fields that finding would have given the type, so no 007, +1, nan.
struct WantedType {
  Type type = Type::Auto;
  bool exact = false;
};

using TypeMask = unsigned;                            // bit t: of Type t
inline constexpr TypeMask kAllTypes = (1u << 6) - 1;  // Bool to Text

struct Column {
  Type type = Type::Text;
  Pages values;  // items; of text int64 offsets into `text`, one more than rows, the first 0
  Pages text;
  std::uint64_t text_bytes = 0;
  Pages valid;  // a byte a row, 0 for null; nothing where there are no nulls
  std::uint64_t nulls = 0;
  TypeMask mask = kAllTypes;  // of Auto: types that were not found wrong; all of them where all are null
};

struct Columns {
  std::vector<std::string> names;  // of the header, when there was one to read
  std::vector<Column> columns;
  std::uint64_t rows = 0;
  std::size_t consumed = 0;  // bytes of the text
};

// Where reading goes on with the next part of a text.
struct ColumnsState {
  CsvProgress progress;
  bool begun = false;  // the mark and lines at the start were passed over, and the header
  bool header = true;  // the first row has names
};

// Passes over the start of a text, and its header, whose names of wanted columns it gives. Returns where rows
// begin, kCsvNone where more text is needed. Throws as read_columns.
std::size_t begin_csv(const CsvOptions& options, Bytes text, bool last, ColumnsState& state,
                      std::vector<std::string>* names);

// Columns of all whole rows of `text`, which begins where the one before was consumed; `last`: the file ends
// with it. types: one a column that is wanted, or none, which is Auto for all. Auto is settled by the rows of
// this text; the result's types say how. A given type takes whatever reads as one: 007, +1, nan.
// masks: none, or for each column types that may still be found, as the part before gave them.
// An empty field is null in every column but text.
// Throws Corrupt with row, field, offset and the text; InvalidArgument for a wrong number of types.
Columns read_columns(const CsvOptions& options, const std::vector<WantedType>& types,
                     const std::vector<TypeMask>& masks, Bytes text, bool last, ColumnsState& state);

// As a name of NumPy's: "int64", "datetime64[ns]", "text", ...
const char* type_name(Type type) noexcept;

}  // namespace cdd::packed
