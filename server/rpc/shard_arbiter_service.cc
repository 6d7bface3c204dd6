#include "server/rpc/shard_arbiter_service.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "claimd/v1/shard_arbiter.grpc.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/arbiter.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/status_details.h"
#include "server/rpc/validation.h"

namespace claimd::rpc {
namespace {

using arbiter::Arbiter;
using grpc::ByteBuffer;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using Rpcs = v1::ShardArbiter;

// Every rpc taken as bytes.
using RawService =
    Rpcs::WithRawCallbackMethod_ClaimEpoch<Rpcs::WithRawCallbackMethod_BatchClaimEpoch<
        Rpcs::WithRawCallbackMethod_InitializeShard<Rpcs::WithRawCallbackMethod_CheckFence<
            Rpcs::WithRawCallbackMethod_CommitManifest<Rpcs::WithRawCallbackMethod_ReleaseEpoch<
                Rpcs::WithRawCallbackMethod_GetManifest<Rpcs::WithRawCallbackMethod_ListShards<
                    Rpcs::WithRawCallbackMethod_ListManifestVersions<
                        Rpcs::WithRawCallbackMethod_ListClaims<
                            Rpcs::WithRawCallbackMethod_SealShard<
                                Rpcs::WithRawCallbackMethod_UnsealShard<
                                    Rpcs::WithRawCallbackMethod_DropShard<
                                        Rpcs::Service>>>>>>>>>>>>>;

// Clients' default limit is 4 MiB for one message.
constexpr size_t kBatchBytesMax = size_t{3} << 20U;
// Past this, refusals keep their ErrorInfo only, or 1,024 of them would not fit.
constexpr size_t kBatchDetailsBytesMax = size_t{1} << 20U;

// One batch while it runs: the claims that are valid go to the arbiter, the others are answered
// here.
class BatchCall {
 public:
  BatchCall(std::unique_ptr<RawCall<v1::BatchClaimEpochRequest>> call) : call_(std::move(call)) {
    for (const v1::ClaimEpochRequest& item : call_->request().requests()) {
      verdicts_.push_back(Validate(item));
      if (verdicts_.back().ok()) valid_.push_back(&item);
    }
  }

  const std::vector<const v1::ClaimEpochRequest*>& valid() const { return valid_; }

  void Finish(Arbiter::BatchResults results) {
    v1::BatchClaimEpochResponse response;
    size_t bytes = 0;
    auto next = results.begin();
    for (size_t i = 0; i < verdicts_.size(); ++i) {
      absl::StatusOr<v1::ClaimEpochResponse> result =
          verdicts_[i].ok() ? std::move(*next++)
                            : absl::StatusOr<v1::ClaimEpochResponse>(verdicts_[i]);
      Log(call_->request().requests(static_cast<int>(i)), result);
      Add(std::move(result), response.add_results(), &bytes);
    }
    call_->Answer(response);
  }

 private:
  void Log(const v1::ClaimEpochRequest& item,
           const absl::StatusOr<v1::ClaimEpochResponse>& result) const {
    RequestLog* const log = call_->environment().log;
    if (result.ok()) {
      log->Granted("BatchClaimEpoch", result->manifest());
    } else {
      log->Refused("BatchClaimEpoch", item.table(), item.shard_id(), result.status());
    }
  }

  static void Add(absl::StatusOr<v1::ClaimEpochResponse> result, v1::BatchClaimEpochResult* out,
                  size_t* bytes) {
    if (!result.ok()) {
      *out->mutable_status() = ToRpcStatus(result.status());
      if (*bytes > kBatchDetailsBytesMax && out->status().details_size() > 1) {
        // ErrorInfo comes first and says what a program needs.
        out->mutable_status()->mutable_details()->DeleteSubrange(1,
                                                                 out->status().details_size() - 1);
      }
    } else {
      *out->mutable_response() = *std::move(result);
      if (*bytes + out->ByteSizeLong() > kBatchBytesMax) {
        out->mutable_response()->clear_manifest();
        // Its labels can be large, too.
        out->mutable_response()->clear_previous_claim();
        out->set_manifest_omitted(true);
      }
    }
    *bytes += out->ByteSizeLong();
  }

  const std::unique_ptr<RawCall<v1::BatchClaimEpochRequest>> call_;
  std::vector<absl::Status> verdicts_;
  std::vector<const v1::ClaimEpochRequest*> valid_;
};

class ShardArbiterService final : public RawService {
 public:
  explicit ShardArbiterService(const Environment& environment) : environment_(environment) {}

  ServerUnaryReactor* ClaimEpoch(CallbackServerContext* context, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return Run<v1::ClaimEpochRequest>(context, request, response, "ClaimEpoch",
                                      LogPolicy::kGrantsAndRefusals, &Arbiter::ClaimEpoch);
  }

  ServerUnaryReactor* BatchClaimEpoch(CallbackServerContext* context, const ByteBuffer* request,
                                      ByteBuffer* response) override {
    auto call =
        std::make_unique<RawCall<v1::BatchClaimEpochRequest>>(&environment_, context, response);
    ServerUnaryReactor* const reactor = call->reactor();
    absl::Status ready = call->Parse(*request);
    if (ready.ok()) ready = Validate(call->request());
    if (ready.ok()) ready = call->Enter(static_cast<size_t>(call->request().requests_size()));
    if (!ready.ok()) {
      environment_.log->Refused("BatchClaimEpoch", "", "", ready);
      call->Refuse(ready);
      return reactor;
    }
    auto batch = std::make_unique<BatchCall>(std::move(call));
    const std::vector<const v1::ClaimEpochRequest*>& valid = batch->valid();
    environment_.arbiter->BatchClaimEpoch(
        valid, [batch = std::move(batch)](Arbiter::BatchResults results) {
          batch->Finish(std::move(results));
        });
    return reactor;
  }

  ServerUnaryReactor* InitializeShard(CallbackServerContext* context, const ByteBuffer* request,
                                      ByteBuffer* response) override {
    return Run<v1::InitializeShardRequest>(context, request, response, "InitializeShard",
                                           LogPolicy::kGrantsAndRefusals,
                                           &Arbiter::InitializeShard);
  }

  ServerUnaryReactor* CheckFence(CallbackServerContext* context, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return Run<v1::CheckFenceRequest>(context, request, response, "CheckFence", LogPolicy::kNothing,
                                      &Arbiter::CheckFence);
  }

  ServerUnaryReactor* CommitManifest(CallbackServerContext* context, const ByteBuffer* request,
                                     ByteBuffer* response) override {
    return Run<v1::CommitManifestRequest>(context, request, response, "CommitManifest",
                                          LogPolicy::kRefusals, &Arbiter::CommitManifest);
  }

  ServerUnaryReactor* ReleaseEpoch(CallbackServerContext* context, const ByteBuffer* request,
                                   ByteBuffer* response) override {
    return Run<v1::ReleaseEpochRequest>(context, request, response, "ReleaseEpoch",
                                        LogPolicy::kGrantsAndRefusals, &Arbiter::ReleaseEpoch);
  }

  ServerUnaryReactor* GetManifest(CallbackServerContext* context, const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return Run<v1::GetManifestRequest>(context, request, response, "GetManifest",
                                       LogPolicy::kNothing, &Arbiter::GetManifest);
  }

  ServerUnaryReactor* ListShards(CallbackServerContext* context, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return Run<v1::ListShardsRequest>(context, request, response, "ListShards", LogPolicy::kNothing,
                                      &Arbiter::ListShards);
  }

  ServerUnaryReactor* ListManifestVersions(CallbackServerContext* context,
                                           const ByteBuffer* request,
                                           ByteBuffer* response) override {
    return Run<v1::ListManifestVersionsRequest>(context, request, response, "ListManifestVersions",
                                                LogPolicy::kNothing,
                                                &Arbiter::ListManifestVersions);
  }

  ServerUnaryReactor* ListClaims(CallbackServerContext* context, const ByteBuffer* request,
                                 ByteBuffer* response) override {
    return Run<v1::ListClaimsRequest>(context, request, response, "ListClaims", LogPolicy::kNothing,
                                      &Arbiter::ListClaims);
  }

  ServerUnaryReactor* SealShard(CallbackServerContext* context, const ByteBuffer* request,
                                ByteBuffer* response) override {
    return Run<v1::SealShardRequest>(context, request, response, "SealShard",
                                     LogPolicy::kGrantsAndRefusals, &Arbiter::SealShard);
  }

  ServerUnaryReactor* UnsealShard(CallbackServerContext* context, const ByteBuffer* request,
                                  ByteBuffer* response) override {
    return Run<v1::UnsealShardRequest>(context, request, response, "UnsealShard",
                                       LogPolicy::kGrantsAndRefusals, &Arbiter::UnsealShard);
  }

  ServerUnaryReactor* DropShard(CallbackServerContext* context, const ByteBuffer* request,
                                ByteBuffer* response) override {
    return Run<v1::DropShardRequest>(context, request, response, "DropShard",
                                     LogPolicy::kGrantsAndRefusals, &Arbiter::DropShard);
  }

 private:
  template <typename Request, typename Response>
  ServerUnaryReactor* Run(CallbackServerContext* context, const ByteBuffer* request,
                          ByteBuffer* response, absl::string_view rpc, LogPolicy policy,
                          void (Arbiter::*method)(const Request*, Arbiter::Callback<Response>)) {
    return RunUnary(
        &environment_, context, request, response, rpc, policy,
        [](const Request& parsed) { return Validate(parsed); }, method);
  }

  const Environment environment_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeShardArbiterService(const Environment& environment) {
  return std::make_unique<ShardArbiterService>(environment);
}

}  // namespace claimd::rpc
