// The table of codecs, in order of id. codec.h says what a row holds.
#include <array>

#include "core/codec/book_xor.h"
#include "core/codec/bytes_codec.h"
#include "core/codec/codec.h"
#include "core/codec/levels.h"
#include "core/codec/raw.h"

namespace cdd {
namespace {

