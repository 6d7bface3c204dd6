#ifndef CLAIMD_SERVER_ARBITER_PAGE_TOKEN_H_
#define CLAIMD_SERVER_ARBITER_PAGE_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"

// Page tokens: opaque, URL-safe text that carries a position, bound to one listing of one store by
// a keyed digest, so that a forged token, or one from elsewhere, is refused.
namespace claimd::arbiter {

// Digest of what is listed, for PageCursor.scope. 'listing' names the rpc and all its filters.
std::string PageScope(absl::string_view listing);

std::string EncodePageToken(absl::string_view key, const storage::v1::PageCursor& cursor);

// Errors: InvalidArgument if the token was not made by EncodePageToken with this key and scope.
absl::StatusOr<storage::v1::PageCursor> DecodePageToken(absl::string_view key,
                                                        absl::string_view scope,
                                                        absl::string_view token);

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_PAGE_TOKEN_H_
