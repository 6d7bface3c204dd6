#include "server/base/uuid.h"

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "server/base/random.h"

namespace claimd::base {
namespace {

TEST(UuidTest, TakesEitherCaseAndPrintsLowerCase) {
  const auto uuid = ParseUuid("AA48498d-AC91-59E2-8452-69f46010ACE2");
  ASSERT_TRUE(uuid.ok());
  EXPECT_EQ(FormatUuid(*uuid), "aa48498d-ac91-59e2-8452-69f46010ace2");
  EXPECT_EQ(UuidFromBytes(UuidBytes(*uuid)).value(), *uuid);
}

TEST(UuidTest, RefusesEveryOtherForm) {
  for (const char* text :
       {"", "aa48498d", "aa48498dac9159e2845269f46010ace2", "{aa48498d-ac91-59e2-8452-69f46010ace}",
        "aa48498d-ac91-59e2-8452-69f46010ace", "aa48498d-ac91-59e2-8452-69f46010ace22",
        "aa48498d-ac91-59e2-8452-69f46010aceg", "aa48498d+ac91-59e2-8452-69f46010ace2",
        "aa48498-dac91-59e2-8452-69f46010ace2", " a48498d-ac91-59e2-8452-69f46010ace2"}) {
    EXPECT_FALSE(ParseUuid(text).ok()) << text;
  }
  EXPECT_FALSE(UuidFromBytes(std::string(15, 'x')).ok());
}

TEST(UuidTest, NewOnesAreRandomAndOfVersion4) {
  const Uuid a = NewUuid(SystemRandom());
  const Uuid b = NewUuid(SystemRandom());
  EXPECT_NE(a, b);
  EXPECT_EQ(FormatUuid(a)[14], '4');
}

}  // namespace
}  // namespace claimd::base
