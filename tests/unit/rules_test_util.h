#ifndef CLAIMD_TESTS_UNIT_RULES_TEST_UTIL_H_
#define CLAIMD_TESTS_UNIT_RULES_TEST_UTIL_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/rules.h"
#include "server/base/uuid.h"

namespace claimd::arbiter {

inline constexpr char kId[] = "aa48498d-ac91-59e2-8452-69f46010ace2";
inline constexpr uint64_t kMax = ~uint64_t{0};

inline Limits TestLimits() { return {.epoch_jump_max = 1'000, .manifest_bytes_max = 4'096}; }

// A live head: version 5, epoch 3, generation 2, spec 1, one sstable, held by "holder".
inline ShardRecord LiveHead() {
  ShardRecord head;
  v1::ShardManifest* manifest = head.mutable_manifest();
  manifest->set_table("t");
  manifest->set_shard_id(kId);
  manifest->set_version(5);
  manifest->set_shard_spec_id(1);
  manifest->set_writer_epoch(3);
  manifest->set_replay_after_wal_entry_position(10);
  manifest->set_current_generation(2);
  manifest->add_sstables()->set_generation(1);
  manifest->set_status(v1::SHARD_STATUS_ACTIVE);
  manifest->mutable_claim()->set_writer_epoch(3);
  manifest->mutable_claim()->set_claimant("holder");
  manifest->mutable_claim()->set_request_id("claim-3");
  (*manifest->mutable_annotations())["note"] = "kept";
  manifest->mutable_create_time()->set_seconds(1);
  manifest->mutable_update_time()->set_seconds(2);
  head.set_ended_claims(2);
  head.set_first_version(1);
  head.add_request_ids("claim-3");
  return head;
}

// What a drop of LiveHead leaves.
inline ShardRecord Tombstone() {
  ShardRecord head;
  v1::ShardManifest* manifest = head.mutable_manifest();
  manifest->set_table("t");
  manifest->set_shard_id(kId);
  manifest->set_version(9);
  manifest->set_writer_epoch(4);
  manifest->set_status(v1::SHARD_STATUS_DROPPED);
  head.set_ended_claims(4);
  head.set_first_version(9);
  return head;
}

inline Situation At(const ShardRecord* head) {
  return {.key = {.table = "t", .shard_id = base::ParseUuid(kId).value()},
          .head = head,
          .now = absl::FromUnixSeconds(100),
          .request_id = "request"};
}

inline v1::ClaimEpochRequest ClaimRequest(uint32_t spec) {
  v1::ClaimEpochRequest request;
  request.set_table("t");
  request.set_shard_id(kId);
  request.set_shard_spec_id(spec);
  request.set_claimant("me");
  return request;
}

}  // namespace claimd::arbiter

#endif  // CLAIMD_TESTS_UNIT_RULES_TEST_UTIL_H_
