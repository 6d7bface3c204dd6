#include "server/arbiter/mutation.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <glog/logging.h>

#include "claimd/storage/v1/storage.pb.h"

#include "server/arbiter/errors.h"
#include "server/arbiter/invariants.h"
#include "server/arbiter/rules.h"
#include "server/base/clock.h"
#include "server/base/uuid.h"
#include "server/store/manifest_store.h"

namespace claimd::arbiter {
namespace {

uint64_t VersionOf(const store::ShardRecordPtr& record) {
  return record == nullptr ? 0 : record->manifest().version();
}

}  // namespace

Mutation::Mutation(store::ManifestStore* store, const base::Clock* clock, int attempts_max,
                   Plan plan, Done done)
    : store_(store),
      clock_(clock),
      attempts_max_(attempts_max),
      plan_(std::move(plan)),
      done_(std::move(done)) {}

void Mutation::Run(store::ManifestStore* store, const base::Clock* clock, int attempts_max,
                   Plan plan, Done done) {
  Load(Self(new Mutation(store, clock, attempts_max, std::move(plan), std::move(done))));
}

void Mutation::Load(Self self) {
  Mutation* const mutation = self.get();
  mutation->store_->Load(mutation->plan_.key, mutation->plan_.request_id,
                         [self = std::move(self)](absl::StatusOr<store::ShardState> state) mutable {
                           OnLoaded(std::move(self), std::move(state));
                         });
}

void Mutation::OnLoaded(Self self, absl::StatusOr<store::ShardState> state) {
  if (!state.ok()) {
    if (self->unknown_at_version_.has_value()) {
      // The re-read that was to decide failed too.
      const uint64_t version = *self->unknown_at_version_;
      Fail(std::move(self), state.status(), version);
      return;
    }
    absl::Status failure = self->StoreFailure(state.status());
    Finish(std::move(self), std::move(failure));
    return;
  }
  Step(std::move(self), *std::move(state));
}

void Mutation::Step(Self self, store::ShardState state) {
  const uint64_t head_version = VersionOf(state.record);
  if (state.record != nullptr) {
    if (absl::Status sane = CheckRecord(self->plan_.key, *state.record); !sane.ok()) {
      absl::Status failure = self->StoreFailure(sane);
      Fail(std::move(self), std::move(failure), head_version);
      return;
    }
  }
  const Situation at{.key = self->plan_.key,
                     .head = state.record.get(),
                     .now = self->clock_->Now(),
                     .request_id = self->plan_.request_id};
  if (state.applied.has_value() && state.record != nullptr) {
    absl::Status same = self->plan_.check_repeat(at, *state.applied);
    if (!same.ok()) {
      Finish(std::move(self), std::move(same));
      return;
    }
    Repeat(std::move(self), state.record, *std::move(state.applied));
    return;
  }
  if (self->attempts_ == self->attempts_max_) {
    absl::Status failure = ContentionError(
        self->plan_.key, state.record == nullptr ? nullptr : &state.record->manifest(),
        self->attempts_);
    Fail(std::move(self), std::move(failure), head_version);
    return;
  }
  absl::StatusOr<std::optional<Change>> change = self->plan_.decide(at, self->aimed_epoch_);
  if (!change.ok()) {
    Fail(std::move(self), change.status(), head_version);
    return;
  }
  if (!change->has_value()) {
    AppliedRequest applied;
    applied.set_version(head_version);
    applied.set_writer_epoch(state.record->manifest().writer_epoch());
    Finish(std::move(self), MutationResult{.record = state.record, .applied = applied});
    return;
  }
  Swap(std::move(self), std::move(state.record), **std::move(change));
}

void Mutation::Swap(Self self, store::ShardRecordPtr head, Change change) {
  if (absl::Status legal = CheckTransition(head.get(), change.next); !legal.ok()) {
    // A rule is wrong. Nothing has been written, and this will not be.
    LOG(DFATAL) << "msg=\"illegal transition\" error=\"" << legal.message() << "\"";
    Fail(std::move(self), std::move(legal), VersionOf(head));
    return;
  }
  Mutation* const mutation = self.get();
  ++mutation->attempts_;
  mutation->aimed_epoch_ = change.next.manifest().writer_epoch();
  mutation->expected_version_ = VersionOf(head);
  mutation->pending_.record =
      std::make_shared<const storage::v1::ShardRecord>(std::move(change.next));
  mutation->pending_.applied = change.applied;
  mutation->pending_.previous_claim.reset();
  if (change.ended_claim.has_value()) {
    mutation->pending_.previous_claim = change.ended_claim->claim();
  }
  store::SwapRequest request{.key = mutation->plan_.key,
                             .expected_version = mutation->expected_version_,
                             .next = mutation->pending_.record,
                             .request_id = mutation->plan_.request_id,
                             .applied = std::move(change.applied),
                             .ended_claim = std::move(change.ended_claim),
                             .guards = {}};
  mutation->store_->CompareAndSwap(std::move(request),
                                   [self = std::move(self)](store::SwapOutcome outcome) mutable {
                                     OnSwapped(std::move(self), std::move(outcome));
                                   });
}

void Mutation::OnSwapped(Self self, store::SwapOutcome outcome) {
  if (std::holds_alternative<store::SwapCommitted>(outcome)) {
    MutationResult result = std::move(self->pending_);
    Finish(std::move(self), std::move(result));
    return;
  }
  if (auto* conflict = std::get_if<store::SwapConflict>(&outcome)) {
    Step(std::move(self), std::move(conflict->current));
    return;
  }
  if (const auto* refused = std::get_if<store::SwapNotApplied>(&outcome)) {
    absl::Status failure = self->StoreFailure(refused->status);
    const uint64_t version = self->expected_version_;
    Fail(std::move(self), std::move(failure), version);
    return;
  }
  // It may have landed: the request id tells (DESIGN §2.10).
  self->unknown_at_version_ = self->expected_version_;
  self->unknown_status_ = std::get<store::SwapUnknown>(outcome).status;
  Load(std::move(self));
}

void Mutation::Repeat(Self self, const store::ShardRecordPtr& head, AppliedRequest applied) {
  MutationResult result{.record = head, .applied = std::move(applied), .repeated = true};
  if (result.applied.version() == head->manifest().version()) {
    FindPreviousClaim(std::move(self), std::move(result));
    return;
  }
  Mutation* const mutation = self.get();
  const uint64_t version = result.applied.version();
  mutation->store_->LoadVersion(
      mutation->plan_.key, version,
      [self = std::move(self),
       result = std::move(result)](absl::StatusOr<store::ShardRecordPtr> record) mutable {
        if (record.ok()) {
          result.record = *std::move(record);
        } else if (record.status().code() != absl::StatusCode::kNotFound) {
          absl::Status failure = self->StoreFailure(record.status());
          Finish(std::move(self), std::move(failure));
          return;
        }
        // A version that is no longer kept is answered by the newest one.
        FindPreviousClaim(std::move(self), std::move(result));
      });
}

void Mutation::FindPreviousClaim(Self self, MutationResult result) {
  const uint64_t sequence = result.applied.ended_claim_sequence();
  if (sequence == 0) {
    Finish(std::move(self), std::move(result));
    return;
  }
  Mutation* const mutation = self.get();
  store::HistoryQuery query{.key = mutation->plan_.key, .before = sequence + 1, .results_max = 1};
  mutation->store_->ListClaims(
      std::move(query), [self = std::move(self), result = std::move(result),
                         sequence](absl::StatusOr<store::ClaimPage> page) mutable {
        if (!page.ok()) {
          absl::Status failure = self->StoreFailure(page.status());
          Finish(std::move(self), std::move(failure));
          return;
        }
        if (!page->claims.empty() && page->claims.front().sequence == sequence) {
          result.previous_claim = std::move(*page->claims.front().record.mutable_claim());
        }
        Finish(std::move(self), std::move(result));
      });
}

void Mutation::Fail(Self self, absl::Status failure, uint64_t head_version) {
  // A try of unknown outcome can land only while its version is the head.
  if (self->unknown_at_version_ == head_version) {
    failure = OutcomeUnknownError(self->plan_.key, self->plan_.request_id, self->unknown_status_);
  }
  Finish(std::move(self), std::move(failure));
}

void Mutation::Finish(Self self, absl::StatusOr<MutationResult> result) {
  Done done = std::move(self->done_);
  self.reset();
  done(std::move(result));
}

absl::Status Mutation::StoreFailure(const absl::Status& cause) const {
  return StoreError(plan_.key.table, base::FormatUuid(plan_.key.shard_id), cause);
}

}  // namespace claimd::arbiter
