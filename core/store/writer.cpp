#include "core/store/writer.h"

#include <algorithm>

#include "core/codec/scheme.h"
#include "core/os/process.h"
#include "core/store/find_layout.h"
#include "core/threads/for_each.h"

namespace cdd {
namespace {

constexpr std::uint64_t kBatchChunks = 64;
constexpr std::chrono::seconds kBatchTime{1};
// An append of at least as many raw bytes is worth waking other threads for.
constexpr std::size_t kParallelBytes = std::size_t{2} << 20;
// Raw bytes of chunks that are encoded at once: each needs memory for its record.
constexpr std::uint64_t kGroupBytes = std::uint64_t{64} << 20;
// Encoded bytes that wait for their append to end, before they are written without an END.
constexpr std::size_t kPendingBytes = std::size_t{4} << 20;
// Raw bytes of any chunk. Below the format's 2 GiB, so that whatever a codec makes of them fits a record, and
// LZ4.
constexpr std::uint64_t kMaxWrittenRawBytes = std::min(std::uint64_t{7} << 28, kAddressableChunkBytes);
// Raw bytes of a chunk whose rows the data decides. Longer chunks would shrink a little more, but not every
// codec can begin in the middle of one, and a window then costs all that is before it.
constexpr std::uint64_t kMaxAutoRawBytes = std::uint64_t{1} << 20;

// Of a chunk that readers of this store take.
std::uint64_t most_raw_bytes(const Metadata& metadata) {
  return std::min(kMaxWrittenRawBytes, metadata.max_chunk_raw_bytes);
}

Metadata new_metadata(const WriterOptions& options) {
  Metadata metadata;
  metadata.salt = random_salt();
  metadata.first_capacity = options.first_capacity;
  metadata.layout = options.layout;
  metadata.chunk_rows = options.chunk_rows;
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  metadata.created_ns = static_cast<std::uint64_t>(now.count());
  return metadata;
}

}  // namespace

std::unique_ptr<Writer> Writer::create_file(const std::string& path, bool replace,
                                            const WriterOptions& options, Visible visible) {
  return create_in(FileStorage::create(path, replace), options, visible);
}

std::unique_ptr<Writer> Writer::open_file(const std::string& path, const WriterOptions& options) {
  auto file = FileStorage::open(path, FileStorage::Access::Append);
  if (file->size() > 0) return open(std::move(file), options);
  return create_in(FileStorage::create_instead_of(std::move(file)), options, Visible::AtOnce);
}

std::unique_ptr<Writer> Writer::create_in(std::shared_ptr<FileStorage> file, const WriterOptions& options,
                                          Visible visible) {
  auto writer = create(file, options);
  if (visible == Visible::AtOnce) file->publish();
  if (visible == Visible::AtClose) writer->unpublished_ = file;
  return writer;
}

std::unique_ptr<Writer> Writer::create(std::shared_ptr<WritableStorage> storage,
                                       const WriterOptions& options) {
  check_options(options);
  const Metadata metadata = new_metadata(options);
  const std::vector<std::byte> bytes = encode_header(metadata, options.user_meta);
  storage->truncate(0);
  storage->write_at(0, Bytes(bytes));
  Header header{metadata, options.user_meta, bytes.size()};
  IndexWriter index = IndexWriter::create(*storage, metadata, bytes.size());
  return std::unique_ptr<Writer>(
      new Writer(std::move(storage), options, std::move(header), std::move(index)));
}

std::unique_ptr<Writer> Writer::open(std::shared_ptr<WritableStorage> storage, const WriterOptions& options) {
  check_options(options);
  const Header header = read_header(*storage);
  if (header.metadata.readonly_compatible != 0) {
    fail(ErrorCode::Unsupported, "%s has features 0x%x that this version cannot write",
         storage->name().c_str(), header.metadata.readonly_compatible);
  }
  IndexWriter index = IndexWriter::recover(*storage, header.metadata, header.first_block, options.least_rows);
  const ChunkIndex chunks(*storage, header.metadata, header.first_block);
  const RowLayout layout = find_layout(*storage, header, chunks);
  if (!layout.is_set() && chunks.durable_chunks() > 0) fail_without_layout(*storage, chunks);
  WriterOptions merged = options;
  if (layout.is_set()) {
    if (options.layout.is_set() && !(options.layout == layout)) {
      fail(ErrorCode::InvalidArgument, "%s holds rows of %s, not %s", storage->name().c_str(),
           to_string(layout).c_str(), to_string(options.layout).c_str());
    }
    merged.layout = layout;
  }
  const std::uint32_t hint = header.metadata.chunk_rows;
  const std::uint64_t hinted_bytes = std::uint64_t{hint} * merged.layout.row_bytes();
  if (merged.chunk_rows == 0 && hinted_bytes <= most_raw_bytes(header.metadata)) merged.chunk_rows = hint;
  return std::unique_ptr<Writer>(new Writer(storage, merged, header, std::move(index)));
}

Writer::Writer(std::shared_ptr<WritableStorage> storage, const WriterOptions& options, Header header,
               IndexWriter index)
    : storage_(std::move(storage)),
      name_(storage_->name()),
      options_(options),
      header_(std::move(header)),
      index_(std::move(index)),
      process_(process_id()) {
  if (options.layout.is_set()) fix_layout(options.layout);
}

Writer::~Writer() {
  if (unpublished_) return;
  try {
    close();
  } catch (...) {
    // Nobody is left to tell. What was committed stays, recovery sees to the rest.
  }
}

// In a forked child the mutex may be held for ever, by a thread that only the parent has: it is not touched
// there.
std::unique_lock<std::mutex> Writer::lock() const {
  if (process_id() != process_) {
    fail(ErrorCode::Closed, "the writer of %s belongs to the process that opened it, a fork cannot use it",
         name_.c_str());
  }
  return std::unique_lock(mutex_);
}

void Writer::check_usable() const {
  if (!storage_) fail(ErrorCode::Closed, "the writer of %s is closed", name_.c_str());
  if (index_.is_poisoned()) {
    fail(ErrorCode::Closed,
         "the writer of %s failed before and cannot go on: close it and open the file again", name_.c_str());
  }
}

void Writer::fix_layout(const RowLayout& layout) {
  if (layout_.is_set()) {
    if (layout == layout_) return;
    fail(ErrorCode::InvalidArgument, "%s holds rows of %s, got %s", storage_->name().c_str(),
         to_string(layout_).c_str(), to_string(layout).c_str());
  }
  const std::uint64_t rows = std::max<std::uint64_t>(options_.chunk_rows, 1);
  const std::uint64_t most = most_raw_bytes(header_.metadata);
  if (rows * layout.row_bytes() > most) {
    fail(ErrorCode::InvalidArgument, "a chunk of %llu rows of %u bytes exceeds %llu bytes",
         static_cast<unsigned long long>(rows), layout.row_bytes(), static_cast<unsigned long long>(most));
  }
  chooser_ = std::make_unique<Chooser>(
      layout, schemes_for(options_.codec, layout, options_.level, options_.float16), options_.profile);
  sizer_ = std::make_unique<ChunkSizer>(layout, options_.chunk_rows, options_.chunk_bytes,
                                        std::min(kMaxAutoRawBytes, most));
  tail_ = Tail(layout.row_bytes());
  layout_ = layout;
}

// Runs `work`, which encodes and writes one whole append; on failure takes back all it did to the file, the
// tail, the layout and the casts. What else work changes in memory, it changes last and without throwing.
template <class Work>
void Writer::whole_or_nothing(Work&& work) {
  const RowLayout layout = layout_;
  const CastError cast_error = cast_error_;
  try {
    work();
  } catch (...) {
    tail_.drop_copies();
    layout_ = layout;
    cast_error_ = cast_error;
    records_.clear();
    pending_.clear();
    index_.roll_back();
    throw;
  }
}

void Writer::append(const RowLayout& layout, Bytes rows, std::uint64_t n_rows) {
  append_rows(layout, {rows, layout.row_bytes()}, n_rows);
}

void Writer::append(const RowLayout& layout, const StridedRows& rows) {
  append_rows(layout, {rows, layout.row_bytes()}, rows.rows);
}

void Writer::append_rows(const RowLayout& layout, RowSource rows, std::uint64_t n_rows) {
  const auto locked = lock();
  check_usable();
  if (n_rows == 0 && !layout_.is_set()) return;  // no rows decide nothing
  if (n_rows == 0) return fix_layout(layout);
  const std::uint64_t total = tail_.rows() + n_rows;
  const bool is_large = n_rows >= kParallelBytes / layout.row_bytes() && threads() > 1;
  const std::uint64_t group_bytes = rows.is_copied() ? RowSource::kPieceBytes : kGroupBytes;
  whole_or_nothing([&] {
    fix_layout(layout);
    if (chooser_->casts())
      rows.in_pieces(n_rows, [&](Bytes some, std::uint64_t count) { chooser_->check_rows(some, count); });
    std::uint64_t done = 0;
    while (total - done >= sizer_->rows()) {
      const std::uint32_t count = sizer_->rows();
      // A chunk that begins in the tail is put together first.
      const std::uint32_t chunks =
          is_large && done >= tail_.rows() ? chunks_at_once(total - done, group_bytes) : 1;
      if (chunks > 1) {
        done += encode_group(tail_.run(rows, done, std::uint64_t{chunks} * count), count, chunks);
      } else if (encode_sized(tail_.run(rows, done, count), count)) {
        done += count;
      }
    }
    if (options_.durability == Durability::Always && done < total) {
      encode(tail_.run(rows, done, total - done), static_cast<std::uint32_t>(total - done));
      done = total;
    }
    if (done == 0) return tail_.extend(rows, n_rows);
    Tail rest = tail_.rest(rows, done, total - done);
    write_pending(true);
    tail_ = std::move(rest);
  });
  keep_promise();
}

// Where the next record goes in records_, those that are too many written.
std::size_t Writer::next_record() {
  if (records_.size() > kPendingBytes) write_pending(false);
  records_.resize(static_cast<std::size_t>(align_up(records_.size(), kRecordAlignment)));
  return records_.size();
}

// Encodes n_rows rows as the next pending chunk.
void Writer::encode(Bytes rows, std::uint32_t n_rows) {
  const std::size_t offset = next_record();
  add_pending(chooser_->encode({rows, n_rows}, records_), offset, n_rows);
}

// How many chunks of the next `rows` rows neither the chooser nor the sizer wants to see one by one.
std::uint32_t Writer::chunks_at_once(std::uint64_t rows, std::uint64_t most_bytes) const {
  const std::uint64_t chunk_rows = sizer_->rows();
  const std::uint64_t most = std::max<std::uint64_t>(1, most_bytes / (chunk_rows * layout_.row_bytes()));
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({most, rows / chunk_rows, sizer_->ahead(), chooser_->ahead(sizer_->rows())}));
}

// Encodes n_chunks chunks of n_rows rows each at the same time. Returns how many rows it kept: none from a
// chunk on that the sizer refused, or for which another codec was chosen meanwhile.
std::uint64_t Writer::encode_group(Bytes rows, std::uint32_t n_rows, std::uint32_t n_chunks) {
  const std::size_t bytes = std::size_t{n_rows} * layout_.row_bytes();
  const auto chunk = [&](std::size_t i) { return Chooser::Chunk{rows.subspan(i * bytes, bytes), n_rows}; };
  if (group_.size() < n_chunks) group_.resize(n_chunks);
  for_each(n_chunks, [&](std::size_t i) { chooser_->encode_ahead(chunk(i), group_[i]); });
  std::size_t kept = 0;
  while (kept < n_chunks && sizer_->rows() == n_rows && chooser_->stands(chunk(kept), group_[kept])) {
    const std::size_t offset = next_record();
    add_pending(chooser_->take(chunk(kept), group_[kept], records_), offset, n_rows);
    if (!keep_if_sized()) break;
    ++kept;
  }
  return std::uint64_t{kept} * n_rows;
}

void Writer::add_pending(const EncodedChunk& chunk, std::size_t record_offset, std::uint32_t n_rows) {
  pending_.push_back({record_offset, chunk.record_bytes, 0, n_rows});  // its check comes with its place
  cast_error_.max_absolute = std::max(cast_error_.max_absolute, chunk.cast_error.max_absolute);
  cast_error_.max_relative = std::max(cast_error_.max_relative, chunk.cast_error.max_relative);
}

// False: the sizer wants another number of rows.
bool Writer::encode_sized(Bytes rows, std::uint32_t n_rows) {
  encode(rows, n_rows);
  return keep_if_sized();
}

// Takes the last pending chunk back where the sizer refuses it.
bool Writer::keep_if_sized() {
  if (sizer_->accept(pending_.back().record_bytes)) return true;
  records_.resize(static_cast<std::size_t>(pending_.back().record_offset));
  pending_.pop_back();
  return false;
}

// Seals the records and writes them: `last` when the append ends here. Those that are followed by others of
// the same append say so.
void Writer::write_pending(bool last) {
  if (pending_.empty()) return;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const MutableBytes record = MutableBytes(records_).subspan(
        static_cast<std::size_t>(pending_[i].record_offset), pending_[i].record_bytes);
    const bool continued = !last || i + 1 < pending_.size();
    pending_[i].record_check =
        seal_record(record, {header_.metadata.check_salt(), index_.chunks() + i}, continued);
  }
  if (index_.uncommitted_chunks() == 0) first_uncommitted_ = std::chrono::steady_clock::now();
  index_.append(records_, pending_, last);
  records_.clear();
  pending_.clear();
}

void Writer::write_tail() {
  if (tail_.rows() == 0) return;
  encode(tail_.bytes(), static_cast<std::uint32_t>(tail_.rows()));
  write_pending(true);
  tail_.clear();
}

void Writer::keep_promise() {
  const std::uint64_t waiting = index_.uncommitted_chunks();
  if (waiting == 0) return;
  const bool due =
      options_.durability == Durability::Always ||
      (options_.durability == Durability::Batch &&
       (waiting >= kBatchChunks || std::chrono::steady_clock::now() - first_uncommitted_ >= kBatchTime));
  if (due) index_.commit();
}

void Writer::flush() {
  const auto locked = lock();
  check_usable();
  whole_or_nothing([&] { write_tail(); });
  if (options_.durability != Durability::None && index_.uncommitted_chunks() > 0) index_.commit();
}

void Writer::close() {
  if (process_id() != process_) return;
  const auto locked = lock();
  if (!storage_) return;
  // Whatever happens, the file and its lock are let go of.
  const std::shared_ptr<WritableStorage> storage = std::move(storage_);
  storage_.reset();
  const std::shared_ptr<FileStorage> unpublished = std::move(unpublished_);
  unpublished_.reset();
  if (index_.is_poisoned()) return;
  whole_or_nothing([&] { write_tail(); });
  index_.close();
  if (unpublished) unpublished->publish();
}

void Writer::give_up() {
  if (process_id() != process_) return;
  const auto locked = lock();
  storage_.reset();
  unpublished_.reset();
}

bool Writer::is_closed() const noexcept {
  if (process_id() != process_) return true;
  const std::lock_guard locked(mutex_);
  return !storage_;
}

std::uint64_t Writer::rows() const {
  const auto locked = lock();
  return index_.rows() + tail_.rows();
}

std::uint64_t Writer::chunks() const {
  const auto locked = lock();
  return index_.chunks();
}

WriterStats Writer::stats() const {
  const auto locked = lock();
  const std::uint64_t row_bytes = layout_.is_set() ? layout_.row_bytes() : 0;
  return {index_.rows() + tail_.rows(), tail_.rows(), index_.chunks(), index_.uncommitted_chunks(),
          index_.rows() * row_bytes,    index_.end()};
}

RowLayout Writer::layout() const {
  const auto locked = lock();
  return layout_;
}

std::vector<std::byte> Writer::user_meta() const { return header_.user_meta; }

std::array<std::byte, 16> Writer::id() const { return header_.metadata.salt; }

CastError Writer::cast_error() const {
  const auto locked = lock();
  return cast_error_;
}

}  // namespace cdd
