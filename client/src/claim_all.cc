#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "client/src/core.h"
#include "client/src/retry.h"
#include "client/src/status.h"

namespace claimd::internal {
namespace {

constexpr size_t kBatchClaimsMax = 1'024;
// Stays below the 4 MiB that gRPC servers accept by default.
constexpr size_t kBatchBytesMax = size_t{2} << 20U;

using Response = v1::ClaimEpochResponse;

// One ClaimAll.
class BatchClaimer {
 public:
  BatchClaimer(const std::shared_ptr<Core>& core, const std::vector<ClaimTarget>& shards,
               absl::Duration deadline)
      : core_(core), shards_(shards), deadline_(deadline) {
    for (const ClaimTarget& shard : shards) {
      requests_.push_back(MakeClaimRequest(*core, shard));
      results_.emplace_back(absl::UnknownError("not asked yet"));
    }
  }

  std::vector<absl::StatusOr<ShardClaim>> Run() {
    for (size_t begin = 0; begin < requests_.size();) {
      const size_t end = EndOfBatch(begin);
      std::vector<size_t> batch;
      for (size_t i = begin; i < end; ++i) batch.push_back(i);
      ClaimBatch(std::move(batch));
      begin = end;
    }
    return std::move(results_);
  }

 private:
  size_t EndOfBatch(size_t begin) const {
    size_t end = begin;
    size_t bytes = 0;
    while (end < requests_.size() && end - begin < kBatchClaimsMax) {
      bytes += requests_[end].ByteSizeLong();
      if (end > begin && bytes > kBatchBytesMax) break;
      ++end;
    }
    return end;
  }

  // Claims some shards in one call, and those that may be asked for again in further ones.
  void ClaimBatch(std::vector<size_t> open) {
    RetryLoop retries = core_->Retries(deadline_, /*request_id=*/"");
    std::vector<size_t> granted_without_manifest;
    const absl::Status status = retries.Run([&](absl::Duration timeout) {
      v1::BatchClaimEpochRequest request;
      for (const size_t i : open) *request.add_requests() = requests_[i];
      v1::BatchClaimEpochResponse response;
      absl::Status sent =
          core_->Attempt(timeout, [&](const Link& link, grpc::ClientContext* context) {
            return link.arbiter->BatchClaimEpoch(context, request, &response);
          });
      if (!sent.ok()) return sent;
      if (static_cast<size_t>(response.results_size()) != open.size()) {
        return absl::InternalError("The server answered another number of claims than asked for.");
      }
      return TakeResults(response, retries, &open, &granted_without_manifest);
    });
    for (const size_t i : open) results_[i] = ForShard(status, retries, i);
    for (const size_t i : granted_without_manifest) results_[i] = ClaimOne(i);
  }

  // Keeps what was decided, and leaves in 'open' what may be asked again. Answers the status of the
  // first of those, so that the retry loop goes on.
  absl::Status TakeResults(const v1::BatchClaimEpochResponse& response, const RetryLoop& retries,
                           std::vector<size_t>* open,
                           std::vector<size_t>* granted_without_manifest) {
    absl::Status unfinished;
    std::vector<size_t> still_open;
    for (size_t n = 0; n < open->size(); ++n) {
      const size_t i = (*open)[n];
      const v1::BatchClaimEpochResult& result = response.results(static_cast<int>(n));
      if (result.has_response()) {
        if (result.manifest_omitted()) {
          granted_without_manifest->push_back(i);
        } else {
          results_[i] = MakeClaim(core_, shards_[i], result.response());
        }
        continue;
      }
      absl::Status refusal = FromProto(result.status());
      if (refusal.ok()) refusal = absl::InternalError("The server answered no result for a claim.");
      if (IsRetryable(refusal)) {
        still_open.push_back(i);
        unfinished.Update(refusal);
      } else {
        SetCallFacts({.request_id = requests_[i].request_id(),
                      .attempts = retries.attempts() + 1,
                      .may_have_landed = retries.lost_an_answer() && !SettlesOutcome(refusal)},
                     &refusal);
        results_[i] = std::move(refusal);
      }
    }
    *open = std::move(still_open);
    return unfinished;
  }

  absl::Status ForShard(absl::Status status, const RetryLoop& retries, size_t i) const {
    CallFacts facts = CallFactsOf(status);
    facts.request_id = requests_[i].request_id();
    facts.may_have_landed = retries.lost_an_answer() && !SettlesOutcome(status);
    SetCallFacts(facts, &status);
    return status;
  }

  // Repeats a granted claim by itself: the same request id is answered with the same epoch, and
  // with the manifest that did not fit into the batch's answer.
  absl::StatusOr<ShardClaim> ClaimOne(size_t i) {
    absl::StatusOr<Response> response =
        core_->Mutate(&v1::ShardArbiter::Stub::ClaimEpoch, requests_[i], deadline_);
    if (!response.ok()) return response.status();
    return MakeClaim(core_, shards_[i], *response);
  }

  const std::shared_ptr<Core> core_;
  const std::vector<ClaimTarget>& shards_;
  const absl::Duration deadline_;
  std::vector<v1::ClaimEpochRequest> requests_;
  std::vector<absl::StatusOr<ShardClaim>> results_;
};

}  // namespace

std::vector<absl::StatusOr<ShardClaim>> ClaimAll(const std::shared_ptr<Core>& core,
                                                 const std::vector<ClaimTarget>& shards,
                                                 absl::Duration deadline) {
  return BatchClaimer(core, shards, deadline).Run();
}

}  // namespace claimd::internal
