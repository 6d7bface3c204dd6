#include "server/arbiter/page_token.h"

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "claimd/storage/v1/storage.pb.h"

namespace claimd::arbiter {
namespace {

constexpr size_t kDigestLength = 16;
// A cursor is a scope, a shard id and a number; a longer token is not one of ours.
constexpr size_t kTokenLengthMax = 256;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string KeyedDigest(absl::string_view key, absl::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), Bytes(text), text.size(),
       digest.data(), &length);
  return {digest.begin(), digest.begin() + kDigestLength};
}

absl::Status NotOurs() { return absl::InvalidArgumentError("not a page token of this listing"); }

}  // namespace

std::string PageScope(absl::string_view listing) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(Bytes(listing), listing.size(), digest.data());
  return {digest.begin(), digest.begin() + kDigestLength};
}

std::string EncodePageToken(absl::string_view key, const storage::v1::PageCursor& cursor) {
  const std::string body = cursor.SerializeAsString();
  return absl::WebSafeBase64Escape(absl::StrCat(KeyedDigest(key, body), body));
}

absl::StatusOr<storage::v1::PageCursor> DecodePageToken(absl::string_view key,
                                                        absl::string_view scope,
                                                        absl::string_view token) {
  std::string bytes;
  if (token.size() > kTokenLengthMax || !absl::WebSafeBase64Unescape(token, &bytes) ||
      bytes.size() < kDigestLength) {
    return NotOurs();
  }
  const absl::string_view body = absl::string_view(bytes).substr(kDigestLength);
  const std::string digest = KeyedDigest(key, body);
  if (CRYPTO_memcmp(digest.data(), bytes.data(), kDigestLength) != 0) return NotOurs();
  storage::v1::PageCursor cursor;
  if (!cursor.ParseFromArray(body.data(), static_cast<int>(body.size()))) return NotOurs();
  if (cursor.scope() != scope) return NotOurs();
  return cursor;
}

}  // namespace claimd::arbiter
