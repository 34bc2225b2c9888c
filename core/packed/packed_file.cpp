#include "core/packed/packed_file.h"

#include <algorithm>

#include "core/packed/file2.h"

namespace cdd::packed {
namespace {

class File1 final : public PackedFile {
 public:
  explicit File1(Bytes bytes) : block_(std::make_shared<RowBlock>()) { block_->view = open_version1(bytes); }

  unsigned version() const noexcept override { return 1; }
  std::uint64_t rows() const noexcept override { return block_->view.rows; }
  std::uint32_t columns() const noexcept override { return block_->view.columns; }
  const std::vector<std::string>& names() const noexcept override { return names_; }
  std::shared_ptr<const RowBlock> block_of(std::uint64_t) const override { return block_; }
  void check(Check check) const override { check_rows(block_->view, check); }

 private:
  std::shared_ptr<RowBlock> block_;
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<PackedFile> PackedFile::open(Bytes bytes) {
  if (parse_header(bytes).version == 2) return std::make_unique<File2>(bytes);
  return std::make_unique<File1>(bytes);
}

TextColumn read_text_column(const PackedFile& file, std::uint32_t j, std::uint64_t first,
                            std::uint64_t count) {
  TextColumn column;
  column.ends.reserve(count);
  for (std::uint64_t row = first; row < first + count;) {
    const std::shared_ptr<const RowBlock> block = file.block_of(row);
    const std::uint64_t end = std::min<std::uint64_t>(first + count, block->first_row + block->view.rows);
    for (; row < end; ++row) {
      const Bytes field = read_field(block->view, static_cast<std::uint32_t>(row - block->first_row), j);
      column.bytes.insert(column.bytes.end(), field.begin(), field.end());
      column.ends.push_back(column.bytes.size());
    }
  }
  return column;
}

}  // namespace cdd::packed
