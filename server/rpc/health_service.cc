#include "server/rpc/health_service.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "server/base/mutex.h"

namespace claimd::rpc {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus ToWire(bool serving) {
  return serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

// Watches are cheap, but not free; a client that opens them without end is turned away.
constexpr size_t kWatchersMax = 10'000;

grpc::Status Unavailable() {
  return {grpc::StatusCode::UNAVAILABLE, "this server takes no more health watches now"};
}

bool IsKnown(const std::string& service) {
  return service.empty() || service == "claimd.v1.ShardArbiter" || service == "claimd.v1.Admin";
}

}  // namespace

// One watch: sends the newest status, never queues older ones.
//
// A write and the end of the stream never meet: whoever wants to end it while a write is under way
// leaves that to the write's completion.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService* service, bool known) : service_(service), known_(known) {}

  // Sends the service's status if it is another than was sent last; an unknown service stays
  // unknown. Any thread; not under a lock.
  void Update() { Advance(); }

  // Wants the stream ended. Any thread; not under a lock.
  void End(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const base::MutexLock lock(&mutex_);
      if (!end_wanted_) end_status_ = status;
      end_wanted_ = true;
    }
    Advance();
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const base::MutexLock lock(&mutex_);
      busy_ = false;
      if (!ok) end_wanted_ = true;
    }
    Advance();
  }

  void OnCancel() override { End(grpc::Status::CANCELLED); }

  void OnDone() override { service_->Remove(this); }

 private:
  // Read anew each time, so that no change is lost between a read and its sending.
  HealthCheckResponse::ServingStatus Status() const {
    return known_ ? ToWire(service_->IsServing()) : HealthCheckResponse::SERVICE_UNKNOWN;
  }

  // Starts what is wanted next, if nothing is under way.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_) {
    bool end = false;
    grpc::Status end_status;
    {
      const base::MutexLock lock(&mutex_);
      if (busy_ || ended_) return;
      if (end_wanted_) {
        ended_ = true;
        end = true;
        end_status = end_status_;
      } else if (const auto status = Status(); status != sent_) {
        busy_ = true;
        sent_ = status;
        message_.set_status(sent_);
      } else {
        return;
      }
    }
    if (end) {
      Finish(end_status);
    } else {
      StartWrite(&message_);
    }
  }

  HealthService* const service_;
  const bool known_;
  // Touched only by whoever set busy_.
  HealthCheckResponse message_;
  base::Mutex mutex_;
  HealthCheckResponse::ServingStatus sent_ ABSL_GUARDED_BY(mutex_) = HealthCheckResponse::UNKNOWN;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool end_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status end_status_ ABSL_GUARDED_BY(mutex_) = grpc::Status::CANCELLED;
};

bool HealthService::IsServing() const {
  const base::MutexLock lock(&mutex_);
  return serving_;
}

std::vector<std::shared_ptr<HealthService::Watcher>> HealthService::Watchers() {
  std::vector<std::shared_ptr<Watcher>> watchers;
  const base::MutexLock lock(&mutex_);
  watchers.reserve(watchers_.size());
  for (const auto& [watcher, owner] : watchers_) watchers.push_back(owner);
  return watchers;
}

void HealthService::SetServing(bool serving) {
  {
    const base::MutexLock lock(&mutex_);
    serving_ = serving;
  }
  for (const auto& watcher : Watchers()) watcher->Update();
}

void HealthService::Shutdown() {
  {
    const base::MutexLock lock(&mutex_);
    shut_down_ = true;
  }
  for (const auto& watcher : Watchers()) watcher->End(Unavailable());
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (!IsKnown(request->service())) {
    reactor->Finish({grpc::StatusCode::NOT_FOUND, "there is no service of this name"});
    return reactor;
  }
  response->set_status(ToWire(IsServing()));
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/, const HealthCheckRequest* request) {
  const auto watcher = std::make_shared<Watcher>(this, IsKnown(request->service()));
  bool refused = false;
  {
    const base::MutexLock lock(&mutex_);
    refused = shut_down_ || watchers_.size() >= kWatchersMax;
    watchers_.emplace(watcher.get(), watcher);
  }
  if (refused) {
    watcher->End(Unavailable());
  } else {
    watcher->Update();
  }
  return watcher.get();
}

void HealthService::Remove(Watcher* watcher) {
  // Destroyed after the lock is given back.
  std::shared_ptr<Watcher> last;
  const base::MutexLock lock(&mutex_);
  const auto found = watchers_.find(watcher);
  if (found == watchers_.end()) return;
  last = std::move(found->second);
  watchers_.erase(found);
}

}  // namespace claimd::rpc
