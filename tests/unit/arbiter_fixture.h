#ifndef CLAIMD_TESTS_UNIT_ARBITER_FIXTURE_H_
#define CLAIMD_TESTS_UNIT_ARBITER_FIXTURE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/arbiter.h"
#include "server/base/clock.h"
#include "server/base/random.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::testing {

// A clock that stands still until it is moved.
class ManualClock final : public base::Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixMicros(micros_.load()); }
  absl::Duration MonotonicNow() const override { return absl::Microseconds(micros_.load()); }
  void Advance(absl::Duration by) { micros_ += absl::ToInt64Microseconds(by); }

 private:
  std::atomic<int64_t> micros_ = 1'000'000'000;
};

// Counts up over all instances, so that no two of them give the same bytes.
class CountingRandom final : public base::RandomSource {
 public:
  std::array<uint8_t, 16> Bytes16() override;

 private:
  static inline std::atomic<uint64_t> count_ = 0;
};

inline constexpr char kShardId[] = "11111111-2222-4333-8444-555555555555";

// An arbiter whose calls answer before they return, over a store that does so too.
class SyncArbiter {
 public:
  // 'store' must outlive this and run its callbacks before its calls return.
  explicit SyncArbiter(store::ManifestStore* store, arbiter::ArbiterOptions options = {});

  absl::StatusOr<v1::ClaimEpochResponse> Claim(const v1::ClaimEpochRequest& request);
  absl::StatusOr<v1::ClaimEpochResponse> Claim(uint32_t spec, const std::string& request_id = "");
  absl::StatusOr<v1::InitializeShardResponse> Initialize(uint32_t spec);
  absl::StatusOr<v1::CheckFenceResponse> CheckFence(uint64_t epoch);
  // Commits an annotation onto the newest manifest.
  absl::StatusOr<v1::CommitManifestResponse> Commit(uint64_t epoch, const std::string& note,
                                                    const std::string& request_id = "");
  absl::StatusOr<v1::CommitManifestResponse> Commit(const v1::CommitManifestRequest& request);
  absl::StatusOr<v1::ReleaseEpochResponse> Release(uint64_t epoch,
                                                   const std::string& request_id = "");
  absl::StatusOr<v1::SealShardResponse> Seal(const std::string& request_id = "");
  absl::StatusOr<v1::UnsealShardResponse> Unseal(const std::string& request_id = "");
  absl::StatusOr<v1::DropShardResponse> Drop(const std::string& request_id = "");
  absl::StatusOr<v1::ShardManifest> Get();
  absl::StatusOr<v1::ListClaimsResponse> ListClaims(const v1::ListClaimsRequest& request);
  absl::StatusOr<v1::ListShardsResponse> ListShards(const v1::ListShardsRequest& request);
  absl::StatusOr<v1::ListManifestVersionsResponse> ListVersions(
      const v1::ListManifestVersionsRequest& request);

  arbiter::Arbiter& arbiter() { return arbiter_; }
  ManualClock& clock() { return clock_; }

 private:
  ManualClock clock_;
  CountingRandom random_;
  arbiter::Arbiter arbiter_;
};

// A request about kShardId of table "t".
template <typename Request>
Request About() {
  Request request;
  request.set_table("t");
  request.set_shard_id(kShardId);
  return request;
}

v1::ClaimEpochRequest ClaimRequest(uint32_t spec, const std::string& request_id = "");

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_UNIT_ARBITER_FIXTURE_H_
