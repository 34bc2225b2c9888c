// Work without waiting through the C interface. Contracts: capi/cdd.h.
#include <new>

#include "capi/border.h"
#include "capi/followers.h"
#include "capi/handles.h"

namespace cdd::capi {
namespace {

// A request of the caller's; `Work` keeps alive what it needs of ours.
class UserRequest : public Request {
 public:
  explicit UserRequest(void* pointer) : user(pointer) {}
  void* const user;
};

template <class Work>
class RequestOf final : public UserRequest {
 public:
  RequestOf(void* pointer, Work work) : UserRequest(pointer), work_(std::move(work)) {}

 private:
  void work() override { work_(); }
  Work work_;
};

}  // namespace
}  // namespace cdd::capi

struct cdd_queue {
  explicit cdd_queue(std::size_t max_jobs, std::function<void()> wake) : core(max_jobs, std::move(wake)) {}

  cdd::Queue core;
  std::unique_ptr<cdd::capi::Followers> followers = std::make_unique<cdd::capi::Followers>(core);
  const std::uint64_t process = cdd::process_id();
  std::vector<std::unique_ptr<cdd_error>> errors;  // of what was taken last
};

using namespace cdd;        // NOLINT: the functions below stand at the root for C
using namespace cdd::capi;  // NOLINT

namespace {

template <class Work>
void submit(cdd_queue& queue, void* user, Work work, Strand* strand, uint64_t* ticket,
            bool is_short = false) {
  auto request = std::make_unique<RequestOf<Work>>(user, std::move(work));
  if (is_short) request->set_short();
  const std::uint64_t number = queue.core.submit(std::move(request), strand);
  if (ticket != nullptr) *ticket = number;
}

}  // namespace

cdd_status cdd_queue_open(const cdd_queue_options* options, cdd_queue** out, cdd_error* error) {
  return guarded(error, [&] {
    need(out, "out");
    const auto given = taken(options, "cdd_queue_options");
    std::function<void()> wake;
    if (given.wake != nullptr) wake = [call = given.wake, user = given.user] { call(user); };
    *out = new cdd_queue(given.max_jobs == 0 ? Queue::kMostRequests : given.max_jobs, std::move(wake));
  });
}

void cdd_queue_close(cdd_queue* queue) {
  if (queue != nullptr && queue->process != process_id()) static_cast<void>(queue->followers.release());
  delete queue;
}

intptr_t cdd_queue_handle(const cdd_queue* queue) { return queue == nullptr ? -1 : queue->core.handle(); }

cdd_status cdd_queue_take(cdd_queue* queue, cdd_completion* out, size_t at_most, int64_t timeout_ms,
                          size_t* taken, cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(taken, "taken");
    if (at_most != 0) need(out, "out");
    *taken = 0;
    queue->errors.clear();
    queue->errors.reserve(at_most);
    const auto ended = queue->core.take(at_most, timeout_ms);
    for (std::size_t i = 0; i < ended.size(); ++i) {
      const auto& request = static_cast<const UserRequest&>(*ended[i]);
      out[i] = {request.user, request.ticket(), CDD_OK, 0, nullptr};
      if (!request.error()) continue;
      // Without memory for the text its status is told all the same.
      std::unique_ptr<cdd_error> text(new (std::nothrow) cdd_error{});
      if (text) text->struct_size = sizeof(cdd_error);
      out[i].status = report(request.error(), text.get());
      out[i].error = text.get();
      if (text) queue->errors.push_back(std::move(text));
    }
    *taken = ended.size();
  });
}

cdd_status cdd_queue_cancel(cdd_queue* queue, uint64_t ticket) {
  bool cancelled = false;
  const cdd_status status = guarded(nullptr, [&] {
    need(queue, "queue");
    cancelled = queue->core.cancel(ticket);
    if (cancelled) queue->followers->forget(ticket);
  });
  return status == CDD_OK && !cancelled ? CDD_CLOSED : status;
}

cdd_status cdd_queue_read(cdd_queue* queue, const cdd_reader* reader, uint64_t first, uint64_t count,
                          const cdd_cells* cells, void* out, size_t out_bytes, void* user, uint64_t* ticket,
                          cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(reader, "reader");
    const RowRange range{first, count};
    submit(
        *queue, user,
        [core = reader->core, warm = reader->warm, range, to = capi::out_bytes(out, out_bytes),
         given = GivenCells(cells)] {
          core->read_into(range, to, given.pointer);
          warm->add(*core, range);
        },
        nullptr, ticket, reader->warm->is_short(*reader->core, range));
  });
}

cdd_status cdd_queue_read_windows(cdd_queue* queue, const cdd_reader* reader, const uint64_t* starts,
                                  size_t windows, uint64_t rows, const cdd_cells* cells, void* out,
                                  size_t out_bytes, void* user, uint64_t* ticket, cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(reader, "reader");
    if (windows != 0) need(starts, "starts");
    submit(
        *queue, user,
        [core = reader->core, numbers = std::span(starts, windows), rows,
         to = capi::out_bytes(out, out_bytes),
         given = GivenCells(cells)] { core->read_windows(numbers, rows, to, given.pointer); },
        nullptr, ticket);
  });
}

cdd_status cdd_queue_follow(cdd_queue* queue, cdd_reader* reader, uint64_t seen, int64_t timeout_ms,
                            void* user, uint64_t* ticket, cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(reader, "reader");
    const std::uint64_t number = queue->followers->follow(std::make_unique<UserRequest>(user), reader->core,
                                                          reader->path, seen, timeout_ms);
    if (ticket != nullptr) *ticket = number;
  });
}

cdd_status cdd_queue_append(cdd_queue* queue, cdd_writer* writer, const cdd_layout* layout, const void* rows,
                            uint64_t count, void* user, uint64_t* ticket, cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(writer, "writer");
    need(layout, "layout");
    const RowLayout given = layout_of(*layout);
    submit(
        *queue, user,
        [core = writer->core, given, bytes = rows_bytes(given, rows, count), count] {
          core->writer().append(given, bytes, count);
        },
        &writer->core->strand(), ticket);
  });
}

cdd_status cdd_queue_flush(cdd_queue* queue, cdd_writer* writer, void* user, uint64_t* ticket,
                           cdd_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    need(writer, "writer");
    submit(
        *queue, user, [core = writer->core] { core->writer().flush(); }, &writer->core->strand(), ticket);
  });
}
