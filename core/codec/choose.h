// stub
#pragma once
#include <vector>
#include "core/codec/chunk_codec.h"
namespace cdd {
struct ChooseOptions {
  std::string codec = "auto";
};
class Chooser {
 public:
  Chooser(const RowLayout& l, const ChooseOptions&) : layout_(l) {}
  EncodedChunk encode(Bytes rows, std::uint32_t n, const ChunkPlace& place, std::vector<std::byte>& out) {
    ChunkPlan plan;
    plan.codec = find_codec(0);
    plan.compressor = Compressor::Zstd;
    auto at = out.size();
    out.resize(at + record_bound(layout_, n, plan) + 64);
    auto e = encode_chunk(layout_, rows, n, plan, place, MutableBytes(out).subspan(at));
    out.resize(at + e.record_bytes);
    return e;
  }
  RowLayout layout_;
};
}  // namespace cdd
