#include "core/codec/scheme.h"

#include <algorithm>

namespace cdd {
namespace {

std::string_view codec_part(std::string_view name) { return name.substr(0, name.find('+')); }

// Calls visit(codec, scheme) for each, in order of preference.
template <class Visit>
void for_each_scheme(Visit&& visit) {
  for (const Codec* const codec : codecs()) {
    for (const NamedScheme& scheme : codec->schemes) visit(*codec, scheme);
  }
}

bool is_whole_name(std::string_view name) {
  bool found = false;
  for_each_scheme([&](const Codec&, const NamedScheme& scheme) { found = found || name == scheme.name; });
  return found;
}

// The codec that a scheme of this name has, or whose schemes all begin with it; null for "auto".
const Codec* codec_named(std::string_view name) {
  const Codec* named = nullptr;
  for_each_scheme([&](const Codec& codec, const NamedScheme& scheme) {
    if (name == scheme.name || name == codec_part(scheme.name)) named = &codec;
  });
  return named;
}

// Whether a codec may stand in for "auto".
bool suits_auto(const Codec& codec, bool float16) {
  return float16 ? codec.casts != CastsTo16::Never : codec.in_auto;
}

[[noreturn]] void fail_without_float16(std::string_view name) {
  std::string names = "\"auto\"";
  for (const Codec* const codec : codecs()) {
    if (codec->casts != CastsTo16::Never) names.append(", \"").append(codec->name).append("\"");
  }
  fail(ErrorCode::InvalidArgument, "codec \"%.*s\" does not store float16, but %s do",
       static_cast<int>(name.size()), name.data(), names.c_str());
}

[[noreturn]] void fail_unsuited(std::string_view name, const RowLayout& layout,
                                const Float16Options& float16) {
  const std::string given = to_string(layout);
  const Codec* const codec = codec_named(name);
  if (float16.enabled && (codec == nullptr || codec->casts != CastsTo16::Always)) {
    fail(ErrorCode::InvalidArgument, "float16 needs rows of float32 (levels, features), not of %s",
         given.c_str());
  }
  const char* const takes = codec != nullptr && codec->takes != nullptr ? codec->takes : "another layout";
  fail(ErrorCode::InvalidArgument, "codec \"%.*s\" takes rows of %s: it cannot hold rows of %s",
       static_cast<int>(name.size()), name.data(), takes, given.c_str());
}

}  // namespace

std::vector<Scheme> schemes_for(std::string_view name, const RowLayout& layout, int level,
                                const Float16Options& float16) {
  check_scheme_name(name);
  const Codec* const named = codec_named(name);
  Float16Options cast = float16;
  if (named != nullptr && named->casts == CastsTo16::Always) cast.enabled = true;  // the name asks for it
  if (cast.enabled && named != nullptr && named->casts == CastsTo16::Never) fail_without_float16(name);
  if (cast.enabled && layout.dtype().kind() != Kind::Float32) fail_unsuited(name, layout, cast);
  const bool exact = is_whole_name(name);
  std::vector<Scheme> schemes;
  for_each_scheme([&](const Codec& codec, const NamedScheme& scheme) {
    const bool is_meant = named == nullptr ? suits_auto(codec, cast.enabled)
                          : exact          ? name == scheme.name
                                           : name == codec_part(scheme.name);
    if (!is_meant || !codec.accepts(layout)) return;
    // Of those that cast, a later one would only repeat what the codec of the very shape does.
    if (named == nullptr && cast.enabled && !schemes.empty() && schemes.front().codec != &codec) return;
    schemes.push_back({&codec, scheme.compressor, level, scheme.byte_planes, cast});
  });
  if (schemes.empty()) fail_unsuited(name, layout, cast);
  return schemes;
}

void check_scheme_name(std::string_view name) {
  if (name == "auto" || codec_named(name) != nullptr) return;
  fail(ErrorCode::InvalidArgument, "unknown codec \"%.*s\", known are %s", static_cast<int>(name.size()),
       name.data(), scheme_names().c_str());
}

std::string scheme_names() {
  std::string names = "auto";
  std::string_view alone = names;
  for_each_scheme([&](const Codec&, const NamedScheme& scheme) {
    const std::string_view codec = codec_part(scheme.name);
    if (codec != scheme.name && codec != alone) names.append(", ").append(codec);
    names.append(", ").append(scheme.name);
    alone = codec;
  });
  return names;
}

}  // namespace cdd
