# Fails unless LIBRARY exports exactly the symbols that stand in GOLDEN. A function that is there stays there.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^ \n]+\n" names "${listed}")
list(TRANSFORM names STRIP)
list(SORT names)
file(STRINGS "${GOLDEN}" golden)
if(NOT names STREQUAL golden)
  message(FATAL_ERROR "exported:\n${names}\ngolden:\n${golden}")
endif()
