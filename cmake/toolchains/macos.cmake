# macOS on Arm, by zig's clang and the libraries that tools/cross.py builds in .deps/macos.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
