// _cdd.Writer as the other types see it.
#pragma once

#include <memory>

#include "core/os/process.h"
#include "core/storage/memory.h"
#include "core/store/writer.h"
#include "core/threads/jobs.h"
#include "ext/module_state.h"

namespace cdd::ext {

struct WriterObject {
  PyObject_HEAD std::shared_ptr<Writer> core;  // set once, by new
  PyObject* filename;                          // null for a store in memory
  PyObject* memory;                            // null for a file
  std::shared_ptr<MemoryStorage> unseen;       // of a store in memory that is visible with close()
  Strand strand;                               // of what a Queue has under way
  std::uint64_t process;                       // that made it
};

// Appends the rows of a buffer whose first dimension they are; items of `swap_bytes` bytes in the other byte
// order are turned, 0: none are. Needs no GIL. Throws Error.
void append_buffer(Writer& writer, int dtype_code, const Buffer& rows, std::size_t swap_bytes);

// close(); a store in memory that was not visible yet takes the place of what its Memory had. Needs no GIL.
void close_writer(WriterObject& writer);

}  // namespace cdd::ext
