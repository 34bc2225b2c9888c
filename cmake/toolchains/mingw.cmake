# 64-bit Windows from Debian: MinGW's gcc, and the libraries that tools/cross.py builds in .deps/mingw.
# Programs run under Wine, by ctest too.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.deps/mingw" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${_prefix}" /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ZLIB_USE_STATIC_LIBS ON)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -static)  # _cdd.pyd, too, needs none of MinGW's DLLs
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/lib/wine/wine64)
