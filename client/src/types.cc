#include "claimd/types.h"

#include <cstddef>
#include <string>
#include <tuple>

#include "client/src/convert.h"

namespace claimd {

bool operator==(const SsTable& a, const SsTable& b) {
  const auto fields = [](const SsTable& t) {
    return std::tie(t.generation, t.path, t.in_memory_bytes, t.physical_rows, t.primary_key_bytes,
                    t.unknown_fields);
  };
  return fields(a) == fields(b);
}

bool operator==(const ClaimInfo& a, const ClaimInfo& b) {
  const auto fields = [](const ClaimInfo& c) {
    return std::tie(c.writer_epoch, c.claimant, c.labels, c.claim_time, c.request_id,
                    c.lease_duration);
  };
  return fields(a) == fields(b);
}

bool operator==(const ShardManifest& a, const ShardManifest& b) {
  const auto fields = [](const ShardManifest& m) {
    return std::tie(m.table, m.shard_id, m.version, m.shard_spec_id, m.shard_field_values,
                    m.writer_epoch, m.replay_after_wal_entry_position,
                    m.wal_entry_position_last_seen, m.current_generation, m.sstables, m.status,
                    m.claim, m.annotations, m.create_time, m.update_time, m.shard_spec_fingerprint,
                    m.unknown_fields);
  };
  return fields(a) == fields(b);
}

size_t EncodedSize(const ShardManifest& manifest) {
  return internal::ToProto(manifest).ByteSizeLong();
}

std::string ToString(ShardStatus status) {
  switch (status) {
    case ShardStatus::kActive:
      return "ACTIVE";
    case ShardStatus::kSealed:
      return "SEALED";
    case ShardStatus::kDropped:
      return "DROPPED";
    case ShardStatus::kUnknown:
      break;
  }
  return "UNKNOWN";
}

std::string ToString(ClaimEndReason reason) {
  switch (reason) {
    case ClaimEndReason::kSuperseded:
      return "SUPERSEDED";
    case ClaimEndReason::kReleased:
      return "RELEASED";
    case ClaimEndReason::kForceReleased:
      return "FORCE_RELEASED";
    case ClaimEndReason::kDropped:
      return "DROPPED";
    case ClaimEndReason::kUnknown:
      break;
  }
  return "UNKNOWN";
}

std::string ToString(Health health) {
  switch (health) {
    case Health::kServing:
      return "SERVING";
    case Health::kNotServing:
      return "NOT_SERVING";
    case Health::kServiceUnknown:
      return "SERVICE_UNKNOWN";
    case Health::kUnknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace claimd
