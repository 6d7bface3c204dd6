#ifndef CLAIMD_TYPES_H_
#define CLAIMD_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

// What claimd knows about a shard, as plain values. All of them can be copied, compared and shared
// between threads like any other value.
//
//   claimd::ShardManifest manifest = claim.manifest();
//   for (const claimd::SsTable& table : manifest.sstables) Open(table.path);
namespace claimd {

// What may be done with a shard.
enum class ShardStatus {
  // A status that a newer server knows and this library does not.
  kUnknown = 0,
  // Can be claimed and committed to.
  kActive = 1,
  // A drop is in flight: no new claim is granted, the incumbent may commit what it has left.
  kSealed = 2,
  // Gone. Only version and epoch are kept.
  kDropped = 3,
};

// "ACTIVE", "SEALED", "DROPPED" or "UNKNOWN".
std::string ToString(ShardStatus status);

// One flushed generation of a shard.
struct SsTable {
  // At least 1 and below the manifest's current_generation; unique in the manifest.
  uint64_t generation = 0;
  // Where the writer put it. Opaque to claimd.
  std::string path;
  // Absent is "not known", which is not zero.
  std::optional<uint64_t> in_memory_bytes;
  std::optional<uint64_t> physical_rows;
  std::optional<uint64_t> primary_key_bytes;
  // Fields that a newer server sent and this library does not know, in wire form. Left as it is,
  // nothing of them is lost in a commit.
  std::string unknown_fields;

  friend bool operator==(const SsTable& a, const SsTable& b);
  friend bool operator!=(const SsTable& a, const SsTable& b) { return !(a == b); }
};

// A granted claim: who may write the shard, under which epoch.
struct ClaimInfo {
  uint64_t writer_epoch = 0;
  // Name and labels that the writer gave for itself.
  std::string claimant;
  std::map<std::string, std::string> labels;
  // When the claim was granted, by the server's clock.
  std::optional<absl::Time> claim_time;
  // The request that made the claim.
  std::string request_id;
  // How long the claim stays protected without a renewal. Absent: until released or superseded.
  std::optional<absl::Duration> lease_duration;

  friend bool operator==(const ClaimInfo& a, const ClaimInfo& b);
  friend bool operator!=(const ClaimInfo& a, const ClaimInfo& b) { return !(a == b); }
};

// Why a claim ended.
enum class ClaimEndReason {
  // It is still held, or ended for a reason that this library does not know.
  kUnknown = 0,
  kSuperseded = 1,
  kReleased = 2,
  kForceReleased = 3,
  kDropped = 4,
};

// "SUPERSEDED", "RELEASED", … or "UNKNOWN".
std::string ToString(ClaimEndReason reason);

// A claim as the history keeps it.
struct ClaimRecord {
  ClaimInfo claim;
  // Absent while the claim is held.
  std::optional<absl::Time> end_time;
  ClaimEndReason end_reason = ClaimEndReason::kUnknown;
  // The epoch that took its place, or 0 when none did.
  uint64_t next_writer_epoch = 0;
  // Words of whoever ended it. Often empty.
  std::string note;
};

// The state of one shard at one version. A stored manifest never changes; each durable change makes
// a new one with a version one larger.
struct ShardManifest {
  std::string table;
  // UUID, 8-4-4-4-12 hexadecimal digits in lower case.
  std::string shard_id;
  // From 1, without gap.
  uint64_t version = 0;
  // Identity of the sharding spec. 0 is "manually managed", an identity like any other. Immutable.
  uint32_t shard_spec_id = 0;
  // Partition values (bytes) by field id. Immutable.
  std::map<std::string, std::string> shard_field_values;
  // The newest epoch. 0: never claimed.
  uint64_t writer_epoch = 0;
  // Last log entry that the sstables cover; replay starts after it. 0: none. Does not go back.
  uint64_t replay_after_wal_entry_position = 0;
  // Largest log position seen by whoever wrote the manifest. A hint.
  uint64_t wal_entry_position_last_seen = 0;
  // Generation that the next flush writes, from 1. Does not go back.
  uint64_t current_generation = 1;
  std::vector<SsTable> sstables;
  ShardStatus status = ShardStatus::kActive;
  // Who holds the shard. Absent when nobody does.
  std::optional<ClaimInfo> claim;
  // Free text for writers with a layout of their own.
  std::map<std::string, std::string> annotations;
  // By the server's clock.
  std::optional<absl::Time> create_time;
  std::optional<absl::Time> update_time;
  // Hash of the full sharding spec (bytes), empty when not known. Immutable.
  std::string shard_spec_fingerprint;
  // As in SsTable.
  std::string unknown_fields;

  friend bool operator==(const ShardManifest& a, const ShardManifest& b);
  friend bool operator!=(const ShardManifest& a, const ShardManifest& b) { return !(a == b); }
};

// Size of a manifest in protobuf form in bytes, which the server limits (ServerInfo).
size_t EncodedSize(const ShardManifest& manifest);

// What CheckFence answers for an epoch that is the stored one.
struct FenceCheck {
  // Version of the manifest at that moment.
  uint64_t version = 0;
  // Absent after a release.
  std::optional<ClaimInfo> claim;
};

// The server's facts.
struct ServerInfo {
  std::string server_version;
  // "rocksdb", "etcd" or "memory".
  std::string store_kind;
  // UUID of the store.
  std::string store_id;
  uint32_t store_format_version = 0;
  // One larger with each durable change of any shard.
  uint64_t revision = 0;
  // When the server began to serve.
  std::optional<absl::Time> start_time;
  // Largest manifest, in bytes of its protobuf form.
  uint64_t max_manifest_bytes = 0;
  // Largest distance of an epoch_floor above the stored epoch.
  uint64_t max_epoch_jump = 0;
  // Versions kept for each shard, the newest included.
  uint64_t history_versions = 0;
  // Ended claims kept for each shard.
  uint64_t claim_history = 0;
};

// What a server says about its health.
enum class Health { kUnknown = 0, kServing = 1, kNotServing = 2, kServiceUnknown = 3 };

// "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN" or "UNKNOWN".
std::string ToString(Health health);

}  // namespace claimd

#endif  // CLAIMD_TYPES_H_
