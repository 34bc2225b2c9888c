// The end of the interpreter, as daemon threads must see it.
//
// A thread that comes back from work without the GIL while the interpreter is being taken down is ended by
// CPython (before 3.14) inside PyEval_RestoreThread, by an unwinding that C++ frames turn into
// std::terminate. So such threads wait for ever here instead, from the moment that atexit callbacks run on:
// by then only daemon threads are left, and nothing waits for those.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace cdd::ext {

// PyEval_RestoreThread, but it does not return where the interpreter is ending in another thread.
void restore_thread(PyThreadState* state) noexcept;

// Has atexit call `begin`, a function of the module that calls begin_finalization. Only the main interpreter
// has an end that concerns other threads. False with a Python exception set.
bool watch_finalization(PyObject* begin);

// Returns when no other thread is about to take the GIL. Called with the GIL, which others may get meanwhile.
void begin_finalization() noexcept;

}  // namespace cdd::ext
