/* Packed rows as a C99 program uses them: CSV packed into its own memory, read in place, and what is wrong.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdd.h"

static int failures = 0;
static void check(int holds, const char* what, int line, const cdd_error* error) {
  if (holds) return;
  fprintf(stderr, "line %d: %s (status %d: %s)\n", line, what, (int)error->status, error->text);
  ++failures;
}
#define CHECK(what) check((what), #what, __LINE__, &error)

static int is(cdd_field field, const char* text) {
  return field.bytes == strlen(text) && memcmp(field.text, text, field.bytes) == 0;
}

/* docs/formats/packed.md */
static const unsigned char golden[] = {
    0x56, 0x53, 0x43, 0x4f, 0x01, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x52,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x24, 0x00, 0x00, 0x00, 0x35, 0x00, 0x00, 0x00, 0x45, 0x00,
    0x00, 0x00, 0x04, 0x00, 0x6e, 0x61, 0x6d, 0x65, 0x03, 0x00, 0x61, 0x67, 0x65, 0x04, 0x00, 0x63, 0x69,
    0x74, 0x79, 0x05, 0x00, 0x41, 0x6c, 0x69, 0x63, 0x65, 0x02, 0x00, 0x33, 0x30, 0x03, 0x00, 0x4e, 0x59,
    0x43, 0x03, 0x00, 0x42, 0x6f, 0x62, 0x02, 0x00, 0x32, 0x35, 0x02, 0x00, 0x4c, 0x41};

static void pack_and_read(void) {
  const char* const text = "name,age,city\nAlice,30,NYC\n\"Bob\",25,LA\n";
  cdd_error error = {0};
  cdd_packed view = {0};
  cdd_field row[3];
  uint64_t used = 0;
  char* out;
  error.struct_size = sizeof error;
  view.struct_size = sizeof view;
  CHECK(cdd_csv_pack(text, strlen(text), NULL, NULL, 0, &used, NULL, &error) == CDD_OK);
  CHECK(used == sizeof golden);
  out = malloc((size_t)used);
  CHECK(cdd_csv_pack(text, strlen(text), NULL, out, (size_t)used - 1, &used, &view, &error) == CDD_LIMIT);
  CHECK(used == sizeof golden);
  CHECK(cdd_csv_pack(text, strlen(text), NULL, out, (size_t)used, &used, &view, &error) == CDD_OK);
  CHECK(memcmp(out, golden, sizeof golden) == 0);
  CHECK(view.version == 1 && view.rows == 3 && view.fields == 3 && view.bytes == out);
  CHECK(cdd_packed_row(&view, 1, row, 3, &error) == CDD_OK);
  CHECK(is(row[0], "Alice") && is(row[1], "30") && is(row[2], "NYC"));
  CHECK(row[0].text > out && row[2].text + row[2].bytes <= out + used); /* in place */
  CHECK(cdd_packed_field(&view, 2, 0, row, &error) == CDD_OK && is(row[0], "Bob"));
  CHECK(cdd_packed_row(&view, 3, row, 3, &error) == CDD_OUT_OF_RANGE && error.number == 3);
  CHECK(cdd_packed_row(&view, 0, row, 2, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_packed_field(&view, 0, 3, row, &error) == CDD_OUT_OF_RANGE && error.field == 3);
  /* A bad length costs its row, with the place. */
  out[53 + 1] = 0x7f;
  CHECK(cdd_packed_open(out, (size_t)used, CDD_PACKED_HEADER, &view, &error) == CDD_OK);
  CHECK(cdd_packed_row(&view, 1, row, 3, &error) == CDD_CORRUPT);
  CHECK(error.kind == CDD_AT_ROW && error.number == 1 && error.field == 0 && error.offset == 53);
  CHECK(cdd_packed_row(&view, 2, row, 3, &error) == CDD_OK && is(row[2], "LA"));
  CHECK(cdd_packed_open(out, (size_t)used, CDD_PACKED_BOUNDS, &view, &error) == CDD_CORRUPT);
  free(out);
}

static void wrong_views(void) {
  cdd_error error = {0};
  cdd_packed view = {0};
  cdd_field field;
  unsigned char bytes[sizeof golden];
  size_t n;
  error.struct_size = sizeof error;
  view.struct_size = sizeof view;
  CHECK(cdd_packed_open(golden, sizeof golden, CDD_PACKED_UTF8, &view, &error) == CDD_OK);
  for (n = 0; n < sizeof golden; ++n) {
    const cdd_status status = cdd_packed_open(golden, n, CDD_PACKED_HEADER, &view, &error);
    CHECK(status == CDD_TRUNCATED || status == CDD_CORRUPT);
  }
  memcpy(bytes, golden, sizeof golden);
  bytes[4] = 2;
  CHECK(cdd_packed_open(bytes, sizeof bytes, CDD_PACKED_HEADER, &view, &error) == CDD_UNSUPPORTED);
  memcpy(bytes, "OCSV", 4);
  CHECK(cdd_packed_open(bytes, sizeof bytes, CDD_PACKED_HEADER, &view, &error) == CDD_CORRUPT);
  CHECK(cdd_packed_open(golden, sizeof golden, 4, &view, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_packed_open(NULL, 9, CDD_PACKED_HEADER, &view, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_packed_open(golden, sizeof golden, CDD_PACKED_HEADER, NULL, &error) == CDD_INVALID_ARGUMENT);
  memset(&view, 0, sizeof view);
  CHECK(cdd_packed_open(golden, sizeof golden, CDD_PACKED_HEADER, &view, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_packed_field(&view, 0, 0, &field, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_packed_field(NULL, 0, 0, &field, NULL) == CDD_INVALID_ARGUMENT);
}

static void options_and_bad_text(void) {
  const char* const text = "skip me\n#no\na;b;c\n\n1;'x;y'\n";
  const uint32_t picked[] = {1, 0};
  cdd_error error = {0};
  cdd_packed view = {0};
  cdd_csv_options options = {0};
  cdd_field row[2];
  uint64_t used = 0;
  char out[256];
  error.struct_size = sizeof error;
  view.struct_size = sizeof view;
  options.struct_size = sizeof options;
  options.delimiter = ';';
  options.quote = '\'';
  options.comment = '#';
  options.skip_lines = 1;
  options.ragged = CDD_RAGGED_PAD;
  options.columns = picked;
  options.ncolumns = 2;
  CHECK(cdd_csv_pack(text, strlen(text), &options, out, sizeof out, &used, &view, &error) == CDD_OK);
  CHECK(view.rows == 2 && view.fields == 2 && view.size == used);
  CHECK(cdd_packed_row(&view, 1, row, 2, &error) == CDD_OK && is(row[0], "x;y") && is(row[1], "1"));
  CHECK(cdd_csv_pack("a,b\nc\n", 6, NULL, out, sizeof out, &used, &view, &error) == CDD_CORRUPT);
  CHECK(error.kind == CDD_AT_ROW && error.number == 1);
  CHECK(cdd_csv_pack("a,\"b\n", 5, NULL, out, sizeof out, &used, &view, &error) == CDD_CORRUPT);
  CHECK(error.number == 0 && error.field == 1 && error.offset == 2);
  CHECK(cdd_csv_pack("\xff\xfe", 2, NULL, out, sizeof out, &used, &view, &error) == CDD_UNSUPPORTED);
  CHECK(cdd_csv_pack("a\xff\n", 3, NULL, out, sizeof out, &used, &view, &error) == CDD_CORRUPT);
  options.delimiter = '\'';
  CHECK(cdd_csv_pack("", 0, &options, out, sizeof out, &used, &view, &error) == CDD_INVALID_ARGUMENT);
  options.ragged = 3;
  CHECK(cdd_csv_pack("", 0, &options, out, sizeof out, &used, &view, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_csv_pack(NULL, 0, NULL, out, sizeof out, &used, &view, &error) == CDD_OK && used == 24);
}

int main(void) {
  pack_and_read();
  wrong_views();
  options_and_bad_text();
  if (failures != 0) fprintf(stderr, "%d failed\n", failures);
  return failures != 0;
}
