"""The overlay port of libcdd, as far as it can be judged without vcpkg: its functions are stand-ins here."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PORT = ROOT / "packaging" / "vcpkg" / "ports" / "cdd"

if not PORT.exists():
    pytest.skip("the sources are not here", allow_module_level=True)

STAND_INS = """
set(CURRENT_PACKAGES_DIR "{work}/packages")
set(PORT cdd)
set(FEATURES "{features}")
function(vcpkg_check_linkage)
  message("linkage ${{ARGN}}")
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure takes no ${{arg_UNPARSED_ARGUMENTS}}")
  endif()
  message("source ${{arg_SOURCE_PATH}}")
  foreach(option IN LISTS arg_OPTIONS)
    message("option ${{option}}")
  endforeach()
endfunction()
function(vcpkg_cmake_install)
  file(MAKE_DIRECTORY "${{CURRENT_PACKAGES_DIR}}/debug/include")
endfunction()
function(vcpkg_cmake_config_fixup)
  message("config ${{ARGN}}")
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  message("licence ${{ARGN}}")
endfunction()
include("{port}/portfile.cmake")
"""


def names(dependencies: list[object]) -> set[str]:
    return {one if isinstance(one, str) else one["name"] for one in dependencies}  # type: ignore[index]


def test_the_manifest_is_that_of_the_project() -> None:
    port = json.loads((PORT / "vcpkg.json").read_text())
    project = json.loads((ROOT / "vcpkg.json").read_text())
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (port["name"], port["version"]) == (project["name"], version)
    helpers = {"vcpkg-cmake", "vcpkg-cmake-config"}
    assert names(port["dependencies"]) - helpers == names(project["dependencies"])
    assert port["features"]["tbb"] == project["features"]["tbb"]


@pytest.mark.parametrize(("features", "threads"), [("core;tbb", "external"), ("core", "off")])
def test_the_portfile(tmp_path: Path, features: str, threads: str) -> None:
    cmake = shutil.which("cmake")
    if cmake is None:
        pytest.skip("there is no CMake")
    script = tmp_path / "stand_ins.cmake"
    script.write_text(STAND_INS.format(work=tmp_path.as_posix(), port=PORT.as_posix(), features=features))
    done = subprocess.run([cmake, "-P", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert f"source {ROOT.as_posix()}" in [line.rstrip("/") for line in told]
    assert f"licence FILE_LIST;{ROOT.as_posix()}/LICENSE" in [line.replace("//", "/") for line in told]
    options = dict(re.findall(r"^option -D(\w+)=(.*)$", done.stderr, re.MULTILINE))
    assert options["CDD_TBB"] == threads
    assert options["CDD_BUILD_SHARED"] == "ON"
    lists = (ROOT / "CMakeLists.txt").read_text()
    for name in options:
        assert re.search(rf"^(option|set)\({name}\b", lists, re.MULTILINE), f"{name} is no option of ours"
    assert (tmp_path / "packages/share/cdd/usage").exists()
    assert not (tmp_path / "packages/debug/include").exists()
    installed = re.search(r"CONFIG_PATH;(\S+)", done.stderr)
    assert installed is not None
    assert installed[1] == "lib/cmake/cdd"
    assert 'DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/cdd"' in (ROOT / "capi/CMakeLists.txt").read_text()
