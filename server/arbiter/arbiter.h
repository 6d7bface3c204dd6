#ifndef CLAIMD_SERVER_ARBITER_ARBITER_H_
#define CLAIMD_SERVER_ARBITER_ARBITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/mutation.h"
#include "server/arbiter/rules.h"
#include "server/base/clock.h"
#include "server/base/random.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {

// Limits that decide what the arbiter grants.
struct ArbiterOptions {
  // Largest distance of an epoch_floor above the stored epoch (DESIGN §4.6).
  uint64_t epoch_jump_max = uint64_t{1} << 20U;
  // Largest manifest that is committed or imported, in bytes of its protobuf form.
  uint64_t manifest_bytes_max = uint64_t{1} << 20U;
  // Compare-and-swap tries of one mutation before MANIFEST_CONTENTION (DESIGN §2.7).
  int attempts_max = 16;
};

// Answers every question about shards: loads the head, applies the rules (rules.h), swaps, and
// tries again when somebody else came between. The only caller of the store.
//
// Thread-safe. 'store', 'clock' and 'random' are not owned and must outlive this. Requests must be
// valid (rpc/validation.h) and must stay alive until their callback has run. Each callback runs
// exactly once, on any thread, perhaps before the call returns, and under no lock. Nothing blocks.
//
// Errors are built in errors.h and carry a google.rpc.ErrorInfo payload; each rpc's are listed in
// claimd/v1/shard_arbiter.proto.
class Arbiter {
 public:
  template <typename Response>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Response>)>;

  Arbiter(store::ManifestStore* store, const base::Clock* clock, base::RandomSource* random,
          ArbiterOptions options);

  void ClaimEpoch(const v1::ClaimEpochRequest* request, Callback<v1::ClaimEpochResponse> done);

  // Claims many shards at once, each on its own; claims of one shard are made in the order given.
  // The answers are in the order of the requests.
  using BatchResults = std::vector<absl::StatusOr<v1::ClaimEpochResponse>>;
  void BatchClaimEpoch(const std::vector<const v1::ClaimEpochRequest*>& requests,
                       absl::AnyInvocable<void(BatchResults)> done);

  void InitializeShard(const v1::InitializeShardRequest* request,
                       Callback<v1::InitializeShardResponse> done);
  void CheckFence(const v1::CheckFenceRequest* request, Callback<v1::CheckFenceResponse> done);
  void CommitManifest(const v1::CommitManifestRequest* request,
                      Callback<v1::CommitManifestResponse> done);
  void ReleaseEpoch(const v1::ReleaseEpochRequest* request,
                    Callback<v1::ReleaseEpochResponse> done);
  void SealShard(const v1::SealShardRequest* request, Callback<v1::SealShardResponse> done);
  void UnsealShard(const v1::UnsealShardRequest* request, Callback<v1::UnsealShardResponse> done);
  void DropShard(const v1::DropShardRequest* request, Callback<v1::DropShardResponse> done);
  void GetManifest(const v1::GetManifestRequest* request, Callback<v1::GetManifestResponse> done);
  void ListShards(const v1::ListShardsRequest* request, Callback<v1::ListShardsResponse> done);
  void ListManifestVersions(const v1::ListManifestVersionsRequest* request,
                            Callback<v1::ListManifestVersionsResponse> done);
  void ListClaims(const v1::ListClaimsRequest* request, Callback<v1::ListClaimsResponse> done);

  // Takes over one manifest; the status is its verdict.
  void ImportManifest(const v1::ImportManifestsRequest* request,
                      absl::AnyInvocable<void(absl::Status)> done);

 private:
  Limits RuleLimits() const;
  void Mutate(store::ShardKey key, const std::string& request_id, Mutation::Decide decide,
              Mutation::CheckRepeat check_repeat, Mutation::Done done);

  void GetVersion(const store::ShardKey& key, uint64_t version, uint64_t newest,
                  Callback<v1::GetManifestResponse> done);
  void ReadVersions(const v1::ListManifestVersionsRequest* request, store::HistoryQuery query,
                    Callback<v1::ListManifestVersionsResponse> done);
  void ReadClaims(const v1::ListClaimsRequest* request, const ShardRecord& head, uint64_t before,
                  Callback<v1::ListClaimsResponse> done);

  store::ManifestStore* const store_;
  const base::Clock* const clock_;
  base::RandomSource* const random_;
  const ArbiterOptions options_;
};

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_ARBITER_H_
