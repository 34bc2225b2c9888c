/* The C interface as a C99 program uses it: writing, reading, queues, and what each mistake answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdd.h"
#include "files.h"

#define ROWS 3000
#define ITEMS 150

static int failures = 0;
static void check(int holds, const char* what, int line, const cdd_error* error) {
  if (holds) return;
  fprintf(stderr, "line %d: %s (status %d: %s)\n", line, what, (int)error->status, error->text);
  ++failures;
}
#define CHECK(what) check((what), #what, __LINE__, &error)

static float rows[ROWS][ITEMS];
static float out[ROWS][ITEMS];

static void count_bad(void* user, const cdd_error* what) {
  (void)what;
  ++*(int*)user;
}

static void released(void* user) { ++*(int*)user; }

static void write_store(const char* path) {
  cdd_error error = {0};
  cdd_writer_options options = {0};
  cdd_layout layout = {0};
  cdd_writer* writer = NULL;
  error.struct_size = sizeof error;
  options.struct_size = sizeof options;
  options.mode = 'w';
  options.user_meta = "hello";
  options.user_meta_bytes = 5;
  layout.dtype = 12; /* float32 */
  layout.ndim = 2;
  layout.dims[0] = 50;
  layout.dims[1] = 3;
  CHECK(cdd_writer_open(path, &options, &writer, &error) == CDD_OK);
  CHECK(cdd_append(writer, &layout, rows, 1000, &error) == CDD_OK);
  CHECK(cdd_flush(writer, &error) == CDD_OK);
  CHECK(cdd_append(writer, &layout, rows[1000], ROWS - 1000, &error) == CDD_OK);
  CHECK(cdd_writer_rows(writer) == ROWS);
  layout.dims[1] = 4;
  CHECK(cdd_append(writer, &layout, rows, 10, &error) == CDD_INVALID_ARGUMENT);
  CHECK(strstr(error.text, "50, 3") != NULL);
  CHECK(cdd_writer_close(writer, &error) == CDD_OK);
  options.mode = 'x';
  CHECK(cdd_writer_open(path, &options, &writer, &error) == CDD_IO && error.os_errno != 0);
  options.mode = 'q';
  CHECK(cdd_writer_open(path, &options, &writer, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_writer_close(NULL, &error) == CDD_OK);
}

static void read_store(const char* path) {
  cdd_error error = {0};
  cdd_reader* reader = NULL;
  cdd_info info = {0};
  cdd_chunk chunk = {0};
  cdd_cells cells = {10, 20, 0, 1};
  uint64_t starts[3] = {5, 2000, 5};
  uint64_t now = 0;
  char meta[5];
  int bad = 0;
  error.struct_size = sizeof error;
  info.struct_size = sizeof info;
  chunk.struct_size = sizeof chunk;
  CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK);
  CHECK(cdd_reader_rows(reader) == ROWS);
  CHECK(cdd_reader_info(reader, &info, &error) == CDD_OK);
  CHECK(info.rows == ROWS && info.layout.row_bytes == ITEMS * 4 && info.layout.dims[0] == 50 &&
        !info.replaced);
  CHECK(info.user_meta_bytes == 5 && cdd_reader_user_meta(reader, meta, 5, &error) == CDD_OK);
  CHECK(memcmp(meta, "hello", 5) == 0);
  CHECK(cdd_reader_user_meta(reader, meta, 4, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_read(reader, 0, ROWS, NULL, out, sizeof out, &error) == CDD_OK &&
        memcmp(out, rows, sizeof rows) == 0);
  CHECK(cdd_read(reader, 7, 1, &cells, out, 40, &error) == CDD_OK && out[0][1] == rows[7][33]);
  CHECK(cdd_read_windows(reader, starts, 3, 2, NULL, out, 6 * sizeof rows[0], &error) == CDD_OK);
  CHECK(memcmp(out[2], rows[2000], 2 * sizeof rows[0]) == 0 &&
        memcmp(out[4], rows[5], 2 * sizeof rows[0]) == 0);
  CHECK(cdd_read(reader, ROWS, 1, NULL, out, sizeof rows[0], &error) == CDD_OUT_OF_RANGE);
  CHECK(cdd_read(reader, 0, 1, NULL, out, 3, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_read(reader, 0, 1, NULL, NULL, sizeof rows[0], &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_read(NULL, 0, 1, NULL, out, sizeof rows[0], &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_read(reader, ROWS, 1, NULL, out, sizeof rows[0], NULL) == CDD_OUT_OF_RANGE);
  CHECK(cdd_reader_chunk(reader, 0, &chunk, &error) == CDD_OK && chunk.start == 0 && chunk.codec[0] != 0);
  CHECK(cdd_reader_chunk(reader, info.chunks, &chunk, &error) == CDD_OUT_OF_RANGE);
  CHECK(cdd_prefetch(reader, 0, ROWS, &error) == CDD_OK);
  CHECK(cdd_refresh(reader, &now, &error) == CDD_OK && now == ROWS);
  CHECK(cdd_verify(reader, 0, info.chunks, count_bad, &bad, &error) == CDD_OK && bad == 0);
  cdd_reader_close(reader);
  cdd_reader_close(NULL);
  CHECK(cdd_reader_open("no such file.cdd", NULL, &reader, &error) == CDD_IO && error.os_errno != 0);
  CHECK(cdd_reader_open(NULL, NULL, &reader, &error) == CDD_INVALID_ARGUMENT);
}

static void read_memory(const char* path) {
  cdd_error error = {0};
  cdd_reader* reader = NULL;
  cdd_chunk chunk = {0};
  size_t size = 0;
  unsigned char* const bytes = read_file(path, &size);
  int freed = 0, bad = 0;
  error.struct_size = sizeof error;
  chunk.struct_size = sizeof chunk;
  CHECK(cdd_reader_open_memory(bytes, size, NULL, released, &freed, &reader, &error) == CDD_OK);
  CHECK(cdd_reader_chunk(reader, 2, &chunk, &error) == CDD_OK);
  bytes[chunk.offset + chunk.stored_bytes / 2] ^= 1;
  CHECK(cdd_read(reader, chunk.start, 1, NULL, out, sizeof rows[0], &error) == CDD_CHECKSUM);
  CHECK(error.kind == CDD_AT_CHUNK && error.number == 2 && error.offset == chunk.offset);
  CHECK(cdd_verify(reader, 0, 3, count_bad, &bad, &error) == CDD_OK && bad == 1);
  cdd_reader_close(reader);
  CHECK(freed == 1);
  CHECK(cdd_reader_open_memory(bytes, 10, NULL, released, &freed, &reader, &error) != CDD_OK && freed == 2);
  free(bytes);
}

static void use_structs_of_other_versions(const char* path) {
  struct {
    cdd_reader_options known;
    uint64_t later;
  } longer = {{0, 0, 0, 0, 0}, 0};
  cdd_error error = {0};
  cdd_reader* reader = NULL;
  error.struct_size = sizeof error;
  longer.known.struct_size = sizeof longer;
  CHECK(cdd_reader_open(path, &longer.known, &reader, &error) == CDD_OK);
  cdd_reader_close(reader);
  longer.later = 1;
  CHECK(cdd_reader_open(path, &longer.known, &reader, &error) == CDD_UNSUPPORTED);
  longer.later = 0;
  longer.known.reserved = 2;
  CHECK(cdd_reader_open(path, &longer.known, &reader, &error) == CDD_UNSUPPORTED);
  CHECK(strstr(error.text, "cdd_reader_options.reserved is 2") != NULL);
  longer.known.reserved = 0;
  longer.known.struct_size = 4;
  CHECK(cdd_reader_open(path, &longer.known, &reader, &error) == CDD_INVALID_ARGUMENT);
  longer.known.struct_size = sizeof longer.known;
  longer.known.check = 9;
  CHECK(cdd_reader_open(path, &longer.known, &reader, &error) == CDD_INVALID_ARGUMENT);
}

static void use_a_queue(const char* path) {
  cdd_error error = {0};
  cdd_reader* reader = NULL;
  cdd_queue* queue = NULL;
  cdd_completion done[16];
  uint64_t ticket = 0;
  size_t taken = 0, seen = 0, i;
  int users[40];
  error.struct_size = sizeof error;
  CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK);
  CHECK(cdd_queue_open(NULL, &queue, &error) == CDD_OK && cdd_queue_handle(queue) >= 0);
  memset(users, 0, sizeof users);
  for (i = 0; i < 40; ++i) {
    const uint64_t first = i == 13 ? ROWS : 50 * i;
    CHECK(cdd_queue_read(queue, reader, first, 50, NULL, out[50 * i], 50 * sizeof rows[0], &users[i], &ticket,
                         &error) == CDD_OK &&
          ticket != 0);
  }
  cdd_reader_close(reader); /* what is under way keeps it */
  while (seen < 40) {
    CHECK(cdd_queue_take(queue, done, 16, -1, &taken, &error) == CDD_OK && taken > 0);
    for (i = 0; i < taken; ++i) {
      const size_t which = (size_t)((int*)done[i].user - users);
      ++*(int*)done[i].user;
      CHECK(done[i].status == (which == 13 ? CDD_OUT_OF_RANGE : CDD_OK));
      CHECK((done[i].error != NULL) == (which == 13));
    }
    seen += taken;
  }
  for (i = 0; i < 40; ++i) {
    CHECK(users[i] == 1);
    if (i != 13) CHECK(memcmp(out[50 * i], rows[50 * i], 50 * sizeof rows[0]) == 0);
  }
  CHECK(cdd_queue_take(queue, done, 16, 0, &taken, &error) == CDD_OK && taken == 0);
  CHECK(cdd_queue_cancel(queue, ticket) == CDD_CLOSED);
  cdd_queue_close(queue);
  cdd_queue_close(NULL);
}

static void append_through_a_queue(const char* path) {
  cdd_error error = {0};
  cdd_writer_options options = {0};
  cdd_layout layout = {0};
  cdd_writer* writer = NULL;
  cdd_queue* queue = NULL;
  cdd_completion done[64];
  size_t taken = 0, seen = 0;
  int i;
  error.struct_size = sizeof error;
  options.struct_size = sizeof options;
  options.mode = 'a';
  layout.dtype = 12;
  layout.ndim = 2;
  layout.dims[0] = 50;
  layout.dims[1] = 3;
  CHECK(cdd_writer_open(path, &options, &writer, &error) == CDD_OK);
  CHECK(cdd_queue_open(NULL, &queue, &error) == CDD_OK);
  for (i = 0; i < 30; ++i) {
    CHECK(cdd_queue_append(queue, writer, &layout, rows[100 * i], 100, NULL, NULL, &error) == CDD_OK);
  }
  CHECK(cdd_queue_flush(queue, writer, NULL, NULL, &error) == CDD_OK);
  while (seen < 31) {
    CHECK(cdd_queue_take(queue, done, 64, -1, &taken, &error) == CDD_OK);
    seen += taken;
  }
  CHECK(cdd_writer_close(writer, &error) == CDD_OK);
  cdd_queue_close(queue);
  {
    cdd_reader* reader = NULL;
    CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK && cdd_reader_rows(reader) == 2 * ROWS);
    CHECK(cdd_read(reader, ROWS, ROWS, NULL, out, sizeof out, &error) == CDD_OK);
    CHECK(memcmp(out, rows, sizeof rows) == 0);
    cdd_reader_close(reader);
  }
}

static void follow_a_store(const char* path) {
  cdd_error error = {0};
  cdd_reader* reader = NULL;
  cdd_reader* memory = NULL;
  uint64_t now = 7;
  size_t size;
  void* bytes = read_file(path, &size);
  error.struct_size = sizeof error;
  CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK);
  CHECK(cdd_follow(reader, ROWS - 1, -1, &now, &error) == CDD_OK && now == 2 * ROWS);
  CHECK(cdd_follow(reader, 2 * ROWS, 3, &now, &error) == CDD_TIMED_OUT && error.status == CDD_TIMED_OUT);
  CHECK(cdd_follow(reader, 2 * ROWS, 0, NULL, NULL) == CDD_TIMED_OUT && now == 2 * ROWS);
  CHECK(cdd_follow(NULL, 0, 0, NULL, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_reader_open_memory(bytes, size, NULL, NULL, NULL, &memory, &error) == CDD_OK);
  CHECK(cdd_follow(memory, 0, 0, &now, &error) == CDD_INVALID_ARGUMENT);
  CHECK(strstr(error.text, "nothing to follow") != NULL);
  remove(path);
  CHECK(cdd_follow(reader, 2 * ROWS, -1, &now, &error) == CDD_OK && now == 2 * ROWS);
  cdd_reader_close(memory);
  cdd_reader_close(reader);
  free(bytes);
}

/* Takes so many completions; each one's status goes to where its `user` points. */
static void take_all(cdd_queue* queue, size_t count) {
  cdd_error error = {0};
  cdd_completion done[8];
  size_t taken = 0, i;
  error.struct_size = sizeof error;
  while (count > 0) {
    CHECK(cdd_queue_take(queue, done, 8, 60000, &taken, &error) == CDD_OK && taken > 0 && taken <= count);
    if (taken == 0) return;
    for (i = 0; i < taken; ++i) {
      *((cdd_status*)done[i].user) = done[i].status;
      CHECK((done[i].status == CDD_OK) == (done[i].error == NULL));
    }
    count -= taken;
  }
}

static void refuse_to_follow(cdd_queue* queue, cdd_reader* reader, const void* bytes, size_t size) {
  cdd_error error = {0};
  cdd_reader* memory = NULL;
  error.struct_size = sizeof error;
  CHECK(cdd_queue_follow(NULL, reader, 0, 0, NULL, NULL, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_queue_follow(queue, NULL, 0, 0, NULL, NULL, &error) == CDD_INVALID_ARGUMENT);
  CHECK(cdd_reader_open_memory(bytes, size, NULL, NULL, NULL, &memory, &error) == CDD_OK);
  CHECK(cdd_queue_follow(queue, memory, 0, 0, NULL, NULL, &error) == CDD_INVALID_ARGUMENT);
  CHECK(strstr(error.text, "nothing to follow") != NULL);
  cdd_reader_close(memory);
}

/* What still waits is taken back when the queue closes, and keeps its store until then. */
static void close_while_one_follows(const char* path, const cdd_writer_options* options,
                                    const cdd_layout* layout, cdd_queue* queue) {
  cdd_error error = {0};
  cdd_writer* writer = NULL;
  cdd_reader* reader = NULL;
  error.struct_size = sizeof error;
  CHECK(cdd_writer_open(path, options, &writer, &error) == CDD_OK);
  CHECK(cdd_append(writer, layout, rows, 1, &error) == CDD_OK && cdd_flush(writer, &error) == CDD_OK);
  CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK);
  CHECK(cdd_queue_follow(queue, reader, 1, -1, NULL, NULL, &error) == CDD_OK);
  cdd_reader_close(reader);
  cdd_queue_close(queue);
  CHECK(cdd_writer_close(writer, &error) == CDD_OK);
  remove(path);
}

static void follow_through_a_queue(const char* path) {
  enum { MANY = 40 };
  cdd_error error = {0};
  cdd_writer_options options = {0};
  cdd_layout layout = {0};
  cdd_writer* writer = NULL;
  cdd_reader* reader = NULL;
  cdd_queue* queue = NULL;
  uint64_t tickets[MANY];
  cdd_status ended[MANY];
  cdd_completion none;
  size_t taken = 7, size, i;
  void* bytes;
  error.struct_size = sizeof error;
  options.struct_size = sizeof options;
  options.mode = 'w';
  layout.dtype = 12;
  layout.ndim = 1;
  layout.dims[0] = ITEMS;
  CHECK(cdd_writer_open(path, &options, &writer, &error) == CDD_OK);
  CHECK(cdd_append(writer, &layout, rows, 10, &error) == CDD_OK && cdd_flush(writer, &error) == CDD_OK);
  CHECK(cdd_reader_open(path, NULL, &reader, &error) == CDD_OK);
  CHECK(cdd_queue_open(NULL, &queue, &error) == CDD_OK);

  /* Rows that are there already; nothing in time; more than threads there are, beside a read. */
  CHECK(cdd_queue_follow(queue, reader, 9, -1, &ended[0], NULL, &error) == CDD_OK);
  CHECK(cdd_queue_follow(queue, reader, 10, 5, &ended[1], NULL, &error) == CDD_OK);
  take_all(queue, 2);
  CHECK(ended[0] == CDD_OK && ended[1] == CDD_TIMED_OUT);
  for (i = 1; i < MANY; ++i) {
    ended[i] = -1;
    CHECK(cdd_queue_follow(queue, reader, i < 30 ? 10 : 1000, -1, &ended[i], &tickets[i], &error) == CDD_OK);
  }
  CHECK(cdd_queue_read(queue, reader, 0, 10, NULL, out, 10 * sizeof rows[0], &ended[0], NULL, &error) ==
        CDD_OK);
  ended[0] = -1;
  take_all(queue, 1);
  CHECK(ended[0] == CDD_OK && memcmp(out, rows, 10 * sizeof rows[0]) == 0);
  CHECK(cdd_queue_take(queue, &none, 1, 20, &taken, &error) == CDD_OK && taken == 0);
  CHECK(cdd_queue_cancel(queue, tickets[35]) == CDD_OK && cdd_queue_cancel(queue, tickets[35]) == CDD_CLOSED);
  take_all(queue, 1);
  CHECK(ended[35] == CDD_CANCELLED);
  CHECK(cdd_append(writer, &layout, rows[10], 5, &error) == CDD_OK && cdd_flush(writer, &error) == CDD_OK);
  take_all(queue, 29);
  for (i = 1; i < 30; ++i) CHECK(ended[i] == CDD_OK);
  CHECK(cdd_reader_rows(reader) == 15);

  /* A file that loses its name ends those who still wait. */
  CHECK(cdd_writer_close(writer, &error) == CDD_OK);
  bytes = read_file(path, &size);
  remove(path);
  take_all(queue, 9);
  for (i = 30; i < MANY; ++i) CHECK(ended[i] == (i == 35 ? CDD_CANCELLED : CDD_OK));

  refuse_to_follow(queue, reader, bytes, size);
  cdd_reader_close(reader);
  free(bytes);
  close_while_one_follows(path, &options, &layout, queue);
}

int main(int count, char** arguments) {
  size_t i, k;
  if (count != 2) return 2;
  for (i = 0; i < ROWS; ++i) {
    for (k = 0; k < ITEMS; ++k) rows[i][k] = (float)(k % 3 == 0 ? 100 + k : (i * 7 + k) % 5);
  }
  if (cdd_abi() != CDD_ABI) return 3;
  write_store(arguments[1]);
  read_store(arguments[1]);
  read_memory(arguments[1]);
  use_structs_of_other_versions(arguments[1]);
  use_a_queue(arguments[1]);
  append_through_a_queue(arguments[1]);
  follow_a_store(arguments[1]);
  follow_through_a_queue(arguments[1]);
  remove(arguments[1]);
  printf("%s, %d failures\n", cdd_version(), failures);
  return failures == 0 ? 0 : 1;
}
