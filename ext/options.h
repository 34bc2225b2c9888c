// Options of readers and writers as Python gives them: a dict of names and values. One table in options.cpp
// has each name with the type, the limits and the field it sets; what only NumPy or JSON can read (dtype,
// attrs) has become a field of another name before.
#pragma once

#include "core/storage/mapped_file.h"
#include "core/store/reader.h"
#include "core/store/writer.h"
#include "ext/errors.h"

namespace cdd::ext {

// How a file is read; of a store in memory nothing but `core` counts.
struct ReadOptions {
  ReaderOptions core;
  Mapping mapping = Mapping::Preferred;
};

struct WriteOptions {
  WriterOptions core;
  Writer::Visible visible = Writer::Visible::AtOnce;
};

// These need the GIL. They throw PythonError with TypeError set for a name that is no option or a value of
// the wrong type, and InvalidArgument for one out of its limits.
ReadOptions read_options(PyObject* dict);
WriteOptions write_options(PyObject* dict);
// Those of a writer that say how chunks are made, nothing else.
WriterOptions chunk_options(PyObject* dict);

}  // namespace cdd::ext
