/* What every function of the C interface does with NULL for each of its pointers, alone and together. The
 * functions are those of symbols.txt and their pointers those of cdd.h, so that none is forgotten:
 * capi_nulls_test CDD_H SYMBOLS STORE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdd.h"
#include "files.h"

#define ROWS 100
#define ITEMS 150
#define REJECTED CDD_INVALID_ARGUMENT

static int failures = 0;
static const char* store; /* with ROWS rows */
static char fresh[1024];  /* a path for writers */
static void* store_bytes; /* of `store` */
static size_t store_size;
static float rows[ROWS][ITEMS]; /* what is written */
static float out[ROWS][ITEMS];
static cdd_error error; /* of each call that gets one */
static cdd_reader* reader;
static cdd_writer* writer;
static cdd_queue* queue;
static cdd_layout layout;
static cdd_packed packed;
static unsigned char packed_bytes[256];
static size_t packed_size;

static void fail_at(const char* what, unsigned nulls, cdd_status status) {
  fprintf(stderr, "%s, NULL where bits are set in 0x%x: status %d, %s\n", what, nulls, (int)status,
          error.text);
  ++failures;
}

static void fresh_error(void) {
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
}

/* ---------------------------------------------------------------- one call of each, all pointers good */

/* The i-th pointer of a call, or NULL. */
#define P(i, pointer) ((nulls >> (i)) & 1 ? NULL : (pointer))

static void nothing(void* user) { (void)user; }
static void none_bad(void* user, const cdd_error* what) {
  (void)user;
  (void)what;
}

/* Of what has no status. */
static cdd_status told(int holds) { return holds ? CDD_OK : REJECTED; }

/* Takes what a call through the queue left there: until then its memory is the library's. */
static cdd_status drained(cdd_status submitted) {
  cdd_completion done;
  size_t taken = 0;
  if (submitted != CDD_OK) return submitted;
  if (cdd_queue_take(queue, &done, 1, -1, &taken, NULL) != CDD_OK || taken != 1) return CDD_INTERNAL;
  return done.status;
}

static cdd_writer_options write_options(void) {
  cdd_writer_options options = {0};
  options.struct_size = sizeof options;
  options.mode = 'w';
  return options;
}

static cdd_status call_abi(unsigned nulls) { return told(nulls == 0 && cdd_abi() == CDD_ABI); }
static cdd_status call_version(unsigned nulls) { return told(nulls == 0 && cdd_version() != NULL); }
static cdd_status call_set_threads(unsigned nulls) { return cdd_set_threads(0, P(0, &error)); }
static cdd_status call_row_bytes(unsigned nulls) { return told(cdd_row_bytes(P(0, &layout)) != 0); }
static cdd_status call_reader_open(unsigned nulls) {
  cdd_reader_options options = {0};
  cdd_reader* made = NULL;
  cdd_status status;
  options.struct_size = sizeof options;
  status = cdd_reader_open(P(0, store), P(1, &options), P(2, &made), P(3, &error));
  cdd_reader_close(made);
  return status;
}
static cdd_status call_reader_open_memory(unsigned nulls) {
  cdd_reader_options options = {0};
  cdd_reader* made = NULL;
  cdd_status status;
  options.struct_size = sizeof options;
  status = cdd_reader_open_memory(P(0, store_bytes), store_size, P(1, &options), P(2, nothing), P(3, &made),
                                  P(4, &made), P(5, &error));
  cdd_reader_close(made);
  return status;
}
static cdd_status call_reader_close(unsigned nulls) {
  cdd_reader* made = NULL;
  if (cdd_reader_open(store, NULL, &made, NULL) != CDD_OK) return CDD_INTERNAL;
  cdd_reader_close(P(0, made));
  if (nulls != 0) cdd_reader_close(made);
  return CDD_OK;
}
static cdd_status call_reader_rows(unsigned nulls) { return told(cdd_reader_rows(P(0, reader)) == ROWS); }
static cdd_status call_reader_info(unsigned nulls) {
  cdd_info info = {0};
  info.struct_size = sizeof info;
  return cdd_reader_info(P(0, reader), P(1, &info), P(2, &error));
}
static cdd_status call_reader_user_meta(unsigned nulls) {
  char meta[5];
  return cdd_reader_user_meta(P(0, reader), P(1, meta), sizeof meta, P(2, &error));
}
static cdd_status call_reader_chunk(unsigned nulls) {
  cdd_chunk chunk = {0};
  chunk.struct_size = sizeof chunk;
  return cdd_reader_chunk(P(0, reader), 0, P(1, &chunk), P(2, &error));
}
static cdd_status call_read(unsigned nulls) {
  const cdd_cells cells = {0, 50, 0, 3};
  return cdd_read(P(0, reader), 0, 1, P(1, &cells), P(2, out), sizeof rows[0], P(3, &error));
}
static cdd_status call_read_windows(unsigned nulls) {
  const cdd_cells cells = {0, 50, 0, 3};
  const uint64_t starts[] = {1, 2};
  return cdd_read_windows(P(0, reader), P(1, starts), 2, 1, P(2, &cells), P(3, out), 2 * sizeof rows[0],
                          P(4, &error));
}
static cdd_status call_prefetch(unsigned nulls) { return cdd_prefetch(P(0, reader), 0, ROWS, P(1, &error)); }
static cdd_status call_refresh(unsigned nulls) {
  uint64_t now;
  return cdd_refresh(P(0, reader), P(1, &now), P(2, &error));
}
static cdd_status call_follow(unsigned nulls) {
  uint64_t now;
  return cdd_follow(P(0, reader), 0, 0, P(1, &now), P(2, &error));
}
static cdd_status call_verify(unsigned nulls) {
  return cdd_verify(P(0, reader), 0, 1, P(1, none_bad), P(2, out), P(3, &error));
}
static cdd_status call_writer_open(unsigned nulls) {
  const cdd_writer_options options = write_options();
  cdd_writer* made = NULL;
  const cdd_status status = cdd_writer_open(P(0, fresh), P(1, &options), P(2, &made), P(3, &error));
  cdd_writer_give_up(made);
  return status;
}
static cdd_status call_append(unsigned nulls) {
  return cdd_append(P(0, writer), P(1, &layout), P(2, rows), 1, P(3, &error));
}
static cdd_status call_flush(unsigned nulls) { return cdd_flush(P(0, writer), P(1, &error)); }
static cdd_status call_writer_rows(unsigned nulls) { return told(cdd_writer_rows(P(0, writer)) != 0); }
static cdd_status call_writer_close(unsigned nulls) {
  const cdd_writer_options options = write_options();
  cdd_writer* made = NULL;
  cdd_status status;
  if (cdd_writer_open(fresh, &options, &made, NULL) != CDD_OK) return CDD_INTERNAL;
  status = cdd_writer_close(P(0, made), P(1, &error));
  if (nulls & 1) cdd_writer_give_up(made);
  return status;
}
static cdd_status call_writer_give_up(unsigned nulls) {
  const cdd_writer_options options = write_options();
  cdd_writer* made = NULL;
  if (cdd_writer_open(fresh, &options, &made, NULL) != CDD_OK) return CDD_INTERNAL;
  cdd_writer_give_up(P(0, made));
  if (nulls != 0) cdd_writer_give_up(made);
  return CDD_OK;
}
static cdd_status call_queue_open(unsigned nulls) {
  cdd_queue_options options = {0};
  cdd_queue* made = NULL;
  cdd_status status;
  options.struct_size = sizeof options;
  status = cdd_queue_open(P(0, &options), P(1, &made), P(2, &error));
  cdd_queue_close(made);
  return status;
}
static cdd_status call_queue_close(unsigned nulls) {
  cdd_queue* made = NULL;
  if (cdd_queue_open(NULL, &made, NULL) != CDD_OK) return CDD_INTERNAL;
  cdd_queue_close(P(0, made));
  if (nulls != 0) cdd_queue_close(made);
  return CDD_OK;
}
static cdd_status call_queue_handle(unsigned nulls) { return told(cdd_queue_handle(P(0, queue)) != -1); }
static cdd_status call_queue_take(unsigned nulls) {
  cdd_completion done;
  size_t taken;
  return cdd_queue_take(P(0, queue), P(1, &done), 1, 0, P(2, &taken), P(3, &error));
}
static cdd_status call_queue_cancel(unsigned nulls) {
  const cdd_status status = cdd_queue_cancel(P(0, queue), 1234567);
  return status == CDD_CLOSED ? CDD_OK : status; /* nothing has this ticket */
}
static cdd_status call_queue_read(unsigned nulls) {
  const cdd_cells cells = {0, 50, 0, 3};
  uint64_t ticket;
  return drained(cdd_queue_read(P(0, queue), P(1, reader), 0, 1, P(2, &cells), P(3, out), sizeof rows[0],
                                P(4, rows), P(5, &ticket), P(6, &error)));
}
static cdd_status call_queue_read_windows(unsigned nulls) {
  static const uint64_t starts[] = {1, 2};
  const cdd_cells cells = {0, 50, 0, 3};
  uint64_t ticket;
  return drained(cdd_queue_read_windows(P(0, queue), P(1, reader), P(2, starts), 2, 1, P(3, &cells),
                                        P(4, out), 2 * sizeof rows[0], P(5, rows), P(6, &ticket),
                                        P(7, &error)));
}
static cdd_status call_queue_follow(unsigned nulls) {
  uint64_t ticket;
  return drained(cdd_queue_follow(P(0, queue), P(1, reader), 0, -1, P(2, rows), P(3, &ticket), P(4, &error)));
}
static cdd_status call_queue_append(unsigned nulls) {
  uint64_t ticket;
  return drained(cdd_queue_append(P(0, queue), P(1, writer), P(2, &layout), P(3, rows), 1, P(4, out),
                                  P(5, &ticket), P(6, &error)));
}
static cdd_status call_queue_flush(unsigned nulls) {
  uint64_t ticket;
  return drained(cdd_queue_flush(P(0, queue), P(1, writer), P(2, out), P(3, &ticket), P(4, &error)));
}
static cdd_status call_packed_open(unsigned nulls) {
  cdd_packed view = {0};
  view.struct_size = sizeof view;
  return cdd_packed_open(P(0, packed_bytes), packed_size, CDD_PACKED_FULL, P(1, &view), P(2, &error));
}
static cdd_status call_packed_row(unsigned nulls) {
  cdd_field fields[2];
  return cdd_packed_row(P(0, &packed), 0, P(1, fields), 2, P(2, &error));
}
static cdd_status call_packed_field(unsigned nulls) {
  cdd_field field;
  return cdd_packed_field(P(0, &packed), 1, 1, P(1, &field), P(2, &error));
}
static cdd_status call_csv_pack(unsigned nulls) {
  cdd_csv_options options = {0};
  unsigned char bytes[sizeof packed_bytes];
  cdd_packed view = {0};
  uint64_t used;
  options.struct_size = sizeof options;
  view.struct_size = sizeof view;
  return cdd_csv_pack(P(0, "a,b\n1,2\n"), 8, P(1, &options), P(2, bytes), sizeof bytes, P(3, &used),
                      P(4, &view), P(5, &error));
}

/* `wanted` has an x for each pointer that may not be NULL and a - for each that may, in their order. */
typedef struct entry {
  const char* name;
  cdd_status (*call)(unsigned nulls);
  const char* wanted;
} entry;

static const entry entries[] = {
    {"cdd_abi", call_abi, ""},
    {"cdd_append", call_append, "xxx-"},
    {"cdd_csv_pack", call_csv_pack, "x-----"},
    {"cdd_flush", call_flush, "x-"},
    {"cdd_follow", call_follow, "x--"},
    {"cdd_packed_field", call_packed_field, "xx-"},
    {"cdd_packed_open", call_packed_open, "xx-"},
    {"cdd_packed_row", call_packed_row, "xx-"},
    {"cdd_prefetch", call_prefetch, "x-"},
    {"cdd_queue_append", call_queue_append, "xxxx---"},
    {"cdd_queue_cancel", call_queue_cancel, "x"},
    {"cdd_queue_close", call_queue_close, "-"},
    {"cdd_queue_flush", call_queue_flush, "xx---"},
    {"cdd_queue_follow", call_queue_follow, "xx---"},
    {"cdd_queue_handle", call_queue_handle, "x"},
    {"cdd_queue_open", call_queue_open, "-x-"},
    {"cdd_queue_read", call_queue_read, "xx-x---"},
    {"cdd_queue_read_windows", call_queue_read_windows, "xxx-x---"},
    {"cdd_queue_take", call_queue_take, "xxx-"},
    {"cdd_read", call_read, "x-x-"},
    {"cdd_read_windows", call_read_windows, "xx-x-"},
    {"cdd_reader_chunk", call_reader_chunk, "xx-"},
    {"cdd_reader_close", call_reader_close, "-"},
    {"cdd_reader_info", call_reader_info, "xx-"},
    {"cdd_reader_open", call_reader_open, "x-x-"},
    {"cdd_reader_open_memory", call_reader_open_memory, "x---x-"},
    {"cdd_reader_rows", call_reader_rows, "x"},
    {"cdd_reader_user_meta", call_reader_user_meta, "xx-"},
    {"cdd_refresh", call_refresh, "x--"},
    {"cdd_row_bytes", call_row_bytes, "x"},
    {"cdd_set_threads", call_set_threads, "-"},
    {"cdd_verify", call_verify, "x---"},
    {"cdd_version", call_version, ""},
    {"cdd_writer_close", call_writer_close, "--"},
    {"cdd_writer_give_up", call_writer_give_up, "-"},
    {"cdd_writer_open", call_writer_open, "xxx-"},
    {"cdd_writer_rows", call_writer_rows, "x"},
};
#define ENTRIES (sizeof entries / sizeof *entries)

/* Every combination of NULLs: one that may not be is an error that says so, all others do no harm. */
static void try_nulls(const entry* one) {
  const size_t count = strlen(one->wanted);
  const int has_error = count != 0 && one->wanted[count - 1] == '-';
  unsigned nulls;
  for (nulls = 0; nulls < 1u << count; ++nulls) {
    cdd_status wanted = CDD_OK;
    cdd_status status;
    size_t i;
    for (i = 0; i < count; ++i) {
      if ((nulls >> i & 1) != 0 && one->wanted[i] == 'x') wanted = REJECTED;
    }
    fresh_error();
    status = one->call(nulls);
    if (status != wanted) fail_at(one->name, nulls, status);
    if (wanted == CDD_OK || !has_error) continue;
    if ((nulls >> (count - 1) & 1) != 0 ? error.status != CDD_OK : strstr(error.text, " is NULL") == NULL)
      fail_at("the error", nulls, error.status);
  }
}

/* ---------------------------------------------------------------- nothing is forgotten */

/* How many pointers the function takes by its declaration: '*' or "**" between its parentheses, and of a
 * callback the one that makes it a pointer. -1 where it is not declared. */
static int pointers_of(const char* header, const char* name) {
  const size_t length = strlen(name);
  const char* at = header;
  int depth = 0;
  int count = 0;
  while ((at = strstr(at, name)) != NULL && (at[length] != '(' || (at[-1] != ' ' && at[-1] != '*'))) ++at;
  if (at == NULL) return -1;
  for (at += length; *at != ';'; ++at) {
    if (*at == '(') ++depth;
    if (*at == ')') --depth;
    if (*at == '*' && at[-1] != '*' && (depth == 1 || at[-1] == '(')) ++count;
  }
  return count;
}

static void look_for_forgotten(const char* header, const char* symbols) {
  char name[64];
  size_t known = 0; /* each function here must be exported, too */
  int read = 0;
  for (; sscanf(symbols, "%63s%n", name, &read) == 1; symbols += read) {
    size_t i = 0;
    while (i < ENTRIES && strcmp(entries[i].name, name) != 0) ++i;
    if (i < ENTRIES && pointers_of(header, name) == (int)strlen(entries[i].wanted)) {
      ++known;
    } else {
      fprintf(stderr, "%s takes %d pointers: %s are known\n", name, pointers_of(header, name),
              i < ENTRIES ? entries[i].wanted : "none");
      ++failures;
    }
  }
  if (known != ENTRIES) ++failures;
}

/* ---------------------------------------------------------------- what they are called with */

static void make_all(void) {
  cdd_writer_options options = write_options();
  uint64_t used = 0;
  layout.dtype = 12; /* float32 */
  layout.ndim = 2;
  layout.dims[0] = 50;
  layout.dims[1] = 3;
  options.user_meta = "hello";
  options.user_meta_bytes = 5;
  packed.struct_size = sizeof packed;
  if (cdd_writer_open(store, &options, &writer, NULL) != CDD_OK ||
      cdd_append(writer, &layout, rows, ROWS, NULL) != CDD_OK || cdd_writer_close(writer, NULL) != CDD_OK ||
      cdd_reader_open(store, NULL, &reader, NULL) != CDD_OK || cdd_queue_open(NULL, &queue, NULL) != CDD_OK ||
      cdd_csv_pack("a,b\n1,2\n", 8, NULL, packed_bytes, sizeof packed_bytes, &used, &packed, NULL) !=
          CDD_OK) {
    abort();
  }
  packed_size = (size_t)used;
  store_bytes = read_file(store, &store_size);
  sprintf(fresh, "%.1000s.appended", store);
  if (cdd_writer_open(fresh, &options, &writer, NULL) != CDD_OK) abort();
  sprintf(fresh, "%.1000s.fresh", store);
}

int main(int argc, char** argv) {
  char* header;
  char* symbols;
  size_t size;
  size_t i;
  if (argc != 4) return 2;
  store = argv[3];
  header = read_file(argv[1], &size);
  symbols = read_file(argv[2], &size);
  make_all();
  look_for_forgotten(header, symbols);
  for (i = 0; i < ENTRIES; ++i) try_nulls(entries + i);
  cdd_queue_close(queue);
  cdd_reader_close(reader);
  if (cdd_writer_close(writer, NULL) != CDD_OK) ++failures;
  free(store_bytes);
  free(header);
  free(symbols);
  printf("%d functions: %d failures\n", (int)ENTRIES, failures);
  return failures != 0;
}
