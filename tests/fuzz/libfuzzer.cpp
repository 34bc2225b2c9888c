// libFuzzer's entry points: cdd_fuzz --target=NAME [libFuzzer's options] [corpus folders]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

const cdd::fuzz::Target* target = nullptr;

void scramble(cdd::fuzz::Buffer& bytes, std::size_t most) {
  const std::size_t size = std::min(bytes.size(), most);
  bytes.resize(most);
  bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, most));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr char kOption[] = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const char* const text = (*argv)[i];
    if (std::strncmp(text, kOption, std::strlen(kOption)) == 0) {
      target = cdd::fuzz::find_target(text + std::strlen(kOption));
    }
  }
  if (target != nullptr) return 0;
  // The names are all that standard output gets: a script may ask for them.
  for (const cdd::fuzz::Target& known : cdd::fuzz::targets())
    std::printf("%s %s\n", known.name, known.corpus);
  std::fflush(stdout);
  std::_Exit(*argc == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  cdd::fuzz::Random random(seed);
  cdd::fuzz::Buffer input(cdd::as_bytes(data), cdd::as_bytes(data) + size);
  target->mutate(input, max_size, random, scramble);
  input.resize(std::min(input.size(), max_size));
  std::copy(input.begin(), input.end(), cdd::as_bytes(static_cast<void*>(data)));
  return input.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target->run({cdd::as_bytes(data), size});
  return 0;
}
