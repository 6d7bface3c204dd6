#ifndef CLAIMD_SERVER_ARBITER_RULES_INTERNAL_H_
#define CLAIMD_SERVER_ARBITER_RULES_INTERNAL_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/time/time.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"
#include "google/protobuf/timestamp.pb.h"

#include "server/arbiter/rules.h"

// Steps that the rules share.
namespace claimd::arbiter::internal {

inline constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();

google::protobuf::Timestamp ToTimestamp(absl::Time time);

// The head's successor: version + 1, update time now, made by this request, all else kept.
// REQUIRES: at.head is not null and its version is below 2^64-1.
Change Successor(const Situation& at, storage::v1::MutationKind kind);

// Ends the claim that 'change' inherited, if any: out of the manifest, into the history.
void EndClaim(const Situation& at, v1::ClaimEndReason reason, Change* change);

// Whether two protobuf maps hold the same entries.
template <typename Map>
bool SameEntries(const Map& a, const Map& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.begin(), a.end(), [&b](const auto& entry) {
    const auto found = b.find(entry.first);
    return found != b.end() && found->second == entry.second;
  });
}

// 'id' in the form that it is stored in, or unchanged if it is no UUID.
std::string CanonicalId(const std::string& id);

}  // namespace claimd::arbiter::internal

#endif  // CLAIMD_SERVER_ARBITER_RULES_INTERNAL_H_
