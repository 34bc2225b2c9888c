# One place that maps every way a dependency can be present (vcpkg, Debian,
# a source tree) to the project's own targets:
#   cdd::zstd cdd::lz4 cdd::blake3 cdd::xxhash cdd::hwy cdd::tbb
include_guard(GLOBAL)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

function(cdd_dependency name)
  add_library(cdd_dep_${name} INTERFACE)
  target_link_libraries(cdd_dep_${name} INTERFACE ${ARGN})
  add_library(cdd::${name} ALIAS cdd_dep_${name})
  message(STATUS "cdd: ${name} <- ${ARGN}")
endfunction()

# First existing target of the list.
function(cdd_first_target out)
  set(${out} "" PARENT_SCOPE)
  foreach(t IN LISTS ARGN)
    if(TARGET ${t})
      set(${out} ${t} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Header + library search for packages that ship no CMake config.
function(cdd_find_plain out header lib)
  find_path(CDD_${lib}_INCLUDE_DIR ${header} REQUIRED)
  if(CDD_STATIC_DEPS)
    find_library(CDD_${lib}_LIBRARY NAMES lib${lib}.a ${lib}_static ${lib} REQUIRED)
  else()
    find_library(CDD_${lib}_LIBRARY NAMES ${lib} REQUIRED)
  endif()
  add_library(cdd_plain_${lib} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(cdd_plain_${lib} PROPERTIES
    IMPORTED_LOCATION "${CDD_${lib}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CDD_${lib}_INCLUDE_DIR}")
  set(${out} cdd_plain_${lib} PARENT_SCOPE)
endfunction()

# ---- zstd: vcpkg zstd::libzstd; Debian zstd::libzstd_static/_shared
find_package(zstd CONFIG QUIET)
if(CDD_STATIC_DEPS)
  cdd_first_target(t zstd::libzstd_static zstd::libzstd zstd::libzstd_shared)
else()
  cdd_first_target(t zstd::libzstd_shared zstd::libzstd zstd::libzstd_static)
endif()
if(NOT t)
  cdd_find_plain(t zstd.h zstd)
endif()
cdd_dependency(zstd ${t} Threads::Threads)

# ---- lz4: vcpkg lz4::lz4; upstream config LZ4::lz4_static/_shared (Debian 13);
#      Debian 12 has only headers, liblz4.a/.so and a .pc file
find_package(lz4 CONFIG QUIET)
if(CDD_STATIC_DEPS)
  cdd_first_target(t LZ4::lz4_static lz4::lz4 LZ4::lz4 LZ4::lz4_shared)
else()
  cdd_first_target(t LZ4::lz4_shared lz4::lz4 LZ4::lz4 LZ4::lz4_static)
endif()
if(NOT t)
  cdd_find_plain(t lz4.h lz4)
endif()
cdd_dependency(lz4 ${t})

# ---- BLAKE3: config package "blake3" (vcpkg, upstream) or its C sources
find_package(blake3 CONFIG QUIET)
if(TARGET BLAKE3::blake3)
  cdd_dependency(blake3 BLAKE3::blake3)
else()
  include(CddBlake3FromSource)
  cdd_dependency(blake3 cdd_blake3)
endif()

# ---- Highway
find_package(hwy 1.2 CONFIG QUIET)
if(NOT hwy_FOUND)
  message(FATAL_ERROR "Highway 1.2 or newer is not found. On Debian and Ubuntu `python3 dev.py build` gets it; "
    "elsewhere it comes with vcpkg (README.md, Install), or CMAKE_PREFIX_PATH says where it is.")
endif()
cdd_dependency(hwy hwy::hwy)
message(STATUS "cdd: highway ${hwy_VERSION}")

# ---- oneTBB. internal: the system's or vcpkg's, as everything else. external: the one that the process has
#      anyway, from TBB_DIR or a target of the project that includes this one; two copies of TBB in a process
#      would each start threads for all cores, so a static one is refused.
if(NOT CDD_TBB STREQUAL "off")
  if(NOT TARGET TBB::tbb)
    find_package(TBB CONFIG REQUIRED COMPONENTS tbb)
  endif()
  get_target_property(_tbb_type TBB::tbb TYPE)
  if(CDD_TBB STREQUAL "external" AND _tbb_type STREQUAL "STATIC_LIBRARY")
    message(FATAL_ERROR "CDD_TBB=external needs a shared oneTBB, ${TBB_DIR} has a static one")
  endif()
  cdd_dependency(tbb TBB::tbb)
endif()

# ---- xxhash: header only, used with XXH_INLINE_ALL
find_path(CDD_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(cdd_xxhash INTERFACE)
target_include_directories(cdd_xxhash SYSTEM INTERFACE "${CDD_XXHASH_INCLUDE_DIR}")
cdd_dependency(xxhash cdd_xxhash)
