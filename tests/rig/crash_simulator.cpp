#include "tests/rig/crash_simulator.h"

#include <algorithm>
#include <stdexcept>

#include "core/base/hash.h"
#include "core/store/index/block_walk.h"
#include "core/store/reader.h"

namespace cdd {
namespace {

constexpr std::size_t kGranules[] = {8, 64, 512, 4096};
constexpr std::uint64_t kNestedStates = 48;  // crashes inside one recovery
constexpr int kMaxRounds = 20;

[[noreturn]] void violated(const std::string& what) { throw std::runtime_error(what); }

bool contains(const std::vector<std::uint64_t>& counts, std::uint64_t rows) {
  return std::find(counts.begin(), counts.end(), rows) != counts.end();
}

bool is_typed_damage(const Error& error) {
  return error.code() == ErrorCode::Checksum || error.code() == ErrorCode::Truncated ||
         error.code() == ErrorCode::Corrupt;
}

bool equal_rows(const Reader& reader, const Image& expected, std::uint64_t first, std::uint64_t count) {
  Image found(count * Session::kRowBytes);
  reader.read_into({first, count}, found);
  return std::equal(found.begin(), found.end(),
                    expected.begin() + static_cast<std::ptrdiff_t>(first * Session::kRowBytes));
}

void expect_all(const std::shared_ptr<Storage>& storage, const Image& expected, const char* when) {
  const Reader reader(storage);
  const std::uint64_t rows = expected.size() / Session::kRowBytes;
  if (reader.rows() != rows) {
    violated(std::string(when) + ": " + std::to_string(reader.rows()) + " rows, expected " +
             std::to_string(rows));
  }
  if (rows == 0) return;
  if (!equal_rows(reader, expected, 0, rows)) violated(std::string(when) + ": wrong rows");
  for (std::uint64_t i = 0; i < reader.chunks(); ++i) reader.verify_chunk(i);
}

}  // namespace

CrashSimulator::CrashSimulator(const CrashWorkload& workload, const CrashOptions& options)
    : workload_(workload), options_(options), random_(options.seed) {}

void CrashSimulator::run() {
  const auto storage = std::make_shared<RecordingStorage>();
  Session session(storage, workload_.options, 0);
  workload_.run(session);
  const Image nothing;
  // Many states come up more than once, so it takes some rounds to have that many different ones.
  for (int round = 0; round < kMaxRounds && states_ < options_.states && !is_done(); ++round) {
    crash_session({&session, &nothing, 0}, options_.states - states_);
  }
}

// Every moment between two operations, with as many states each.
void CrashSimulator::crash_session(const Level& level, std::uint64_t states) {
  const auto& operations = level.session->storage().operations();
  const auto& promises = level.session->promises();
  const std::size_t start = promises.front().operations;
  const std::uint64_t moments = operations.size() - start + 1;
  const std::uint64_t each = std::max<std::uint64_t>(1, states / (moments * std::size(kGranules)));
  Image durable = *level.start;
  std::size_t synced = 0;
  std::size_t promise = 0;
  for (std::size_t t = 0; t <= operations.size() && !is_done(); ++t) {
    while (promise + 1 < promises.size() && promises[promise + 1].operations <= t) ++promise;
    if (t >= start) {
      const std::span<const Operation> pending(operations.data() + synced, t - synced);
      const Promise& promised = promises[promise];
      check_kills({durable, pending, promised.written_rows, level.depth},
                  t < operations.size() ? &operations[t] : nullptr, promised);
      for (const std::size_t granule : kGranules) {
        const CrashStates possible(durable, pending, granule);
        // In a nested crash one granule size a moment has to do.
        if (level.depth > 0 && random_() % std::size(kGranules) != 0) continue;
        for (std::uint64_t i = 0; i < each && !is_done(); ++i) {
          check({possible.draw(random_), {}, promised.durable_rows, level.depth}, promised);
        }
      }
    }
    if (t == operations.size()) break;
    if (operations[t].kind == Operation::Kind::Sync) {
      for (; synced <= t; ++synced) redo(operations[synced], durable);
    }
  }
}

// A kill leaves all that was written, and of a write under way its beginning.
void CrashSimulator::check_kills(const Left& left, const Operation* next, const Promise& promise) {
  check(left, promise);
  if (next == nullptr || next->kind != Operation::Kind::Write) return;
  std::vector<Operation> operations(left.unsynced.begin(), left.unsynced.end());
  operations.emplace_back();
  for (int i = 0; i < 4 && !is_done(); ++i) {
    operations.back() = *next;
    operations.back().bytes.resize(random_() % next->bytes.size());
    check({left.durable, operations, left.floor_rows, left.depth}, promise);
  }
}

void CrashSimulator::check(const Left& left, const Promise& promise) {
  Image image = left.durable;
  for (const Operation& operation : left.unsynced) redo(operation, image);
  const std::uint64_t key = hash128(image)[0] ^ left.floor_rows * 0x9E3779B97F4A7C15u ^ promise.operations ^
                            std::uint64_t{left.unsynced.size()} << 32;
  if (!seen_.insert(key).second) return;
  ++states_;
  if (left.depth > 0) ++nested_;
  const std::string where = std::string(workload_.name) + ", seed " + std::to_string(options_.seed) +
                            ", state " + std::to_string(states_) + ", depth " + std::to_string(left.depth) +
                            ", after operation " + std::to_string(promise.operations) + ": ";
  try {
    check_readable(image, promise, left.floor_rows);
    check_recovery(left, image, promise);
  } catch (const Error& error) {
    violations_.push_back(where + "error " + error.what());
  } catch (const std::exception& error) {
    violations_.push_back(where + error.what());
  }
}

// A reader may come before any writer. Of rows that were not acknowledged some may be lost, but never wrong.
void CrashSimulator::check_readable(const Image& image, const Promise& promise, std::uint64_t floor_rows) {
  Reader reader(std::make_shared<RecordingStorage>(image));
  const std::uint64_t rows = reader.rows();
  if (rows > 0 && !(reader.layout() == Session::layout())) violated("reader: wrong dtype or shape");
  if (rows < floor_rows) violated("reader: acknowledged rows are missing");
  if (!contains(promise.whole_rows, rows)) {
    violated("reader: " + std::to_string(rows) + " rows are not whole appends");
  }
  if (floor_rows > 0 && !equal_rows(reader, promise.rows, 0, floor_rows))
    violated("reader: wrong acknowledged rows");
  for (std::uint64_t row = floor_rows; row < rows; ++row) {
    try {
      if (!equal_rows(reader, promise.rows, row, 1)) violated("reader: wrong row " + std::to_string(row));
    } catch (const Error& error) {
      if (!is_typed_damage(error)) throw;
    }
  }
  for (std::uint64_t chunk = 0; chunk < reader.chunks(); ++chunk) {
    try {
      reader.verify_chunk(chunk);
    } catch (const Error& error) {
      if (!is_typed_damage(error)) throw;
    }
  }
  if (reader.refresh()) violated("reader: refresh found something in a file nobody writes");
}

void CrashSimulator::check_recovery(const Left& left, const Image& image, const Promise& promise) {
  const auto probe = std::make_shared<RecordingStorage>(image);
  const auto recovered = Writer::open(probe, workload_.options);
  const std::uint64_t rows = recovered->rows();
  if (rows < left.floor_rows) violated("recovery lost acknowledged rows");
  if (!contains(promise.found_rows.empty() ? promise.whole_rows : promise.found_rows, rows)) {
    violated("recovery: " + std::to_string(rows) + " rows are not whole appends");
  }

  // What recovery found of what was durable is what every later one finds, and rows that follow belong to
  // another history.
  Promise start = promise;
  start.written_rows = left.floor_rows;
  if (left.unsynced.empty()) start.found_rows = {rows};
  const auto storage = std::make_shared<RecordingStorage>(left.durable, left.unsynced);
  Session session(storage, workload_.options, histories_++, start);
  session.open();
  expect_all(storage, session.now().rows, "after recovery");
  session.append(workload_.options.chunk_rows);
  expect_all(storage, session.now().rows, "after recovery and an append");
  session.flush();
  session.append(2 * workload_.options.chunk_rows);
  expect_all(storage, session.now().rows, "after recovery and two appends");
  session.close();
  expect_all(storage, session.now().rows, "after recovery, appends and close");
  const Header header = read_header(*storage);
  const BlockWalk walk(*storage, header.metadata, header.first_block);
  if (!walk.find_tail().clean) violated("closed and not clean");
  for (std::uint64_t k = 0; k + 1 < walk.blocks().size(); ++k) {
    if (!walk.is_sealed(k)) violated("closed, and block " + std::to_string(k) + " is not sealed");
  }

  if (left.unsynced.empty() == nest_in_kill_) return;
  const bool wanted = static_cast<double>(nested_) < options_.nested_share * static_cast<double>(states_);
  if (left.depth == 0 ? wanted : wanted && left.depth < 3 && random_() % 64 == 0) {
    nest_in_kill_ = !nest_in_kill_;
    crash_session({&session, &left.durable, left.depth + 1}, kNestedStates);
  }
}

}  // namespace cdd
