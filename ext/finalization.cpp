#include "ext/finalization.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "ext/py_objects.h"

namespace cdd::ext {
namespace {

std::atomic<bool> ending{false};
std::thread::id ending_thread;        // written before `ending`
std::atomic<int> about_to_return{0};  // threads between the look at `ending` and holding the GIL

constexpr std::chrono::milliseconds kStep{1};
constexpr int kMostSteps = 100;  // a thread that another extension holds up must not hold up the end

[[noreturn]] void wait_for_the_end() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void restore_thread(PyThreadState* state) noexcept {
  about_to_return.fetch_add(1);
  if (ending.load() && std::this_thread::get_id() != ending_thread) {
    about_to_return.fetch_sub(1);
    wait_for_the_end();
  }
  PyEval_RestoreThread(state);
  about_to_return.fetch_sub(1);
}

bool watch_finalization(PyObject* begin) {
  if (begin == nullptr) return false;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) return true;
  const Ref atexit(PyImport_ImportModule("atexit"));
  if (!atexit) return false;
  const Ref done(PyObject_CallMethod(atexit.get(), "register", "O", begin));
  return static_cast<bool>(done);
}

void begin_finalization() noexcept {
  ending_thread = std::this_thread::get_id();
  ending.store(true);
  for (int step = 0; step < kMostSteps && about_to_return.load() > 0; ++step) {
    PyThreadState* const state = PyEval_SaveThread();
    std::this_thread::sleep_for(kStep);
    PyEval_RestoreThread(state);
  }
}

}  // namespace cdd::ext
