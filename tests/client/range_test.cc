#include "claimd/range.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace claimd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = Range<int>;

// Serves pages in order; page n has the token "n".
Numbers::FetchPage Pages(const std::vector<std::vector<int>>& pages,
                         std::vector<std::string>* asked) {
  return [pages, asked](const std::string& token) -> absl::StatusOr<Numbers::Page> {
    asked->push_back(token);
    const size_t n = token.empty() ? 0 : std::stoul(token);
    return Numbers::Page{pages[n], n + 1 < pages.size() ? std::to_string(n + 1) : ""};
  };
}

TEST(RangeTest, WalksAllPagesAndSkipsEmptyOnes) {
  std::vector<std::string> asked;
  const Numbers range(Pages({{1, 2}, {}, {}, {3}, {}}, &asked));
  std::vector<int> seen;
  for (const absl::StatusOr<int>& number : range) seen.push_back(number.value());
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
  EXPECT_THAT(asked, ElementsAre("", "1", "2", "3", "4"));
}

TEST(RangeTest, AnEmptyListingHasNoElements) {
  std::vector<std::string> asked;
  EXPECT_THAT(Numbers(Pages({{}}, &asked)).ToVector().value(), IsEmpty());
  EXPECT_EQ(asked.size(), 1U);
}

TEST(RangeTest, FetchesAPageOnlyWhenItIsReached) {
  std::vector<std::string> asked;
  const Numbers range(Pages({{1, 2}, {3}}, &asked));
  auto position = range.begin();
  ++position;
  EXPECT_EQ(position->value(), 2);
  EXPECT_EQ(asked.size(), 1U);
}

TEST(RangeTest, AnErrorIsTheLastElement) {
  const Numbers range([](const std::string& token) -> absl::StatusOr<Numbers::Page> {
    if (token.empty()) return Numbers::Page{{1}, "next"};
    return absl::UnavailableError("gone");
  });
  std::vector<absl::StatusOr<int>> seen;
  for (const absl::StatusOr<int>& number : range) seen.push_back(number);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].value(), 1);
  EXPECT_TRUE(absl::IsUnavailable(seen[1].status()));
}

TEST(RangeTest, ToVectorAnswersTheError) {
  const Numbers range([](const std::string& token) -> absl::StatusOr<Numbers::Page> {
    if (token.empty()) return Numbers::Page{{1}, "next"};
    return absl::UnavailableError("gone");
  });
  EXPECT_TRUE(absl::IsUnavailable(range.ToVector().status()));
}

TEST(RangeTest, AServerThatRepeatsItsTokenDoesNotKeepTheWalkGoing) {
  int pages = 0;
  const Numbers range([&pages](const std::string&) -> absl::StatusOr<Numbers::Page> {
    ++pages;
    return Numbers::Page{{}, "same"};
  });
  EXPECT_TRUE(absl::IsInternal(range.ToVector().status()));
  EXPECT_EQ(pages, 2);
}

}  // namespace
}  // namespace claimd
