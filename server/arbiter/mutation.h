#ifndef CLAIMD_SERVER_ARBITER_MUTATION_H_
#define CLAIMD_SERVER_ARBITER_MUTATION_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/storage/v1/storage.pb.h"

#include "server/arbiter/rules.h"
#include "server/base/clock.h"
#include "server/store/manifest_store.h"

namespace claimd::arbiter {

// What a mutation ended with.
struct MutationResult {
  // The version that answers the request. Never null.
  store::ShardRecordPtr record;
  storage::v1::AppliedRequest applied;
  // The claim that it ended, if it ended one and the history still keeps it.
  std::optional<v1::Claim> previous_claim = std::nullopt;
  // Whether this request id had been answered before.
  bool repeated = false;
};

// One mutation of one shard from its first load to its answer: load → decide → compare-and-swap,
// and again when somebody came between (DESIGN §4 step 7, §2.7, §2.8, §2.10).
//
// The answer is sure: a refusal or STORE_UNAVAILABLE means that nothing was and nothing will be
// written; when that cannot be said it is OUTCOME_UNKNOWN.
class Mutation {
 public:
  // What to do about the head. Empty: nothing is to be written, the head answers.
  // 'aimed_epoch' is the epoch that the try before this one would have stored, if there was one.
  using Decide = absl::AnyInvocable<absl::StatusOr<std::optional<Change>>(
      const Situation& at, std::optional<uint64_t> aimed_epoch)>;
  // Whether a request that is remembered is this one.
  using CheckRepeat =
      absl::AnyInvocable<absl::Status(const Situation& at, const AppliedRequest& applied)>;
  using Done = absl::AnyInvocable<void(absl::StatusOr<MutationResult>)>;

  struct Plan {
    store::ShardKey key;
    // Not empty.
    std::string request_id;
    Decide decide;
    CheckRepeat check_repeat;
  };

  // Runs a mutation; 'done' runs exactly once. 'store' and 'clock' must outlive it.
  static void Run(store::ManifestStore* store, const base::Clock* clock, int attempts_max,
                  Plan plan, Done done);

 private:
  using Self = std::unique_ptr<Mutation>;

  Mutation(store::ManifestStore* store, const base::Clock* clock, int attempts_max, Plan plan,
           Done done);

  // Each step takes the mutation over and hands it to the next one, so that it lives exactly as
  // long as it has work.
  static void Load(Self self);
  static void OnLoaded(Self self, absl::StatusOr<store::ShardState> state);
  static void Step(Self self, store::ShardState state);
  static void Swap(Self self, store::ShardRecordPtr head, Change change);
  static void OnSwapped(Self self, store::SwapOutcome outcome);
  static void Repeat(Self self, const store::ShardRecordPtr& head, AppliedRequest applied);
  static void FindPreviousClaim(Self self, MutationResult result);
  // Answers a failure, or OUTCOME_UNKNOWN while an earlier try may still land on 'head_version'.
  static void Fail(Self self, absl::Status failure, uint64_t head_version);
  static void Finish(Self self, absl::StatusOr<MutationResult> result);

  absl::Status StoreFailure(const absl::Status& cause) const;

  store::ManifestStore* const store_;
  const base::Clock* const clock_;
  const int attempts_max_;
  Plan plan_;
  Done done_;
  int attempts_ = 0;
  std::optional<uint64_t> aimed_epoch_;
  // Version that a try with an unknown outcome was to replace, and what the store said about it.
  std::optional<uint64_t> unknown_at_version_;
  absl::Status unknown_status_;
  // What the swap under way writes.
  uint64_t expected_version_ = 0;
  MutationResult pending_;
};

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_MUTATION_H_
