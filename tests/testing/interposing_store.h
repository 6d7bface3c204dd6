#ifndef CLAIMD_TESTS_TESTING_INTERPOSING_STORE_H_
#define CLAIMD_TESTS_TESTING_INTERPOSING_STORE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::testing {

// What becomes of one swap that goes through an InterposingStore.
enum class SwapFate {
  // The store underneath decides.
  kPass,
  // Done, but answered as unknown. A conflict underneath is answered as unknown, too.
  kUnknownLanded,
  // Not done, and answered as unknown.
  kUnknownNotLanded,
  // Not done, and said so: Unavailable.
  kNotApplied,
  // Not done, and answered as a conflict with the state that the store underneath holds.
  kConflict,
};

// A store between the arbiter and another store, in which a test decides what goes wrong and when a
// peer comes between. Without instructions every call goes through unchanged.
//
// Thread-safe. 'inner' is not owned and must outlive this. Instructions are used up in the order in
// which they were given, one for each call; each list of instructions is its own.
class InterposingStore final : public store::ManifestStore {
 public:
  using SwapHook = absl::AnyInvocable<void(const store::SwapRequest&)>;

  explicit InterposingStore(store::ManifestStore* inner) : inner_(inner) {}

  // Runs 'hook' when the next swap arrives, before it goes on: between the caller's load and its
  // compare-and-swap. The hook may write to the inner store, and wait for it. One hook is used up
  // by one swap; hooks given in a row serve swaps in a row.
  void BeforeNextSwap(SwapHook hook) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs 'hook' before every swap that no BeforeNextSwap serves. Null: nothing.
  // REQUIRES: no swap is running.
  void BeforeEverySwap(SwapHook hook) ABSL_LOCKS_EXCLUDED(mutex_);

  // Decides the next swaps, then those after them.
  void DecideSwaps(std::vector<SwapFate> fates) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides every swap that no DecideSwaps does.
  void DecideSwapsFromNowOn(SwapFate fate) ABSL_LOCKS_EXCLUDED(mutex_);

  // The next loads are answered so: an OK status lets one go through.
  void DecideLoads(std::vector<absl::Status> answers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Answers every load that no DecideLoads does. OK lets them go through.
  void DecideLoadsFromNowOn(absl::Status answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // What Health says; OK asks the inner store.
  void SetHealth(absl::Status health) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls so far, of whatever outcome.
  int load_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  int swap_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  void Load(const store::ShardKey& key, absl::string_view request_id,
            Callback<store::ShardState> done) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Decided as loads are.
  void LoadVersion(const store::ShardKey& key, uint64_t version,
                   Callback<store::ShardRecordPtr> done) override ABSL_LOCKS_EXCLUDED(mutex_);
  void CompareAndSwap(store::SwapRequest request,
                      absl::AnyInvocable<void(store::SwapOutcome)> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void List(store::ListQuery query, Callback<store::ListPage> done) override;
  void ListVersions(store::HistoryQuery query, Callback<store::VersionPage> done) override;
  void ListClaims(store::HistoryQuery query, Callback<store::ClaimPage> done) override;
  store::StoreInfo Info() const override;
  std::string TokenKey() const override;
  absl::Status Health() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status NextLoadAnswer() ABSL_LOCKS_EXCLUDED(mutex_);
  SwapFate NextSwapFate() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunHook(const store::SwapRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  store::ManifestStore* const inner_;
  mutable base::Mutex mutex_;
  std::deque<SwapHook> next_hooks_ ABSL_GUARDED_BY(mutex_);
  // Set only while no swap runs, so that it can be run without the lock.
  SwapHook every_hook_;
  std::deque<SwapFate> next_fates_ ABSL_GUARDED_BY(mutex_);
  SwapFate usual_fate_ ABSL_GUARDED_BY(mutex_) = SwapFate::kPass;
  std::deque<absl::Status> next_answers_ ABSL_GUARDED_BY(mutex_);
  absl::Status usual_answer_ ABSL_GUARDED_BY(mutex_);
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
  int load_count_ ABSL_GUARDED_BY(mutex_) = 0;
  int swap_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_TESTING_INTERPOSING_STORE_H_
