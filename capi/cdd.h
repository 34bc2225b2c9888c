/* cdd.h: the stable C interface of cdd. C99 and C++.
 *
 * Any thread may call any function, unless it says not. Status 0 is success, else one of CDD_*; `error` (may
 * be NULL) is the caller's and says more. Nothing is thrown across this border and nothing is kept per
 * thread. *_open makes a handle, *_close ends it (NULL: nothing); not while another call on it runs, but what
 * a queue has under way keeps its store. Structs that begin with struct_size: set that to sizeof, the rest to
 * 0 = default. Later versions append fields; what this library does not know must be 0, else CDD_UNSUPPORTED.
 * Text is UTF-8; paths are, too, and on POSIX any bytes. In a forked child readers go on; writers and queues
 * answer CDD_CLOSED, and may be closed. */
#ifndef CDD_H
#define CDD_H
#include <stddef.h>
#include <stdint.h>
#if defined(_WIN32) && defined(CDD_BUILDING)
#define CDD_API __declspec(dllexport)
#elif defined(_WIN32) && !defined(CDD_STATIC)
#define CDD_API __declspec(dllimport)
#elif defined(__GNUC__)
#define CDD_API __attribute__((visibility("default")))
#else
#define CDD_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define CDD_ABI 1 /* of this header; a library whose cdd_abi() is the same or larger serves it */

typedef int32_t cdd_status;
enum {
  CDD_OK,
  CDD_INVALID_ARGUMENT, /* a wrong value, shape or size */
  CDD_OUT_OF_RANGE,     /* a row or chunk that does not exist */
  CDD_CLOSED,           /* closed, poisoned by a failed write, or of another process */
  CDD_IO,               /* the operating system said no: os_errno */
  CDD_CORRUPT,          /* bytes that no writer makes */
  CDD_TRUNCATED,        /* the file ends too soon */
  CDD_CHECKSUM,         /* a check does not hold */
  CDD_UNSUPPORTED,      /* a newer version, an unknown feature or field */
  CDD_LIMIT,            /* more than the caller allows */
  CDD_CANCELLED,        /* taken back before it had begun */
  CDD_TIMED_OUT,
  CDD_NO_MEMORY,
  CDD_INTERNAL /* a mistake of this library's */
};

/* Where an error lies: `kind`; `number` of the index block, chunk, row or tile; `field` of the row; `offset`
 * in the file. UINT64_MAX: not known. `text` ends with 0 and is cut between characters. */
enum { CDD_NOWHERE, CDD_AT_HEADER, CDD_AT_INDEX, CDD_AT_CHUNK, CDD_AT_ROW, CDD_AT_TILE };
typedef struct cdd_error {
  uint32_t struct_size;
  cdd_status status;
  int32_t os_errno;
  uint32_t kind;
  uint64_t number, field, offset;
  char text[480];
} cdd_error;

typedef struct cdd_reader cdd_reader;
typedef struct cdd_writer cdd_writer;
typedef struct cdd_queue cdd_queue;

/* A row: `dtype` is the file format's code (docs/formats), dims[0, ndim) its shape. row_bytes is set by the
 * library and ignored when it is given. */
typedef struct cdd_layout {
  uint32_t dtype, ndim, dims[7], row_bytes;
} cdd_layout;
/* Bytes of a row; 0 where a layout is none: an unknown dtype, no or too many dimensions, a row that is too
 * long. */
CDD_API uint64_t cdd_row_bytes(const cdd_layout* layout);

/* A part of each (levels, features) row: [begin, end) of both. */
typedef struct cdd_cells {
  uint32_t level_begin, level_end, feature_begin, feature_end;
} cdd_cells;

enum { CDD_CHECK_STORED, CDD_CHECK_NONE, CDD_CHECK_FULL };
typedef struct cdd_reader_options {
  uint32_t struct_size;
  uint32_t check;   /* what each read checks: CDD_CHECK_* */
  uint32_t no_mmap; /* 1: positional reads in place of a memory map */
  uint32_t reserved;
  uint64_t max_chunk_bytes; /* chunks that claim more raw bytes are refused; 0: 2 GiB */
} cdd_reader_options;

typedef struct cdd_info {
  uint32_t struct_size;
  uint32_t replaced; /* 1: the path now names another file */
  cdd_layout layout; /* ndim 0 and dtype 0 as long as nothing was appended */
  uint64_t rows, chunks, stored_bytes, user_meta_bytes;
  uint8_t id[16]; /* the file's salt: what tells it from every other */
} cdd_info;

typedef struct cdd_chunk {
  uint32_t struct_size, reserved;
  uint64_t start, stop, raw_bytes, stored_bytes, offset;
  char codec[48];
} cdd_chunk;

enum { CDD_FAST, CDD_DENSE };
enum { CDD_DURABILITY_BATCH, CDD_DURABILITY_NONE, CDD_DURABILITY_FLUSH, CDD_DURABILITY_ALWAYS };
enum { CDD_NORMALISE_NONE, CDD_NORMALISE_MID };
typedef struct cdd_writer_options {
  uint32_t struct_size;
  uint32_t mode;            /* 'w' replaces, 'x' refuses an existing file, 'a' appends or creates */
  const cdd_layout* layout; /* NULL: the first append decides */
  const char* codec;        /* NULL: "auto" */
  const void* user_meta;    /* of a new file */
  size_t user_meta_bytes;
  uint32_t profile;    /* CDD_FAST, CDD_DENSE */
  uint32_t durability; /* CDD_DURABILITY_* */
  uint32_t zstd_level; /* 0: 3 */
  uint32_t chunk_bytes, chunk_rows;
  uint32_t float16; /* 1: prices and sizes may be stored as float16 */
  double size_scale;
  uint32_t normalise;        /* CDD_NORMALISE_*, of float16 */
  uint32_t visible_at_close; /* 1: a new file gets its name with cdd_writer_close */
} cdd_writer_options;

CDD_API uint32_t cdd_abi(void);
CDD_API const char* cdd_version(void);
CDD_API cdd_status cdd_set_threads(uint32_t threads,
                                   cdd_error* error); /* of one large call; 0: the default */

/* Reading. `out` has exactly the bytes of the rows, or of `cells` (NULL: all) of each. */
CDD_API cdd_status cdd_reader_open(const char* path, const cdd_reader_options* options, cdd_reader** out,
                                   cdd_error* error);
/* `bytes` stay and do not change until release(user), which may be NULL, is called; that is also when opening
 * fails. */
CDD_API cdd_status cdd_reader_open_memory(const void* bytes, size_t size, const cdd_reader_options* options,
                                          void (*release)(void* user), void* user, cdd_reader** out,
                                          cdd_error* error);
CDD_API void cdd_reader_close(cdd_reader* reader);
CDD_API uint64_t cdd_reader_rows(const cdd_reader* reader);
CDD_API cdd_status cdd_reader_info(const cdd_reader* reader, cdd_info* info, cdd_error* error);
CDD_API cdd_status cdd_reader_user_meta(const cdd_reader* reader, void* out, size_t out_bytes,
                                        cdd_error* error);
CDD_API cdd_status cdd_reader_chunk(const cdd_reader* reader, uint64_t chunk, cdd_chunk* out,
                                    cdd_error* error);
CDD_API cdd_status cdd_read(const cdd_reader* reader, uint64_t first, uint64_t count, const cdd_cells* cells,
                            void* out, size_t out_bytes, cdd_error* error);
CDD_API cdd_status cdd_read_windows(const cdd_reader* reader, const uint64_t* starts, size_t windows,
                                    uint64_t rows, const cdd_cells* cells, void* out, size_t out_bytes,
                                    cdd_error* error);
CDD_API cdd_status cdd_prefetch(const cdd_reader* reader, uint64_t first, uint64_t count,
                                cdd_error* error); /* a hint */
CDD_API cdd_status cdd_refresh(cdd_reader* reader, uint64_t* rows, cdd_error* error);
/* Sleeps until there are more rows than `seen`, or the path names another file (cdd_info.replaced; *rows is
 * then `seen`, once all rows of the old file were seen). CDD_TIMED_OUT after so many milliseconds; negative:
 * never. *rows, which may be NULL, is set in any case. Another thread may read meanwhile. */
CDD_API cdd_status cdd_follow(cdd_reader* reader, uint64_t seen, int64_t timeout_ms, uint64_t* rows,
                              cdd_error* error);
/* Every chunk of [first, first + count), with every check there is; bad(user, what) in the calling thread, in
 * order. */
CDD_API cdd_status cdd_verify(const cdd_reader* reader, uint64_t first, uint64_t count,
                              void (*bad)(void* user, const cdd_error* what), void* user, cdd_error* error);

/* Writing; one thread at a time gets in. Closing lets go of the file also where it fails: flush before, to
 * try again. */
CDD_API cdd_status cdd_writer_open(const char* path, const cdd_writer_options* options, cdd_writer** out,
                                   cdd_error* error);
CDD_API cdd_status cdd_append(cdd_writer* writer, const cdd_layout* layout, const void* rows, uint64_t count,
                              cdd_error* error);
CDD_API cdd_status cdd_flush(cdd_writer* writer, cdd_error* error);
CDD_API uint64_t cdd_writer_rows(const cdd_writer* writer);
CDD_API cdd_status cdd_writer_close(cdd_writer* writer, cdd_error* error);
CDD_API void cdd_writer_give_up(cdd_writer* writer); /* closes without another write, as a crash would */

/* Without waiting. A job ends with one completion in its queue; out, starts, cells and rows are the library's
 * until then. Its threads run no code of the caller's but `wake`, which may do no more than signal and is
 * called when an empty queue gets a completion. */
typedef struct cdd_queue_options {
  uint32_t struct_size;
  uint32_t max_jobs; /* under way or waiting to be taken; 0: 65536. One more is CDD_LIMIT */
  void (*wake)(void* user);
  void* user;
} cdd_queue_options;
typedef struct cdd_completion {
  void* user;
  uint64_t ticket;
  cdd_status status;
  uint32_t reserved;
  const cdd_error* error; /* NULL, or valid until the next take */
} cdd_completion;
CDD_API cdd_status cdd_queue_open(const cdd_queue_options* options, cdd_queue** out, cdd_error* error);
CDD_API void cdd_queue_close(cdd_queue* queue); /* takes back what has not begun, waits for what has */
CDD_API intptr_t cdd_queue_handle(
    const cdd_queue* queue); /* a descriptor, readable while completions wait; on Windows an event */
/* At most `at_most` completions; waits for the first, negative: however long. One thread at a time. */
CDD_API cdd_status cdd_queue_take(cdd_queue* queue, cdd_completion* out, size_t at_most, int64_t timeout_ms,
                                  size_t* taken, cdd_error* error);
CDD_API cdd_status cdd_queue_cancel(
    cdd_queue* queue, uint64_t ticket); /* 0: ends with CDD_CANCELLED; CDD_CLOSED: it runs, or is done */
CDD_API cdd_status cdd_queue_read(cdd_queue* queue, const cdd_reader* reader, uint64_t first, uint64_t count,
                                  const cdd_cells* cells, void* out, size_t out_bytes, void* user,
                                  uint64_t* ticket, cdd_error* error);
CDD_API cdd_status cdd_queue_read_windows(cdd_queue* queue, const cdd_reader* reader, const uint64_t* starts,
                                          size_t windows, uint64_t rows, const cdd_cells* cells, void* out,
                                          size_t out_bytes, void* user, uint64_t* ticket, cdd_error* error);
/* cdd_follow, for any number of readers at once: they take none of the threads that read. It ends with
 * CDD_OK, and cdd_reader_rows says how many rows there are; with CDD_TIMED_OUT; or with what went wrong.
 * Cancelled, it always ends with CDD_CANCELLED. */
CDD_API cdd_status cdd_queue_follow(cdd_queue* queue, cdd_reader* reader, uint64_t seen, int64_t timeout_ms,
                                    void* user, uint64_t* ticket, cdd_error* error);
/* Appends and flushes of a writer run in the order of the calls. */
CDD_API cdd_status cdd_queue_append(cdd_queue* queue, cdd_writer* writer, const cdd_layout* layout,
                                    const void* rows, uint64_t count, void* user, uint64_t* ticket,
                                    cdd_error* error);
CDD_API cdd_status cdd_queue_flush(cdd_queue* queue, cdd_writer* writer, void* user, uint64_t* ticket,
                                   cdd_error* error);

/* Packed rows of version 1 (docs/packed.md), read in place. A view is a struct of the caller's over bytes of
 * his: nothing is allocated, nothing is to be closed, and bytes stay as long as it is used. What version 2
 * has in blocks is no view: CDD_UNSUPPORTED. Errors have the row, its field and the offset. */
typedef struct cdd_packed {
  uint32_t struct_size;
  uint32_t version;
  const void* bytes;
  uint64_t size, rows;
  uint32_t fields; /* of each row; row 0 of packed CSV has the names */
  uint32_t reserved;
} cdd_packed;
typedef struct cdd_field { /* UTF-8 without a 0 at its end, in the bytes of the view */
  const char* text;
  size_t bytes;
} cdd_field;
enum { CDD_PACKED_HEADER, CDD_PACKED_BOUNDS, CDD_PACKED_FULL, CDD_PACKED_UTF8 }; /* what opening looks at */
/* With CDD_PACKED_HEADER opening takes the same time whatever the size; offsets are checked when they are
 * used in any case. */
CDD_API cdd_status cdd_packed_open(const void* bytes, size_t size, uint32_t check, cdd_packed* out,
                                   cdd_error* error);
/* All fields of a row into out[0, fields), which has at least as many places as a row has fields. */
CDD_API cdd_status cdd_packed_row(const cdd_packed* packed, uint64_t row, cdd_field* out, size_t fields,
                                  cdd_error* error);
CDD_API cdd_status cdd_packed_field(const cdd_packed* packed, uint64_t row, uint32_t field, cdd_field* out,
                                    cdd_error* error);

enum { CDD_RAGGED_ERROR, CDD_RAGGED_PAD, CDD_RAGGED_SKIP };
enum { CDD_BLANK_SKIP, CDD_BLANK_FIELD, CDD_BLANK_ERROR };
typedef struct cdd_csv_options { /* docs/csv.md says what each does */
  uint32_t struct_size;
  uint8_t delimiter, quote; /* 0: comma, double quote */
  uint8_t comment;          /* 0: none */
  uint8_t no_quotes;        /* 1: quotes are text */
  uint8_t lenient;          /* 1: quotes out of place are read as Python's csv module does */
  uint8_t any_bytes;        /* 1: text need not be UTF-8 */
  uint16_t reserved;
  uint32_t ragged, blank; /* CDD_RAGGED_*, CDD_BLANK_* */
  uint64_t skip_lines;
  const uint32_t* columns; /* numbers of those that are wanted, in this order; NULL: all */
  size_t ncolumns;
  uint64_t max_row_bytes; /* 0: 2^30 */
  uint32_t max_columns;   /* 0: 65536 */
  uint32_t reserved2;
} cdd_csv_options;
/* CSV text as packed rows into out[0, out_bytes). *used gets how many bytes they take, also where that is
 * more than out_bytes: CDD_LIMIT then, and CDD_OK where out is NULL, which asks for the size. `view` may be
 * NULL. */
CDD_API cdd_status cdd_csv_pack(const void* text, size_t text_bytes, const cdd_csv_options* options,
                                void* out, size_t out_bytes, uint64_t* used, cdd_packed* view,
                                cdd_error* error);

#ifdef __cplusplus
}
#endif
#endif
