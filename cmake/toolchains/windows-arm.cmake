# Windows on Arm, by zig's clang and the libraries that tools/cross.py builds in .deps/windows-arm.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR ARM64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
