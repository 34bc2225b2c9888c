/* Sizes and fields of the structs of the C interface are what structs.txt has of machines with pointers of 64
 * bits: programs are compiled with them. Fields come only at an end. No struct of cdd.h with fields is left
 * out: capi_structs_test CDD_H STRUCTS. With CDD_H alone it prints what is there. */
#include <stddef.h>
#include <string.h>

#include "cdd.h"
#include "files.h"

typedef struct place {
  const char* of;
  const char* field; /* "" for all of it */
  size_t offset, bytes;
} place;

#define WHOLE(type) \
  { #type, "", 0, sizeof(type) }
#define FIELD(type, name) \
  { #type, "." #name, offsetof(type, name), sizeof(((type*)0)->name) }

static const place places[] = {
    WHOLE(cdd_error),
    FIELD(cdd_error, struct_size),
    FIELD(cdd_error, status),
    FIELD(cdd_error, os_errno),
    FIELD(cdd_error, kind),
    FIELD(cdd_error, number),
    FIELD(cdd_error, field),
    FIELD(cdd_error, offset),
    FIELD(cdd_error, text),
    WHOLE(cdd_layout),
    FIELD(cdd_layout, dtype),
    FIELD(cdd_layout, ndim),
    FIELD(cdd_layout, dims),
    FIELD(cdd_layout, row_bytes),
    WHOLE(cdd_cells),
    FIELD(cdd_cells, level_begin),
    FIELD(cdd_cells, level_end),
    FIELD(cdd_cells, feature_begin),
    FIELD(cdd_cells, feature_end),
    WHOLE(cdd_reader_options),
    FIELD(cdd_reader_options, struct_size),
    FIELD(cdd_reader_options, check),
    FIELD(cdd_reader_options, no_mmap),
    FIELD(cdd_reader_options, reserved),
    FIELD(cdd_reader_options, max_chunk_bytes),
    WHOLE(cdd_info),
    FIELD(cdd_info, struct_size),
    FIELD(cdd_info, replaced),
    FIELD(cdd_info, layout),
    FIELD(cdd_info, rows),
    FIELD(cdd_info, chunks),
    FIELD(cdd_info, stored_bytes),
    FIELD(cdd_info, user_meta_bytes),
    FIELD(cdd_info, id),
    WHOLE(cdd_chunk),
    FIELD(cdd_chunk, struct_size),
    FIELD(cdd_chunk, reserved),
    FIELD(cdd_chunk, start),
    FIELD(cdd_chunk, stop),
    FIELD(cdd_chunk, raw_bytes),
    FIELD(cdd_chunk, stored_bytes),
    FIELD(cdd_chunk, offset),
    FIELD(cdd_chunk, codec),
    WHOLE(cdd_writer_options),
    FIELD(cdd_writer_options, struct_size),
    FIELD(cdd_writer_options, mode),
    FIELD(cdd_writer_options, layout),
    FIELD(cdd_writer_options, codec),
    FIELD(cdd_writer_options, user_meta),
    FIELD(cdd_writer_options, user_meta_bytes),
    FIELD(cdd_writer_options, profile),
    FIELD(cdd_writer_options, durability),
    FIELD(cdd_writer_options, zstd_level),
    FIELD(cdd_writer_options, chunk_bytes),
    FIELD(cdd_writer_options, chunk_rows),
    FIELD(cdd_writer_options, float16),
    FIELD(cdd_writer_options, size_scale),
    FIELD(cdd_writer_options, normalise),
    FIELD(cdd_writer_options, visible_at_close),
    WHOLE(cdd_queue_options),
    FIELD(cdd_queue_options, struct_size),
    FIELD(cdd_queue_options, max_jobs),
    FIELD(cdd_queue_options, wake),
    FIELD(cdd_queue_options, user),
    WHOLE(cdd_completion),
    FIELD(cdd_completion, user),
    FIELD(cdd_completion, ticket),
    FIELD(cdd_completion, status),
    FIELD(cdd_completion, reserved),
    FIELD(cdd_completion, error),
    WHOLE(cdd_packed),
    FIELD(cdd_packed, struct_size),
    FIELD(cdd_packed, version),
    FIELD(cdd_packed, bytes),
    FIELD(cdd_packed, size),
    FIELD(cdd_packed, rows),
    FIELD(cdd_packed, fields),
    FIELD(cdd_packed, reserved),
    WHOLE(cdd_field),
    FIELD(cdd_field, text),
    FIELD(cdd_field, bytes),
    WHOLE(cdd_csv_options),
    FIELD(cdd_csv_options, struct_size),
    FIELD(cdd_csv_options, delimiter),
    FIELD(cdd_csv_options, quote),
    FIELD(cdd_csv_options, comment),
    FIELD(cdd_csv_options, no_quotes),
    FIELD(cdd_csv_options, lenient),
    FIELD(cdd_csv_options, any_bytes),
    FIELD(cdd_csv_options, reserved),
    FIELD(cdd_csv_options, ragged),
    FIELD(cdd_csv_options, blank),
    FIELD(cdd_csv_options, skip_lines),
    FIELD(cdd_csv_options, columns),
    FIELD(cdd_csv_options, ncolumns),
    FIELD(cdd_csv_options, max_row_bytes),
    FIELD(cdd_csv_options, max_columns),
    FIELD(cdd_csv_options, reserved2),
};
#define PLACES (sizeof places / sizeof *places)

/* Whether the fields lie behind one another up to the end: one that was left out would leave room. */
static int is_complete(const place* one, const place* end) {
  const size_t whole = one->bytes;
  size_t at = 0;
  for (++one; one != end && one->field[0] != 0; ++one) {
    if (one->offset < at || one->offset - at >= 8) return 0;
    at = one->offset + one->bytes;
  }
  return at <= whole && whole - at < 8;
}

static int is_known(const char* name) {
  size_t i;
  for (i = 0; i < PLACES; ++i) {
    if (strcmp(places[i].of, name) == 0) return 1;
  }
  return 0;
}

static int forgotten(const char* header) {
  const char* at = header;
  int count = 0;
  for (; (at = strstr(at, "typedef struct cdd_")) != NULL; ++at) {
    char name[64] = "";
    const char* const body = strchr(at, '{');
    sscanf(at, "typedef struct %63[a-z_]", name);
    if (body == NULL || strchr(at, ';') < body || is_known(name)) continue; /* a handle has no fields */
    fprintf(stderr, "%s is not in the list\n", name);
    ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  char found[16384] = "";
  size_t length = 0;
  size_t size;
  size_t i;
  char* header;
  char* golden;
  int failures;
  if (argc < 2) return 2;
  for (i = 0; i < PLACES; ++i) {
    const place* const one = places + i;
    length += (size_t)sprintf(found + length, "%s%s %u %u\n", one->of, one->field, (unsigned)one->offset,
                              (unsigned)one->bytes);
  }
  if (argc == 2) return fputs(found, stdout) < 0;
  header = read_file(argv[1], &size);
  golden = read_file(argv[2], &size);
  failures = forgotten(header);
  for (i = 0; i < PLACES; ++i) {
    if (places[i].field[0] != 0 || is_complete(places + i, places + PLACES)) continue;
    fprintf(stderr, "%s has a field that is not in the list\n", places[i].of);
    ++failures;
  }
  if (sizeof(void*) == 8 && strcmp(found, golden) != 0) {
    fprintf(stderr, "found:\n%s\ngolden:\n%s\n", found, golden);
    ++failures;
  }
  free(header);
  free(golden);
  printf("%d sizes and places: %d failures\n", (int)PLACES, failures);
  return failures != 0;
}
