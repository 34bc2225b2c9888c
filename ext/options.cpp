#include "ext/options.h"

#include <limits>

#include "ext/arguments.h"

namespace cdd::ext {
namespace {

constexpr unsigned long long kMostSize = std::numeric_limits<std::uint32_t>::max();

// A value that an option was given. Each function throws PythonError with a TypeError that says what is
// wanted.
struct Given {
  const char* name;
  PyObject* value;

  [[noreturn]] void refuse(const char* wanted) const {
    PyErr_Format(PyExc_TypeError, "%s is %s, not %.80R", name, wanted, value);
    throw PythonError();
  }

  const char* text() const {
    const char* const utf8 = PyUnicode_Check(value) != 0 ? PyUnicode_AsUTF8AndSize(value, nullptr) : nullptr;
    if (utf8 == nullptr) refuse("a str");
    return utf8;
  }

  // Also NumPy's.
  bool flag() const {
    const Ref type(PyType_GetName(Py_TYPE(value)));
    const bool is_bool = type && (PyUnicode_CompareWithASCIIString(type.get(), "bool") == 0 ||
                                  PyUnicode_CompareWithASCIIString(type.get(), "bool_") == 0);
    if (!is_bool) refuse("a bool");
    return PyObject_IsTrue(value) > 0;
  }

  unsigned long long integer(unsigned long long least, unsigned long long most) const {
    const Ref number(PyNumber_Index(value));
    if (!number) refuse("an integer");
    const unsigned long long given = PyLong_AsUnsignedLongLong(number.get());
    const bool is_outside = PyErr_Occurred() != nullptr;
    if (is_outside || given < least || given > most) {
      PyErr_Format(PyExc_ValueError, "%s is %S, %llu to %llu are allowed", name, number.get(), least, most);
      throw PythonError();
    }
    return given;
  }

  std::uint32_t size() const { return static_cast<std::uint32_t>(integer(1, kMostSize)); }

  float number() const {
    const double given = PyFloat_AsDouble(value);
    if (PyErr_Occurred() != nullptr) refuse("a number");
    return static_cast<float>(given);
  }

  template <class T, std::size_t N>
  T choice(const Choice<T> (&choices)[N]) const {
    return choose(name, text(), choices);
  }

  std::vector<std::byte> bytes() const {
    Buffer buffer;
    if (!buffer.acquire(value, PyBUF_SIMPLE)) {
      PyErr_Format(PyExc_TypeError, "%s is bytes, not %.80R: encode it first", name, value);
      throw PythonError();
    }
    return {buffer.bytes().begin(), buffer.bytes().end()};
  }

  // (id, chunks, rows, digest), as Reader.snapshot() gives it.
  Snapshot snapshot() const {
    const char* id = nullptr;
    const char* digest = nullptr;
    unsigned long long chunks = 0;
    unsigned long long rows = 0;
    if (PyTuple_Check(value) == 0) refuse("a snapshot");
    if (PyArg_ParseTuple(value, "sKKs", &id, &chunks, &rows, &digest) == 0) throw PythonError();
    Snapshot snapshot;
    snapshot.chunks = chunks;
    snapshot.rows = rows;
    const MutableBytes digest_bytes(as_bytes(snapshot.digest.data()), sizeof snapshot.digest);
    if (!parse_hex(id, snapshot.id) || !parse_hex(digest, digest_bytes)) refuse("a snapshot");
    return snapshot;
  }

  RowLayout layout() const {
    if (PyTuple_Check(value) == 0) refuse("a dtype code and dimensions");
    return parse_layout(value);
  }
};

struct Checks {
  Verify always;
  bool once;
};
constexpr Choice<Checks> kChecks[] = {{"stored", {Verify::Stored, false}},
                                      {"once", {Verify::Stored, true}},
                                      {"full", {Verify::Full, false}},
                                      {"none", {Verify::None, false}}};
constexpr Choice<Profile> kProfiles[] = {{"fast", Profile::Fast}, {"dense", Profile::Dense}};
constexpr Choice<Normalise> kNormalise[] = {{"mid", Normalise::Mid}};
constexpr Choice<Durability> kDurability[] = {{"batch", Durability::Batch},
                                              {"none", Durability::None},
                                              {"flush", Durability::Flush},
                                              {"always", Durability::Always}};
constexpr Choice<Writer::Visible> kVisible[] = {{"open", Writer::Visible::AtOnce},
                                                {"close", Writer::Visible::AtClose}};

template <class Options>
struct Option {
  const char* name;
  bool takes_none;  // which is the default
  void (*set)(const Given& given, Options& options);
};

constexpr Option<ReadOptions> kReadOptions[] = {
    {"check", false,
     [](const Given& given, ReadOptions& options) {
       const Checks checks = given.choice(kChecks);
       options.core.verify = checks.always;
       options.core.verify_once = checks.once;
     }},
    {"mmap", true,
     [](const Given& given, ReadOptions& options) {
       options.mapping = given.flag() ? Mapping::Always : Mapping::Never;
     }},
    {"max_chunk_bytes", false,
     [](const Given& given, ReadOptions& options) {
       options.core.max_chunk_raw_bytes = given.integer(1, std::numeric_limits<std::int64_t>::max());
     }},
    {"as_of", true, [](const Given& given, ReadOptions& options) { options.core.as_of = given.snapshot(); }},
};

// How chunks are made.
constexpr Option<WriterOptions> kChunkOptions[] = {
    {"codec", false, [](const Given& given, WriterOptions& options) { options.codec = given.text(); }},
    {"profile", false,
     [](const Given& given, WriterOptions& options) { options.profile = given.choice(kProfiles); }},
    {"zstd_level", false,
     [](const Given& given, WriterOptions& options) {
       options.level = static_cast<int>(given.integer(1, 22));
     }},
    {"chunk_bytes", true,
     [](const Given& given, WriterOptions& options) { options.chunk_bytes = given.size(); }},
    {"chunk_rows", true,
     [](const Given& given, WriterOptions& options) { options.chunk_rows = given.size(); }},
};

constexpr Option<WriteOptions> kWriteOptions[] = {
    {"layout", false,
     [](const Given& given, WriteOptions& options) { options.core.layout = given.layout(); }},
    {"user_meta", false,
     [](const Given& given, WriteOptions& options) { options.core.user_meta = given.bytes(); }},
    {"index_chunks", false,
     [](const Given& given, WriteOptions& options) {
       options.core.first_capacity = static_cast<std::uint32_t>(given.integer(1, kMaxCapacity));
     }},
    {"durability", false,
     [](const Given& given, WriteOptions& options) { options.core.durability = given.choice(kDurability); }},
    {"float16", false,
     [](const Given& given, WriteOptions& options) { options.core.float16.enabled = given.flag(); }},
    {"normalise", true,
     [](const Given& given, WriteOptions& options) {
       options.core.float16.normalise = given.choice(kNormalise);
     }},
    {"size_scale", false,
     [](const Given& given, WriteOptions& options) { options.core.float16.size_scale = given.number(); }},
    {"least_rows", false,
     [](const Given& given, WriteOptions& options) {
       options.core.least_rows = given.integer(0, std::numeric_limits<std::int64_t>::max());
     }},
    {"visible", false,
     [](const Given& given, WriteOptions& options) { options.visible = given.choice(kVisible); }},
};

// Whether `name` is one of the table's; then the field is set.
template <class Options, std::size_t N>
bool set_option(const Option<Options> (&table)[N], const Given& given, Options& options) {
  for (const Option<Options>& option : table) {
    if (std::strcmp(option.name, given.name) != 0) continue;
    if (given.value != Py_None || !option.takes_none) option.set(given, options);
    return true;
  }
  return false;
}

template <class Set>
void for_each_option(PyObject* dict, Set&& set) {
  PyObject* name = nullptr;
  PyObject* value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &name, &value) != 0;) {
    const char* const text = PyUnicode_AsUTF8AndSize(name, nullptr);
    if (text == nullptr) throw PythonError();
    if (set(Given{text, value})) continue;
    PyErr_Format(PyExc_TypeError, "%s= is no option", text);
    throw PythonError();
  }
}

void check_chunk_size(PyObject* dict) {
  PyObject* const rows = PyDict_GetItemString(dict, "chunk_rows");
  PyObject* const bytes = PyDict_GetItemString(dict, "chunk_bytes");
  if (rows == nullptr || bytes == nullptr || rows == Py_None || bytes == Py_None) return;
  PyErr_Format(PyExc_ValueError,
               "chunk_rows (%.20S) and chunk_bytes (%.20S) both set a chunk's size: give one", rows, bytes);
  throw PythonError();
}

}  // namespace

ReadOptions read_options(PyObject* dict) {
  ReadOptions options;
  for_each_option(dict, [&](const Given& given) { return set_option(kReadOptions, given, options); });
  return options;
}

WriteOptions write_options(PyObject* dict) {
  WriteOptions options;
  for_each_option(dict, [&](const Given& given) {
    return set_option(kChunkOptions, given, options.core) || set_option(kWriteOptions, given, options);
  });
  check_chunk_size(dict);
  return options;
}

WriterOptions chunk_options(PyObject* dict) {
  WriterOptions options;
  for_each_option(dict, [&](const Given& given) { return set_option(kChunkOptions, given, options); });
  check_chunk_size(dict);
  return options;
}

}  // namespace cdd::ext
