// Real arrays for tests: reads the .npz files of the data folder (zip of deflated or stored .npy members).
//
// Only what numpy.savez writes: C order, little-endian, b1/i/u/f/c/M8/m8 items. The folder is $CDD_DATA, else
// ../shared/data beside the repository; tests skip when it is missing (CDD_SKIP_WITHOUT_DATA). Under an
// emulator $CDD_DATA_ROWS caps the rows taken of each array. Malformed files throw std::runtime_error.
// Nothing here is safe against hostile files.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/row_layout.h"
#include "core/base/scratch.h"

namespace cdd::test {

struct TestArray {
  std::string name;  // "lob/es_1s:ob"
  RowLayout layout;
  std::uint32_t n_rows = 0;
  std::vector<std::byte> data;  // the rows, then kScratchPadding zero bytes

  Bytes rows() const { return rows(0, n_rows); }
  Bytes rows(std::size_t first, std::size_t count) const {
    return Bytes(data).subspan(first * layout.row_bytes(), count * layout.row_bytes());
  }
};

inline std::filesystem::path data_folder() {
  if (const char* folder = std::getenv("CDD_DATA")) return folder;
  return std::filesystem::path(CDD_SOURCE_DIR) / ".." / "shared" / "data";
}

inline bool have_data() { return std::filesystem::exists(data_folder() / "index.json"); }

#define CDD_SKIP_WITHOUT_DATA() \
  if (!::cdd::test::have_data()) GTEST_SKIP() << "no real data at " << ::cdd::test::data_folder()

inline std::uint32_t most_rows() {
  const char* rows = std::getenv("CDD_DATA_ROWS");
  return rows == nullptr ? ~0u : static_cast<std::uint32_t>(std::strtoul(rows, nullptr, 10));
}

inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::byte> bytes(chars.size());
  if (!chars.empty()) std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

inline std::vector<std::byte> inflate_raw(Bytes in, std::size_t out_bytes) {
  std::vector<std::byte> out(out_bytes + 1);  // zlib wants somewhere to point even for nothing
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out_bytes);
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::runtime_error("inflateInit2");
  const int code = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (code != Z_STREAM_END || stream.total_out != out_bytes)
    throw std::runtime_error("damaged deflate stream");
  out.pop_back();
  return out;
}

// The contents of one member of a zip archive, found through the central directory (sizes in local headers
// may be absent).
inline std::vector<std::byte> read_zip_member(const std::filesystem::path& path, const std::string& member) {
  const std::vector<std::byte> zip = read_file(path);
  const auto u16 = [&](std::size_t at) { return std::size_t{load<std::uint16_t>(&zip.at(at))}; };
  const auto u32 = [&](std::size_t at) { return std::size_t{load<std::uint32_t>(&zip.at(at))}; };
  std::size_t end = zip.size() - 22;
  while (u32(end) != 0x06054b50) --end;
  std::size_t at = u32(end + 16);
  for (std::size_t i = u16(end + 10); i > 0; --i) {
    const std::string name(reinterpret_cast<const char*>(&zip.at(at + 46)), u16(at + 28));
    if (name == member) {
      const std::size_t local = u32(at + 42);
      const std::size_t body = local + 30 + u16(local + 26) + u16(local + 28);
      const Bytes stored = Bytes(zip).subspan(body, u32(at + 20));
      if (u16(at + 10) == 0) return {stored.begin(), stored.end()};
      return inflate_raw(stored, u32(at + 24));
    }
    at += 46 + u16(at + 28) + u16(at + 30) + u16(at + 32);
  }
  throw std::runtime_error(path.string() + " has no member " + member);
}

inline DType dtype_of_descr(const std::string& descr) {  // "<f4", "|u1", "<M8[ns]"
  static const struct {
    const char* descr;
    Kind kind;
  } kKinds[] = {{"b1", Kind::Bool},      {"i1", Kind::Int8},       {"u1", Kind::UInt8},
                {"i2", Kind::Int16},     {"u2", Kind::UInt16},     {"i4", Kind::Int32},
                {"u4", Kind::UInt32},    {"i8", Kind::Int64},      {"u8", Kind::UInt64},
                {"f2", Kind::Float16},   {"f4", Kind::Float32},    {"f8", Kind::Float64},
                {"c8", Kind::Complex64}, {"c16", Kind::Complex128}};
  for (const auto& known : kKinds) {
    if (descr.substr(1) == known.descr) return known.kind;
  }
  if (descr == "<M8[ns]") return DType(Kind::Datetime64, 10);
  throw std::runtime_error("unexpected dtype " + descr);
}

// Member `member` ("ob", "time", "a") of `file` ("lob/es_1s.npz").
inline TestArray load_array(const std::string& file, const std::string& member) {
  std::vector<std::byte> npy = read_zip_member(data_folder() / file, member + ".npy");
  const std::size_t header_bytes = load<std::uint16_t>(&npy.at(8));  // version 1.0
  const std::string header(reinterpret_cast<const char*>(&npy.at(10)), header_bytes);
  if (header.find("'fortran_order': False") == std::string::npos) throw std::runtime_error("not in C order");
  std::string descr = header.substr(header.find("'descr': '") + 10);
  descr.resize(descr.find('\''));
  std::vector<std::uint32_t> shape;
  const char* text = header.c_str() + header.find("'shape': (") + 10;
  for (char* next = nullptr; *text != ')'; text = next + std::strspn(next, ", ")) {
    shape.push_back(static_cast<std::uint32_t>(std::strtoul(text, &next, 10)));
  }
  TestArray array;
  array.name = file.substr(0, file.find('.')) + ":" + member;
  array.layout = RowLayout(dtype_of_descr(descr), std::span(shape).subspan(1));
  array.n_rows = shape.at(0);
  array.data.assign(npy.begin() + static_cast<std::ptrdiff_t>(10 + header_bytes), npy.end());
  if (array.data.size() != std::size_t{array.n_rows} * array.layout.row_bytes()) {
    throw std::runtime_error("size of " + array.name + " does not match its shape");
  }
  array.n_rows = std::min(array.n_rows, most_rows());
  array.data.resize(array.n_rows * std::size_t{array.layout.row_bytes()} + kScratchPadding);
  std::fill(array.data.end() - kScratchPadding, array.data.end(), std::byte{0});
  return array;
}

// Every array of folder "lob" (books, member "ob") or "series" (member "a"), in order of name.
inline std::vector<TestArray> load_arrays(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / folder)) {
    if (entry.path().extension() == ".npz") files.push_back(folder + "/" + entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<TestArray> arrays;
  for (const std::string& file : files) arrays.push_back(load_array(file, folder == "lob" ? "ob" : "a"));
  return arrays;
}

}  // namespace cdd::test
