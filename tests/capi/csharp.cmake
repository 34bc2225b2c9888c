# Compiles the C# binding and its test by Mono's compiler and runs it against the shared library.
find_program(MCS mcs)
find_program(MONO mono)
if(NOT MCS OR NOT MONO)
  message("skipped: Mono is not there (mono-mcs and mono-runtime of Debian)")
  return()
endif()
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
file(GLOB binding "${SOURCE}/bindings/csharp/*.cs")
execute_process(COMMAND "${MCS}" -langversion:latest -unsafe -warnaserror -target:library "-out:${WORK}/Cdd.dll" ${binding}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${MCS}" "-r:${WORK}/Cdd.dll" "-out:${WORK}/test.exe" "${SOURCE}/tests/capi/csharp_test.cs"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${MCS}" "-r:${WORK}/Cdd.dll" "-out:${WORK}/window.exe" "${SOURCE}/examples/csharp/Window.cs"
  COMMAND_ERROR_IS_FATAL ANY)
cmake_path(GET LIBRARY PARENT_PATH folder)
set(ENV{LD_LIBRARY_PATH} "${folder}")
execute_process(COMMAND "${MONO}" "${WORK}/test.exe" "${SOURCE}/tests/golden" "${WORK}" TIMEOUT 120
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${MONO}" "${WORK}/window.exe" "${SOURCE}/tests/golden/unclosed.cdd" 2 3 TIMEOUT 60
  OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "3 rows of 50, 3")
  message(FATAL_ERROR "window.exe printed: ${printed}")
endif()
