/* Forks in the middle of work: what a child inherits of queues, followers, readers and writers. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cdd.h"

#define ITEMS 8
#define BEGUN 10 /* rows that are there before a fork */

static int failures = 0;
static void check(int holds, const char* what, int line, const cdd_error* error) {
  if (holds) return;
  fprintf(stderr, "line %d: %s (status %d: %s)\n", line, what, (int)error->status, error->text);
  ++failures;
}
#define CHECK(what) check((what), #what, __LINE__, &error)

static int32_t rows[64][ITEMS];
static int32_t out[64][ITEMS];
static cdd_layout layout; /* of rows */

typedef struct opened {
  cdd_writer* writer;
  cdd_reader* reader;
  cdd_queue* queue;
} opened;

static opened open_all(const char* path) {
  cdd_error error = {0};
  cdd_writer_options options = {0};
  opened made = {NULL, NULL, NULL};
  error.struct_size = sizeof error;
  options.struct_size = sizeof options;
  options.mode = 'w';
  CHECK(cdd_writer_open(path, &options, &made.writer, &error) == CDD_OK);
  CHECK(cdd_append(made.writer, &layout, rows, BEGUN, &error) == CDD_OK);
  CHECK(cdd_flush(made.writer, &error) == CDD_OK);
  CHECK(cdd_reader_open(path, NULL, &made.reader, &error) == CDD_OK);
  CHECK(cdd_queue_open(NULL, &made.queue, &error) == CDD_OK);
  return made;
}

/* What is the parent's answers CDD_CLOSED, and may be closed; what the child makes itself works. */
static int child_of(opened mine, uint64_t ticket, int parent_appends) {
  cdd_error error = {0};
  cdd_completion done;
  cdd_queue* own = NULL;
  uint64_t now = 0;
  size_t taken = 7;
  char go = 0;
  alarm(30); /* nothing here may wait for a thread that only the parent has */
  error.struct_size = sizeof error;
  CHECK(cdd_queue_follow(mine.queue, mine.reader, BEGUN, -1, NULL, NULL, &error) == CDD_CLOSED);
  CHECK(strstr(error.text, "process") != NULL);
  CHECK(cdd_queue_read(mine.queue, mine.reader, 0, 1, NULL, out, sizeof rows[0], NULL, NULL, &error) ==
        CDD_CLOSED);
  CHECK(cdd_queue_append(mine.queue, mine.writer, &layout, rows, 1, NULL, NULL, &error) == CDD_CLOSED);
  CHECK(cdd_queue_take(mine.queue, &done, 1, -1, &taken, &error) == CDD_CLOSED && taken == 0);
  CHECK(cdd_queue_cancel(mine.queue, ticket) == CDD_CLOSED);
  CHECK(cdd_append(mine.writer, &layout, rows, 1, &error) == CDD_CLOSED);
  cdd_queue_close(mine.queue);
  CHECK(cdd_writer_close(mine.writer, NULL) == CDD_OK || failures == 0);

  CHECK(cdd_read(mine.reader, 0, BEGUN, NULL, out, BEGUN * sizeof rows[0], &error) == CDD_OK);
  CHECK(memcmp(out, rows, BEGUN * sizeof rows[0]) == 0);
  CHECK(cdd_queue_open(NULL, &own, &error) == CDD_OK);
  CHECK(cdd_queue_follow(own, mine.reader, BEGUN, -1, &now, NULL, &error) == CDD_OK);
  if (write(parent_appends, &go, 1) != 1) return 99; /* now the parent appends */
  CHECK(cdd_queue_take(own, &done, 1, -1, &taken, &error) == CDD_OK && taken == 1);
  CHECK(done.user == &now && done.status == CDD_OK && cdd_reader_rows(mine.reader) == BEGUN + 5);
  CHECK(cdd_follow(mine.reader, BEGUN, -1, &now, &error) == CDD_OK && now == BEGUN + 5);
  CHECK(cdd_follow(mine.reader, BEGUN + 5, 3, &now, &error) == CDD_TIMED_OUT);
  cdd_queue_close(own);
  cdd_reader_close(mine.reader);
  return failures;
}

/* Followers wait in the parent; the child closes its copies; the parent's still hear of rows. */
static void fork_while_some_follow(const char* path) {
  enum { MANY = 20 };
  cdd_error error = {0};
  opened made = open_all(path);
  cdd_completion done[MANY];
  uint64_t ticket = 0;
  size_t taken = 0, seen = 0, i;
  int users[MANY] = {0}, pipes[2], status = 0;
  char go;
  pid_t child;
  error.struct_size = sizeof error;
  for (i = 0; i < MANY; ++i) {
    CHECK(cdd_queue_follow(made.queue, made.reader, BEGUN, -1, &users[i], &ticket, &error) == CDD_OK);
  }
  CHECK(cdd_queue_take(made.queue, done, MANY, 10, &taken, &error) == CDD_OK && taken == 0);
  if (pipe(pipes) != 0) return;
  fflush(stderr);
  child = fork();
  if (child == 0) _exit(child_of(made, ticket, pipes[1]));
  close(pipes[1]);
  CHECK(read(pipes[0], &go, 1) == 1);
  close(pipes[0]);
  CHECK(cdd_append(made.writer, &layout, rows[BEGUN], 5, &error) == CDD_OK);
  CHECK(cdd_flush(made.writer, &error) == CDD_OK);
  while (seen < MANY) {
    CHECK(cdd_queue_take(made.queue, done, MANY, 30000, &taken, &error) == CDD_OK && taken > 0);
    if (taken == 0) break;
    for (i = 0; i < taken; ++i) {
      CHECK(done[i].status == CDD_OK);
      ++*(int*)done[i].user;
    }
    seen += taken;
  }
  for (i = 0; i < MANY; ++i) CHECK(users[i] == 1);
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(cdd_reader_rows(made.reader) == BEGUN + 5);
  cdd_queue_close(made.queue);
  cdd_reader_close(made.reader);
  CHECK(cdd_writer_close(made.writer, &error) == CDD_OK);
  remove(path);
}

/* Threads of the core end requests while the process forks: a child closes its copy of the queue whatever
 * those threads were doing to it. */
static void fork_while_queues_work(const char* path) {
  enum { FORKS = 60, READS = 400 };
  cdd_error error = {0};
  opened made = open_all(path);
  cdd_completion done[READS];
  size_t taken = 0, left;
  int turn, status;
  error.struct_size = sizeof error;
  for (turn = 0; turn < FORKS && failures == 0; ++turn) {
    pid_t child = -1;
    for (left = 0; left < READS; ++left) {
      CHECK(cdd_queue_read(made.queue, made.reader, 0, 1, NULL, out[left % 64], sizeof rows[0], NULL, NULL,
                           &error) == CDD_OK);
      if (left != (size_t)(turn * 6)) continue;
      child = fork();
      if (child == 0) {
        alarm(30);
        cdd_queue_close(made.queue);
        cdd_reader_close(made.reader);
        _exit(0);
      }
    }
    while (left > 0) {
      CHECK(cdd_queue_take(made.queue, done, READS, 30000, &taken, &error) == CDD_OK && taken > 0);
      if (taken == 0) break;
      left -= taken;
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  cdd_queue_close(made.queue);
  cdd_reader_close(made.reader);
  CHECK(cdd_writer_close(made.writer, &error) == CDD_OK);
  remove(path);
}

int main(int count, char** arguments) {
  size_t i, k;
  if (count != 2) return 2;
  for (i = 0; i < 64; ++i) {
    for (k = 0; k < ITEMS; ++k) rows[i][k] = (int32_t)(i * 1000 + k);
  }
  layout.dtype = 6; /* int32 */
  layout.ndim = 1;
  layout.dims[0] = ITEMS;
  fork_while_some_follow(arguments[1]);
  fork_while_queues_work(arguments[1]);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
