#include "core/codec/compressor.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>

#include <lz4.h>
// Whether literals get codes at negative levels, and what a context will take.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include "core/base/of_thread.h"
#include "core/codec/zstd_stream.h"

namespace cdd {
namespace {

struct FreeZstd {
  void operator()(ZSTD_CCtx* c) const noexcept { ZSTD_freeCCtx(c); }
  void operator()(ZSTD_DCtx* c) const noexcept { ZSTD_freeDCtx(c); }
};

constexpr int kLiteralsGetCodes = 1;  // ZSTD_lcm_huffman before zstd 1.5, ZSTD_ps_enable since
constexpr int kHardlyLooks = -50;
constexpr int kLevel1Match = 5, kLongMatch = 7;
constexpr int kManyPlacesBits = 17;  // of the hash, at most

ZSTD_CCtx* compression_context() {
  thread_local OfThread<std::unique_ptr<ZSTD_CCtx, FreeZstd>> own(ZSTD_createCCtx());
  auto& context = own.value;
  if (!context) context.reset(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

ZSTD_DCtx* decompression_context() {
  thread_local OfThread<std::unique_ptr<ZSTD_DCtx, FreeZstd>> own(ZSTD_createDCtx());
  auto& context = own.value;
  if (!context) context.reset(ZSTD_createDCtx());
  if (!context) throw std::bad_alloc();
  return context.get();
}

// The working memory of LZ4_compress_fast_extState: 16 KiB that need not be cleared between calls.
void* lz4_state() {
  thread_local OfThread<std::unique_ptr<LZ4_stream_t>> state(new LZ4_stream_t);
  return state.value.get();
}

void check_zstd(std::size_t code, const char* doing) {
  if (!ZSTD_isError(code)) return;
  if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  fail(ErrorCode::Corrupt, "zstd %s: %s", doing, ZSTD_getErrorName(code));
}

std::unique_ptr<ZSTD_CCtx, FreeZstd> context_for(Search search) {
  std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  const auto set = [&](ZSTD_cParameter parameter, int value, const char* doing) {
    check_zstd(ZSTD_CCtx_setParameter(context.get(), parameter, value), doing);
  };
  set(ZSTD_c_compressionLevel, 1, "level");
  if (search == Search::Long) set(ZSTD_c_minMatch, kLongMatch, "match");
  if (search == Search::Level1 || search == Search::Long) return context;
  // The parameter is none of those that a later version must have: without it this is level 1.
  const bool get_codes = ZSTD_isError(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_literalCompressionMode,
                                                             kLiteralsGetCodes)) == 0;
  if (search != Search::Literals) {
    set(ZSTD_c_hashLog, kManyPlacesBits, "memory");
  } else if (get_codes) {
    set(ZSTD_c_compressionLevel, kHardlyLooks, "level");
  }
  return context;
}

int lz4_size(std::size_t bytes) {
  if (bytes > LZ4_MAX_INPUT_SIZE) {
    fail(ErrorCode::InvalidArgument, "LZ4 takes at most %d bytes, got %zu", LZ4_MAX_INPUT_SIZE, bytes);
  }
  return static_cast<int>(bytes);
}

}  // namespace

std::size_t compress_bound(Compressor compressor, std::size_t bytes) {
  switch (compressor) {
    case Compressor::Lz4:
      return static_cast<std::size_t>(LZ4_compressBound(lz4_size(bytes)));
    case Compressor::Zstd:
      return ZSTD_compressBound(bytes);
    case Compressor::None:
      break;
  }
  return bytes;
}

std::size_t compress(Compressor compressor, Bytes in, MutableBytes out, int level, bool checksum) {
  switch (compressor) {
    case Compressor::Lz4: {
      const int n = LZ4_compress_fast_extState(lz4_state(), reinterpret_cast<const char*>(in.data()),
                                               reinterpret_cast<char*>(out.data()), lz4_size(in.size()),
                                               static_cast<int>(std::min(out.size(), std::size_t{INT32_MAX})),
                                               level < 0 ? -level : 1);
      if (n <= 0)
        fail(ErrorCode::InvalidArgument, "LZ4 needs more than the %zu bytes it was given", out.size());
      return static_cast<std::size_t>(n);
    }
    case Compressor::Zstd: {
      ZSTD_CCtx* context = compression_context();
      check_zstd(ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level), "level");
      check_zstd(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum ? 1 : 0), "checksum");
      const std::size_t n = ZSTD_compress2(context, out.data(), out.size(), in.data(), in.size());
      check_zstd(n, "compression");
      return n;
    }
    case Compressor::None:
      break;
  }
  std::memcpy(out.data(), in.data(), in.size());
  return in.size();
}

std::size_t zstd_context_bytes(int level, std::size_t bytes) {
  return ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(level, bytes, 0));
}

std::size_t compress_zstd(Search search, Bytes in, MutableBytes out) {
  thread_local OfThread<std::array<std::unique_ptr<ZSTD_CCtx, FreeZstd>, 4>> own;
  const bool has_steps = search >= Search::Every2nd;  // they have one context
  auto& context = own.value[static_cast<std::size_t>(has_steps ? Search::Every2nd : search)];
  if (!context) context = context_for(search);
  if (has_steps) {
    const int more = static_cast<int>(search) - static_cast<int>(Search::Every2nd);  // than one place
    const int match = more == 0 ? kLevel1Match : kLongMatch;
    check_zstd(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_minMatch, match), "match");
    check_zstd(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_targetLength, more + 1), "places");
  }
  const std::size_t n = ZSTD_compress2(context.get(), out.data(), out.size(), in.data(), in.size());
  check_zstd(n, "compression");
  return n;
}

void decompress(Compressor compressor, Bytes in, MutableBytes out) {
  std::size_t got = in.size();
  switch (compressor) {
    case Compressor::Lz4: {
      if (in.size() > INT32_MAX || out.size() > INT32_MAX) fail(ErrorCode::Corrupt, "LZ4 block over 2 GiB");
      const int n =
          LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()),
                              static_cast<int>(in.size()), static_cast<int>(out.size()));
      if (n < 0) fail(ErrorCode::Corrupt, "LZ4 block of %zu bytes is damaged", in.size());
      got = static_cast<std::size_t>(n);
      break;
    }
    case Compressor::Zstd:
      got = ZSTD_decompressDCtx(decompression_context(), out.data(), out.size(), in.data(), in.size());
      check_zstd(got, "decompression");
      break;
    case Compressor::None:
      if (got == out.size()) std::memcpy(out.data(), in.data(), got);
      break;
  }
  if (got != out.size()) fail(ErrorCode::Corrupt, "decompressed to %zu bytes, expected %zu", got, out.size());
}

std::uint64_t zstd_content_bytes(Bytes frame) {
  const unsigned long long bytes = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (bytes == ZSTD_CONTENTSIZE_ERROR || bytes == ZSTD_CONTENTSIZE_UNKNOWN) {
    fail(ErrorCode::Corrupt, "%zu bytes are not a zstd frame that says its size", frame.size());
  }
  return bytes;
}

void put_zstd_padding(MutableBytes out) noexcept {
  constexpr std::size_t kFrameHeaderBytes = 8;
  std::memset(out.data(), 0, out.size());
  store<std::uint32_t>(out.data(), ZSTD_MAGIC_SKIPPABLE_START);
  store<std::uint32_t>(out.data() + 4, static_cast<std::uint32_t>(out.size() - kFrameHeaderBytes));
}

void decompress_lz4_front(Bytes in, MutableBytes out) {
  if (in.size() > INT32_MAX || out.size() > INT32_MAX) fail(ErrorCode::Corrupt, "LZ4 block over 2 GiB");
  const int wanted = static_cast<int>(out.size());
  const int n = LZ4_decompress_safe_partial(reinterpret_cast<const char*>(in.data()),
                                            reinterpret_cast<char*>(out.data()), static_cast<int>(in.size()),
                                            wanted, wanted);
  if (n != wanted) fail(ErrorCode::Corrupt, "LZ4 block of %zu bytes is damaged", in.size());
}

struct ZstdStream::Context {
  std::unique_ptr<ZSTD_DCtx, FreeZstd> zstd{ZSTD_createDCtx()};
};

ZstdStream::ZstdStream() : context_(std::make_unique<Context>()) {
  if (!context_->zstd) throw std::bad_alloc();
}

ZstdStream::~ZstdStream() = default;

ZstdStream::Step ZstdStream::step(Bytes in, MutableBytes out) {
  ZSTD_inBuffer from{in.data(), in.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  while (to.pos < to.size) {
    const std::size_t before = from.pos + to.pos;
    const std::size_t wanted = ZSTD_decompressStream(context_->zstd.get(), &to, &from);
    check_zstd(wanted, "decompression");
    if (from.pos + to.pos != before) between_ = wanted == 0;
    if (from.pos == from.size && (wanted == 0 || to.pos < to.size)) break;
  }
  return {from.pos, to.pos};
}

}  // namespace cdd
