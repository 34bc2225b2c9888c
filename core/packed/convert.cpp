#include "core/packed/convert.h"

#include "core/base/text.h"
#include "core/base/time_text.h"

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

// Float64 by its text alone holds what has a point or an exponent, or is exact.
bool is_found_float(std::string_view text, double value) noexcept {
  if (text == "-0") return true;
  if (!is_plain_number(text) || has_word(text)) return false;
  if (text.size() <= 15 || text.find_first_of(".eE") != std::string_view::npos) return true;
  std::int64_t exact = 0;
  return parse_int64(text, &exact) && value < 9.2e18 && value > -9.2e18 &&
         static_cast<std::int64_t>(value) == exact;
}

struct AsBool {
  using Item = std::uint8_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept {
    bool value = false;
    if (!parse_bool(text, &value)) return false;
    *out = value;
    return true;
  }
};
struct AsInt64 {
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_int64(text, out) && (!found || is_found_int(text));
  }
};
struct AsUInt64 {
  using Item = std::uint64_t;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_uint64(text, out) && (!found || is_found_int(text));
  }
};
struct AsFloat64 {
  using Item = double;
  static bool parse(std::string_view text, bool found, Item* out) noexcept {
    return parse_float64(text, out) && (!found || is_found_float(text, *out));
  }
};
struct AsTime {
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept { return parse_time_ns(text, out); }
};
template <std::int64_t kUnit>
struct AsEpoch {
  using Item = std::int64_t;
  static bool parse(std::string_view text, bool, Item* out) noexcept {
    return parse_epoch_ns(text, kUnit, out);
  }
};

template <class As>
std::size_t convert_as(bool found, const CellRun& run, std::byte* items, std::uint64_t first_row,
                       std::vector<std::uint64_t>& nulls) {
  const simd::CsvCell* cell = run.cells;
  for (std::size_t r = 0; r < run.rows; ++r, cell += run.stride) {
    typename As::Item item{};
    if (cell->bytes == 0) {
      nulls.push_back(first_row + r);
    } else if (!As::parse(text_of(*cell), found, &item)) {
      return r;
    }
    store<typename As::Item>(items + r * sizeof item, item);
  }
  return run.rows;
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
  switch (type) {
    case Type::Bool:
      return convert_as<AsBool>(found, run, items, first_row, nulls);
    case Type::Int64:
      return convert_as<AsInt64>(found, run, items, first_row, nulls);
    case Type::UInt64:
      return convert_as<AsUInt64>(found, run, items, first_row, nulls);
    case Type::Float64:
      return convert_as<AsFloat64>(found, run, items, first_row, nulls);
    case Type::Time:
      return convert_as<AsTime>(found, run, items, first_row, nulls);
    case Type::EpochS:
      return convert_as<AsEpoch<1'000'000'000>>(found, run, items, first_row, nulls);
    case Type::EpochMs:
      return convert_as<AsEpoch<1'000'000>>(found, run, items, first_row, nulls);
    case Type::EpochUs:
      return convert_as<AsEpoch<1'000>>(found, run, items, first_row, nulls);
    case Type::EpochNs:
      return convert_as<AsEpoch<1>>(found, run, items, first_row, nulls);
    default:
      return 0;
  }
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
