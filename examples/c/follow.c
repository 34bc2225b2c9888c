/* Prints the first item of each row of a store, and of each that is appended meanwhile by whomever, until
 * nothing has come for so many milliseconds or the path names another file: follow FILE [MILLISECONDS]
 *
 *   cc follow.c $(pkg-config --cflags --libs cdd) -o follow        or by find_package(cdd), see
 * CMakeLists.txt here
 */
#include <stdio.h>
#include <stdlib.h>

#include "cdd.h"

enum { ROWS_AT_ONCE = 256 };

static int failed(const cdd_error* error) {
  fprintf(stderr, "%s\n", error->text);
  return 1;
}

/* Rows [seen, rows) in pieces, so that memory does not grow with the file; 0 where all were printed. */
static int print_rows(cdd_reader* book, uint64_t seen, uint64_t rows, float* piece, size_t row_bytes,
                      cdd_error* error) {
  uint64_t i, count;
  for (; seen < rows; seen += count) {
    count = rows - seen < ROWS_AT_ONCE ? rows - seen : ROWS_AT_ONCE;
    if (cdd_read(book, seen, count, NULL, piece, (size_t)count * row_bytes, error) != CDD_OK) return 1;
    for (i = 0; i < count; ++i) printf("%.9g\n", (double)piece[i * (row_bytes / sizeof *piece)]);
  }
  return fflush(stdout);
}

int main(int count, char** arguments) {
  cdd_error error = {0};
  cdd_info info = {0};
  cdd_reader* book = NULL;
  cdd_status status;
  uint64_t seen = 0, rows = 0;
  int64_t patience = count > 2 ? strtoll(arguments[2], NULL, 10) : -1; /* negative: for ever */
  float* piece;
  error.struct_size = sizeof error;
  info.struct_size = sizeof info;
  if (count < 2 || count > 3) return fprintf(stderr, "follow FILE [MILLISECONDS]\n"), 2;
  if (cdd_reader_open(arguments[1], NULL, &book, &error) != CDD_OK) return failed(&error);
  if (cdd_reader_info(book, &info, &error) != CDD_OK) return failed(&error);
  if (info.layout.dtype != 12) return fprintf(stderr, "its items are not float32\n"), 1;
  piece = malloc(ROWS_AT_ONCE * (size_t)info.layout.row_bytes);
  if (piece == NULL) return fprintf(stderr, "out of memory\n"), 1;
  for (;;) {
    status = cdd_follow(book, seen, patience, &rows, &error);
    if (status == CDD_TIMED_OUT) break;
    if (status != CDD_OK) return failed(&error);
    if (rows == seen) break; /* another file has the name */
    if (print_rows(book, seen, rows, piece, (size_t)info.layout.row_bytes, &error)) return failed(&error);
    seen = rows;
  }
  free(piece);
  cdd_reader_close(book);
  return 0;
}
