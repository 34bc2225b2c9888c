/* A file's bytes, for the C tests. */
#ifndef CDD_TESTS_CAPI_FILES_H
#define CDD_TESTS_CAPI_FILES_H
#include <stdio.h>
#include <stdlib.h>

/* To be freed; a 0 stands behind them. */
static void* read_file(const char* path, size_t* size) {
  FILE* const file = fopen(path, "rb");
  char* bytes;
  if (file == NULL) abort();
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) abort();
  bytes[*size] = 0;
  fclose(file);
  return bytes;
}

#endif
