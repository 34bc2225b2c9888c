#include "tests/rig/test_data.h"

namespace cdd::test {
namespace {

TEST(TestData, ReadsBooksAndSeries) {
  CDD_SKIP_WITHOUT_DATA();
  const TestArray book = load_array("lob/okx_ethusd_tick.npz", "ob");
  EXPECT_EQ(book.n_rows, std::min(1546u, most_rows()));
  EXPECT_EQ(book.layout.row_bytes(), 600u);
  const float price = load<float>(book.rows().data());
  EXPECT_TRUE(price > 100 && price < 10000) << price;
  for (const char* folder : {"lob", "series"}) {
    for (const TestArray& array : load_arrays(folder)) EXPECT_GT(array.n_rows, 0u) << array.name;
  }
}

}  // namespace
}  // namespace cdd::test
