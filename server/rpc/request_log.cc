#include "server/rpc/request_log.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <glog/logging.h>

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace claimd::rpc {
namespace {

constexpr double kLinesPerSecond = 100;
constexpr double kBurst = 200;
constexpr size_t kValueLengthMax = 256;

std::string Quoted(absl::string_view value) {
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kValueLengthMax)), "\"");
}

std::string SuppressedField(uint64_t count) {
  return count == 0 ? "" : absl::StrCat(" suppressed=", count);
}

}  // namespace

RequestLog::Ticket RequestLog::Take() {
  const absl::Duration now = clock_->MonotonicNow();
  const base::MutexLock lock(&mutex_);
  if (!started_) {
    started_ = true;
    tokens_ = kBurst;
  } else {
    tokens_ =
        std::min(kBurst, tokens_ + absl::ToDoubleSeconds(now - refilled_at_) * kLinesPerSecond);
  }
  refilled_at_ = now;
  if (tokens_ < 1) {
    ++suppressed_;
    ++suppressed_total_;
    return {};
  }
  tokens_ -= 1;
  const Ticket ticket{.granted = true, .suppressed = suppressed_};
  suppressed_ = 0;
  return ticket;
}

void RequestLog::Granted(absl::string_view rpc, const v1::ShardManifest& manifest) {
  const Ticket ticket = Take();
  if (!ticket.granted) return;
  LOG(INFO) << "msg=granted rpc=" << rpc << " table=" << Quoted(manifest.table())
            << " shard_id=" << manifest.shard_id() << " version=" << manifest.version()
            << " writer_epoch=" << manifest.writer_epoch()
            << " claimant=" << Quoted(manifest.claim().claimant())
            << SuppressedField(ticket.suppressed);
}

void RequestLog::Refused(absl::string_view rpc, absl::string_view table, absl::string_view shard_id,
                         const absl::Status& status) {
  const Ticket ticket = Take();
  if (!ticket.granted) return;
  LOG(INFO) << "msg=refused rpc=" << rpc << " table=" << Quoted(table)
            << " shard_id=" << Quoted(shard_id) << " reason=" << arbiter::ReasonOf(status)
            << " error=" << Quoted(status.message()) << SuppressedField(ticket.suppressed);
}

uint64_t RequestLog::suppressed_total() const {
  const base::MutexLock lock(&mutex_);
  return suppressed_total_;
}

}  // namespace claimd::rpc
