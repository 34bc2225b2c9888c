// What the crash simulation lets writers do. Chunks have a fixed number of rows, first blocks are small, so
// that a short history passes through everything the protocol does. Records are as long on every platform: by
// a codec that calls no compressor, whose next version would give other lengths and so other states.
#include "tests/rig/crash_simulator.h"

namespace cdd {
namespace {

WriterOptions options_of(Durability durability, std::uint32_t chunk_rows, std::uint32_t first_capacity,
                         bool known_layout = true) {
  WriterOptions options;
  options.codec = "numeric";
  options.durability = durability;
  options.chunk_rows = chunk_rows;
  options.first_capacity = first_capacity;
  if (known_layout) options.layout = Session::layout();
  return options;
}

void commit_each(Session& session) {
  session.create();
  for (int i = 0; i < 12; ++i) session.append(2);
  session.close();
}

void commit_every_third(Session& session) {
  session.vary_lengths();
  session.create();
  for (int i = 0; i < 15; ++i) {
    session.append(2);
    if (i % 3 == 2) session.flush();
  }
  session.close();
}

void commit_never(Session& session) {
  session.vary_lengths();
  session.create();
  for (int i = 0; i < 14; ++i) session.append(1);
  session.close();
}

void batches(Session& session) {
  session.vary_lengths();
  session.create();
  for (int i = 0; i < 5; ++i) {
    session.append(7);
    if (i % 2 == 1) session.flush();
  }
  session.close();
}

void batches_across_blocks(Session& session) {
  session.create();
  session.append(3);
  session.append(11);
  session.flush();
  session.append(19);
  session.append(1);
  session.close();
}

void tails(Session& session) {
  session.vary_lengths();
  session.create();
  for (int i = 0; i < 6; ++i) {
    session.append(5);
    session.flush();
    session.append(1);
  }
  session.close();
}

void reopen(Session& session) {
  session.vary_lengths();
  session.create();
  for (int i = 0; i < 5; ++i) {
    session.append(6);
    if (i % 2 == 0) session.flush();
    session.append(2);
    session.close();
    session.open();
  }
  session.append(2);
  session.close();
}

void close_when_full(Session& session) {
  session.create();
  session.close();
  session.open();
  session.append(4);
  session.close();
  session.open();
  session.append(8);
  session.close();
  session.open();
  session.append(1);
  session.close();
}

void rolled_back(Session& session) {
  session.vary_lengths();
  session.create();
  session.append(4);
  session.failing_append(6, 0, 30);  // within the records
  session.append(2);
  session.flush();
  session.failing_append(6, 1, 48);  // within the slots
  session.append(4);
  session.failing_append(20, 5, 40);  // after some blocks
  session.append(6);
  session.flush();
  session.failing_append(14, 2, 10);  // within a block's header or link
  session.append(3);
  session.close();
}

void batch_durability(Session& session) {
  session.create();
  for (int i = 0; i < 10; ++i) session.append(15);
  session.close();
}

}  // namespace

const std::vector<CrashWorkload>& crash_workloads() {
  using enum Durability;
  static const std::vector<CrashWorkload> workloads = {
      {"commit each", options_of(Always, 2, 4), commit_each},
      {"commit every third", options_of(Flush, 2, 4), commit_every_third},
      {"commit every third, layout unknown", options_of(Flush, 2, 2, false), commit_every_third},
      {"commit never", options_of(None, 1, 4), commit_never},
      {"commit never, layout unknown", options_of(None, 1, 1, false), commit_never},
      {"batches", options_of(Flush, 2, 4), batches},
      {"batches across blocks", options_of(Flush, 1, 2), batches_across_blocks},
      {"batches, always", options_of(Always, 2, 2), batches},
      {"tails", options_of(Flush, 2, 2), tails},
      {"reopen", options_of(Flush, 2, 4), reopen},
      {"reopen, never", options_of(None, 1, 8), reopen},
      {"close when full", options_of(Flush, 1, 4), close_when_full},
      {"rolled back", options_of(Flush, 1, 4), rolled_back},
      {"rolled back, always", options_of(Always, 2, 2), rolled_back},
      {"batch durability", options_of(Batch, 1, 16), batch_durability},
      {"large block", options_of(Flush, 2, 128), commit_every_third},
  };
  return workloads;
}

}  // namespace cdd
