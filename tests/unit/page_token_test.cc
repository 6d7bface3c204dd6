#include "server/arbiter/page_token.h"

#include <string>

#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"

namespace claimd::arbiter {
namespace {

storage::v1::PageCursor CursorOf(const std::string& scope) {
  storage::v1::PageCursor cursor;
  cursor.set_scope(scope);
  cursor.set_before(42);
  return cursor;
}

TEST(PageTokenTest, ComesBackAsItWasMade) {
  const std::string scope = PageScope("listing");
  const auto cursor = DecodePageToken("key", scope, EncodePageToken("key", CursorOf(scope)));
  ASSERT_TRUE(cursor.ok());
  EXPECT_EQ(cursor->before(), 42U);
}

TEST(PageTokenTest, IsRefusedUnderAnotherKeyOrScopeAndWhenForged) {
  const std::string scope = PageScope("listing");
  const std::string token = EncodePageToken("key", CursorOf(scope));
  EXPECT_FALSE(DecodePageToken("other", scope, token).ok());
  EXPECT_FALSE(DecodePageToken("key", PageScope("else"), token).ok());
  EXPECT_FALSE(DecodePageToken("key", scope, "").ok());
  EXPECT_FALSE(DecodePageToken("key", scope, "%%%").ok());
  EXPECT_FALSE(DecodePageToken("key", scope, std::string(1'000'000, 'A')).ok());
  for (size_t i = 0; i + 1 < token.size(); ++i) {
    std::string forged = token;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(DecodePageToken("key", scope, forged).ok()) << "position " << i;
  }
}

}  // namespace
}  // namespace claimd::arbiter
