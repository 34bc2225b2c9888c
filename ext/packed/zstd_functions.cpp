// zstd streams for cdd/packed/sources.py: text in .zst files, whatever packages Python has.
#include <memory>
#include <mutex>

#include "core/codec/zstd_stream.h"
#include "ext/errors.h"
#include "ext/packed/csv_functions.h"

namespace cdd::ext {
namespace {

constexpr const char* kName = "cdd.zstd_stream";

struct Stream {
  ZstdStream core;
  std::mutex mutex;
};

void forget(PyObject* capsule) { delete static_cast<Stream*>(PyCapsule_GetPointer(capsule, kName)); }

}  // namespace

PyObject* zstd_stream(PyObject* module, PyObject*) {
  std::unique_ptr<Stream> stream;
  const bool made = with_gil(state_of_module(module), nullptr, [&] { stream = std::make_unique<Stream>(); });
  PyObject* const capsule = made ? PyCapsule_New(stream.get(), kName, forget) : nullptr;
  if (capsule != nullptr) stream.release();
  return capsule;
}

PyObject* zstd_step(PyObject* module, PyObject* args) {
  PyObject* capsule = nullptr;
  PyObject* source = nullptr;
  PyObject* target = nullptr;
  Buffer in;
  Buffer out;
  if (PyArg_ParseTuple(args, "OOO", &capsule, &source, &target) == 0 || !in.acquire(source, PyBUF_SIMPLE) ||
      !out.acquire(target, PyBUF_WRITABLE)) {
    return nullptr;
  }
  auto* const stream = static_cast<Stream*>(PyCapsule_GetPointer(capsule, kName));
  if (stream == nullptr) return nullptr;
  ZstdStream::Step step;
  bool between = false;
  const bool done = without_gil(state_of_module(module), nullptr, [&] {
    const std::lock_guard lock(stream->mutex);
    step = stream->core.step(in.bytes(), out.mutable_bytes());
    between = stream->core.between_frames();
  });
  return done ? Py_BuildValue("(nnO)", static_cast<Py_ssize_t>(step.taken),
                              static_cast<Py_ssize_t>(step.made), between ? Py_True : Py_False)
              : nullptr;
}

}  // namespace cdd::ext
