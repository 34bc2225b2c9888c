#include "core/format/zarr/data_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/base/error.h"

namespace cdd::zarr {
namespace {

struct Named {
  Kind kind;
  const char* name;
};
constexpr std::array<Named, 15> kNames = {{
    {Kind::Bool, "bool"},
    {Kind::Int8, "int8"},
    {Kind::UInt8, "uint8"},
    {Kind::Int16, "int16"},
    {Kind::UInt16, "uint16"},
    {Kind::Int32, "int32"},
    {Kind::UInt32, "uint32"},
    {Kind::Int64, "int64"},
    {Kind::UInt64, "uint64"},
    {Kind::Float16, "float16"},
    {Kind::BFloat16, "bfloat16"},
    {Kind::Float32, "float32"},
    {Kind::Float64, "float64"},
    {Kind::Complex64, "complex64"},
    {Kind::Complex128, "complex128"},
}};

// By DType::unit().
constexpr std::array<const char*, kTimeUnits> kUnits = {"generic", "Y",  "M",  "W",  "D",  "h",  "m",
                                                        "s",       "ms", "us", "ns", "ps", "fs", "as"};
constexpr const char* kDatetime = "numpy.datetime64";
constexpr const char* kTimedelta = "numpy.timedelta64";

// Exponent and mantissa bits of a binary float.
struct Shape {
  int exponent, mantissa;
};

// The value of the float of this shape with these bits.
double value_of(std::uint64_t bits, Shape shape) noexcept {
  const int bias = (1 << (shape.exponent - 1)) - 1;
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << shape.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> shape.mantissa) & ((1 << shape.exponent) - 1);
  const double sign = bits >> (shape.exponent + shape.mantissa) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << shape.exponent) - 1) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const auto whole =
      static_cast<double>(exponent == 0 ? fraction : fraction | std::uint64_t{1} << shape.mantissa);
  return sign * std::ldexp(whole, (exponent == 0 ? 1 : exponent) - bias - shape.mantissa);
}

// The nearest float of this shape, ties to even; infinite where it is beyond all of them.
std::uint64_t bits_of(double value, Shape shape) noexcept {
  const std::uint64_t sign = std::signbit(value) ? std::uint64_t{1} << (shape.exponent + shape.mantissa) : 0;
  const std::uint64_t top = ((std::uint64_t{1} << shape.exponent) - 1) << shape.mantissa;
  if (std::isnan(value)) return top | std::uint64_t{1} << (shape.mantissa - 1);
  if (std::isinf(value)) return sign | top;
  if (value == 0) return sign;
  const int bias = (1 << (shape.exponent - 1)) - 1;
  int exponent = 0;
  std::frexp(value, &exponent);  // value = f * 2^exponent, f in [0.5, 1)
  exponent = std::max(exponent - 1, 1 - bias);
  const double scaled = std::nearbyint(std::ldexp(std::fabs(value), shape.mantissa - exponent));
  const auto whole = static_cast<std::uint64_t>(scaled);
  // A carry into the exponent is what the addition gives.
  const std::uint64_t hidden = std::uint64_t{1} << shape.mantissa;
  const std::uint64_t bits =
      whole < hidden ? whole
                     : (static_cast<std::uint64_t>(exponent + bias) << shape.mantissa) + whole - hidden;
  return sign | std::min(bits, top);
}

Shape shape_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::Float16:
      return {5, 10};
    case Kind::BFloat16:
      return {8, 7};
    case Kind::Float32:
    case Kind::Complex64:
      return {8, 23};
    default:
      return {11, 52};
  }
}

bool is_float(Kind kind) noexcept {
  return kind == Kind::Float16 || kind == Kind::BFloat16 || kind == Kind::Float32 || kind == Kind::Float64;
}
bool is_time(Kind kind) noexcept { return kind == Kind::Datetime64 || kind == Kind::Timedelta64; }
bool is_signed(Kind kind) noexcept {
  return kind == Kind::Int8 || kind == Kind::Int16 || kind == Kind::Int32 || kind == Kind::Int64 ||
         is_time(kind);
}

// What errors call it: "uint16", "numpy.datetime64[ns]".
std::string name_of(DType dtype) {
  for (const Named& named : kNames) {
    if (DType(named.kind) == dtype) return named.name;
  }
  if (is_time(dtype.kind()) && dtype.is_known()) {
    const char* const name = dtype.kind() == Kind::Datetime64 ? kDatetime : kTimedelta;
    return std::string(name) + '[' + kUnits[dtype.unit()] + ']';
  }
  fail(ErrorCode::Unsupported, "zarr v3 has no data type for the dtype with code 0x%04x", dtype.code());
}

[[noreturn]] void refuse(const Json& value, DType dtype) {
  std::string text = value.dump();
  text.resize(std::min<std::size_t>(text.find('\n'), 80));
  fail(ErrorCode::Corrupt, "fill_value %s is no value of %s", text.c_str(), name_of(dtype).c_str());
}

std::uint64_t parse_float(const Json& value, Kind kind, std::size_t item_bytes, DType dtype) {
  const Shape shape = shape_of(kind);
  const std::string& text = value.text();
  if (value.is_number()) {
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range) number = std::strtod(text.c_str(), nullptr);
    static_cast<void>(stop);
    return bits_of(number, shape);
  }
  if (!value.is_string()) refuse(value, dtype);
  if (text == "NaN") return bits_of(std::numeric_limits<double>::quiet_NaN(), shape);
  if (text == "Infinity") return bits_of(std::numeric_limits<double>::infinity(), shape);
  if (text == "-Infinity") return bits_of(-std::numeric_limits<double>::infinity(), shape);
  std::uint64_t bits = 0;
  const char* const end = text.data() + text.size();
  if (text.size() != 2 + 2 * item_bytes || !text.starts_with("0x")) refuse(value, dtype);
  const auto [stop, error] = std::from_chars(text.data() + 2, end, bits, 16);
  if (error != std::errc{} || stop != end || text[2] == '-') refuse(value, dtype);
  return bits;
}

std::uint64_t parse_integer(const Json& value, Kind kind, std::size_t item_bytes, DType dtype) {
  if (!value.is_number()) refuse(value, dtype);
  const std::string& text = value.text();
  const char* const end = text.data() + text.size();
  const int bits = static_cast<int>(8 * item_bytes);
  if (is_signed(kind)) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    if (error != std::errc{} || stop != end || number > most || number < -most - 1) refuse(value, dtype);
    return static_cast<std::uint64_t>(number);
  }
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number > ~std::uint64_t{0} >> (64 - bits)) refuse(value, dtype);
  return number;
}

Json float_json(std::uint64_t bits, Kind kind, std::size_t item_bytes) {
  const Shape shape = shape_of(kind);
  const double value = value_of(bits, shape);
  if (std::isnan(value)) {
    if (bits == bits_of(value, shape)) return Json::string("NaN");
    std::string text = "0x";
    for (int shift = static_cast<int>(8 * item_bytes) - 4; shift >= 0; shift -= 4) {
      text.push_back("0123456789abcdef"[bits >> shift & 15]);
    }
    return Json::string(std::move(text));
  }
  if (std::isinf(value)) return Json::string(value < 0 ? "-Infinity" : "Infinity");
  char text[64];
  const auto end = kind == Kind::Float64
                       ? std::to_chars(text, text + sizeof text, value).ptr
                       : std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  // As an integer, which readers take "-0" for, zero has no sign.
  return Json::number_text(value == 0 && std::signbit(value) ? "-0.0" : std::string(text, end));
}

std::uint64_t bits_at(const std::byte* p, std::size_t n) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, n);
  return bits;
}

}  // namespace

Json data_type_json(DType dtype) {
  if (!is_time(dtype.kind()) || !dtype.is_known()) return Json::string(name_of(dtype));
  Json unit = Json::object();
  unit.add("unit", Json::string(kUnits[dtype.unit()]));
  unit.add("scale_factor", Json::number(1));
  Json out = Json::object();
  out.add("name", Json::string(dtype.kind() == Kind::Datetime64 ? kDatetime : kTimedelta));
  out.add("configuration", std::move(unit));
  return out;
}

DType data_type_of(const Json& json) {
  const Json* const name = json.is_object() ? json.find("name") : &json;
  if (name == nullptr || !name->is_string()) fail(ErrorCode::Corrupt, "data_type has no name");
  for (const Named& named : kNames) {
    if (name->text() == named.name) return DType(named.kind);
  }
  if (name->text() != kDatetime && name->text() != kTimedelta) {
    fail(ErrorCode::Unsupported, "data_type \"%.40s\" is not supported", name->text().c_str());
  }
  const Json* const given = json.find("configuration");
  const Json* const unit = given != nullptr ? given->find("unit") : nullptr;
  const Json* const step = given != nullptr ? given->find("scale_factor") : nullptr;
  if (unit == nullptr || !unit->is_string() || step == nullptr) {
    fail(ErrorCode::Corrupt, "data_type \"%s\" lacks its unit or its scale_factor", name->text().c_str());
  }
  const auto found = std::find(kUnits.begin(), kUnits.end(), unit->text());
  if (found == kUnits.end() || !step->is_number() || step->text() != "1") {
    fail(ErrorCode::Unsupported, "data_type \"%s\" in steps of %.40s \"%.40s\" is not supported, one unit is",
         name->text().c_str(), step->text().c_str(), unit->text().c_str());
  }
  return DType(name->text() == kDatetime ? Kind::Datetime64 : Kind::Timedelta64,
               static_cast<std::uint8_t>(found - kUnits.begin()));
}

std::vector<std::byte> parse_fill_value(const Json& value, DType dtype) {
  const Kind kind = dtype.kind();
  std::vector<std::byte> item(dtype.item_bytes());
  const auto put = [&](std::size_t at, std::uint64_t bits, std::size_t n) {
    std::memcpy(item.data() + at, &bits, n);
  };
  if (kind == Kind::Bool) {
    if (!value.is_bool()) refuse(value, dtype);
    put(0, value.as_bool() ? 1 : 0, 1);
  } else if (kind == Kind::Complex64 || kind == Kind::Complex128) {
    if (!value.is_array() || value.items().size() != 2) refuse(value, dtype);
    const Kind part = kind == Kind::Complex64 ? Kind::Float32 : Kind::Float64;
    const std::size_t half = item.size() / 2;
    for (std::size_t i = 0; i < 2; ++i) put(i * half, parse_float(value.items()[i], part, half, dtype), half);
  } else if (is_float(kind)) {
    put(0, parse_float(value, kind, item.size(), dtype), item.size());
  } else if (is_time(kind) && value.is_string() && value.text() == "NaT") {
    put(0, std::uint64_t{1} << 63, item.size());
  } else {
    put(0, parse_integer(value, kind, item.size(), dtype), item.size());
  }
  return item;
}

Json fill_value_json(Bytes item, DType dtype) {
  const Kind kind = dtype.kind();
  const std::uint64_t bits = bits_at(item.data(), std::min<std::size_t>(8, item.size()));
  if (kind == Kind::Bool) return Json::boolean(bits != 0);
  if (kind == Kind::Complex64 || kind == Kind::Complex128) {
    const std::size_t half = item.size() / 2;
    const Kind part = kind == Kind::Complex64 ? Kind::Float32 : Kind::Float64;
    return Json::array({float_json(bits_at(item.data(), half), part, half),
                        float_json(bits_at(item.data() + half, half), part, half)});
  }
  if (is_float(kind)) return float_json(bits, kind, item.size());
  if (!is_signed(kind)) return Json::number(bits);
  const int spare = static_cast<int>(64 - 8 * item.size());
  return Json::number_text(std::to_string(static_cast<std::int64_t>(bits << spare) >> spare));
}

}  // namespace cdd::zarr
