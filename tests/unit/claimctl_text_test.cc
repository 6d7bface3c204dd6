#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Lines(const std::ostringstream& out) {
  return absl::StrSplit(out.str(), '\n', absl::SkipEmpty());
}

TEST(PrintableTest, NothingMovesTheCursor) {
  EXPECT_EQ(Printable("größe"), "größe");
  EXPECT_EQ(Printable("a\x1b[2Jb\n\tc\x7f"), "a\\x1b[2Jb\\x0a\\x09c\\x7f");
  // C1 control, a mark that turns the direction, bytes that are no UTF-8 (also overlong,
  // surrogate).
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");
  EXPECT_EQ(Printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(PrintableTest, BytesAreTextOrHexadecimal) {
  EXPECT_EQ(PrintableBytes("eu-west"), "eu-west");
  EXPECT_EQ(PrintableBytes(std::string("\2\0\0\0", 4)), "0x02000000");
  EXPECT_EQ(PrintableMap({{"a", "1"}, {"b", "\x01"}}), "a=1 b=0x01");
}

TEST(JsonStringTest, EscapesWhatJsonCannotHold) {
  EXPECT_EQ(JsonString("a\"b\\c\nö"), "\"a\\\"b\\\\c\\u000aö\"");
  EXPECT_EQ(JsonString("\xff"), "\"\\ufffd\"");
  EXPECT_EQ(JsonStrings({"a", "b"}), "[\"a\",\"b\"]");
}

TEST(FitWidthTest, CutsWholeCharacters) {
  EXPECT_EQ(FitWidth("größe", 5), "größe");
  EXPECT_EQ(FitWidth("größen", 5), "größ…");
  EXPECT_EQ(DisplayWidth("größ…"), 5U);
}

TEST(TimeTextTest, RelativeOrExact) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const TimeStyle relative{false, now};
  EXPECT_EQ(TimeText(std::nullopt, relative), "-");
  EXPECT_EQ(TimeText(now, relative), "now");
  EXPECT_EQ(TimeText(now - absl::Seconds(59), relative), "59s ago");
  EXPECT_EQ(TimeText(now - absl::Seconds(60), relative), "1m ago");
  EXPECT_EQ(TimeText(now - absl::Minutes(119), relative), "1h ago");
  EXPECT_EQ(TimeText(now - absl::Hours(49), relative), "2d ago");
  EXPECT_EQ(TimeText(now + absl::Minutes(2), relative), "in 2m");
  EXPECT_EQ(TimeText(now + absl::Milliseconds(7), {true, now}), "2027-01-15T08:00:00.007Z");
}

TEST(TableTest, ColumnsAreAligned) {
  std::ostringstream out;
  Table table({{"NAME"}, {"COUNT", true}}, {}, &out);
  table.Add({"größe", "7"});
  table.Add({"", "1000"});
  table.Flush();
  EXPECT_THAT(Lines(out), ElementsAre("NAME   COUNT", "größe      7", "-       1000"));
}

TEST(TableTest, LongCellsAreCutAndLessImportantColumnsLeftOut) {
  const std::vector<Column> columns = {
      {"ID"}, {"HOLDER", false, true}, {"A", false, false, 1}, {"B", false, false, 2}};
  const std::vector<std::string> row = {"0123456789", "somebody with a long name", "aaaa", "bbbb"};
  const auto second_line = [&](size_t width) {
    std::ostringstream out;
    Table table(columns, {width}, &out);
    table.Add(row);
    table.Flush();
    for (const std::string& line : Lines(out)) EXPECT_LE(DisplayWidth(line), width);
    return Lines(out)[1];
  };
  EXPECT_EQ(second_line(49), "0123456789  somebody with a long name  aaaa  bbbb");
  EXPECT_EQ(second_line(42), "0123456789  somebody with a l…  aaaa  bbbb");
  EXPECT_EQ(second_line(39), "0123456789  somebody with a long…  aaaa");
  EXPECT_EQ(second_line(32), "0123456789  somebody with a lon…");
  EXPECT_EQ(second_line(20), "0123456789  somebod…");
}

TEST(TableTest, NothingIsCutWithoutAWidth) {
  std::ostringstream out;
  Table table({{"NAME", false, true}}, {}, &out);
  table.Add({"x"});
  table.Flush();
  table.Add({std::string(300, 'y')});
  table.Flush();
  EXPECT_EQ(Lines(out)[2], std::string(300, 'y'));
}

TEST(TableTest, ControlCharactersInCellsAreShown) {
  std::ostringstream out;
  Table table({{"NAME"}}, {}, &out);
  table.Add({"a\x1b[31m"});
  table.Flush();
  EXPECT_EQ(Lines(out)[1], "a\\x1b[31m");
}

}  // namespace
}  // namespace claimd::ctl
