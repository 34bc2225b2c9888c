// _cdd.Reader as the other types see it.
#pragma once

#include <memory>

#include "core/store/reader.h"
#include "ext/store/rows_source.h"

namespace cdd::ext {

struct ReaderObject {
  SourceObject source;  // its core is a Reader
  Buffer held;          // of a store that is given as bytes
};

}  // namespace cdd::ext
