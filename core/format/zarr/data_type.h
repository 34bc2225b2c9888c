// zarr's names of data types, and fill values as its JSON has them.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/dtype.h"
#include "core/base/json.h"

namespace cdd::zarr {

// "uint16"; Error{Unsupported} for a dtype that zarr v3 has no name for. bfloat16 is an extension.
std::string data_type_name(DType dtype);

// Error{Unsupported} for a name that is not known.
DType data_type_named(const std::string& name);

// One item, little-endian, from its JSON: a number, "NaN", "Infinity", "-Infinity", "0x7fc0" (the bytes of a
// float, the highest first), true, false, or two of those for complex items. Error{Corrupt} when it is none
// of them or does not fit.
std::vector<std::byte> parse_fill_value(const Json& value, DType dtype);

// The shortest text that parse_fill_value takes back to the same bytes.
Json fill_value_json(Bytes item, DType dtype);

}  // namespace cdd::zarr
