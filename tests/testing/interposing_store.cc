#include "tests/testing/interposing_store.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::testing {
namespace {

absl::Status Scripted() { return absl::UnavailableError("the test says so"); }

}  // namespace

void InterposingStore::BeforeNextSwap(SwapHook hook) {
  const base::MutexLock lock(&mutex_);
  next_hooks_.push_back(std::move(hook));
}

void InterposingStore::BeforeEverySwap(SwapHook hook) { every_hook_ = std::move(hook); }

void InterposingStore::DecideSwaps(std::vector<SwapFate> fates) {
  const base::MutexLock lock(&mutex_);
  next_fates_.insert(next_fates_.end(), fates.begin(), fates.end());
}

void InterposingStore::DecideSwapsFromNowOn(SwapFate fate) {
  const base::MutexLock lock(&mutex_);
  usual_fate_ = fate;
}

void InterposingStore::DecideLoads(std::vector<absl::Status> answers) {
  const base::MutexLock lock(&mutex_);
  next_answers_.insert(next_answers_.end(), answers.begin(), answers.end());
}

void InterposingStore::DecideLoadsFromNowOn(absl::Status answer) {
  const base::MutexLock lock(&mutex_);
  usual_answer_ = std::move(answer);
}

void InterposingStore::SetHealth(absl::Status health) {
  const base::MutexLock lock(&mutex_);
  health_ = std::move(health);
}

int InterposingStore::load_count() const {
  const base::MutexLock lock(&mutex_);
  return load_count_;
}

int InterposingStore::swap_count() const {
  const base::MutexLock lock(&mutex_);
  return swap_count_;
}

void InterposingStore::Load(const store::ShardKey& key, absl::string_view request_id,
                            Callback<store::ShardState> done) {
  if (absl::Status answer = NextLoadAnswer(); !answer.ok()) return done(std::move(answer));
  inner_->Load(key, request_id, std::move(done));
}

void InterposingStore::LoadVersion(const store::ShardKey& key, uint64_t version,
                                   Callback<store::ShardRecordPtr> done) {
  if (absl::Status answer = NextLoadAnswer(); !answer.ok()) return done(std::move(answer));
  inner_->LoadVersion(key, version, std::move(done));
}

void InterposingStore::CompareAndSwap(store::SwapRequest request,
                                      absl::AnyInvocable<void(store::SwapOutcome)> done) {
  const SwapFate fate = NextSwapFate();
  RunHook(request);
  switch (fate) {
    case SwapFate::kPass:
      inner_->CompareAndSwap(std::move(request), std::move(done));
      return;
    case SwapFate::kUnknownLanded:
      inner_->CompareAndSwap(std::move(request),
                             [done = std::move(done)](const store::SwapOutcome&) mutable {
                               done(store::SwapUnknown{.status = Scripted()});
                             });
      return;
    case SwapFate::kUnknownNotLanded:
      done(store::SwapUnknown{.status = Scripted()});
      return;
    case SwapFate::kNotApplied:
      done(store::SwapNotApplied{.status = Scripted()});
      return;
    case SwapFate::kConflict:
      inner_->Load(request.key, request.request_id,
                   [done = std::move(done)](absl::StatusOr<store::ShardState> state) mutable {
                     if (state.ok()) return done(store::SwapConflict{.current = *std::move(state)});
                     done(store::SwapNotApplied{.status = state.status()});
                   });
      return;
  }
}

void InterposingStore::List(store::ListQuery query, Callback<store::ListPage> done) {
  inner_->List(std::move(query), std::move(done));
}

void InterposingStore::ListVersions(store::HistoryQuery query, Callback<store::VersionPage> done) {
  inner_->ListVersions(std::move(query), std::move(done));
}

void InterposingStore::ListClaims(store::HistoryQuery query, Callback<store::ClaimPage> done) {
  inner_->ListClaims(std::move(query), std::move(done));
}

store::StoreInfo InterposingStore::Info() const { return inner_->Info(); }

std::string InterposingStore::TokenKey() const { return inner_->TokenKey(); }

absl::Status InterposingStore::Health() const {
  {
    const base::MutexLock lock(&mutex_);
    if (!health_.ok()) return health_;
  }
  return inner_->Health();
}

absl::Status InterposingStore::NextLoadAnswer() {
  const base::MutexLock lock(&mutex_);
  ++load_count_;
  if (next_answers_.empty()) return usual_answer_;
  absl::Status answer = std::move(next_answers_.front());
  next_answers_.pop_front();
  return answer;
}

SwapFate InterposingStore::NextSwapFate() {
  const base::MutexLock lock(&mutex_);
  ++swap_count_;
  if (next_fates_.empty()) return usual_fate_;
  const SwapFate fate = next_fates_.front();
  next_fates_.pop_front();
  return fate;
}

void InterposingStore::RunHook(const store::SwapRequest& request) {
  SwapHook hook;
  {
    const base::MutexLock lock(&mutex_);
    if (!next_hooks_.empty()) {
      hook = std::move(next_hooks_.front());
      next_hooks_.pop_front();
    }
  }
  if (hook) {
    hook(request);
  } else if (every_hook_) {
    every_hook_(request);
  }
}

}  // namespace claimd::testing
