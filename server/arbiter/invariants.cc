#include "server/arbiter/invariants.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "google/protobuf/util/message_differencer.h"
#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {
namespace {

using google::protobuf::util::MessageDifferencer;
using storage::v1::ShardRecord;

// First rule that one manifest breaks by itself, or "".
absl::string_view BrokenAlone(const v1::ShardManifest& manifest) {
  if (manifest.version() == 0) return "version is 0";
  if (manifest.status() == v1::SHARD_STATUS_DROPPED) {
    return manifest.has_claim() ? "a tombstone holds a claim" : "";
  }
  if (manifest.status() != v1::SHARD_STATUS_ACTIVE &&
      manifest.status() != v1::SHARD_STATUS_SEALED) {
    return "status is unknown";
  }
  if (manifest.current_generation() == 0) return "current_generation is 0";
  if (manifest.has_claim() && manifest.claim().writer_epoch() != manifest.writer_epoch()) {
    return "the claim has another epoch than the manifest";
  }
  if (manifest.has_claim() && manifest.writer_epoch() == 0) return "a claim under epoch 0";
  return "";
}

bool SameIdentity(const v1::ShardManifest& a, const v1::ShardManifest& b) {
  if (a.shard_spec_id() != b.shard_spec_id() ||
      a.shard_spec_fingerprint() != b.shard_spec_fingerprint() ||
      a.shard_field_values_size() != b.shard_field_values_size()) {
    return false;
  }
  for (const auto& [field_id, value] : a.shard_field_values()) {
    const auto found = b.shard_field_values().find(field_id);
    if (found == b.shard_field_values().end() || found->second != value) return false;
  }
  return true;
}

// First rule that the step within one life breaks, or "".
absl::string_view BrokenWithinLife(const v1::ShardManifest& before,
                                   const v1::ShardManifest& after) {
  if (!SameIdentity(before, after)) return "the identity changed";
  if (after.current_generation() < before.current_generation()) return "the generation went back";
  if (after.replay_after_wal_entry_position() < before.replay_after_wal_entry_position()) {
    return "the replay position went back";
  }
  const bool new_holder =
      after.has_claim() &&
      (!before.has_claim() || after.claim().writer_epoch() != before.claim().writer_epoch());
  if (new_holder && after.writer_epoch() <= before.writer_epoch()) {
    return "a claim was granted without a new epoch";
  }
  return "";
}

absl::string_view BrokenStep(const v1::ShardManifest& before, const v1::ShardManifest& after) {
  if (before.table() != after.table() || before.shard_id() != after.shard_id()) {
    return "the key changed";
  }
  if (after.version() == before.version()) {
    return MessageDifferencer::Equals(before, after) ? "" : "a version changed its content";
  }
  // Written this way round so that it cannot wrap.
  if (after.version() - 1 != before.version()) return "the version does not follow";
  if (after.writer_epoch() < before.writer_epoch()) return "the epoch went back";
  const bool was_dropped = before.status() == v1::SHARD_STATUS_DROPPED;
  const bool is_dropped = after.status() == v1::SHARD_STATUS_DROPPED;
  if (is_dropped) {
    return before.status() == v1::SHARD_STATUS_SEALED ? "" : "dropped without a seal";
  }
  if (was_dropped) {
    const bool fenced = after.writer_epoch() > before.writer_epoch() || before.writer_epoch() == 0;
    return fenced ? "" : "made anew without fencing its first life";
  }
  return BrokenWithinLife(before, after);
}

}  // namespace

absl::Status CheckRecord(const store::ShardKey& key, const ShardRecord& record) {
  const v1::ShardManifest& manifest = record.manifest();
  if (manifest.table() != key.table || manifest.shard_id() != base::FormatUuid(key.shard_id)) {
    return absl::DataLossError("a record is stored under another shard's key");
  }
  if (const absl::string_view broken = BrokenAlone(manifest); !broken.empty()) {
    return absl::DataLossError(
        absl::StrCat("the record of shard ", manifest.shard_id(), " cannot be right: ", broken));
  }
  return absl::OkStatus();
}

absl::Status CheckTransition(const ShardRecord* before, const ShardRecord& after) {
  absl::string_view broken = BrokenAlone(after.manifest());
  if (broken.empty() && before != nullptr) {
    broken = BrokenStep(before->manifest(), after.manifest());
  }
  if (broken.empty() && before != nullptr && after.ended_claims() < before->ended_claims()) {
    broken = "the claim history went back";
  }
  if (broken.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a change of shard ", after.manifest().shard_id(),
                                          " was stopped because it breaks an invariant: ", broken));
}

}  // namespace claimd::arbiter
