/* Reads one window of rows from a store and prints the first row's items: window FILE FIRST COUNT
 *
 *   cc window.c $(pkg-config --cflags --libs cdd) -o window        or by find_package(cdd), see
 * CMakeLists.txt here
 */
#include <stdio.h>
#include <stdlib.h>

#include "cdd.h"

static int failed(const cdd_error* error) {
  fprintf(stderr, "%s\n", error->text);
  return 1;
}

int main(int count, char** arguments) {
  cdd_error error = {0};
  cdd_info info = {0};
  cdd_reader* book = NULL;
  uint64_t first, rows;
  float* window;
  uint32_t i;
  error.struct_size = sizeof error;
  info.struct_size = sizeof info;
  if (count != 4) return fprintf(stderr, "window FILE FIRST COUNT\n"), 2;
  first = strtoull(arguments[2], NULL, 10);
  rows = strtoull(arguments[3], NULL, 10);
  if (cdd_reader_open(arguments[1], NULL, &book, &error) != CDD_OK) return failed(&error);
  if (cdd_reader_info(book, &info, &error) != CDD_OK) return failed(&error);
  if (info.layout.dtype != 12) return fprintf(stderr, "its items are not float32\n"), 1;
  window = malloc((size_t)(rows * info.layout.row_bytes));
  if (window == NULL) return fprintf(stderr, "out of memory\n"), 1;
  if (cdd_read(book, first, rows, NULL, window, (size_t)(rows * info.layout.row_bytes), &error) != CDD_OK) {
    return failed(&error);
  }
  for (i = 0; rows > 0 && i < info.layout.row_bytes / 4; ++i) printf("%.9g ", (double)window[i]);
  printf("\n");
  free(window);
  cdd_reader_close(book);
  return 0;
}
