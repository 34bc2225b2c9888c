// Writing through the C interface. Contracts: capi/cdd.h.
#include "capi/border.h"
#include "capi/handles.h"
#include "core/store/open_or_create.h"

namespace cdd::capi {
namespace {

WriterOptions options_of(const cdd_writer_options& given) {
  static constexpr Profile kProfiles[] = {Profile::Fast, Profile::Dense};
  static constexpr Durability kDurability[] = {Durability::Batch, Durability::None, Durability::Flush,
                                               Durability::Always};
  static constexpr Normalise kNormalise[] = {Normalise::None, Normalise::Mid};
  WriterOptions options;
  if (given.layout != nullptr) options.layout = layout_of(*given.layout);
  if (given.user_meta_bytes != 0) {
    need(given.user_meta, "user_meta");
    const auto* const bytes = static_cast<const std::byte*>(given.user_meta);
    options.user_meta.assign(bytes, bytes + given.user_meta_bytes);
  }
  if (given.codec != nullptr) options.codec = given.codec;
  options.profile = kProfiles[one_of(given.profile, 2, "profile")];
  options.durability = kDurability[one_of(given.durability, 4, "durability")];
  if (given.zstd_level > 22) {
    fail(ErrorCode::InvalidArgument, "zstd_level is %u, 1 to 22 are allowed", given.zstd_level);
  }
  if (given.zstd_level != 0) options.level = static_cast<int>(given.zstd_level);
  if (given.chunk_bytes != 0) options.chunk_bytes = given.chunk_bytes;
  options.chunk_rows = given.chunk_rows;
  options.float16.enabled = one_of(given.float16, 2, "float16") != 0;
  options.float16.normalise = kNormalise[one_of(given.normalise, 2, "normalise")];
  if (given.size_scale != 0) options.float16.size_scale = static_cast<float>(given.size_scale);
  return options;
}

std::unique_ptr<Writer> open_writer(const std::string& path, const cdd_writer_options& given) {
  const WriterOptions options = options_of(given);
  const bool late = one_of(given.visible_at_close, 2, "visible_at_close") != 0;
  const auto visible = late ? Writer::Visible::AtClose : Writer::Visible::AtOnce;
  switch (given.mode) {
    case 'w':
      return Writer::create_file(path, true, options, visible);
    case 'x':
      return Writer::create_file(path, false, options, visible);
    case 'a':
      if (late) fail(ErrorCode::InvalidArgument, "visible_at_close is for new files, mode is 'a'");
      return open_or_create(path, options);
    default:
      fail(ErrorCode::InvalidArgument, "mode is %u, 'w', 'x' and 'a' are allowed", given.mode);
  }
}

}  // namespace
}  // namespace cdd::capi

using namespace cdd;        // NOLINT: the functions below stand at the root for C
using namespace cdd::capi;  // NOLINT

cdd_status cdd_writer_open(const char* path, const cdd_writer_options* options, cdd_writer** out,
                           cdd_error* error) {
  return guarded(error, [&] {
    need(path, "path");
    need(options, "options");
    need(out, "out");
    std::shared_ptr<Writer> writer = open_writer(path, taken(options, "cdd_writer_options"));
    *out = new cdd_writer{std::make_shared<AsyncWriter>(std::move(writer))};
  });
}

cdd_status cdd_append(cdd_writer* writer, const cdd_layout* layout, const void* rows, uint64_t count,
                      cdd_error* error) {
  return guarded(error, [&] {
    need(writer, "writer");
    need(layout, "layout");
    const RowLayout given = layout_of(*layout);
    writer->core->writer().append(given, rows_bytes(given, rows, count), count);
  });
}

cdd_status cdd_flush(cdd_writer* writer, cdd_error* error) {
  return guarded(error, [&] {
    need(writer, "writer");
    writer->core->writer().flush();
  });
}

uint64_t cdd_writer_rows(const cdd_writer* writer) {
  return writer == nullptr ? 0 : writer->core->writer().rows();
}

// What a queue has under way goes first, as it was called first.
cdd_status cdd_writer_close(cdd_writer* writer, cdd_error* error) {
  if (writer == nullptr) return CDD_OK;
  const std::unique_ptr<cdd_writer> owner(writer);
  return guarded(error, [&] {
    owner->core->wait();
    owner->core->writer().close();
  });
}

void cdd_writer_give_up(cdd_writer* writer) {
  if (writer == nullptr) return;
  const std::unique_ptr<cdd_writer> owner(writer);
  owner->core->wait();
  owner->core->writer().give_up();
}
