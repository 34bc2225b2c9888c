// Owners of what CPython hands out: a reference, a buffer view, the released GIL; and a pointer to a core
// object that one thread may drop while others use it.
//
// Order of locks: release the GIL first, take core locks second; so nothing here is held while Python runs.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <mutex>
#include <utility>

#include "core/base/bytes.h"
#include "ext/finalization.h"

namespace cdd::ext {

// A strong reference, or nothing.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) noexcept : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  static Ref borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return Ref(object);
  }
  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A view of an object's buffer. Needs the GIL to be taken and to be let go of.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { release(); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // False with a Python exception set.
  bool acquire(PyObject* object, int flags) noexcept {
    held_ = PyObject_GetBuffer(object, &view_, flags) == 0;
    return held_;
  }
  void release() noexcept {
    if (std::exchange(held_, false)) PyBuffer_Release(&view_);
  }
  const Py_buffer& view() const noexcept { return view_; }
  Bytes bytes() const noexcept { return {as_bytes(static_cast<const void*>(view_.buf)), size()}; }
  MutableBytes mutable_bytes() const noexcept { return {as_bytes(view_.buf), size()}; }

 private:
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.len); }

  Py_buffer view_{};
  bool held_ = false;
};

// The GIL for a thread that may be any: one that released it, or one of the core's.
class Gil {
 public:
  Gil() noexcept : state_(PyGILState_Ensure()) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  PyGILState_STATE state_;
};

class GilRelease {
 public:
  GilRelease() noexcept : state_(PyEval_SaveThread()) {}
  ~GilRelease() { restore_thread(state_); }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

  // Runs `work`, which throws nothing, with the GIL.
  template <class Work>
  void pause(Work&& work) {
    restore_thread(state_);
    work();
    state_ = PyEval_SaveThread();
  }

 private:
  PyThreadState* state_;
};

// A handle that close() empties while other threads go on with the copy they have.
template <class T>
class Handle {
 public:
  std::shared_ptr<T> get() const {
    const std::lock_guard lock(mutex_);
    return pointer_;
  }
  void set(std::shared_ptr<T> pointer) { take_or_set(std::move(pointer)); }
  std::shared_ptr<T> take() { return take_or_set(nullptr); }

 private:
  std::shared_ptr<T> take_or_set(std::shared_ptr<T> pointer) {
    const std::lock_guard lock(mutex_);
    return std::exchange(pointer_, std::move(pointer));
  }

  mutable std::mutex
      mutex_;  // held for a copy of the pointer only; the GIL makes it uncontended where there is one
  std::shared_ptr<T> pointer_;
};

// Makes an object of a heap type whose struct is a C++ class `T` with a member `base` of PyObject_HEAD.
template <class T>
T* allocate(PyTypeObject* type) {
  const auto alloc = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  return reinterpret_cast<T*>(alloc(type, 0));
}

// The end of every tp_dealloc: the memory, and the type's reference that each instance of a heap type holds.
inline void free_object(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

template <class Function>
PyCFunction as_method(Function* function) noexcept {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

template <class Function>
void* as_slot(Function* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace cdd::ext
