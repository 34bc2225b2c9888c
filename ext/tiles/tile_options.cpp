#include "ext/tiles/tile_options.h"

#include <algorithm>

#include "core/base/json.h"
#include "ext/arguments.h"

namespace cdd::ext {
namespace {

using tiles::Dimension;
using tiles::Durability;
using tiles::Reduce;
using tiles::TileOptions;

PyObject* item_in(PyObject* options, const char* name) { return PyDict_GetItemString(options, name); }

std::uint64_t natural_of(PyObject* number) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(number);
  if (value == ~0ull && PyErr_Occurred() != nullptr) throw PythonError();
  return value;
}

std::string text_of(PyObject* text) {
  Py_ssize_t bytes = 0;
  const char* const utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
  if (utf8 == nullptr) throw PythonError();
  return {utf8, static_cast<std::size_t>(bytes)};
}

int integer_in(PyObject* options, const char* name, int otherwise) {
  PyObject* const number = item_in(options, name);
  if (number == nullptr) return otherwise;
  const long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  return value < -1000000 || value > 1000000 ? 1000000 : static_cast<int>(value);
}

std::vector<Dimension> dimensions_in(PyObject* options) {
  const auto shape = naturals_in(options, "shape");
  const auto tile = naturals_in(options, "tile");
  const auto shard = naturals_in(options, "shard_tiles");
  if (shape.size() != tile.size() || shape.size() != shard.size()) {
    fail(ErrorCode::InvalidArgument, "a shape of %zu dimensions, tiles of %zu and shards of %zu",
         shape.size(), tile.size(), shard.size());
  }
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < shape.size(); ++d) dimensions.push_back({shape[d], tile[d], shard[d], {}});
  PyObject* const names = item_in(options, "dimension_names");
  for (Py_ssize_t d = 0; names != nullptr && d < PyTuple_Size(names); ++d) {
    if (static_cast<std::size_t>(d) < dimensions.size()) {
      dimensions[static_cast<std::size_t>(d)].name = text_of(PyTuple_GetItem(names, d));
    }
  }
  return dimensions;
}

}  // namespace

std::uint64_t natural_in(PyObject* options, const char* name, std::uint64_t otherwise) {
  PyObject* const number = item_in(options, name);
  return number == nullptr ? otherwise : natural_of(number);
}

std::string text_in(PyObject* options, const char* name, const char* otherwise) {
  PyObject* const text = item_in(options, name);
  return text == nullptr ? otherwise : text_of(text);
}

std::vector<std::uint64_t> naturals_in(PyObject* options, const char* name) {
  std::vector<std::uint64_t> out;
  PyObject* const tuple = item_in(options, name);
  if (tuple == nullptr) return out;
  const Py_ssize_t n = PyTuple_Size(tuple);
  if (n < 0) throw PythonError();
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(natural_of(PyTuple_GetItem(tuple, i)));
  return out;
}

tiles::PyramidOptions tile_options_of(PyObject* given) {
  using zarr::BloscShuffle;
  static constexpr Choice<Durability> kDurability[] = {{"batch", Durability::Batch},
                                                       {"none", Durability::None},
                                                       {"flush", Durability::Flush},
                                                       {"always", Durability::Always}};
  static constexpr Choice<BloscShuffle> kShuffles[] = {
      {"byte", BloscShuffle::Byte}, {"bit", BloscShuffle::Bit}, {"none", BloscShuffle::None}};
  static constexpr Choice<Reduce> kReduce[] = {
      {"mean", Reduce::Mean}, {"min", Reduce::Min}, {"max", Reduce::Max}, {"first", Reduce::First}};
  static constexpr Choice<bool> kIndexes[] = {{"start", false}, {"end", true}};
  tiles::PyramidOptions pyramid;
  pyramid.scales = static_cast<unsigned>(std::min<std::uint64_t>(natural_in(given, "scales", 1), 1000));
  for (const std::uint64_t halves : naturals_in(given, "halves")) pyramid.halves.push_back(halves != 0);
  pyramid.reduce = choose("reduce", text_in(given, "reduce", "mean").c_str(), kReduce);
  TileOptions& options = pyramid.first;
  options.dimensions = dimensions_in(given);
  options.dtype = DType(static_cast<std::uint16_t>(natural_in(given, "dtype", 0)));
  options.codec.name = text_in(given, "codec", "auto");
  options.codec.zstd_level = integer_in(given, "zstd_level", 1);
  options.codec.shuffle = choose("shuffle", text_in(given, "shuffle", "byte").c_str(), kShuffles);
  options.codec.checksum = integer_in(given, "checksum", -1);
  options.index_at_end = choose("shard_index", text_in(given, "shard_index", "start").c_str(), kIndexes);
  options.durability = choose("durability", text_in(given, "durability", "batch").c_str(), kDurability);
  options.memory_bytes = natural_in(given, "memory_bytes", 0);
  options.attributes = Json::parse(text_in(given, "attributes", "{}"));
  if (PyObject* const fill = item_in(given, "fill"); fill != nullptr) {
    Buffer bytes;
    if (!bytes.acquire(fill, PyBUF_SIMPLE)) throw PythonError();
    options.fill.assign(bytes.bytes().begin(), bytes.bytes().end());
  }
  return pyramid;
}

}  // namespace cdd::ext
