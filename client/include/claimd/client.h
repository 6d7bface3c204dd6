#ifndef CLAIMD_CLIENT_H_
#define CLAIMD_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/errors.h"
#include "claimd/options.h"
#include "claimd/range.h"
#include "claimd/shard_claim.h"
#include "claimd/types.h"

namespace claimd {

namespace internal {
struct Access;
class Core;
}  // namespace internal

// A client of claimd, the service that arbitrates who may write a shard.
//
//   claimd::ClientOptions options;
//   options.targets = {"127.0.0.1:7420"};
//   options.claimant = "ingest-7";
//   absl::StatusOr<claimd::Client> client = claimd::Client::Connect(options);
//   if (!client.ok()) return client.status();
//   absl::StatusOr<claimd::ShardClaim> claim =
//       client->Claim("orders", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", /*shard_spec_id=*/1);
//
// Copies are cheap and share connections; the last copy or ShardClaim to go closes them. All
// methods are thread-safe and block until the answer is there or the budget is used up
// (RetryPolicy). Fork before making a client, not after.
//
// Errors are absl::Status; ErrorDetails::From tells what they are. The message of a call that gave
// up says what the last attempt met and how many there were. Shard ids are UUIDs in text form.
class Client {
 public:
  // Makes a client. Does not wait for a server: the first call connects.
  // Errors: INVALID_ARGUMENT for options that make no sense, NOT_FOUND or another error of the file
  // system for TLS files that cannot be read.
  static absl::StatusOr<Client> Connect(ClientOptions options);

  // Claims a shard, making it if need be, and fences every older epoch. OK means durable.
  // 'shard_spec_id' is the spec that the writer works under; absent means 0, which is no wildcard.
  // Errors: SHARD_SEALED, SHARD_SPEC_MISMATCH, SHARD_SPEC_FINGERPRINT_MISMATCH,
  // SHARD_IDENTITY_CONFLICT, EPOCH_MISMATCH, SHARD_HELD, EPOCH_FLOOR_TOO_HIGH, CLAIM_LOST_RACE,
  // CLAIM_SUPERSEDED, MANIFEST_CONTENTION; transport errors.
  absl::StatusOr<ShardClaim> Claim(const std::string& table, const std::string& shard_id,
                                   std::optional<uint32_t> shard_spec_id,
                                   const ClaimOptions& claim = ClaimOptions(),
                                   const CallOptions& options = CallOptions()) const;

  // Claims many shards, up to 1,024 in one call to the server. Each stands alone: the answers are
  // in the order of 'shards', and one that is refused leaves the others as they are. 'options'
  // bounds the whole; its request_id is not used.
  std::vector<absl::StatusOr<ShardClaim>> ClaimAll(
      const std::vector<ClaimTarget>& shards, const CallOptions& options = CallOptions()) const;

  // Joins a claim that is in force, without claiming: for jobs that only commit to a shard, and for
  // helpers that were handed an epoch by whoever claimed. Without 'epoch', joins the stored one.
  // Errors: SHARD_NOT_FOUND, WRITER_FENCED, EPOCH_FROM_FUTURE; FAILED_PRECONDITION when the shard
  // was never claimed.
  absl::StatusOr<ShardClaim> Attach(const std::string& table, const std::string& shard_id,
                                    std::optional<uint64_t> epoch,
                                    const CallOptions& options = CallOptions()) const;

  // Makes a shard at epoch 0 without claiming it. A shard of the same identity is answered as it
  // is. Errors: SHARD_SPEC_MISMATCH, SHARD_SPEC_FINGERPRINT_MISMATCH, SHARD_IDENTITY_CONFLICT.
  absl::StatusOr<ShardManifest> Initialize(const std::string& table, const std::string& shard_id,
                                           std::optional<uint32_t> shard_spec_id,
                                           const InitializeOptions& identity = InitializeOptions(),
                                           const CallOptions& options = CallOptions()) const;

  // Reads a manifest: the newest, or a version that the history still keeps.
  // Errors: SHARD_NOT_FOUND, VERSION_NOT_FOUND.
  absl::StatusOr<ShardManifest> Get(const std::string& table, const std::string& shard_id,
                                    std::optional<uint64_t> version = std::nullopt,
                                    const CallOptions& options = CallOptions()) const;

  // OK only if 'epoch' is the stored one.
  // Errors: WRITER_FENCED, EPOCH_FROM_FUTURE, SHARD_NOT_FOUND.
  absl::StatusOr<FenceCheck> CheckFence(const std::string& table, const std::string& shard_id,
                                        uint64_t epoch,
                                        const CallOptions& options = CallOptions()) const;

  // Gives back a claim by its epoch.
  // Errors: WRITER_FENCED, EPOCH_FROM_FUTURE, SHARD_NOT_FOUND.
  absl::StatusOr<ShardManifest> Release(const std::string& table, const std::string& shard_id,
                                        uint64_t epoch,
                                        const CallOptions& options = CallOptions()) const;

  // Lists the shards of a table in the order of their ids. 'options' bounds each page.
  Range<ShardManifest> List(const std::string& table, const ListOptions& list = ListOptions(),
                            const CallOptions& options = CallOptions()) const;

  // Lists the kept versions of a shard, newest first. Errors: SHARD_NOT_FOUND.
  Range<ShardManifest> Versions(const std::string& table, const std::string& shard_id,
                                ShardView view = ShardView::kBasic,
                                const CallOptions& options = CallOptions()) const;

  // Lists who claimed a shard, newest first, and why each claim ended. Answered for dropped shards
  // too. Errors: SHARD_NOT_FOUND.
  Range<ClaimRecord> Claims(const std::string& table, const std::string& shard_id,
                            const CallOptions& options = CallOptions()) const;

  // Marks a drop in flight, so that no new claim is granted. Errors: SHARD_NOT_FOUND.
  absl::StatusOr<ShardManifest> Seal(const std::string& table, const std::string& shard_id,
                                     const CallOptions& options = CallOptions()) const;

  // Takes the seal away. Errors: SHARD_NOT_FOUND.
  absl::StatusOr<ShardManifest> Unseal(const std::string& table, const std::string& shard_id,
                                       const CallOptions& options = CallOptions()) const;

  // Drops a sealed shard, if 'expected_epoch' is absent or the stored one. Answers the tombstone.
  // Errors: SHARD_NOT_FOUND, SHARD_NOT_SEALED, EPOCH_MISMATCH.
  absl::StatusOr<ShardManifest> Drop(const std::string& table, const std::string& shard_id,
                                     std::optional<uint64_t> expected_epoch = std::nullopt,
                                     const CallOptions& options = CallOptions()) const;

  // Takes over whole manifests from elsewhere, each only onto a shard that does not exist, keeping
  // version, epoch and sstables. Answers one status for each, in order: OK (also for one that is
  // stored exactly so already), SHARD_EXISTS, INVALID_MANIFEST. A call that fails may have taken
  // over some of them, and can be repeated. 'options' bounds each call of up to 1,000 manifests.
  absl::StatusOr<std::vector<absl::Status>> Import(
      const std::vector<ShardManifest>& manifests,
      const CallOptions& options = CallOptions()) const;

  // What is running, on which store, with which limits.
  absl::StatusOr<ServerInfo> GetServerInfo(const CallOptions& options = CallOptions()) const;

  // Asks once, without retries, for the health of a service; "" is the server as a whole.
  absl::StatusOr<Health> CheckHealth(const std::string& service = "",
                                     const CallOptions& options = CallOptions()) const;

 private:
  friend struct internal::Access;
  explicit Client(std::shared_ptr<internal::Core> core);

  std::shared_ptr<internal::Core> core_;
};

}  // namespace claimd

#endif  // CLAIMD_CLIENT_H_
