#include "server/store/retention.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/uuid.h"
#include "server/store/manifest_store.h"

namespace claimd::store {
namespace {

using storage::v1::AppliedRequest;
using storage::v1::ShardRecord;

// Numbers from last - kept down to last - kept_ever, not below 'lowest'.
DescendingRange FallingOut(uint64_t last, uint64_t kept, uint64_t kept_ever, uint64_t lowest) {
  if (last <= kept) return {};
  const uint64_t newest = last - kept;
  const uint64_t looked_at = std::max(kept, kept_ever);
  const uint64_t oldest = last > looked_at ? last - looked_at : 1;
  return {.newest = newest, .oldest = std::max({oldest, lowest, uint64_t{1}})};
}

}  // namespace

absl::Status CheckSwap(const SwapRequest& request) {
  if (request.next == nullptr) return absl::InternalError("a swap without a new head");
  if (request.request_id.empty()) return absl::InternalError("a swap without a request id");
  const v1::ShardManifest& next = request.next->manifest();
  if (next.table() != request.key.table ||
      next.shard_id() != base::FormatUuid(request.key.shard_id)) {
    return absl::InternalError("a swap whose new head is of another shard");
  }
  if (next.version() == 0) return absl::InternalError("a swap to version 0");
  if (request.expected_version != 0 && next.version() != request.expected_version &&
      next.version() - 1 != request.expected_version) {
    return absl::InternalError("a swap that leaves out versions");
  }
  if (request.ended_claim.has_value() &&
      (request.next->ended_claims() == 0 || IsRecordOnly(request))) {
    return absl::InternalError("a swap with an ended claim that its new head does not count");
  }
  return absl::OkStatus();
}

bool IsRecordOnly(const SwapRequest& request) {
  return request.expected_version != 0 &&
         request.next->manifest().version() == request.expected_version;
}

bool KeepsReplaced(const ShardRecord& replaced, const ShardRecord& next) {
  return next.manifest().status() != v1::SHARD_STATUS_DROPPED &&
         replaced.manifest().version() >= next.first_version();
}

DescendingRange VersionsFallingOut(const ShardRecord& next, uint64_t history_versions,
                                   uint64_t versions_ever) {
  return FallingOut(next.manifest().version(), history_versions, versions_ever,
                    next.first_version());
}

DescendingRange ClaimsFallingOut(uint64_t ended_claims, uint64_t claim_history,
                                 uint64_t claims_ever) {
  return FallingOut(ended_claims, claim_history, claims_ever, 1);
}

DescendingRange VersionsDropped(const ShardRecord& dropped, uint64_t versions_ever) {
  const uint64_t last = dropped.manifest().version();
  if (last <= 1) return {};
  const uint64_t oldest = last > versions_ever ? last - versions_ever : 1;
  return {.newest = last - 1, .oldest = std::max({oldest, dropped.first_version(), uint64_t{1}})};
}

std::vector<std::string> IdsOfVersion(const ShardRecord& record) {
  std::vector<std::string> ids;
  ids.reserve(static_cast<size_t>(record.request_ids_size()));
  for (const std::string& id : record.request_ids()) {
    if (id != record.manifest().claim().request_id()) ids.push_back(id);
  }
  return ids;
}

std::vector<std::string> IdsForgottenBetween(const ShardRecord& replaced, const ShardRecord& next) {
  std::vector<std::string> ids = IdsOfVersion(replaced);
  ids.erase(std::remove_if(ids.begin(), ids.end(),
                           [&next](const std::string& id) {
                             return absl::c_linear_search(next.request_ids(), id);
                           }),
            ids.end());
  return ids;
}

bool IsRequestOfClaim(const AppliedRequest& applied, const v1::ClaimRecord& claim) {
  return applied.writer_epoch() == claim.claim().writer_epoch();
}

}  // namespace claimd::store
