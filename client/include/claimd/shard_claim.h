#ifndef CLAIMD_SHARD_CLAIM_H_
#define CLAIMD_SHARD_CLAIM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/options.h"
#include "claimd/types.h"

namespace claimd {

namespace internal {
struct Access;
class ClaimState;
}  // namespace internal

// The right to write one shard under one epoch, until a newer epoch exists. Made by Client.
//
//   absl::StatusOr<claimd::ShardClaim> claim = client.Claim("orders", shard_id, spec_id);
//   if (!claim.ok()) return claim.status();
//   AppendDurably(entry, claim->epoch());
//   if (absl::Status fence = claim->CheckFence(); !fence.ok()) return fence;  // Do not
//   acknowledge. Acknowledge(entry);
//
// A claim fences commits and fence checks, and nothing else: it does not reach into a log that
// lives elsewhere. A writer that was fenced can still append to its own storage until it asks. So
// (a) write a sentinel at wal_probe_position() after claiming, when epoch() is 2 or more, and (b)
// check the fence after making an entry durable and before acknowledging it. The epoch proves
// ownership of the shard, not of one commit: whoever only commits or drains never claims
// (Client::Attach).
//
// Once a call has answered WRITER_FENCED the claim is over: every later call answers the same
// status at once, without asking the server. The library never claims again by itself, because
// writers that answer fences with claims take the shard from each other for ever.
//
// Thread-safe, except that moving and destroying need the claim for themselves. A claim that was
// moved from can only be assigned to and destroyed. Destroying a claim does not release it and
// never waits for the network.
class ShardClaim {
 public:
  ShardClaim(ShardClaim&&) noexcept;
  ShardClaim& operator=(ShardClaim&&) noexcept;
  ShardClaim(const ShardClaim&) = delete;
  ShardClaim& operator=(const ShardClaim&) = delete;
  ~ShardClaim();

  const std::string& table() const;
  const std::string& shard_id() const;

  // The epoch to write under. Never 0.
  uint64_t epoch() const;

  // The newest manifest that this object has seen.
  ShardManifest manifest() const;

  // Whether this claim made the shard.
  bool created() const;

  // The claim that this one ended, if any. Its holder is fenced.
  std::optional<ClaimInfo> previous_claim() const;

  // Where a writer looks for the tip of its log after claiming, and puts its sentinel when epoch()
  // is 2 or more: one behind the largest log position that the manifest knows.
  uint64_t wal_probe_position() const;

  // OK only if the server said just now that the epoch is the stored one.
  // Errors: WRITER_FENCED, EPOCH_FROM_FUTURE, SHARD_NOT_FOUND, CLAIM_RELEASED; transport errors,
  // which say nothing about the fence, so do not acknowledge.
  absl::Status CheckFence(const CallOptions& options = CallOptions());

  // Changes a manifest in place. An error ends the commit and is answered as it is.
  using Mutator = std::function<absl::Status(ShardManifest* manifest)>;

  // Publishes a change: applies 'mutate' to the newest manifest and commits the result as the next
  // version. When somebody else committed first, applies 'mutate' to what they committed and tries
  // again, until the budget is used up; so 'mutate' may run several times and must only depend on
  // the manifest it is given. It runs on the calling thread and under no lock. Commits of one claim
  // wait for each other; 'mutate' must not commit to or release the same claim.
  //
  // Identity, epoch, status, claim, version and times are the server's: the mutator leaves them
  // alone (changes to the first three are refused, changes to the others ignored).
  //
  // Answers the manifest as committed. OK means durable.
  // Errors: WRITER_FENCED, INVALID_MANIFEST, SHARD_NOT_FOUND, EPOCH_FROM_FUTURE, CLAIM_RELEASED, an
  // error of 'mutate', MANIFEST_VERSION_CONFLICT when others were faster until the budget ended;
  // transport errors, with ErrorDetails::may_have_landed when the commit can be in force.
  absl::StatusOr<ShardManifest> Commit(const Mutator& mutate,
                                       const CallOptions& options = CallOptions());

  // Gives the claim back after the commits that are running. The epoch stays the stored one until
  // somebody claims; this object answers CLAIM_RELEASED from then on, and OK to another Release.
  // Errors: as CheckFence.
  absl::Status Release(const CallOptions& options = CallOptions());

  // Whether a call has learned that the claim is over. False does not mean that it is not: only
  // CheckFence asks.
  bool fenced() const;

 private:
  friend struct internal::Access;
  explicit ShardClaim(std::shared_ptr<internal::ClaimState> state);

  std::shared_ptr<internal::ClaimState> state_;
};

}  // namespace claimd

#endif  // CLAIMD_SHARD_CLAIM_H_
