// The options of a writer of tiles, from the dict that cdd.tiles.open makes of its keywords.
#pragma once

#include "core/tiles/pyramid/pyramid.h"
#include "ext/errors.h"

namespace cdd::ext {

// Throws InvalidArgument, or PythonError with a Python exception set.
tiles::PyramidOptions tile_options_of(PyObject* options);

// A natural number in the dict; `otherwise` where it is not there.
std::uint64_t natural_in(PyObject* options, const char* name, std::uint64_t otherwise);
// A str in the dict; `otherwise` where it is not there.
std::string text_in(PyObject* options, const char* name, const char* otherwise);
std::vector<std::uint64_t> naturals_in(PyObject* options, const char* name);

}  // namespace cdd::ext
