#include "client/src/convert.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/unknown_field_set.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "claimd/types.h"

namespace claimd::internal {
namespace {

absl::Time FromProto(const google::protobuf::Timestamp& proto) {
  return absl::FromUnixSeconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

void SetTime(absl::Time time, google::protobuf::Timestamp* proto) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  proto->set_seconds(seconds);
  proto->set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void SetDuration(absl::Duration duration, google::protobuf::Duration* proto) {
  absl::Duration rest;
  proto->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

std::string UnknownFields(const google::protobuf::Message& message) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  std::string bytes;
  if (!fields.empty()) fields.SerializeToString(&bytes);
  return bytes;
}

void SetUnknownFields(const std::string& bytes, google::protobuf::Message* message) {
  if (bytes.empty()) return;
  // Bytes that are no fields can only come from a caller who wrote them; they are left out.
  google::protobuf::UnknownFieldSet fields;
  if (fields.ParseFromString(bytes)) {
    message->GetReflection()->MutableUnknownFields(message)->Swap(&fields);
  }
}

ShardStatus FromProto(v1::ShardStatus status) {
  switch (status) {
    case v1::SHARD_STATUS_ACTIVE:
      return ShardStatus::kActive;
    case v1::SHARD_STATUS_SEALED:
      return ShardStatus::kSealed;
    case v1::SHARD_STATUS_DROPPED:
      return ShardStatus::kDropped;
    default:
      return ShardStatus::kUnknown;
  }
}

SsTable FromProto(const v1::SsTable& proto) {
  SsTable table;
  table.generation = proto.generation();
  table.path = proto.path();
  if (proto.has_in_memory_bytes()) table.in_memory_bytes = proto.in_memory_bytes();
  if (proto.has_physical_rows()) table.physical_rows = proto.physical_rows();
  if (proto.has_primary_key_bytes()) table.primary_key_bytes = proto.primary_key_bytes();
  table.unknown_fields = UnknownFields(proto);
  return table;
}

void ToProto(const SsTable& table, v1::SsTable* proto) {
  proto->set_generation(table.generation);
  proto->set_path(table.path);
  if (table.in_memory_bytes) proto->set_in_memory_bytes(*table.in_memory_bytes);
  if (table.physical_rows) proto->set_physical_rows(*table.physical_rows);
  if (table.primary_key_bytes) proto->set_primary_key_bytes(*table.primary_key_bytes);
  SetUnknownFields(table.unknown_fields, proto);
}

ClaimEndReason FromProto(v1::ClaimEndReason reason) {
  switch (reason) {
    case v1::CLAIM_END_REASON_SUPERSEDED:
      return ClaimEndReason::kSuperseded;
    case v1::CLAIM_END_REASON_RELEASED:
      return ClaimEndReason::kReleased;
    case v1::CLAIM_END_REASON_FORCE_RELEASED:
      return ClaimEndReason::kForceReleased;
    case v1::CLAIM_END_REASON_DROPPED:
      return ClaimEndReason::kDropped;
    default:
      return ClaimEndReason::kUnknown;
  }
}

}  // namespace

absl::Duration FromProto(const google::protobuf::Duration& proto) {
  return absl::Seconds(proto.seconds()) + absl::Nanoseconds(proto.nanos());
}

ClaimInfo FromProto(const v1::Claim& proto) {
  ClaimInfo claim;
  claim.writer_epoch = proto.writer_epoch();
  claim.claimant = proto.claimant();
  claim.labels = {proto.labels().begin(), proto.labels().end()};
  if (proto.has_claim_time()) claim.claim_time = FromProto(proto.claim_time());
  claim.request_id = proto.request_id();
  if (proto.has_lease_duration()) claim.lease_duration = FromProto(proto.lease_duration());
  return claim;
}

ClaimRecord FromProto(const v1::ClaimRecord& proto) {
  ClaimRecord record;
  record.claim = FromProto(proto.claim());
  if (proto.has_end_time()) record.end_time = FromProto(proto.end_time());
  record.end_reason = FromProto(proto.end_reason());
  record.next_writer_epoch = proto.next_writer_epoch();
  record.note = proto.note();
  return record;
}

ShardManifest FromProto(const v1::ShardManifest& proto) {
  ShardManifest manifest;
  manifest.table = proto.table();
  manifest.shard_id = proto.shard_id();
  manifest.version = proto.version();
  manifest.shard_spec_id = proto.shard_spec_id();
  manifest.shard_field_values = {proto.shard_field_values().begin(),
                                 proto.shard_field_values().end()};
  manifest.writer_epoch = proto.writer_epoch();
  manifest.replay_after_wal_entry_position = proto.replay_after_wal_entry_position();
  manifest.wal_entry_position_last_seen = proto.wal_entry_position_last_seen();
  manifest.current_generation = proto.current_generation();
  manifest.sstables.reserve(static_cast<size_t>(proto.sstables_size()));
  for (const v1::SsTable& table : proto.sstables()) manifest.sstables.push_back(FromProto(table));
  manifest.status = FromProto(proto.status());
  if (proto.has_claim()) manifest.claim = FromProto(proto.claim());
  manifest.annotations = {proto.annotations().begin(), proto.annotations().end()};
  if (proto.has_create_time()) manifest.create_time = FromProto(proto.create_time());
  if (proto.has_update_time()) manifest.update_time = FromProto(proto.update_time());
  manifest.shard_spec_fingerprint = proto.shard_spec_fingerprint();
  manifest.unknown_fields = UnknownFields(proto);
  return manifest;
}

ServerInfo FromProto(const v1::GetServerInfoResponse& proto) {
  ServerInfo info;
  info.server_version = proto.server_version();
  info.store_kind = proto.store_kind();
  info.store_id = proto.store_id();
  info.store_format_version = proto.store_format_version();
  info.revision = proto.revision();
  if (proto.has_start_time()) info.start_time = FromProto(proto.start_time());
  info.max_manifest_bytes = proto.limits().max_manifest_bytes();
  info.max_epoch_jump = proto.limits().max_epoch_jump();
  info.history_versions = proto.limits().history_versions();
  info.claim_history = proto.limits().claim_history();
  return info;
}

v1::ShardStatus ToProto(ShardStatus status) {
  switch (status) {
    case ShardStatus::kActive:
      return v1::SHARD_STATUS_ACTIVE;
    case ShardStatus::kSealed:
      return v1::SHARD_STATUS_SEALED;
    case ShardStatus::kDropped:
      return v1::SHARD_STATUS_DROPPED;
    case ShardStatus::kUnknown:
      break;
  }
  return v1::SHARD_STATUS_UNSPECIFIED;
}

v1::Claim ToProto(const ClaimInfo& claim) {
  v1::Claim proto;
  proto.set_writer_epoch(claim.writer_epoch);
  proto.set_claimant(claim.claimant);
  proto.mutable_labels()->insert(claim.labels.begin(), claim.labels.end());
  if (claim.claim_time) SetTime(*claim.claim_time, proto.mutable_claim_time());
  proto.set_request_id(claim.request_id);
  if (claim.lease_duration) SetDuration(*claim.lease_duration, proto.mutable_lease_duration());
  return proto;
}

v1::ClaimRecord ToProto(const ClaimRecord& record) {
  v1::ClaimRecord proto;
  *proto.mutable_claim() = ToProto(record.claim);
  if (record.end_time) SetTime(*record.end_time, proto.mutable_end_time());
  proto.set_end_reason(static_cast<v1::ClaimEndReason>(record.end_reason));
  proto.set_next_writer_epoch(record.next_writer_epoch);
  proto.set_note(record.note);
  return proto;
}

v1::ShardManifest ToProto(const ShardManifest& manifest) {
  v1::ShardManifest proto;
  proto.set_table(manifest.table);
  proto.set_shard_id(manifest.shard_id);
  proto.set_version(manifest.version);
  proto.set_shard_spec_id(manifest.shard_spec_id);
  proto.mutable_shard_field_values()->insert(manifest.shard_field_values.begin(),
                                             manifest.shard_field_values.end());
  proto.set_writer_epoch(manifest.writer_epoch);
  proto.set_replay_after_wal_entry_position(manifest.replay_after_wal_entry_position);
  proto.set_wal_entry_position_last_seen(manifest.wal_entry_position_last_seen);
  proto.set_current_generation(manifest.current_generation);
  for (const SsTable& table : manifest.sstables) ToProto(table, proto.add_sstables());
  proto.set_status(ToProto(manifest.status));
  if (manifest.claim) *proto.mutable_claim() = ToProto(*manifest.claim);
  proto.mutable_annotations()->insert(manifest.annotations.begin(), manifest.annotations.end());
  if (manifest.create_time) SetTime(*manifest.create_time, proto.mutable_create_time());
  if (manifest.update_time) SetTime(*manifest.update_time, proto.mutable_update_time());
  proto.set_shard_spec_fingerprint(manifest.shard_spec_fingerprint);
  SetUnknownFields(manifest.unknown_fields, &proto);
  return proto;
}

v1::GetServerInfoResponse ToProto(const ServerInfo& info) {
  v1::GetServerInfoResponse proto;
  proto.set_server_version(info.server_version);
  proto.set_store_kind(info.store_kind);
  proto.set_store_id(info.store_id);
  proto.set_store_format_version(info.store_format_version);
  proto.set_revision(info.revision);
  if (info.start_time) SetTime(*info.start_time, proto.mutable_start_time());
  proto.mutable_limits()->set_max_manifest_bytes(info.max_manifest_bytes);
  proto.mutable_limits()->set_max_epoch_jump(info.max_epoch_jump);
  proto.mutable_limits()->set_history_versions(info.history_versions);
  proto.mutable_limits()->set_claim_history(info.claim_history);
  return proto;
}

}  // namespace claimd::internal
