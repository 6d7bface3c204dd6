#ifndef CLAIMD_SERVER_STORE_RETENTION_H_
#define CLAIMD_SERVER_STORE_RETENTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"

// What a swap does besides replacing the head, as pure functions, the same for every store: which
// versions, ended claims and request ids are kept (see ManifestStore).
namespace claimd::store {

// OK if a swap is one that ManifestStore takes, else Internal: the caller has a bug.
absl::Status CheckSwap(const SwapRequest& request);

// True if a swap only remembers one more request id: its version is the one it replaces.
bool IsRecordOnly(const SwapRequest& request);

// True if 'replaced' goes into the version history when 'next' replaces it.
// REQUIRES: the swap is not record-only.
bool KeepsReplaced(const claimd::storage::v1::ShardRecord& replaced,
                   const claimd::storage::v1::ShardRecord& next);

// A range of numbers to visit from 'newest' down to 'oldest'; empty if newest < oldest.
struct DescendingRange {
  uint64_t newest = 0;
  uint64_t oldest = 1;
};

// Versions that fall out of the history when 'next' becomes the head. Usually one; more are looked
// at only if the history was kept longer once ('versions_ever' > retention.history_versions), and
// then the first that is not there ends the range.
DescendingRange VersionsFallingOut(const claimd::storage::v1::ShardRecord& next,
                                   uint64_t history_versions, uint64_t versions_ever);

// The same for the claim history, when the claim with sequence 'ended_claims' is added.
DescendingRange ClaimsFallingOut(uint64_t ended_claims, uint64_t claim_history,
                                 uint64_t claims_ever);

// Versions in the history that a drop of 'dropped' removes; the first that is not there ends the
// range.
DescendingRange VersionsDropped(const claimd::storage::v1::ShardRecord& dropped,
                                uint64_t versions_ever);

// Request ids that are forgotten together with a version. The id of the claim that is held at that
// version is not among them: it goes with its entry of the claim history.
std::vector<std::string> IdsOfVersion(const claimd::storage::v1::ShardRecord& record);

// Request ids that a record-only swap forgets: those that 'next' no longer names.
std::vector<std::string> IdsForgottenBetween(const claimd::storage::v1::ShardRecord& replaced,
                                             const claimd::storage::v1::ShardRecord& next);

// True if what is remembered under the request id of 'claim' is that claim, so that it is forgotten
// with it, and not something newer under the same id.
bool IsRequestOfClaim(const claimd::storage::v1::AppliedRequest& applied,
                      const claimd::v1::ClaimRecord& claim);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_RETENTION_H_
