# An overlay port: vcpkg install cdd --overlay-ports=<clone of cdd>/packaging/vcpkg/ports
#
# It builds the clone that it lies in. The C interface is the package's ABI, so libcdd is a shared library
# whatever the triplet says.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
cmake_path(ABSOLUTE_PATH CMAKE_CURRENT_LIST_DIR NORMALIZE OUTPUT_VARIABLE SOURCE_PATH)
cmake_path(APPEND SOURCE_PATH ../../../..)
cmake_path(NORMAL_PATH SOURCE_PATH)

set(threads off)
if("tbb" IN_LIST FEATURES)
  set(threads external)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DCDD_BUILD_SHARED=ON
    -DCDD_BUILD_EXTENSION=OFF
    -DCDD_BUILD_TESTS=OFF
    -DCDD_STATIC_DEPS=OFF
    -DCDD_TBB=${threads}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/cdd)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
