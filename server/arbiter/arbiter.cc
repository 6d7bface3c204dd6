#include "server/arbiter/arbiter.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/mutation.h"
#include "server/arbiter/request_key.h"
#include "server/arbiter/rules.h"
#include "server/base/clock.h"
#include "server/base/random.h"
#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {
namespace {

// The request's own id, or a fresh one: each change is found again by its id (DESIGN §2.10).
std::string RequestIdOr(const std::string& given, base::RandomSource* random) {
  return given.empty() ? base::FormatUuid(base::NewUuid(random)) : given;
}

// Answers with the manifest of the version that answers the request.
template <typename Response>
Mutation::Done AnswerManifest(Arbiter::Callback<Response> done) {
  return [done = std::move(done)](absl::StatusOr<MutationResult> result) mutable {
    if (!result.ok()) {
      done(result.status());
      return;
    }
    Response response;
    *response.mutable_manifest() = result->record->manifest();
    done(std::move(response));
  };
}

// Makes a rule that always changes something fit Mutation::Decide.
absl::StatusOr<std::optional<Change>> Always(absl::StatusOr<Change> change) {
  if (!change.ok()) return change.status();
  return *std::move(change);
}

// Claims of one batch. Claims of one shard form a chain and run one after the other; chains run
// side by side. Owned by the callbacks under way.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  using Start =
      std::function<void(const v1::ClaimEpochRequest*, Arbiter::Callback<v1::ClaimEpochResponse>)>;

  Batch(const std::vector<const v1::ClaimEpochRequest*>& requests, Start start,
        absl::AnyInvocable<void(Arbiter::BatchResults)> done)
      : requests_(requests),
        start_(std::move(start)),
        done_(std::move(done)),
        results_(requests.size(), absl::UnknownError("not answered")),
        open_(requests.size()) {
    absl::flat_hash_map<store::ShardKey, size_t> chain_of;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const auto [found, added] = chain_of.try_emplace(KeyOf(*requests_[i]), chains_.size());
      if (added) chains_.emplace_back();
      chains_[found->second].items.push_back(i);
    }
  }

  void Run() {
    if (requests_.empty()) {
      done_({});
      return;
    }
    // The last chain to end may answer the batch while this loop still reads it.
    const std::shared_ptr<Batch> keep = shared_from_this();
    for (size_t chain = 0; chain < chains_.size(); ++chain) Advance(chain);
  }

 private:
  struct Chain {
    std::vector<size_t> items;
    size_t next = 0;
  };

  // Starts the claims of a chain until one is not answered at once; its answer goes on from there.
  // A loop instead of recursion, so that a long chain of refusals needs no deep stack.
  void Advance(size_t chain_index) {
    Chain& chain = chains_[chain_index];
    while (chain.next < chain.items.size()) {
      const size_t item = chain.items[chain.next++];
      const auto passed = std::make_shared<std::atomic<bool>>(false);
      start_(requests_[item], [self = shared_from_this(), chain_index, item,
                               passed](absl::StatusOr<v1::ClaimEpochResponse> result) {
        self->results_[item] = std::move(result);
        // Whoever of answer and loop comes second goes on with the chain.
        if (passed->exchange(true)) self->Advance(chain_index);
        self->Answered();
      });
      if (!passed->exchange(true)) return;
    }
  }

  void Answered() {
    if (open_.fetch_sub(1) == 1) done_(std::move(results_));
  }

  const std::vector<const v1::ClaimEpochRequest*> requests_;
  const Start start_;
  absl::AnyInvocable<void(Arbiter::BatchResults)> done_;
  Arbiter::BatchResults results_;
  std::vector<Chain> chains_;
  std::atomic<size_t> open_;
};

}  // namespace

Arbiter::Arbiter(store::ManifestStore* store, const base::Clock* clock, base::RandomSource* random,
                 ArbiterOptions options)
    : store_(store), clock_(clock), random_(random), options_(options) {}

Limits Arbiter::RuleLimits() const {
  return {.epoch_jump_max = options_.epoch_jump_max,
          .manifest_bytes_max = options_.manifest_bytes_max};
}

void Arbiter::Mutate(store::ShardKey key, const std::string& request_id, Mutation::Decide decide,
                     Mutation::CheckRepeat check_repeat, Mutation::Done done) {
  Mutation::Run(store_, clock_, options_.attempts_max,
                {.key = std::move(key),
                 .request_id = RequestIdOr(request_id, random_),
                 .decide = std::move(decide),
                 .check_repeat = std::move(check_repeat)},
                std::move(done));
}

void Arbiter::ClaimEpoch(const v1::ClaimEpochRequest* request,
                         Callback<v1::ClaimEpochResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [request, limits = RuleLimits()](const Situation& at, std::optional<uint64_t> aimed_epoch) {
        return Always(ApplyClaim(at, *request, aimed_epoch, limits));
      },
      [request](const Situation& at, const AppliedRequest& applied) {
        return CheckClaimReplay(at, *request, applied);
      },
      [done = std::move(done)](absl::StatusOr<MutationResult> result) mutable {
        if (!result.ok()) {
          done(result.status());
          return;
        }
        v1::ClaimEpochResponse response;
        response.set_writer_epoch(result->applied.writer_epoch());
        *response.mutable_manifest() = result->record->manifest();
        response.set_created(result->applied.created());
        if (result->previous_claim.has_value()) {
          *response.mutable_previous_claim() = *std::move(result->previous_claim);
        }
        done(std::move(response));
      });
}

void Arbiter::BatchClaimEpoch(const std::vector<const v1::ClaimEpochRequest*>& requests,
                              absl::AnyInvocable<void(BatchResults)> done) {
  auto start = [this](const v1::ClaimEpochRequest* request,
                      Callback<v1::ClaimEpochResponse> answer) {
    ClaimEpoch(request, std::move(answer));
  };
  std::make_shared<Batch>(requests, std::move(start), std::move(done))->Run();
}

void Arbiter::InitializeShard(const v1::InitializeShardRequest* request,
                              Callback<v1::InitializeShardResponse> done) {
  // The call repeats by its content, so it has no id of its own.
  Mutate(
      KeyOf(*request), /*request_id=*/"",
      [request](const Situation& at, std::optional<uint64_t> /*aimed_epoch*/) {
        return ApplyInitialize(at, *request);
      },
      [](const Situation& at, const AppliedRequest& applied) {
        return CheckReplay(at, storage::v1::MUTATION_KIND_INITIALIZE, applied);
      },
      [done = std::move(done)](absl::StatusOr<MutationResult> result) mutable {
        if (!result.ok()) {
          done(result.status());
          return;
        }
        v1::InitializeShardResponse response;
        *response.mutable_manifest() = result->record->manifest();
        response.set_created(result->applied.created());
        done(std::move(response));
      });
}

void Arbiter::CommitManifest(const v1::CommitManifestRequest* request,
                             Callback<v1::CommitManifestResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [request, limits = RuleLimits()](const Situation& at,
                                       std::optional<uint64_t> /*aimed_epoch*/) {
        return Always(ApplyCommit(at, *request, limits));
      },
      [request](const Situation& at, const AppliedRequest& applied) {
        return CheckCommitReplay(at, *request, applied);
      },
      [request, done = std::move(done)](absl::StatusOr<MutationResult> result) mutable {
        if (!result.ok()) {
          done(result.status());
          return;
        }
        const v1::ShardManifest& committed = result->record->manifest();
        if (result->repeated && committed.version() == request->manifest().version()) {
          const Situation at{.key = KeyOf(*request), .request_id = request->request_id()};
          if (absl::Status same = CheckCommitContent(at, *request, committed); !same.ok()) {
            done(std::move(same));
            return;
          }
        }
        v1::CommitManifestResponse response;
        *response.mutable_manifest() = committed;
        done(std::move(response));
      });
}

void Arbiter::ReleaseEpoch(const v1::ReleaseEpochRequest* request,
                           Callback<v1::ReleaseEpochResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [request](const Situation& at, std::optional<uint64_t> /*aimed_epoch*/) {
        return Always(ApplyRelease(at, *request));
      },
      [request](const Situation& at, const AppliedRequest& applied) {
        return CheckReleaseReplay(at, *request, applied);
      },
      AnswerManifest(std::move(done)));
}

void Arbiter::SealShard(const v1::SealShardRequest* request, Callback<v1::SealShardResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [](const Situation& at, std::optional<uint64_t> /*aimed_epoch*/) {
        return Always(ApplySeal(at));
      },
      [](const Situation& at, const AppliedRequest& applied) {
        return CheckReplay(at, storage::v1::MUTATION_KIND_SEAL, applied);
      },
      AnswerManifest(std::move(done)));
}

void Arbiter::UnsealShard(const v1::UnsealShardRequest* request,
                          Callback<v1::UnsealShardResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [](const Situation& at, std::optional<uint64_t> /*aimed_epoch*/) {
        return Always(ApplyUnseal(at));
      },
      [](const Situation& at, const AppliedRequest& applied) {
        return CheckReplay(at, storage::v1::MUTATION_KIND_UNSEAL, applied);
      },
      AnswerManifest(std::move(done)));
}

void Arbiter::DropShard(const v1::DropShardRequest* request, Callback<v1::DropShardResponse> done) {
  Mutate(
      KeyOf(*request), request->request_id(),
      [request](const Situation& at, std::optional<uint64_t> /*aimed_epoch*/) {
        return Always(ApplyDrop(at, *request));
      },
      [](const Situation& at, const AppliedRequest& applied) {
        return CheckReplay(at, storage::v1::MUTATION_KIND_DROP, applied);
      },
      AnswerManifest(std::move(done)));
}

void Arbiter::ImportManifest(const v1::ImportManifestsRequest* request,
                             absl::AnyInvocable<void(absl::Status)> done) {
  absl::StatusOr<store::ShardKey> key = ImportKey(request->manifest());
  if (!key.ok()) {
    done(key.status());
    return;
  }
  Mutate(
      *std::move(key), /*request_id=*/"",
      [request, limits = RuleLimits()](const Situation& at,
                                       std::optional<uint64_t> /*aimed_epoch*/) {
        return ApplyImport(at, request->manifest(), limits);
      },
      [](const Situation& at, const AppliedRequest& applied) {
        return CheckReplay(at, storage::v1::MUTATION_KIND_IMPORT, applied);
      },
      [done = std::move(done)](absl::StatusOr<MutationResult> result) mutable {
        done(result.status());
      });
}

}  // namespace claimd::arbiter
