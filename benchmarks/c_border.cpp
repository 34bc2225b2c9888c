// What a call of the C interface costs above the C++ one that it makes: c_border FILE; and what a field of
// packed rows costs, in cache. In turns, in one thread; prints nanoseconds of CPU a call, the least of many
// batches.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "capi/cdd.h"
#include "core/storage/mapped_file.h"
#include "core/store/reader.h"

namespace {

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Call>
double least(double before, Call&& call) {
  constexpr int kCalls = 2000;
  const double start = cpu_ns();
  for (int i = 0; i < kCalls; ++i) call(i);
  return std::min(before, (cpu_ns() - start) / kCalls);
}

void time_fields() {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + ",61800.5,0.125,1723161256322,sell,BTCUSDT\n";
  std::vector<std::byte> out(2 * text.size() + 4096);
  cdd_packed rows{};
  rows.struct_size = sizeof rows;
  std::uint64_t used = 0;
  if (cdd_csv_pack(text.data(), text.size(), nullptr, out.data(), out.size(), &used, &rows, nullptr) !=
      CDD_OK)
    std::abort();
  cdd_field fields[6];
  const auto row_of = [](int i) { return static_cast<std::uint64_t>(i) * 7 % 1000; };
  for (const std::uint32_t field : {0u, 2u, 5u}) {
    double ns = 1e18;
    for (int batch = 0; batch < 500; ++batch)
      ns = least(ns, [&](int i) { cdd_packed_field(&rows, row_of(i), field, fields, nullptr); });
    std::printf("field %u of a packed row: %.1f ns\n", field, ns);
  }
  double ns = 1e18;
  for (int batch = 0; batch < 500; ++batch)
    ns = least(ns, [&](int i) { cdd_packed_row(&rows, row_of(i), fields, 6, nullptr); });
  std::printf("six fields of a packed row: %.1f ns\n", ns);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const auto core = cdd::Reader(cdd::open_for_reading(arguments[1], cdd::Mapping::Preferred), {});
  cdd_reader* reader = nullptr;
  if (cdd_reader_open(arguments[1], nullptr, &reader, nullptr) != CDD_OK) return 1;
  const std::size_t row_bytes = core.layout().row_bytes();
  std::vector<std::byte> out(64 * row_bytes);
  cdd_error error{};
  error.struct_size = sizeof error;
  for (const std::uint64_t rows : {1u, 64u}) {
    double cpp = 1e18;
    double c = 1e18;
    const cdd::MutableBytes bytes(out.data(), rows * row_bytes);
    const std::uint64_t range = core.rows() - rows;
    for (int batch = 0; batch < 200; ++batch) {
      const auto at = [&](int i) { return (static_cast<std::uint64_t>(i) * 7919 + 13) % range; };
      cpp = least(cpp, [&](int i) { core.read_into({at(i), rows}, bytes); });
      c = least(c, [&](int i) {
        if (cdd_read(reader, at(i), rows, nullptr, bytes.data(), bytes.size(), &error) != CDD_OK)
          std::abort();
      });
    }
    std::printf("%llu rows: C++ %.1f ns, C %.1f ns, %+.1f ns\n", static_cast<unsigned long long>(rows), cpp,
                c, c - cpp);
  }
  cdd_reader_close(reader);
  time_fields();
  return 0;
}
