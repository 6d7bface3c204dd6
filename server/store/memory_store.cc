#include "server/store/memory_store.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/mutex.h"
#include "server/base/random.h"
#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/retention.h"
#include "server/store/shard_key.h"

namespace claimd::store {
namespace {

using storage::v1::ShardRecord;

constexpr uint32_t kFormatVersion = 1;

std::string NewTokenKey(base::RandomSource* random) {
  return base::UuidBytes(random->Bytes16()) + base::UuidBytes(random->Bytes16());
}

// Forgets one version of the history. False if it was not there.
template <typename Shard>
bool ForgetVersion(uint64_t version, Shard* shard) {
  const auto found = shard->history.find(version);
  if (found == shard->history.end()) return false;
  for (const std::string& id : IdsOfVersion(*found->second)) shard->requests.erase(id);
  shard->history.erase(found);
  return true;
}

}  // namespace

MemoryStore::MemoryStore(RetentionOptions retention, base::RandomSource* random)
    : retention_(retention), store_id_(base::NewUuid(random)), token_key_(NewTokenKey(random)) {}

void MemoryStore::Load(const ShardKey& key, absl::string_view request_id,
                       Callback<ShardState> done) {
  absl::StatusOr<ShardState> state;
  {
    const base::MutexLock lock(&mutex_);
    state = StateOf(key, request_id);
  }
  done(std::move(state));
}

void MemoryStore::LoadVersion(const ShardKey& key, uint64_t version,
                              Callback<ShardRecordPtr> done) {
  absl::StatusOr<ShardRecordPtr> record =
      absl::NotFoundError(absl::StrCat("version ", version, " is not kept"));
  {
    const base::MutexLock lock(&mutex_);
    const auto found = shards_.find(key);
    if (found != shards_.end()) {
      const Shard& shard = found->second;
      const auto kept = shard.history.find(version);
      if (shard.head->manifest().version() == version) {
        record = shard.head;
      } else if (kept != shard.history.end()) {
        record = kept->second;
      }
    }
  }
  done(std::move(record));
}

void MemoryStore::CompareAndSwap(SwapRequest request, absl::AnyInvocable<void(SwapOutcome)> done) {
  SwapOutcome outcome;
  {
    const base::MutexLock lock(&mutex_);
    outcome = Swap(std::move(request));
  }
  done(std::move(outcome));
}

void MemoryStore::List(ListQuery query, Callback<ListPage> done) {
  ListPage page;
  {
    const base::MutexLock lock(&mutex_);
    auto next = query.after.has_value() ? shards_.upper_bound({query.table, *query.after})
                                        : shards_.lower_bound({query.table, base::Uuid{}});
    size_t bytes = 0;
    size_t scanned = 0;
    std::optional<base::Uuid> last;
    for (; next != shards_.end() && next->first.table == query.table; ++next) {
      if (last.has_value() && (page.records.size() >= query.results_max ||
                               bytes >= query.bytes_max || scanned >= query.scanned_max)) {
        page.next_after = last;
        break;
      }
      ++scanned;
      last = next->first.shard_id;
      const ShardRecordPtr& head = next->second.head;
      if (query.filter != nullptr && !query.filter(*head)) continue;
      bytes += head->ByteSizeLong();
      page.records.push_back(head);
    }
  }
  done(std::move(page));
}

void MemoryStore::ListVersions(HistoryQuery query, Callback<VersionPage> done) {
  VersionPage page;
  {
    const base::MutexLock lock(&mutex_);
    const auto found = shards_.find(query.key);
    if (found != shards_.end()) {
      const Shard& shard = found->second;
      size_t bytes = 0;
      const auto add = [&](const ShardRecordPtr& record) {
        const uint64_t version = record->manifest().version();
        if (query.before != 0 && version >= query.before) return true;
        if (!page.records.empty() &&
            (page.records.size() >= query.results_max || bytes >= query.bytes_max)) {
          page.next_before = page.records.back()->manifest().version();
          return false;
        }
        bytes += record->ByteSizeLong();
        page.records.push_back(record);
        return true;
      };
      bool more = add(shard.head);
      for (auto it = shard.history.rbegin(); more && it != shard.history.rend(); ++it) {
        more = add(it->second);
      }
    }
  }
  done(std::move(page));
}

void MemoryStore::ListClaims(HistoryQuery query, Callback<ClaimPage> done) {
  ClaimPage page;
  {
    const base::MutexLock lock(&mutex_);
    const auto found = shards_.find(query.key);
    if (found != shards_.end()) {
      const auto& claims = found->second.claims;
      auto next = std::make_reverse_iterator(query.before == 0 ? claims.end()
                                                               : claims.lower_bound(query.before));
      size_t bytes = 0;
      for (; next != claims.rend(); ++next) {
        if (!page.claims.empty() &&
            (page.claims.size() >= query.results_max || bytes >= query.bytes_max)) {
          page.next_before = page.claims.back().sequence;
          break;
        }
        bytes += next->second.ByteSizeLong();
        page.claims.push_back({.sequence = next->first, .record = next->second});
      }
    }
  }
  done(std::move(page));
}

StoreInfo MemoryStore::Info() const {
  const base::MutexLock lock(&mutex_);
  return {.kind = "memory",
          .store_id = store_id_,
          .format_version = kFormatVersion,
          .revision = revision_};
}

uint64_t MemoryStore::VersionOf(const ShardKey& key) const {
  const auto found = shards_.find(key);
  return found == shards_.end() ? 0 : found->second.head->manifest().version();
}

ShardState MemoryStore::StateOf(const ShardKey& key, absl::string_view request_id) const {
  ShardState state;
  const auto found = shards_.find(key);
  if (found == shards_.end()) return state;
  state.record = found->second.head;
  const auto applied = found->second.requests.find(request_id);
  if (!request_id.empty() && applied != found->second.requests.end()) {
    state.applied = applied->second;
  }
  return state;
}

SwapOutcome MemoryStore::Swap(SwapRequest request) {
  if (absl::Status valid = CheckSwap(request); !valid.ok()) {
    return SwapNotApplied{.status = std::move(valid)};
  }
  const bool guarded =
      std::all_of(request.guards.begin(), request.guards.end(),
                  [this](const Guard& guard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                    return VersionOf(guard.key) == guard.expected_version;
                  });
  if (!guarded || VersionOf(request.key) != request.expected_version) {
    return SwapConflict{.current = StateOf(request.key, request.request_id)};
  }
  Replace(request, &shards_[request.key]);
  return SwapCommitted{.revision = ++revision_};
}

void MemoryStore::Replace(const SwapRequest& request, Shard* shard) const {
  const ShardRecordPtr replaced = std::exchange(shard->head, request.next);
  const ShardRecord& next = *request.next;
  if (IsRecordOnly(request)) {
    for (const std::string& id : IdsForgottenBetween(*replaced, next)) shard->requests.erase(id);
  } else if (replaced != nullptr) {
    shard->history.emplace(replaced->manifest().version(), replaced);
    const DescendingRange out =
        KeepsReplaced(*replaced, next)
            ? VersionsFallingOut(next, retention_.history_versions, retention_.history_versions)
            : DescendingRange{.newest = replaced->manifest().version(), .oldest = 1};
    while (!shard->history.empty() && shard->history.begin()->first <= out.newest) {
      ForgetVersion(shard->history.begin()->first, shard);
    }
  }
  if (request.ended_claim.has_value()) {
    shard->claims.insert_or_assign(next.ended_claims(), *request.ended_claim);
    TrimClaims(next.ended_claims(), shard);
  }
  shard->requests.insert_or_assign(request.request_id, request.applied);
}

void MemoryStore::TrimClaims(uint64_t ended_claims, Shard* shard) const {
  const DescendingRange out =
      ClaimsFallingOut(ended_claims, retention_.claim_history, retention_.claim_history);
  while (!shard->claims.empty() && shard->claims.begin()->first <= out.newest) {
    const v1::ClaimRecord& claim = shard->claims.begin()->second;
    const auto applied = shard->requests.find(claim.claim().request_id());
    if (applied != shard->requests.end() && IsRequestOfClaim(applied->second, claim)) {
      shard->requests.erase(applied);
    }
    shard->claims.erase(shard->claims.begin());
  }
}

}  // namespace claimd::store
