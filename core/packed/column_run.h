// A run of whole rows of CSV text read into columns that have their places already: by one thread, while
// others read the runs before and after it.
#pragma once

#include <vector>

#include "core/packed/columns.h"

namespace cdd::packed {

struct SettledType {
  Type type = Type::Text;
  bool found = false;  // not given
  bool exact = false;
  TypeMask mask = kAllTypes;
  bool wanted = true;  // to be read in this turn
};

// What a run gives of one column beside its items.
struct RunColumn {
  Pages text;
  std::size_t text_bytes = 0;
  std::vector<std::uint64_t> nulls;
  TypeMask accepted = kAllTypes;  // by the row that was not of the column's type
  bool failed = false;
};

struct ColumnRun {
  Bytes text;
  std::size_t readable = 0;  // bytes from where the text begins, with what follows it
  bool by_ends = false;      // the kernels alone read it
  CsvProgress progress;      // rows: of the columns before the run
  std::vector<RunColumn> columns;
};

// Reads what is wanted into the columns of `result`. A column that was found and is not of its type is marked
// as failed. `lines` rows of the file lie before the first run. Throws Corrupt with the place where a given
// type does not hold, or the text is no CSV after all.
void read_run(const CsvOptions& options, const std::vector<SettledType>& settled, std::uint64_t lines,
              ColumnRun& run, Columns* result);

}  // namespace cdd::packed
