#include "core/format/zarr/array_metadata.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/format/zarr/data_type.h"

namespace cdd::zarr {
namespace {

Json named(std::string name, std::optional<Json> configuration = std::nullopt) {
  Json out = Json::object();
  out.add("name", Json::string(std::move(name)));
  if (configuration) out.add("configuration", std::move(*configuration));
  return out;
}

Json numbers(const std::vector<std::uint64_t>& values) {
  Json out = Json::array();
  for (const std::uint64_t value : values) out.push(Json::number(value));
  return out;
}

Json bytes_codec(std::size_t item_bytes) {
  if (item_bytes == 1) return named("bytes");
  return named("bytes", Json::object({{"endian", Json::string("little")}}));
}

constexpr const char* kShuffles[] = {"noshuffle", "shuffle", "bitshuffle"};

Json tile_codecs(const TileCoding& coding, std::size_t item_bytes) {
  Json codecs = Json::array({bytes_codec(item_bytes)});
  const Json level = Json::number_text(std::to_string(coding.level));
  if (coding.packing == Packing::Blosc) {
    codecs.push(
        named("blosc", Json::object({{"cname", Json::string(coding.blosc_compressor)},
                                     {"clevel", level},
                                     {"shuffle", Json::string(kShuffles[static_cast<int>(coding.shuffle)])},
                                     {"typesize", Json::number(item_bytes)},
                                     {"blocksize", Json::number(0)}})));
  } else if (coding.packing == Packing::Zstd) {
    codecs.push(named("zstd", Json::object({{"level", level}, {"checksum", Json::boolean(false)}})));
  }
  if (coding.has_check) codecs.push(named("crc32c"));
  return codecs;
}

// ---------------------------------------------------------------- reading

[[noreturn]] void wrong(const char* what) { fail(ErrorCode::Corrupt, "zarr.json: %s", what); }

const Json& member(const Json& object, const char* name) {
  const Json* const found = object.find(name);
  if (found == nullptr) fail(ErrorCode::Corrupt, "zarr.json: \"%s\" is missing", name);
  return *found;
}

const std::string& string_of(const Json& object, const char* name) {
  const Json& found = member(object, name);
  if (!found.is_string()) fail(ErrorCode::Corrupt, "zarr.json: \"%s\" is not a string", name);
  return found.text();
}

// A codec or grid is {"name": ..., "configuration": {...}}, or its name alone.
std::string name_of(const Json& value) {
  if (value.is_string()) return value.text();
  return string_of(value, "name");
}
const Json& configuration_of(const Json& value) {
  static const Json& empty = *new Json(Json::object());
  const Json* const found = value.find("configuration");
  return found == nullptr ? empty : *found;
}

std::vector<std::uint64_t> numbers_of(const Json& object, const char* name, std::size_t rank,
                                      bool may_be_zero) {
  const Json& list = member(object, name);
  if (!list.is_array() || (rank != 0 && list.items().size() != rank)) {
    fail(ErrorCode::Corrupt, "zarr.json: \"%s\" is not a list of %zu numbers", name, rank);
  }
  std::vector<std::uint64_t> out;
  for (const Json& item : list.items()) {
    const std::optional<std::uint64_t> value = item.as_natural();
    if (!value || (*value == 0 && !may_be_zero) || *value >> 62 != 0) {
      fail(ErrorCode::Corrupt, "zarr.json: \"%s\" has a number that is no size", name);
    }
    out.push_back(*value);
  }
  return out;
}

void check_endian(const Json& codec, std::size_t item_bytes) {
  const Json* const endian = configuration_of(codec).find("endian");
  if (item_bytes == 1 || (endian != nullptr && endian->is_string() && endian->text() == "little")) return;
  if (endian != nullptr && endian->is_string() && endian->text() == "big") {
    fail(ErrorCode::Unsupported, "zarr.json: items are big-endian, only little-endian ones are read");
  }
  wrong("the codec \"bytes\" does not say its byte order");
}

int integer_of(const Json& configuration, const char* name, int otherwise) {
  const Json* const found = configuration.find(name);
  if (found == nullptr || !found->is_number()) return otherwise;
  int value = otherwise;
  std::from_chars(found->text().data(), found->text().data() + found->text().size(), value);
  return value;
}

void read_packing(const Json& codec, const std::string& name, TileCoding& coding) {
  const Json& configuration = configuration_of(codec);
  coding.packing = name == "blosc" ? Packing::Blosc : Packing::Zstd;
  coding.level = integer_of(configuration, name == "blosc" ? "clevel" : "level", 1);
  if (const Json* const cname = configuration.find("cname"); cname != nullptr && cname->is_string()) {
    coding.blosc_compressor = cname->text();
  }
  if (const Json* const shuffle = configuration.find("shuffle"); shuffle != nullptr && shuffle->is_string()) {
    for (int i = 0; i < 3; ++i) {
      if (shuffle->text() == kShuffles[i]) coding.shuffle = static_cast<BloscShuffle>(i);
    }
  }
}

TileCoding tile_coding(const Json& codecs, std::size_t item_bytes) {
  if (!codecs.is_array() || codecs.items().empty()) wrong("\"codecs\" is not a list");
  TileCoding coding;
  bool has_packing = false;
  for (std::size_t i = 0; i < codecs.items().size(); ++i) {
    const Json& codec = codecs.items()[i];
    const std::string name = name_of(codec);
    if (i == 0 && name == "bytes") {
      check_endian(codec, item_bytes);
    } else if (i != 0 && (name == "blosc" || name == "zstd") && !has_packing && !coding.has_check) {
      read_packing(codec, name, coding);
      has_packing = true;
    } else if (i != 0 && name == "crc32c" && !coding.has_check) {
      coding.has_check = true;
    } else {
      fail(ErrorCode::Unsupported,
           "zarr.json: codec \"%.40s\" at place %zu; read are bytes, then blosc or zstd, then crc32c",
           name.c_str(), i);
    }
  }
  return coding;
}

void read_sharding(const Json& configuration, ArrayMetadata& out) {
  out.tile = numbers_of(configuration, "chunk_shape", out.shape.size(), false);
  for (std::size_t d = 0; d < out.tile.size(); ++d) {
    if (out.shard[d] % out.tile[d] != 0) wrong("a shard is no multiple of its tile");
  }
  out.coding = tile_coding(member(configuration, "codecs"), out.dtype.item_bytes());
  const Json* const location = configuration.find("index_location");
  if (location != nullptr &&
      (!location->is_string() || (location->text() != "start" && location->text() != "end"))) {
    wrong("\"index_location\" is neither \"start\" nor \"end\"");
  }
  out.index_at_end = location == nullptr || location->text() == "end";
  const TileCoding index = tile_coding(member(configuration, "index_codecs"), 8);
  if (index.packing != Packing::Raw) {
    fail(ErrorCode::Unsupported, "zarr.json: the index of a shard is compressed");
  }
  out.index_has_check = index.has_check;
}

void read_keys(const Json& json, ArrayMetadata& out) {
  const Json& encoding = member(json, "chunk_key_encoding");
  const std::string name = name_of(encoding);
  if (name != "default" && name != "v2") {
    fail(ErrorCode::Unsupported, "zarr.json: chunk_key_encoding \"%.40s\"", name.c_str());
  }
  out.has_v2_keys = name == "v2";
  out.key_separator = out.has_v2_keys ? '.' : '/';
  if (const Json* const separator = configuration_of(encoding).find("separator"); separator != nullptr) {
    if (!separator->is_string() || (separator->text() != "/" && separator->text() != ".")) {
      wrong("the separator of chunk keys is neither \"/\" nor \".\"");
    }
    out.key_separator = separator->text()[0];
  }
}

void read_names(const Json& json, ArrayMetadata& out) {
  const Json* const names = json.find("dimension_names");
  if (names == nullptr || names->is_null()) return;
  if (!names->is_array() || names->items().size() != out.shape.size()) {
    wrong("\"dimension_names\" is not a list with a name a dimension");
  }
  for (const Json& name : names->items()) {
    if (!name.is_null() && !name.is_string()) wrong("a dimension's name is not a string");
    out.dimension_names.push_back(name.is_null() ? std::nullopt : std::optional(name.text()));
  }
}

// A reader must not go on where it does not know a member, unless that says otherwise.
void check_members(const Json& json) {
  constexpr const char* kKnown[] = {
      "zarr_format",         "node_type",  "shape",  "data_type",  "chunk_grid",
      "chunk_key_encoding",  "fill_value", "codecs", "attributes", "dimension_names",
      "storage_transformers"};
  for (const Json::Member& member : json.members()) {
    if (std::find(std::begin(kKnown), std::end(kKnown), member.first) != std::end(kKnown)) continue;
    const Json* const must = member.second.find("must_understand");
    if (must == nullptr || !must->is_bool() || must->as_bool()) {
      fail(ErrorCode::Unsupported, "zarr.json: \"%.40s\" is not known", member.first.c_str());
    }
  }
  const Json* const transformers = json.find("storage_transformers");
  if (transformers != nullptr && !transformers->items().empty()) {
    fail(ErrorCode::Unsupported, "zarr.json: storage_transformers are not supported");
  }
}

}  // namespace

std::string ArrayMetadata::dump() const {
  Json out = Json::object();
  out.add("zarr_format", Json::number(3));
  out.add("node_type", Json::string("array"));
  out.add("shape", numbers(shape));
  out.add("data_type", data_type_json(dtype));
  out.add("chunk_grid", named("regular", Json::object({{"chunk_shape", numbers(shard)}})));
  const std::string separator(1, key_separator);
  out.add("chunk_key_encoding",
          named(has_v2_keys ? "v2" : "default", Json::object({{"separator", Json::string(separator)}})));
  out.add("fill_value", fill_value_json(fill, dtype));
  Json codecs = tile_codecs(coding, dtype.item_bytes());
  if (is_sharded) {
    Json index = Json::array({bytes_codec(8)});
    if (index_has_check) index.push(named("crc32c"));
    Json sharding = Json::object();
    sharding.add("chunk_shape", numbers(tile));
    sharding.add("codecs", std::move(codecs));
    sharding.add("index_codecs", std::move(index));
    sharding.add("index_location", Json::string(index_at_end ? "end" : "start"));
    codecs = Json::array({named("sharding_indexed", std::move(sharding))});
  }
  out.add("codecs", std::move(codecs));
  out.add("attributes", attributes);
  if (!dimension_names.empty()) {
    Json names = Json::array();
    for (const auto& name : dimension_names) names.push(name ? Json::string(*name) : Json());
    out.add("dimension_names", std::move(names));
  }
  return out.dump();
}

ArrayMetadata ArrayMetadata::parse(const Json& json) {
  if (!json.is_object()) wrong("not an object");
  if (member(json, "zarr_format").as_natural() != 3) wrong("\"zarr_format\" is not 3");
  if (string_of(json, "node_type") != "array") wrong("\"node_type\" is not \"array\"");
  check_members(json);
  ArrayMetadata out;
  out.shape = numbers_of(json, "shape", 0, true);
  if (out.shape.empty() || out.shape.size() > kMaxRank) {
    fail(ErrorCode::Unsupported, "zarr.json: %zu dimensions, 1 to %zu are supported", out.shape.size(),
         kMaxRank);
  }
  out.dtype = data_type_of(member(json, "data_type"));
  const Json& grid = member(json, "chunk_grid");
  if (name_of(grid) != "regular") {
    fail(ErrorCode::Unsupported, "zarr.json: chunk_grid \"%.40s\"", name_of(grid).c_str());
  }
  out.shard = numbers_of(configuration_of(grid), "chunk_shape", out.shape.size(), false);
  out.fill = parse_fill_value(member(json, "fill_value"), out.dtype);
  const Json& codecs = member(json, "codecs");
  if (!codecs.is_array() || codecs.items().empty()) wrong("\"codecs\" is not a list");
  out.is_sharded = name_of(codecs.items()[0]) == "sharding_indexed";
  if (out.is_sharded) {
    if (codecs.items().size() != 1) {
      fail(ErrorCode::Unsupported, "zarr.json: codec \"%.40s\" after sharding_indexed",
           name_of(codecs.items()[1]).c_str());
    }
    read_sharding(configuration_of(codecs.items()[0]), out);
  } else {
    out.tile = out.shard;
    out.coding = tile_coding(codecs, out.dtype.item_bytes());
  }
  read_keys(json, out);
  read_names(json, out);
  if (const Json* const attributes = json.find("attributes"); attributes != nullptr) {
    if (!attributes->is_object()) wrong("\"attributes\" is not an object");
    out.attributes = *attributes;
  }
  return out;
}

std::string ArrayMetadata::key_of(const std::vector<std::uint64_t>& shard_index) const {
  std::string key = has_v2_keys ? "" : "c";
  for (const std::uint64_t index : shard_index) {
    if (!key.empty()) key.push_back(key_separator);
    key += std::to_string(index);
  }
  return key;
}

}  // namespace cdd::zarr
