// What Python.h must know of 64-bit Windows to be compiled by MinGW, instead of the pyconfig.h of the machine
// that compiles. Just enough for the Limited API; releases are built by MSVC with Python's own.
#pragma once

#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define WITH_THREAD 1
#define HAVE_DECLSPEC_DLL
#define Py_ENABLE_SHARED 1
#define Py_NO_ENABLE_SHARED_PRAGMA
#define COMPILER "[MinGW]"

#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SHORT 2
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_TIME_T 8
#define SIZEOF_FPOS_T 8
#define SIZEOF_HKEY 8
#define ALIGNOF_MAX_ALIGN_T 16

#define HAVE_STDINT_H 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_WCHAR_H 1
#define HAVE_PROTOTYPES 1
#define HAVE_SSIZE_T 1
