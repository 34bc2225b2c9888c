// One column of a block of columns, as it is stored: its buffers as Arrow has them, or smaller: compressed,
// numbers by the codec NUMERIC of the stores, texts of few values as a dictionary and codes.
#pragma once

#include <vector>

#include "core/codec/compressor.h"
#include "core/format/packed/blocks.h"
#include "core/packed/columns.h"

namespace cdd::packed {

// A compressor makes at most this many bytes of one, so a small body cannot promise much memory.
inline constexpr std::uint64_t kMostGrowth = 70'000;

// Bytes that a compressor made into `raw`. Throws Corrupt.
Pages unpack(Compressor compressor, Bytes stored, std::uint32_t raw);

// The smallest form of a column, or with Compressor::None its plain buffers. Sets what the entry says of
// them: type, encoding, width, codec, its flags, nulls and raw. Throws InvalidArgument for more bytes than a
// block holds.
std::vector<std::byte> encode_column(const Column& column, std::size_t rows, std::uint16_t type,
                                     Compressor compressor, int level, ColumnEntry* entry);

// The column again. Throws Corrupt for bytes that no writer makes, Unsupported for an unknown codec.
void decode_column(Bytes stored, const ColumnEntry& entry, std::size_t rows, Column* column);

// The type that a schema has for one of a column, and back; back throws Unsupported.
std::uint16_t schema_type(Type type) noexcept;
Type type_of_schema(std::uint16_t type);

}  // namespace cdd::packed
