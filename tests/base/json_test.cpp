#include "core/base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace cdd::test {
namespace {

bool is_refused(const std::string& text) {
  try {
    Json::parse(text);
  } catch (const Error& error) {
    return error.code() == ErrorCode::Corrupt;
  }
  return false;
}

TEST(Json, ReadsWhatTheRfcHas) {
  const Json json =
      Json::parse(" { \"a\" : [ 1 , -2.5e+3 , true , null ] , \"b\\u00e9\\n\" : \"\\ud83d\\ude00\" } ");
  ASSERT_TRUE(json.is_object());
  const Json* const list = json.find("a");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->items()[0].as_natural(), 1u);
  EXPECT_EQ(list->items()[1].text(), "-2.5e+3");
  EXPECT_FALSE(list->items()[1].as_natural());
  EXPECT_TRUE(list->items()[2].as_bool());
  EXPECT_TRUE(list->items()[3].is_null());
  ASSERT_NE(json.find("b\xc3\xa9\n"), nullptr);
  EXPECT_EQ(json.find("b\xc3\xa9\n")->text(), "\xf0\x9f\x98\x80");
  EXPECT_EQ(json.find("c"), nullptr);
}

TEST(Json, WhatIsWrittenIsReadAgain) {
  const std::string text =
      "{\"a\": [1, 2.50, \"\\\"\\\\\\u0001\xc3\xa9\"], \"b\": {\"c\": [[], {}]}, \"d\": false}";
  const std::string once = Json::parse(text).dump();
  EXPECT_EQ(Json::parse(once).dump(), once);
  EXPECT_NE(once.find("2.50"), std::string::npos);  // numbers keep their text
}

TEST(Json, RefusesEverythingElse) {
  for (const char* const text : {"",
                                 " ",
                                 "{",
                                 "[",
                                 "[1",
                                 "[1,]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "'a'",
                                 "01",
                                 "1.",
                                 ".5",
                                 "+1",
                                 "1e",
                                 "--1",
                                 "tru",
                                 "nul",
                                 "NaN",
                                 "Infinity",
                                 "\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\ud800\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\udc00\"",
                                 "\"\t\"",
                                 "\"\xff\"",
                                 "\"\xc0\xaf\"",
                                 "\"\xed\xa0\x80\"",
                                 "\"\xf4\x90\x80\x80\"",
                                 "\"\xe2\x82\"",
                                 "1 2",
                                 "{} {}",
                                 "[1]x",
                                 "{\"a\":1,\"a\":2}",
                                 "\xef\xbb\xbf{}",
                                 "0x10",
                                 "// a\n1"}) {
    EXPECT_TRUE(is_refused(text)) << text;
  }
}

TEST(Json, DepthAndSizeAreBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_FALSE(is_refused(nested(Json::kMaxDepth)));
  EXPECT_TRUE(is_refused(nested(Json::kMaxDepth + 2)));
  EXPECT_TRUE(is_refused(std::string(100000, '[')));
  std::string many = "[0";
  for (std::size_t i = 0; i <= Json::kMaxValues; ++i) many += ",0";
  EXPECT_TRUE(is_refused(many + "]"));
  EXPECT_TRUE(is_refused("\"" + std::string(Json::kMaxBytes, 'a') + "\""));
}

}  // namespace
}  // namespace cdd::test
