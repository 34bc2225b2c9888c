// cdd.hpp: cdd.h for C++20: handles that close themselves, spans, exceptions, and co_await through a queue.
// Header only; between compilers stands the C interface alone.
//
//   cdd::reader book("btc.cdd");
//   std::vector<float> window(64 * book.row_items());
//   book.read(10'000, 64, std::as_writable_bytes(std::span(window)));
//
//   co_await cdd::async(queue).read(book, 10'000, 64, bytes);      // see async
#ifndef CDD_HPP
#define CDD_HPP

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cdd.h"

namespace cdd {

// What a call says when it fails: code is one of CDD_*, where() its place.
class error : public std::runtime_error {
 public:
  explicit error(const cdd_error& what)
      : std::runtime_error(what.text[0] != 0 ? what.text : "cdd failed"), what_(what) {}

  cdd_status code() const noexcept { return what_.status; }
  int os_errno() const noexcept { return what_.os_errno; }
  const cdd_error& where() const noexcept { return what_; }

 private:
  cdd_error what_;
};

namespace detail {

template <class Struct>
Struct sized() noexcept {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}

// Calls f(&error) and throws what it reports.
template <class F>
void check(F&& f) {
  cdd_error what = sized<cdd_error>();
  if (const cdd_status status = f(&what); status != CDD_OK) {
    what.status = status;
    throw error(what);
  }
}

// Bytes that are `count` rows; what is no layout is for the library to say.
inline void check_rows(const cdd_layout& layout, std::span<const std::byte> rows, std::uint64_t count) {
  const std::uint64_t row = cdd_row_bytes(&layout);
  if (row == 0 || (rows.size() % row == 0 && rows.size() / row == count)) return;
  throw std::invalid_argument("append: " + std::to_string(rows.size()) + " bytes are not " +
                              std::to_string(count) + " rows of " + std::to_string(row));
}

struct close {
  void operator()(cdd_reader* r) const noexcept { cdd_reader_close(r); }
  void operator()(cdd_writer* w) const noexcept { cdd_writer_close(w, nullptr); }
  void operator()(cdd_queue* q) const noexcept { cdd_queue_close(q); }
};

}  // namespace detail

// The rows of a store. Any thread may read, at any time.
class reader {
 public:
  explicit reader(const std::string& path, cdd_reader_options options = detail::sized<cdd_reader_options>()) {
    cdd_reader* made = nullptr;
    detail::check([&](cdd_error* e) { return cdd_reader_open(path.c_str(), &options, &made, e); });
    handle_.reset(made);
  }

  cdd_reader* get() const noexcept { return handle_.get(); }
  std::uint64_t rows() const noexcept { return cdd_reader_rows(get()); }
  cdd_info info() const {
    cdd_info out = detail::sized<cdd_info>();
    detail::check([&](cdd_error* e) { return cdd_reader_info(get(), &out, e); });
    return out;
  }
  std::size_t row_bytes() const { return info().layout.row_bytes; }
  std::size_t row_items() const {
    const cdd_layout layout = info().layout;
    std::size_t items = 1;
    for (std::uint32_t i = 0; i < layout.ndim; ++i) items *= layout.dims[i];
    return items;
  }
  std::vector<std::byte> user_meta() const {
    std::vector<std::byte> out(static_cast<std::size_t>(info().user_meta_bytes));
    detail::check([&](cdd_error* e) { return cdd_reader_user_meta(get(), out.data(), out.size(), e); });
    return out;
  }

  // `count` rows from `first` on; `out` has exactly their bytes, or those of `cells` of each.
  void read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out,
            const cdd_cells* cells = nullptr) const {
    detail::check(
        [&](cdd_error* e) { return cdd_read(get(), first, count, cells, out.data(), out.size(), e); });
  }
  void read_windows(std::span<const std::uint64_t> starts, std::uint64_t rows, std::span<std::byte> out,
                    const cdd_cells* cells = nullptr) const {
    detail::check([&](cdd_error* e) {
      return cdd_read_windows(get(), starts.data(), starts.size(), rows, cells, out.data(), out.size(), e);
    });
  }

  // Shows rows that were appended since; how many there are now.
  std::uint64_t refresh() {
    std::uint64_t rows = 0;
    detail::check([&](cdd_error* e) { return cdd_refresh(get(), &rows, e); });
    return rows;
  }

  // Sleeps until there are more rows than `seen`, or the file was replaced; how many there are now. After so
  // many milliseconds (negative: never) they may be no more.
  std::uint64_t follow(std::uint64_t seen, std::int64_t timeout_ms = -1) {
    std::uint64_t rows = 0;
    detail::check([&](cdd_error* e) {
      const cdd_status status = cdd_follow(get(), seen, timeout_ms, &rows, e);
      return status == CDD_TIMED_OUT ? CDD_OK : status;
    });
    return rows;
  }

 private:
  std::unique_ptr<cdd_reader, detail::close> handle_;
};

// Appends rows to a store; one thread at a time gets in.
class writer {
 public:
  // mode 'w', 'x' or 'a'.
  explicit writer(const std::string& path, char mode = 'w',
                  cdd_writer_options options = detail::sized<cdd_writer_options>()) {
    options.mode = static_cast<unsigned char>(mode);
    cdd_writer* made = nullptr;
    detail::check([&](cdd_error* e) { return cdd_writer_open(path.c_str(), &options, &made, e); });
    handle_.reset(made);
  }

  cdd_writer* get() const noexcept { return handle_.get(); }
  std::uint64_t rows() const noexcept { return cdd_writer_rows(get()); }
  // std::invalid_argument where `rows` are not `count` rows of the layout.
  void append(const cdd_layout& layout, std::span<const std::byte> rows, std::uint64_t count) {
    detail::check_rows(layout, rows, count);
    detail::check([&](cdd_error* e) { return cdd_append(open(), &layout, rows.data(), count, e); });
  }
  void flush() {
    detail::check([&](cdd_error* e) { return cdd_flush(open(), e); });
  }
  // get(), or an error of CDD_CLOSED.
  cdd_writer* open() const {
    if (handle_) return get();
    cdd_error what = detail::sized<cdd_error>();
    what.status = CDD_CLOSED;
    constexpr std::string_view text = "the writer is closed";
    text.copy(what.text, text.size());
    throw error(what);
  }
  // Throws what the destructor would pass over.
  void close() {
    detail::check([&](cdd_error* e) { return cdd_writer_close(handle_.release(), e); });
  }

 private:
  std::unique_ptr<cdd_writer, detail::close> handle_;
};

// Completions of what was begun without waiting. run() is for the loop's thread: coroutines go on there.
class queue {
 public:
  explicit queue(cdd_queue_options options = detail::sized<cdd_queue_options>()) {
    cdd_queue* made = nullptr;
    detail::check([&](cdd_error* e) { return cdd_queue_open(&options, &made, e); });
    handle_.reset(made);
  }

  cdd_queue* get() const noexcept { return handle_.get(); }
  std::intptr_t handle() const noexcept { return cdd_queue_handle(get()); }

  // Resumes what waited for completions that are there, at most 64; waits for the first, at most so many
  // milliseconds (negative: however long). How many there were.
  std::size_t run(std::int64_t timeout_ms = 0) {
    std::array<cdd_completion, 64> ended{};
    std::size_t taken = 0;
    detail::check([&](cdd_error* e) {
      return cdd_queue_take(get(), ended.data(), ended.size(), timeout_ms, &taken, e);
    });
    for (std::size_t i = 0; i < taken; ++i) {
      auto& waiting = *static_cast<awaited*>(ended[i].user);
      waiting.what = detail::sized<cdd_error>();
      if (ended[i].error != nullptr) waiting.what = *ended[i].error;
      waiting.what.status = ended[i].status;
    }
    // Afterwards, since a coroutine may call run() itself, after which the errors are gone.
    for (std::size_t i = 0; i < taken; ++i) static_cast<awaited*>(ended[i].user)->handle.resume();
    return taken;
  }

  struct awaited {
    std::coroutine_handle<> handle;
    cdd_error what{};
  };

 private:
  std::unique_ptr<cdd_queue, detail::close> handle_;
};

// The calls of a queue to be awaited. What they are given must live until then.
class async {
 public:
  explicit async(queue& through) noexcept : queue_(through.get()) {}

  template <class Submit>
  struct [[nodiscard]] call : queue::awaited {
    explicit call(Submit submit) : submit_(std::move(submit)) {}
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      this->handle = waiting;
      detail::check([&](cdd_error* e) { return submit_(static_cast<queue::awaited*>(this), e); });
    }
    void await_resume() const {
      if (this->what.status != CDD_OK) throw error(this->what);
    }

   private:
    Submit submit_;
  };

  auto read(const reader& from, std::uint64_t first, std::uint64_t count, std::span<std::byte> out,
            const cdd_cells* cells = nullptr) const {
    return call([q = queue_, r = from.get(), first, count, out, cells](void* user, cdd_error* e) {
      return cdd_queue_read(q, r, first, count, cells, out.data(), out.size(), user, nullptr, e);
    });
  }
  auto read_windows(const reader& from, std::span<const std::uint64_t> starts, std::uint64_t rows,
                    std::span<std::byte> out, const cdd_cells* cells = nullptr) const {
    return call([q = queue_, r = from.get(), starts, rows, out, cells](void* user, cdd_error* e) {
      return cdd_queue_read_windows(q, r, starts.data(), starts.size(), rows, cells, out.data(), out.size(),
                                    user, nullptr, e);
    });
  }
  // Until there are more rows than `seen`, or the file was replaced: from.rows() tells. An error of
  // CDD_TIMED_OUT after so many milliseconds; negative: never.
  auto follow(reader& from, std::uint64_t seen, std::int64_t timeout_ms = -1) const {
    return call([q = queue_, r = from.get(), seen, timeout_ms](void* user, cdd_error* e) {
      return cdd_queue_follow(q, r, seen, timeout_ms, user, nullptr, e);
    });
  }
  auto append(writer& to, const cdd_layout& layout, std::span<const std::byte> rows,
              std::uint64_t count) const {
    detail::check_rows(layout, rows, count);
    return call([q = queue_, w = to.open(), layout, rows, count](void* user, cdd_error* e) {
      return cdd_queue_append(q, w, &layout, rows.data(), count, user, nullptr, e);
    });
  }
  auto flush(writer& to) const {
    return call([q = queue_, w = to.open()](void* user, cdd_error* e) {
      return cdd_queue_flush(q, w, user, nullptr, e);
    });
  }

 private:
  cdd_queue* queue_;
};

}  // namespace cdd

#endif
