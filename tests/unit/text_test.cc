#include "server/base/text.h"

#include <gtest/gtest.h>

namespace claimd::base {
namespace {

TEST(IsPlainTextTest, TakesAsciiAndEveryLengthOfUtf8) {
  EXPECT_TRUE(IsPlainText(""));
  EXPECT_TRUE(IsPlainText("users.v2/eu west"));
  EXPECT_TRUE(IsPlainText("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
}

TEST(IsPlainTextTest, RefusesControlCharacters) {
  EXPECT_FALSE(IsPlainText(absl::string_view("a\0b", 3)));
  EXPECT_FALSE(IsPlainText("a\nb"));
  EXPECT_FALSE(IsPlainText("\x7f"));
  EXPECT_FALSE(IsPlainText("\xc2\x85"));
  EXPECT_TRUE(IsPlainText("\xc2\xa0"));
}

TEST(IsUtf8Test, RefusesWhatIsNoUtf8) {
  EXPECT_FALSE(IsUtf8("\xff"));
  EXPECT_FALSE(IsUtf8("\x80"));
  EXPECT_FALSE(IsUtf8("\xc3"));
  EXPECT_FALSE(IsUtf8("\xe2\x82"));
  EXPECT_FALSE(IsUtf8("\xc0\xaf")) << "overlong";
  EXPECT_FALSE(IsUtf8("\xed\xa0\x80")) << "surrogate";
  EXPECT_FALSE(IsUtf8("\xf4\x90\x80\x80")) << "above U+10FFFF";
  EXPECT_TRUE(IsUtf8("a\nb"));
}

}  // namespace
}  // namespace claimd::base
