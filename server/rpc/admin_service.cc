#include "server/rpc/admin_service.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/admin.pb.h"

#include "server/arbiter/errors.h"
#include "server/base/uuid.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/status_details.h"
#include "server/store/manifest_store.h"

namespace claimd::rpc {
namespace {

using grpc::ByteBuffer;
using grpc::CallbackServerContext;

using RawService = v1::Admin::WithRawCallbackMethod_GetServerInfo<
    v1::Admin::WithRawCallbackMethod_ImportManifests<v1::Admin::Service>>;

constexpr int kImportItemsMax = 10'000;
// Clients' default limit for a message is 4 MiB; once the answer is that large, refusals are told
// without their details.
constexpr size_t kImportDetailsBytesMax = size_t{2} << 20U;

// One import: reads a manifest, has it judged, reads the next. One at a time, so that a stream
// costs the memory of one manifest. Deletes itself when gRPC is done with it.
class ImportCall final : public grpc::ServerReadReactor<ByteBuffer> {
 public:
  ImportCall(const Environment* environment, ByteBuffer* response)
      : environment_(environment), response_bytes_(response) {
    entered_ = environment_->gate->Enter(1);
    if (!entered_.ok()) {
      Finish(ToGrpcStatus(entered_));
      return;
    }
    StartRead(&bytes_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      SerializeResponse(response_, response_bytes_);
      Finish(grpc::Status::OK);
      return;
    }
    if (response_.results_size() == kImportItemsMax) {
      Finish(ToGrpcStatus(arbiter::InvalidRequestError(
          {{"manifest", absl::StrCat("only ", kImportItemsMax,
                                     " manifests fit one call; all of those were taken or refused, "
                                     "send the rest in another call")}},
          "", "")));
      return;
    }
    request_.Clear();
    if (absl::Status parsed = ParseRequest(bytes_, &request_); !parsed.ok()) {
      Answer(parsed);
      return;
    }
    environment_->arbiter->ImportManifest(&request_,
                                          [this](const absl::Status& verdict) { Answer(verdict); });
  }

  void OnDone() override {
    if (entered_.ok()) environment_->gate->Leave(1);
    delete this;
  }

 private:
  void Answer(const absl::Status& verdict) {
    google::rpc::Status* const result = response_.add_results();
    if (!verdict.ok()) {
      environment_->log->Refused("ImportManifests", request_.manifest().table(),
                                 request_.manifest().shard_id(), verdict);
      *result = ToRpcStatus(verdict);
      details_bytes_ += result->ByteSizeLong();
      if (details_bytes_ > kImportDetailsBytesMax) {
        result->clear_details();
        result->clear_message();
      }
    }
    StartRead(&bytes_);
  }

  const Environment* const environment_;
  ByteBuffer* const response_bytes_;
  absl::Status entered_;
  ByteBuffer bytes_;
  v1::ImportManifestsRequest request_;
  v1::ImportManifestsResponse response_;
  size_t details_bytes_ = 0;
};

class AdminService final : public RawService {
 public:
  AdminService(const Environment& environment, store::ManifestStore* store, ServerFacts facts)
      : environment_(environment), store_(store), facts_(std::move(facts)) {}

  grpc::ServerUnaryReactor* GetServerInfo(CallbackServerContext* context, const ByteBuffer* request,
                                          ByteBuffer* response) override {
    RawCall<v1::GetServerInfoRequest> call(&environment_, context, response);
    absl::Status ready = call.Parse(*request);
    if (ready.ok()) ready = call.Enter(1);
    if (ready.ok()) {
      call.Answer(Info());
    } else {
      call.Refuse(ready);
    }
    return call.reactor();
  }

  grpc::ServerReadReactor<ByteBuffer>* ImportManifests(CallbackServerContext* /*context*/,
                                                       ByteBuffer* response) override {
    return new ImportCall(&environment_, response);
  }

 private:
  v1::GetServerInfoResponse Info() const {
    constexpr int64_t kNanosPerSecond = 1'000'000'000;
    const store::StoreInfo info = store_->Info();
    const int64_t start = absl::ToUnixNanos(facts_.start_time);
    v1::GetServerInfoResponse response;
    response.set_server_version(facts_.version);
    response.set_store_kind(info.kind);
    response.set_store_id(base::FormatUuid(info.store_id));
    response.set_store_format_version(info.format_version);
    response.set_revision(info.revision);
    response.mutable_start_time()->set_seconds(start / kNanosPerSecond);
    response.mutable_start_time()->set_nanos(static_cast<int32_t>(start % kNanosPerSecond));
    *response.mutable_limits() = facts_.limits;
    return response;
  }

  const Environment environment_;
  store::ManifestStore* const store_;
  const ServerFacts facts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(const Environment& environment,
                                                store::ManifestStore* store, ServerFacts facts) {
  return std::make_unique<AdminService>(environment, store, std::move(facts));
}

}  // namespace claimd::rpc
