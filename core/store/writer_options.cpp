#include "core/store/writer_options.h"

#include <cmath>

#include "core/codec/scheme.h"

namespace cdd {

void check_options(const WriterOptions& options) {
  check_scheme_name(options.codec);
  if (options.level < 1 || options.level > 22) {
    fail(ErrorCode::InvalidArgument, "level %d is not one of zstd's 1 to 22", options.level);
  }
  if (!(options.float16.size_scale > 0) || !std::isfinite(options.float16.size_scale)) {
    fail(ErrorCode::InvalidArgument, "size_scale %g is not a positive number",
         static_cast<double>(options.float16.size_scale));
  }
  const bool is_cast = options.float16.enabled || options.codec.find("f16") != std::string::npos;
  if (!is_cast && (options.float16.normalise != Normalise::None || options.float16.size_scale != 1.0F)) {
    fail(ErrorCode::InvalidArgument, "normalise and size_scale are options of float16=True");
  }
  if (options.chunk_rows == 0 && options.chunk_bytes == 0) {
    fail(ErrorCode::InvalidArgument, "chunk_bytes must be at least 1");
  }
  if (options.first_capacity == 0 || (options.first_capacity & (options.first_capacity - 1)) != 0 ||
      options.first_capacity > kMaxCapacity) {
    fail(ErrorCode::InvalidArgument, "index_chunks is %u, a power of two up to %u is needed",
         options.first_capacity, kMaxCapacity);
  }
}

}  // namespace cdd
