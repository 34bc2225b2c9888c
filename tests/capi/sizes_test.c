/* Structs of the C interface whose struct_size is not what it should be: an error that names it, and nothing
 * written beyond. The structs are those of cdd.h that have one, so that none is forgotten:
 * capi_sizes_test CDD_H STORE. */
#include <string.h>

#include "cdd.h"
#include "files.h"

static int failures = 0;
static const char* store;
static void* store_bytes;
static size_t store_size;
static cdd_error error; /* of each call */
static cdd_reader* reader;
static unsigned char packed_bytes[256];
static size_t packed_size;

static void failed(const char* name, size_t size, cdd_status found, cdd_status wanted) {
  fprintf(stderr, "%s of %d bytes: status %d, %d is right: %s\n", name, (int)size, (int)found, (int)wanted,
          error.text);
  ++failures;
}

/* ---------------------------------------------------------------- a call with each */

typedef union any {
  cdd_error error;
  cdd_reader_options reader_options;
  cdd_info info;
  cdd_chunk chunk;
  cdd_writer_options writer_options;
  cdd_queue_options queue_options;
  cdd_packed packed;
  cdd_csv_options csv_options;
  uint32_t struct_size;
  unsigned char bytes[1024];
} any;

static void released(void* user) { ++*(int*)user; }

static cdd_status with_reader_options(any* given) {
  cdd_reader* made = NULL;
  const cdd_status status = cdd_reader_open(store, &given->reader_options, &made, &error);
  cdd_reader_close(made);
  return status;
}
static cdd_status with_memory_options(any* given) {
  cdd_reader* made = NULL;
  int freed = 0;
  const cdd_status status = cdd_reader_open_memory(store_bytes, store_size, &given->reader_options, released,
                                                   &freed, &made, &error);
  cdd_reader_close(made);
  if (freed != 1) failed("bytes that are let go of", given->struct_size, freed, 1);
  return status;
}
static cdd_status with_writer_options(any* given) {
  char path[1024];
  cdd_writer* made = NULL;
  cdd_status status;
  sprintf(path, "%.1000s.fresh", store);
  if (given->struct_size > 4) given->writer_options.mode = 'w';
  status = cdd_writer_open(path, &given->writer_options, &made, &error);
  cdd_writer_give_up(made);
  return status;
}
static cdd_status with_queue_options(any* given) {
  cdd_queue* made = NULL;
  const cdd_status status = cdd_queue_open(&given->queue_options, &made, &error);
  cdd_queue_close(made);
  return status;
}
static cdd_status with_csv_options(any* given) {
  uint64_t used;
  return cdd_csv_pack("a\n", 2, &given->csv_options, NULL, 0, &used, NULL, &error);
}
static cdd_status into_info(any* given) { return cdd_reader_info(reader, &given->info, &error); }
static cdd_status into_chunk(any* given) { return cdd_reader_chunk(reader, 0, &given->chunk, &error); }
static cdd_status into_packed(any* given) {
  return cdd_packed_open(packed_bytes, packed_size, CDD_PACKED_FULL, &given->packed, &error);
}
/* An error that is too short is left alone, and its call does as it would without one. */
static cdd_status into_error(any* given) {
  const any before = *given;
  const cdd_status status = cdd_read(NULL, 0, 1, NULL, NULL, 0, &given->error);
  if (status != CDD_INVALID_ARGUMENT) failed("cdd_read with a cdd_error", given->struct_size, status, 1);
  if (given->struct_size >= sizeof(cdd_error))
    return strcmp(given->error.text, "reader is NULL") == 0 ? CDD_OK : status;
  if (memcmp(&before, given, sizeof before) != 0) failed("cdd_error, written to,", given->struct_size, 0, 0);
  error.status = status;
  strcpy(error.text, "struct_size");
  return status;
}

typedef struct sized {
  const char* name;
  size_t bytes;
  cdd_status (*call)(any* given);
  int is_read; /* by the library, which must not pass over fields that it does not know */
} sized;

static const sized structs[] = {
    {"cdd_error", sizeof(cdd_error), into_error, 0},
    {"cdd_reader_options", sizeof(cdd_reader_options), with_reader_options, 1},
    {"cdd_reader_options", sizeof(cdd_reader_options), with_memory_options, 1},
    {"cdd_info", sizeof(cdd_info), into_info, 0},
    {"cdd_chunk", sizeof(cdd_chunk), into_chunk, 0},
    {"cdd_writer_options", sizeof(cdd_writer_options), with_writer_options, 1},
    {"cdd_queue_options", sizeof(cdd_queue_options), with_queue_options, 1},
    {"cdd_packed", sizeof(cdd_packed), into_packed, 0},
    {"cdd_csv_options", sizeof(cdd_csv_options), with_csv_options, 1},
};
#define STRUCTS (sizeof structs / sizeof *structs)

/* ---------------------------------------------------------------- every size */

/* All zeros but for the last of its bytes. What stands behind them is the caller's. */
static void try_size(const sized* one, size_t size, unsigned char last, cdd_status wanted) {
  any given;
  cdd_status status;
  size_t i;
  memset(&given, 0xa5, sizeof given);
  memset(&given, 0, size);
  given.struct_size = (uint32_t)size;
  if (last != 0) given.bytes[size - 1] = last;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  status = one->call(&given);
  if (status != wanted) failed(one->name, size, status, wanted);
  for (i = size < one->bytes ? one->bytes : size; i < sizeof given; ++i) {
    if (given.bytes[i] != 0xa5) failed("beyond the end of what", size, (int)i, 0);
  }
  if (wanted == CDD_OK) return;
  if (error.status != wanted ||
      strstr(error.text, wanted == CDD_UNSUPPORTED ? one->name : "struct_size") == NULL)
    failed(one->name, size, error.status, wanted);
}

static void try_sizes(void) {
  const sized* one;
  for (one = structs; one != structs + STRUCTS; ++one) {
    size_t size;
    for (size = 0; size < one->bytes; ++size) try_size(one, size, 0, CDD_INVALID_ARGUMENT);
    try_size(one, one->bytes, 0, CDD_OK);
    try_size(one, one->bytes + 8, 0, CDD_OK);
    try_size(one, one->bytes + 8, 1, one->is_read ? CDD_UNSUPPORTED : CDD_OK);
  }
}

/* A view that was given back with another size is none. */
static void try_views(void) {
  cdd_packed view = {0};
  cdd_field fields[2];
  uint32_t size;
  view.struct_size = sizeof view;
  if (cdd_packed_open(packed_bytes, packed_size, CDD_PACKED_FULL, &view, &error) != CDD_OK) abort();
  for (size = 0; size <= sizeof view; ++size) {
    const cdd_status wanted = size < sizeof view ? CDD_INVALID_ARGUMENT : CDD_OK;
    cdd_status found;
    view.struct_size = size;
    if ((found = cdd_packed_row(&view, 0, fields, 2, &error)) != wanted)
      failed("a view", size, found, wanted);
    if ((found = cdd_packed_field(&view, 0, 0, fields, &error)) != wanted)
      failed("a view", size, found, wanted);
  }
}

static void look_for_forgotten(const char* header) {
  const char* at = header;
  while ((at = strstr(at, "typedef struct cdd_")) != NULL) {
    const char* const body = strchr(at, '{');
    const char* const end = strchr(at, ';');
    const char* size;
    char name[64] = "";
    size_t i = 0;
    sscanf(at, "typedef struct %63[a-z_]", name);
    at += strlen("typedef struct ");
    if (body == NULL || end < body) continue; /* of a handle nothing is known */
    size = strstr(body, "struct_size");
    if (size == NULL || size > strchr(body, '}')) continue;
    while (i < STRUCTS && strcmp(structs[i].name, name) != 0) ++i;
    if (i < STRUCTS) continue;
    fprintf(stderr, "%s is not tried here\n", name);
    ++failures;
  }
}

static void make_all(void) {
  static float rows[100][150];
  cdd_writer_options options = {0};
  cdd_layout layout = {0};
  cdd_writer* writer = NULL;
  uint64_t used = 0;
  options.struct_size = sizeof options;
  options.mode = 'w';
  layout.dtype = 12; /* float32 */
  layout.ndim = 2;
  layout.dims[0] = 50;
  layout.dims[1] = 3;
  error.struct_size = sizeof error;
  if (cdd_writer_open(store, &options, &writer, NULL) != CDD_OK ||
      cdd_append(writer, &layout, rows, 100, NULL) != CDD_OK || cdd_writer_close(writer, NULL) != CDD_OK ||
      cdd_reader_open(store, NULL, &reader, NULL) != CDD_OK ||
      cdd_csv_pack("a,b\n1,2\n", 8, NULL, packed_bytes, sizeof packed_bytes, &used, NULL, NULL) != CDD_OK) {
    abort();
  }
  packed_size = (size_t)used;
  store_bytes = read_file(store, &store_size);
}

int main(int argc, char** argv) {
  char* header;
  size_t size;
  if (argc != 3) return 2;
  store = argv[2];
  header = read_file(argv[1], &size);
  make_all();
  look_for_forgotten(header);
  try_sizes();
  try_views();
  cdd_reader_close(reader);
  free(store_bytes);
  free(header);
  printf("%d structs: %d failures\n", (int)STRUCTS, failures);
  return failures != 0;
}
