#include "core/codec/plan.h"

#include <algorithm>

namespace cdd {
namespace {

struct NamedPlan {
  std::string_view name;
  CodecId codec;
  Compressor compressor = Compressor::None;
  bool byte_planes = false;
};

// In order of preference where two cost the same. Rows of codecs that are not in the codec table do not
// exist.
constexpr NamedPlan kNamedPlans[] = {
    {"raw", CodecId::Raw},
    {"levels", CodecId::Levels},
    {"levels+zstd", CodecId::Levels, Compressor::Zstd},
    {"numeric", CodecId::Numeric},
    {"numeric+zstd", CodecId::Numeric, Compressor::Zstd},
    {"lz4", CodecId::Bytes, Compressor::Lz4},
    {"zstd", CodecId::Bytes, Compressor::Zstd},
    {"planes+lz4", CodecId::Bytes, Compressor::Lz4, true},
    {"planes+zstd", CodecId::Bytes, Compressor::Zstd, true},
    {"okx_ob_f32+lz4", CodecId::OkxObF32, Compressor::Lz4},
    {"okx_ob_f32+zstd", CodecId::OkxObF32, Compressor::Zstd},
    {"okx_ob_f16+lz4", CodecId::OkxObF16, Compressor::Lz4},
    {"okx_ob_f16+zstd", CodecId::OkxObF16, Compressor::Zstd},
    {"generic_ob+lz4", CodecId::GenericOb, Compressor::Lz4},
    {"generic_ob+zstd", CodecId::GenericOb, Compressor::Zstd},
};

const Codec* codec_of(const NamedPlan& plan) { return find_codec(static_cast<std::uint16_t>(plan.codec)); }

std::string_view codec_part(std::string_view name) { return name.substr(0, name.find('+')); }

bool accepts(CodecId codec, const RowLayout& layout) {
  const Codec* found = find_codec(static_cast<std::uint16_t>(codec));
  return found != nullptr && found->accepts(layout);
}

// Whether `plan` may stand in for "auto": the books of XORed rows only as float16. GENERIC_OB would only
// repeat what the codec of the very shape does.
bool suits_auto(const NamedPlan& plan, const RowLayout& layout, bool float16) {
  if (plan.codec == CodecId::OkxObF16) return float16;
  if (plan.codec == CodecId::GenericOb) return float16 && !accepts(CodecId::OkxObF16, layout);
  return !float16 && plan.codec != CodecId::OkxObF32;
}

bool is_named(std::string_view name, bool exact, const NamedPlan& plan) {
  return exact ? plan.name == name : codec_part(plan.name) == name;
}

// What the codecs take that do not take everything.
const char* taken_by(std::string_view codec) {
  if (codec.starts_with("okx_ob")) return "float32 (50, 3)";
  if (codec == "generic_ob") return "(levels, features) with items of 2, 4 or 8 bytes";
  return "(levels, features) with items of 4 or 8 bytes, at most (4096, 64)";
}

[[noreturn]] void fail_unsuited(std::string_view name, const RowLayout& layout,
                                const Float16Options& float16) {
  const std::string given = to_string(layout);
  if (float16.enabled && codec_part(name) != "okx_ob_f16") {
    fail(ErrorCode::InvalidArgument, "float16 needs rows of float32 (levels, features), not of %s",
         given.c_str());
  }
  fail(ErrorCode::InvalidArgument, "codec \"%.*s\" takes rows of %s: it cannot hold rows of %s",
       static_cast<int>(name.size()), name.data(), taken_by(codec_part(name)), given.c_str());
}

}  // namespace

std::vector<ChunkPlan> plans_for(std::string_view name, const RowLayout& layout, int level,
                                 const Float16Options& float16) {
  check_plan_name(name);
  Float16Options cast = float16;
  if (codec_part(name) == "okx_ob_f16") cast.enabled = true;  // the name asks for it
  const bool can_cast =
      name == "auto" || codec_part(name) == "okx_ob_f16" || codec_part(name) == "generic_ob";
  if (cast.enabled && !can_cast) {
    fail(ErrorCode::InvalidArgument,
         "codec \"%.*s\" does not store float16; \"auto\", \"okx_ob_f16\" and \"generic_ob\" do",
         static_cast<int>(name.size()), name.data());
  }
  if (cast.enabled && layout.dtype().kind() != Kind::Float32) fail_unsuited(name, layout, cast);
  const bool exact =
      std::ranges::any_of(kNamedPlans, [&](const NamedPlan& plan) { return plan.name == name; });
  std::vector<ChunkPlan> plans;
  for (const NamedPlan& plan : kNamedPlans) {
    const Codec* codec = codec_of(plan);
    if (codec == nullptr) continue;
    if (name == "auto" ? !suits_auto(plan, layout, cast.enabled) : !is_named(name, exact, plan)) continue;
    if (codec->accepts(layout)) plans.push_back({codec, plan.compressor, level, plan.byte_planes, cast});
  }
  if (plans.empty()) fail_unsuited(name, layout, cast);
  return plans;
}

void check_plan_name(std::string_view name) {
  const auto is_it = [&](const NamedPlan& plan) {
    return codec_of(plan) != nullptr && (plan.name == name || codec_part(plan.name) == name);
  };
  if (name == "auto" || std::ranges::any_of(kNamedPlans, is_it)) return;
  fail(ErrorCode::InvalidArgument, "unknown codec \"%.*s\", known are %s", static_cast<int>(name.size()),
       name.data(), plan_names().c_str());
}

std::string plan_names() {
  std::string names = "auto";
  std::string_view alone = names;
  for (const NamedPlan& plan : kNamedPlans) {
    if (codec_of(plan) == nullptr) continue;
    const std::string_view codec = codec_part(plan.name);
    if (codec != plan.name && codec != alone) names.append(", ").append(codec);
    names.append(", ").append(plan.name);
    alone = codec;
  }
  return names;
}

}  // namespace cdd
