// Reading through the C interface. Contracts: capi/cdd.h.
#include <chrono>

#include "capi/border.h"
#include "capi/followers.h"
#include "capi/handles.h"
#include "core/os/file_watch.h"
#include "core/storage/mapped_file.h"
#include "core/storage/memory.h"
#include "core/threads/for_each.h"

namespace cdd::capi {
namespace {

ReaderOptions options_of(const cdd_reader_options& given) {
  static constexpr Verify kChecks[] = {Verify::Stored, Verify::None, Verify::Full};
  need_zero(given.reserved, "cdd_reader_options.reserved");
  ReaderOptions options;
  options.verify = kChecks[one_of(given.check, 3, "check")];
  if (given.max_chunk_bytes != 0) options.max_chunk_raw_bytes = given.max_chunk_bytes;
  return options;
}

// Bytes that the caller keeps until he is told.
class CallersBytes final : public ViewStorage {
 public:
  CallersBytes(Bytes bytes, void (*release)(void*), void* user)
      : ViewStorage(bytes, "<memory>"), release_(release), user_(user) {}
  ~CallersBytes() override {
    if (release_ != nullptr) release_(user_);
  }

 private:
  void (*const release_)(void*);
  void* const user_;
};

cdd_chunk chunk_of(const ChunkInfo& info) {
  cdd_chunk out{};
  out.start = info.start;
  out.stop = info.stop;
  out.raw_bytes = info.raw_bytes;
  out.stored_bytes = info.stored_bytes;
  out.offset = info.offset;
  give_text(info.codec, out.codec, sizeof out.codec);
  return out;
}

void follow(cdd_reader& reader, std::uint64_t seen, std::int64_t timeout_ms) {
  need_path(reader.path);
  const auto end = end_of(timeout_ms);
  FileWatch watch(reader.path);
  while (!has_news(*reader.core, seen)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) throw TimedOut();
    watch.wait(left.count());
  }
}

}  // namespace
}  // namespace cdd::capi

using namespace cdd;        // NOLINT: the functions below stand at the root for C
using namespace cdd::capi;  // NOLINT

uint32_t cdd_abi(void) { return CDD_ABI; }

const char* cdd_version(void) { return CDD_VERSION; }

cdd_status cdd_set_threads(uint32_t threads, cdd_error* error) {
  return guarded(error, [&] { set_threads(threads); });
}

cdd_status cdd_reader_open(const char* path, const cdd_reader_options* options, cdd_reader** out,
                           cdd_error* error) {
  return guarded(error, [&] {
    need(path, "path");
    need(out, "out");
    const auto given = taken(options, "cdd_reader_options");
    const ReaderOptions core = options_of(given);
    const Mapping mapping = one_of(given.no_mmap, 2, "no_mmap") != 0 ? Mapping::Never : Mapping::Preferred;
    *out = new cdd_reader{std::make_shared<Reader>(open_for_reading(path, mapping), core), path};
  });
}

cdd_status cdd_reader_open_memory(const void* bytes, size_t size, const cdd_reader_options* options,
                                  void (*release)(void* user), void* user, cdd_reader** out,
                                  cdd_error* error) {
  return guarded(error, [&] {
    const auto storage =
        std::make_shared<CallersBytes>(Bytes{static_cast<const std::byte*>(bytes), size}, release, user);
    if (size != 0) need(bytes, "bytes");
    need(out, "out");
    *out = new cdd_reader{std::make_shared<Reader>(storage, options_of(taken(options, "cdd_reader_options"))),
                          {}};
  });
}

uint64_t cdd_row_bytes(const cdd_layout* layout) {
  std::uint64_t bytes = 0;
  guarded(nullptr, [&] {
    need(layout, "layout");
    bytes = layout_of(*layout).row_bytes();
  });
  return bytes;
}

void cdd_reader_close(cdd_reader* reader) { delete reader; }

uint64_t cdd_reader_rows(const cdd_reader* reader) { return reader == nullptr ? 0 : reader->core->rows(); }

cdd_status cdd_reader_info(const cdd_reader* reader, cdd_info* info, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    const Reader& core = *reader->core;
    cdd_info known{};
    known.replaced = core.storage().is_replaced() ? 1 : 0;
    known.layout = layout_of(core.layout());
    known.rows = core.rows();
    known.chunks = core.chunks();
    known.stored_bytes = core.storage().size();
    known.user_meta_bytes = core.header().user_meta.size();
    std::memcpy(known.id, core.header().metadata.salt.data(), sizeof known.id);
    give(known, info, "cdd_info");
  });
}

cdd_status cdd_reader_user_meta(const cdd_reader* reader, void* out, size_t out_bytes, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    const std::vector<std::byte>& bytes = reader->core->header().user_meta;
    if (out_bytes != bytes.size()) {
      fail(ErrorCode::InvalidArgument, "out has %zu bytes, the user metadata %zu", out_bytes, bytes.size());
    }
    const MutableBytes to = capi::out_bytes(out, out_bytes);
    std::ranges::copy(bytes, to.begin());
  });
}

cdd_status cdd_reader_chunk(const cdd_reader* reader, uint64_t chunk, cdd_chunk* out, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    give(chunk_of(reader->core->chunk_info(chunk)), out, "cdd_chunk");
  });
}

cdd_status cdd_read(const cdd_reader* reader, uint64_t first, uint64_t count, const cdd_cells* cells,
                    void* out, size_t out_bytes, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    const GivenCells given(cells);
    reader->core->read_into({first, count}, capi::out_bytes(out, out_bytes), given.pointer);
  });
}

cdd_status cdd_read_windows(const cdd_reader* reader, const uint64_t* starts, size_t windows, uint64_t rows,
                            const cdd_cells* cells, void* out, size_t out_bytes, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    if (windows != 0) need(starts, "starts");
    const GivenCells given(cells);
    reader->core->read_windows({starts, windows}, rows, capi::out_bytes(out, out_bytes), given.pointer);
  });
}

cdd_status cdd_prefetch(const cdd_reader* reader, uint64_t first, uint64_t count, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    reader->core->prefetch({first, count});
  });
}

cdd_status cdd_refresh(cdd_reader* reader, uint64_t* rows, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    reader->core->refresh();
    if (rows != nullptr) *rows = reader->core->rows();
  });
}

cdd_status cdd_follow(cdd_reader* reader, uint64_t seen, int64_t timeout_ms, uint64_t* rows,
                      cdd_error* error) {
  const cdd_status status = guarded(error, [&] {
    need(reader, "reader");
    follow(*reader, seen, timeout_ms);
  });
  if (reader != nullptr && rows != nullptr) *rows = reader->core->rows();
  return status;
}

cdd_status cdd_verify(const cdd_reader* reader, uint64_t first, uint64_t count,
                      void (*bad)(void* user, const cdd_error* what), void* user, cdd_error* error) {
  return guarded(error, [&] {
    need(reader, "reader");
    for (const Error& found : reader->core->verify_chunks(first, count)) {
      if (bad == nullptr) throw found;
      cdd_error what{};
      what.struct_size = sizeof what;
      report(std::make_exception_ptr(found), &what);
      bad(user, &what);
    }
  });
}
