// cdd.hpp over the shared library: handles, exceptions, co_await through a queue.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cdd.hpp"

namespace {

int failures = 0;
#define CHECK(what)                                           \
  do {                                                        \
    if (!(what)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #what); \
      ++failures;                                             \
    }                                                         \
  } while (false)

// A coroutine that begins at once and frees itself.
struct Started {
  struct promise_type {
    Started get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { std::abort(); }
  };
};

Started read_twice(cdd::queue& queue, const cdd::reader& book, std::vector<float>& out, int& state) {
  const auto bytes = std::as_writable_bytes(std::span(out));
  co_await cdd::async(queue).read(book, 10, 64, bytes);
  state = 1;
  try {
    co_await cdd::async(queue).read(book, book.rows(), 64, bytes);
  } catch (const cdd::error& error) {
    state = error.code() == CDD_OUT_OF_RANGE ? 2 : 3;
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool keep = count == 3;  // the store, for another test
  if (count != 2 && !keep) return 2;
  std::vector<float> rows(std::size_t{500} * 150);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 150 + i / 1500);
  const cdd_layout layout{12, 2, {50, 3}, 600};
  {
    cdd::writer writer(arguments[1]);
    writer.append(layout, std::as_bytes(std::span(rows)), 500);
    const cdd_layout unsized{12, 2, {50, 3}, 0};  // row_bytes is ignored when it is given
    CHECK(cdd_row_bytes(&unsized) == 600 && cdd_row_bytes(nullptr) == 0);
    cdd::queue queue;
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{100'000}, ~std::uint64_t{0}}) {
      const auto one = std::as_bytes(std::span(rows).first(150));
      const auto refuses = [](auto&& append) {
        try {
          append();
        } catch (const std::invalid_argument& error) {
          return std::strstr(error.what(), "600 bytes are not") != nullptr;
        }
        return false;
      };
      CHECK(refuses([&] { writer.append(unsized, one, wrong); }));
      CHECK(refuses([&] { static_cast<void>(cdd::async(queue).append(writer, unsized, one, wrong)); }));
    }
    writer.close();
    try {
      writer.flush();
      CHECK(false);
    } catch (const cdd::error& error) {
      CHECK(error.code() == CDD_CLOSED && std::strcmp(error.what(), "the writer is closed") == 0);
    }
  }
  const cdd::reader book(arguments[1]);
  CHECK(book.rows() == 500 && book.row_items() == 150);
  std::vector<float> out(std::size_t{64} * 150);
  book.read(10, 64, std::as_writable_bytes(std::span(out)));
  CHECK(std::memcmp(out.data(), rows.data() + 10 * 150, out.size() * 4) == 0);
  try {
    cdd::reader("no such file.cdd");
    CHECK(false);
  } catch (const cdd::error& error) {
    CHECK(error.code() == CDD_IO && error.os_errno() != 0 &&
          std::strstr(error.what(), "no such file") != nullptr);
  }
  {
    const std::string live = std::string(arguments[1]) + ".live";
    cdd::writer writer(live);
    writer.append(layout, std::as_bytes(std::span(rows).first(150)), 1);
    writer.flush();
    cdd::reader follower(live);
    CHECK(follower.follow(0) == 1 && follower.follow(1, 5) == 1);
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      writer.append(layout, std::as_bytes(std::span(rows).subspan(150, 300)), 2);
      writer.flush();
    });
    CHECK(follower.follow(1, 20'000) == 3);
    later.join();
    writer.close();
    cdd::writer(live).close();  // a new file of that name
    CHECK(follower.follow(3) == 3 && follower.info().replaced == 1);
    std::remove(live.c_str());
  }
  cdd::queue queue;
  out.assign(out.size(), 0.0f);
  int state = 0;
  read_twice(queue, book, out, state);
  while (state < 2) queue.run(-1);
  CHECK(state == 2);
  CHECK(std::memcmp(out.data(), rows.data() + 10 * 150, out.size() * 4) == 0);
  if (!keep) std::remove(arguments[1]);
  return failures == 0 ? 0 : 1;
}
