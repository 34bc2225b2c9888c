// zarr's names of data types, and fill values as its JSON has them.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/dtype.h"
#include "core/base/json.h"

namespace cdd::zarr {

// "uint16", or an object with its name and configuration: numpy.datetime64 and numpy.timedelta64 have a unit.
// Those and bfloat16 are extensions. Error{Unsupported} for a dtype that zarr v3 has no name for.
Json data_type_json(DType dtype);

// The inverse. Error{Unsupported} for a name, a unit or a step that is not known.
DType data_type_of(const Json& json);

// One item, little-endian, from its JSON: a number, "NaN", "Infinity", "-Infinity", "0x7fc0" (the bytes of a
// float, the highest first), true, false, "NaT", or two of those for complex items. Error{Corrupt} when it is
// none of them or does not fit.
std::vector<std::byte> parse_fill_value(const Json& value, DType dtype);

// The shortest text that parse_fill_value takes back to the same bytes.
Json fill_value_json(Bytes item, DType dtype);

}  // namespace cdd::zarr
