// _cdd.Reader as the other types see it.
#pragma once

#include <memory>

#include "core/async/warm_chunks.h"
#include "core/store/reader.h"
#include "ext/store/rows_source.h"

namespace cdd::ext {

struct ReaderObject {
  SourceObject source;  // its core is a Reader
  Buffer held;          // of a store that is given as bytes
  // Made when it is asked for: only readers that are awaited need one.
  Handle<WarmChunks> warm;

  std::shared_ptr<WarmChunks> warm_chunks() {
    std::shared_ptr<WarmChunks> found = warm.get();
    if (found == nullptr) warm.set(found = std::make_shared<WarmChunks>());
    return found;
  }
};

}  // namespace cdd::ext
