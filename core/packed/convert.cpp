#include "core/packed/convert.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/text.h"
#include "core/base/time_text.h"
#include "core/simd/csv/numbers.h"

namespace cdd::packed {
namespace {

std::string_view text_of(const simd::CsvCell& cell) noexcept {
  return {reinterpret_cast<const char*>(cell.data), cell.bytes};
}

// Numbers whose text says more than the value: +1, 007, -0.
bool is_plain_number(std::string_view text) noexcept {
  if (text[0] == '+') return false;
  const std::string_view digits = text.substr(text[0] == '-');
  if (digits.size() >= 2 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9') return false;
  return text != "-0";
}

bool has_word(std::string_view text) noexcept {
  const char c = text[text.size() - 1];  // nan, inf: no number ends with a letter
  return c >= 'A';
}

constexpr std::size_t kMostDigits = 19;  // longer ones are rather names

bool is_found_int(std::string_view text) noexcept {
  return is_plain_number(text) && text.size() <= kMostDigits + (text[0] == '-');
}

// Float64 by its text alone holds what has a point or an exponent, or is exact. 1e400 would be infinity,
// which is no number that was written.
bool is_found_float(std::string_view text, double value) noexcept {
  if (text == "-0") return true;
  if (!is_plain_number(text) || has_word(text) || std::isinf(value)) return false;
  if (text.size() <= 15 || text.find_first_of(".eE") != std::string_view::npos) return true;
  std::int64_t exact = 0;
  return parse_int64(text, &exact) && value < 9.2e18 && value > -9.2e18 &&
         static_cast<std::int64_t>(value) == exact;
}

// Which kernel takes the most usual fields of a type.
enum class Kernel { None, Integers, Decimals };

struct AsBool {
  static constexpr Kernel kKernel = Kernel::None;
  static constexpr bool kMinus = false;
  static constexpr std::int64_t kUnit = 1;
  using Item = std::uint8_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept {
    bool value = false;
    if (!parse_bool(text, &value)) return false;
    *out = value;
    return true;
  }
};
struct AsInt64 {
  static constexpr Kernel kKernel = Kernel::Integers;
  static constexpr bool kMinus = true;
  static constexpr std::int64_t kUnit = 1;
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_int64(text, out) && (!found || is_found_int(text));
  }
};
struct AsUInt64 {
  static constexpr Kernel kKernel = Kernel::Integers;
  static constexpr bool kMinus = false;
  static constexpr std::int64_t kUnit = 1;
  using Item = std::uint64_t;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_uint64(text, out) && (!found || is_found_int(text));
  }
};
struct AsFloat64 {
  static constexpr Kernel kKernel = Kernel::Decimals;
  static constexpr bool kMinus = true;
  static constexpr std::int64_t kUnit = 1;
  using Item = double;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_float64(text, out) && (!found || is_found_float(text, *out));
  }
};
struct AsTime {
  static constexpr Kernel kKernel = Kernel::None;
  static constexpr bool kMinus = false;
  static constexpr std::int64_t kUnit = 1;
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept { return parse_time_ns(text, out); }
};
template <std::int64_t kUnitNs>
struct AsEpoch {
  static constexpr Kernel kKernel = Kernel::Integers;
  static constexpr bool kMinus = true;
  static constexpr std::int64_t kUnit = kUnitNs;
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept {
    return parse_epoch_ns(text, kUnit, out);
  }
};

template <class As>
bool parse_item(std::string_view text, bool found, std::byte* item, bool* null) noexcept {
  typename As::Item value{};
  *null = text.empty();
  if (!*null && !As::parse(text, found, &value)) return false;
  store<typename As::Item>(item, value);
  return true;
}

struct ConvertCells {
  const CellRun& run;
  bool found;
  std::byte* items;
  std::uint64_t first_row;
  std::vector<std::uint64_t>& nulls;

  template <class As>
  std::size_t as() const {
    const simd::CsvCell* cell = run.cells;
    for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) {
      bool null = false;
      if (!parse_item<As>(text_of(*cell), found, items + r * sizeof(typename As::Item), &null)) return r;
      if (null) nulls.push_back(first_row + r);
    }
    return run.rows;
  }
};

// Rows that are not numbers of a simple form, one at a time; of the others, items that the kernels gave.
struct ConvertFields {
  const FieldRun& run;
  bool found;
  std::byte* items;
  std::uint64_t first_row;
  std::vector<std::uint64_t>& nulls;

  template <class As>
  std::size_t as() const {
    const simd::CsvNumbers numbers{run.column, As::kMinus, found};
    std::size_t left = run.column.rows;
    if (!run.ahead || As::kKernel == Kernel::None) {
      std::iota(run.left, run.left + left, 0);
    } else if (As::kKernel == Kernel::Decimals) {
      left = simd::parse_csv_decimals(numbers, items, run.left);
    } else {
      left = simd::parse_csv_integers(numbers, items, run.left);
    }
    if (As::kUnit != 1) return scale<As>(left);
    for (std::size_t k = 0; k < left; ++k) {
      if (!parse<As>(run.left[k])) return run.left[k];
    }
    return run.column.rows;
  }

  template <class As>
  bool parse(std::size_t row) const {
    bool null = false;
    if (!parse_item<As>(run.field(row), found, items + row * sizeof(typename As::Item), &null)) return false;
    if (null) nulls.push_back(first_row + row);
    return true;
  }

  // Nanoseconds of a larger unit.
  template <class As>
  std::size_t scale(std::size_t left) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / As::kUnit;
    std::size_t k = 0;
    for (std::size_t r = 0; r < run.column.rows; ++r) {
      const bool skipped = k < left && run.left[k] == r;
      k += skipped;
      const std::int64_t item = skipped ? 0 : load<std::int64_t>(items + 8 * r);
      if (!skipped && item <= kMost && item >= -kMost) {
        store<std::int64_t>(items + 8 * r, item * As::kUnit);
      } else if (!parse<As>(r)) {
        return r;
      }
    }
    return run.column.rows;
  }
};

template <class Convert>
std::size_t convert_as(Type type, const Convert& convert) {
  switch (type) {
    case Type::Bool:
      return convert.template as<AsBool>();
    case Type::Int64:
      return convert.template as<AsInt64>();
    case Type::UInt64:
      return convert.template as<AsUInt64>();
    case Type::Float64:
      return convert.template as<AsFloat64>();
    case Type::Time:
      return convert.template as<AsTime>();
    case Type::EpochS:
      return convert.template as<AsEpoch<1'000'000'000>>();
    case Type::EpochMs:
      return convert.template as<AsEpoch<1'000'000>>();
    case Type::EpochUs:
      return convert.template as<AsEpoch<1'000>>();
    case Type::EpochNs:
      return convert.template as<AsEpoch<1>>();
    default:
      return 0;
  }
}

}  // namespace

TypeMask accepted_types(Bytes field) noexcept {
  if (field.empty()) return kAllTypes;
  const std::string_view text = as_text(field);
  TypeMask mask = mask_of(Type::Text);
  std::uint8_t boolean = 0;
  std::int64_t integer = 0;
  std::uint64_t natural = 0;
  double number = 0;
  if (AsBool::parse(text, true, &boolean)) mask |= mask_of(Type::Bool);
  if (AsInt64::parse(text, true, &integer)) mask |= mask_of(Type::Int64);
  if (AsUInt64::parse(text, true, &natural)) mask |= mask_of(Type::UInt64);
  if (AsFloat64::parse(text, true, &number)) mask |= mask_of(Type::Float64);
  if (AsTime::parse(text, true, &integer)) mask |= mask_of(Type::Time);
  return mask;
}

std::size_t convert(Type type, bool found, const CellRun& run, std::byte* items, std::uint64_t first_row,
                    std::vector<std::uint64_t>& nulls) {
  return convert_as(type, ConvertCells{run, found, items, first_row, nulls});
}

std::size_t convert(Type type, bool found, const FieldRun& run, std::byte* items, std::uint64_t first_row,
                    std::vector<std::uint64_t>& nulls) {
  return convert_as(type, ConvertFields{run, found, items, first_row, nulls});
}

std::size_t format_item(Type type, const std::byte* item, char* out) noexcept {
  switch (type) {
    case Type::Bool: {
      const std::string_view text = item[0] != std::byte{0} ? "true" : "false";
      text.copy(out, text.size());
      return text.size();
    }
    case Type::Int64:
      return format_int64(load<std::int64_t>(item), out);
    case Type::UInt64:
      return format_uint64(load<std::uint64_t>(item), out);
    case Type::Float32:
      return format_float32(load<float>(item), out);
    case Type::Float64:
      return format_float64(load<double>(item), out);
    default:
      return format_time_ns(load<std::int64_t>(item), out);
  }
}

const char* type_name(Type type) noexcept {
  constexpr const char* kNames[] = {"bool",           "int64",     "uint64",   "float64",
                                    "datetime64[ns]", "text",      "epoch[s]", "epoch[ms]",
                                    "epoch[us]",      "epoch[ns]", "auto",     "float32"};
  return kNames[static_cast<unsigned>(type)];
}

}  // namespace cdd::packed
