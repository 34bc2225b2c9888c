// Reads windows of a store by coroutines in one thread's loop: coroutines FILE ROWS
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "cdd.hpp"

namespace {

// A coroutine that begins at once and frees itself.
struct Task {
  struct promise_type {
    Task get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const { std::abort(); }
  };
};

Task sum_of_windows(cdd::queue& queue, const cdd::reader& book, std::uint64_t rows, double& sum, int& left) {
  std::vector<float> window(rows * book.row_items());
  for (std::uint64_t first = 0; first + rows <= book.rows(); first += rows) {
    co_await cdd::async(queue).read(book, first, rows, std::as_writable_bytes(std::span(window)));
    sum = std::accumulate(window.begin(), window.end(), sum);
  }
  --left;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) return std::fprintf(stderr, "coroutines FILE ROWS\n"), 2;
  const std::uint64_t rows = std::strtoull(arguments[2], nullptr, 10);
  if (rows == 0) return std::fprintf(stderr, "ROWS is a number of 1 or more, not %s\n", arguments[2]), 2;
  const cdd::reader book(arguments[1]);
  cdd::queue queue;
  double sums[2] = {0, 0};
  int left = 2;
  for (double& sum : sums) sum_of_windows(queue, book, rows, sum, left);
  while (left > 0) queue.run(-1);
  std::printf("%.17g %.17g\n", sums[0], sums[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
