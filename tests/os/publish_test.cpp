// New files that get their name when they are whole, above system calls that are refused; and locks.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/os/lock.h"
#include "core/os/publish.h"
#include "tests/rig/failing_calls.h"

namespace cdd {
namespace {

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

class Publish : public testing::Test {
 protected:
  Publish()
      : folder_(std::filesystem::temp_directory_path() / ("cdd-publish-" + std::to_string(process_id()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Publish() override { std::filesystem::remove_all(folder_); }

  // Names are UTF-8; what std::filesystem makes of chars is not, on Windows.
  std::string at(const std::string& name) const { return folder_.string() + "/" + name; }
  std::string contents(const std::string& name) const {
    std::ifstream in(folder_ / std::u8string(name.begin(), name.end()), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t files() const {
    const auto all = std::filesystem::directory_iterator(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::filesystem::path folder_;
};

int errno_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Io);
    return error.os_errno();
  }
  return 0;
}

TEST_F(Publish, GivesTheNameOrReplaces) {
  publish(at("a"), bytes_of("one"), false);
  EXPECT_EQ(contents("a"), "one");
  EXPECT_EQ(errno_of([&] { publish(at("a"), bytes_of("two"), false); }), EEXIST);
  EXPECT_EQ(contents("a"), "one");
  publish(at("a"), bytes_of("three"), true);
  EXPECT_EQ(contents("a"), "three");
  publish(at("b"), {}, true);
  EXPECT_EQ(contents("b"), "");
  EXPECT_EQ(errno_of([&] { publish(at("no/c"), bytes_of("x"), true); }), ENOENT);
  EXPECT_EQ(files(), 2u) << "no temporary file stays behind";
}

TEST_F(Publish, LongNamesAreCutBetweenCharacters) {
  std::string name(67, 'x');
  while (name.size() < 249) name += "\xE2\x82\xAC";  // a euro sign, three bytes
  publish(at(name), bytes_of("euro"), false);
  EXPECT_EQ(contents(name), "euro");
  for (std::size_t shift = 0; shift < 3; ++shift) {
    const std::string temporary = temporary_beside(at(name.substr(shift)));
    const std::string own = temporary.substr(temporary.rfind('/') + 1);
    EXPECT_LE(own.size(), 255u);
    const std::size_t end = own.rfind('.', own.size() - 5);
    EXPECT_EQ((end - 1 - (67 - shift)) % 3, 0u) << own;
  }
}

TEST_F(Publish, OfManyAtOnceOneHasTheName) {
  for (int round = 0; round < 20; ++round) {
    const std::string name = "round" + std::to_string(round);
    std::vector<std::thread> threads;
    std::vector<int> found(4);
    for (std::size_t i = 0; i < found.size(); ++i) {
      threads.emplace_back(
          [&, i] { found[i] = errno_of([&] { publish(at(name), bytes_of(std::to_string(i)), false); }); });
    }
    for (std::thread& thread : threads) thread.join();
    std::size_t winners = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != 0) {
        EXPECT_EQ(found[i], EEXIST);
        continue;
      }
      ++winners;
      EXPECT_EQ(contents(name), std::to_string(i));
    }
    EXPECT_EQ(winners, 1u);
  }
  EXPECT_EQ(files(), 20u);
}

TEST_F(Publish, ALockIsOneHandlesUntilItEnds) {
  auto first = lock_file(at("lock"));
  EXPECT_EQ(errno_of([&] { lock_file(at("lock")); }), EAGAIN);
  first.reset();
  first = lock_file(at("lock"));
  EXPECT_TRUE(first->is_named(at("lock")));
}

#if defined(__linux__)

TEST_F(Publish, RefusedCallsLeaveTheOldFileOrTheNewOne) {
  for (const bool replace : {true, false}) {
    for (const int os_errno : {EIO, ENOSPC, EPERM}) {
      for (int nth = 0;; ++nth) {
        std::filesystem::remove(folder_ / "a");
        if (replace) publish(at("a"), bytes_of("old"), true);
        call_plan = {true, SystemCall::Any, os_errno, false, nth};
        const int found = errno_of([&] { publish(at("a"), bytes_of("new"), replace); });
        const int failures = call_plan.failures;
        call_plan = {};
        // Where a file system has no links (EPERM), the file is renamed; the last sync is the folder's.
        EXPECT_TRUE(found == 0 || found == os_errno);
        const std::string left = contents("a");
        EXPECT_TRUE(left == "new" || (found != 0 && left == (replace ? "old" : ""))) << left;
        EXPECT_LE(files(), 1u) << "a temporary file was left behind";
        if (failures == 0) break;
        ASSERT_LT(nth, 50);
      }
    }
  }
  EXPECT_EQ(unsynced_names, 0);
}

TEST_F(Publish, ALockOnAFileThatIsGoneKeepsNobodyOut) {
  const auto first = lock_file(at("lock"));
  std::filesystem::remove(folder_ / "lock");
  const auto second = lock_file(at("lock"));
  EXPECT_TRUE(second->is_named(at("lock")));
  EXPECT_FALSE(first->is_named(at("lock")));
}

TEST_F(Publish, LinksStayAndLeadToTheNewFile) {
  std::filesystem::create_directory(folder_ / "below");
  std::filesystem::create_symlink("below/real", folder_ / "near");
  std::filesystem::create_symlink(folder_ / "near", folder_ / "far");
  EXPECT_EQ(errno_of([&] { publish(at("far"), bytes_of("x"), false); }), EEXIST);
  for (const char* text : {"one", "two"}) {
    publish(at("far"), bytes_of(text), true);
    EXPECT_EQ(contents("below/real"), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "near"));
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(errno_of([&] { publish(at("loop"), bytes_of("x"), true); }), ELOOP);
}

#endif

}  // namespace
}  // namespace cdd
