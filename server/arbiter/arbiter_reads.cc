// The arbiter's reads: they load, look, and write nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/arbiter.h"
#include "server/arbiter/errors.h"
#include "server/arbiter/invariants.h"
#include "server/arbiter/page_token.h"
#include "server/arbiter/request_key.h"
#include "server/arbiter/rules.h"
#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {
namespace {

constexpr size_t kPageSizeDefault = 100;
constexpr size_t kPageSizeMax = 1'000;
// Names in the scope of a token, so that one listing's token does not serve another.
constexpr absl::string_view kVersionsListing = "ListManifestVersions";
constexpr absl::string_view kClaimsListing = "ListClaims";

size_t PageSize(int32_t asked) {
  return asked == 0 ? kPageSizeDefault : std::min(static_cast<size_t>(asked), kPageSizeMax);
}

absl::Status ReadFailure(const store::ShardKey& key, const absl::Status& cause) {
  return StoreError(key.table, base::FormatUuid(key.shard_id), cause);
}

// The live head in what was loaded; else why there is none: the store failed, or no such shard.
absl::StatusOr<store::ShardRecordPtr> Head(const store::ShardKey& key,
                                           absl::StatusOr<store::ShardState> state) {
  if (!state.ok()) return ReadFailure(key, state.status());
  if (state->record != nullptr) {
    if (absl::Status sane = CheckRecord(key, *state->record); !sane.ok()) {
      return ReadFailure(key, sane);
    }
  }
  if (absl::Status live = CheckLive(key, state->record.get()); !live.ok()) return live;
  return std::move(state->record);
}

void AddManifest(const v1::ShardManifest& manifest, v1::ShardView view, v1::ShardManifest* out) {
  *out = manifest;
  if (view != v1::SHARD_VIEW_FULL) out->clear_sstables();
}

// What a token of ListShards is good for: the same table and filters.
std::string ListScope(const v1::ListShardsRequest& request) {
  return PageScope(absl::StrCat("ListShards|", absl::CHexEscape(request.table()), "|",
                                request.status(), "|", absl::CHexEscape(request.claimant()), "|",
                                request.has_shard_spec_id(), "|", request.shard_spec_id()));
}

std::string HistoryScope(absl::string_view rpc, const store::ShardKey& key) {
  return PageScope(
      absl::StrCat(rpc, "|", absl::CHexEscape(key.table), "|", base::FormatUuid(key.shard_id)));
}

// Which heads a listing answers.
bool Matches(const v1::ListShardsRequest& request, const v1::ShardManifest& manifest) {
  const bool status_fits = request.status() == v1::SHARD_STATUS_UNSPECIFIED
                               ? manifest.status() != v1::SHARD_STATUS_DROPPED
                               : manifest.status() == request.status();
  if (!status_fits) return false;
  if (!request.claimant().empty() && manifest.claim().claimant() != request.claimant())
    return false;
  return !request.has_shard_spec_id() || manifest.shard_spec_id() == request.shard_spec_id();
}

// Where a listing of one shard's history goes on; 0: from the newest.
template <typename Request>
absl::StatusOr<uint64_t> Before(const Request& request, const store::ShardKey& key,
                                absl::string_view token_key, absl::string_view scope) {
  if (request.page_token().empty()) return 0;
  const auto cursor = DecodePageToken(token_key, scope, request.page_token());
  if (!cursor.ok()) return InvalidPageTokenError(key.table, base::FormatUuid(key.shard_id));
  return cursor->before();
}

std::string BeforeToken(absl::string_view token_key, const std::string& scope, uint64_t before) {
  storage::v1::PageCursor cursor;
  cursor.set_scope(scope);
  cursor.set_before(before);
  return EncodePageToken(token_key, cursor);
}

}  // namespace

void Arbiter::CheckFence(const v1::CheckFenceRequest* request,
                         Callback<v1::CheckFenceResponse> done) {
  store::ShardKey key = KeyOf(*request);
  store_->Load(key, /*request_id=*/"", [request, key, done = std::move(done)](auto state) mutable {
    const absl::StatusOr<store::ShardRecordPtr> head = Head(key, std::move(state));
    if (!head.ok()) {
      done(head.status());
      return;
    }
    const v1::ShardManifest& stored = (*head)->manifest();
    if (absl::Status epoch = CheckEpoch(key, stored, request->writer_epoch()); !epoch.ok()) {
      done(std::move(epoch));
      return;
    }
    v1::CheckFenceResponse response;
    response.set_version(stored.version());
    if (stored.has_claim()) *response.mutable_claim() = stored.claim();
    done(std::move(response));
  });
}

void Arbiter::GetManifest(const v1::GetManifestRequest* request,
                          Callback<v1::GetManifestResponse> done) {
  store::ShardKey key = KeyOf(*request);
  // The head is always asked: a version of a shard that was dropped is not answered.
  store_->Load(key, /*request_id=*/"",
               [this, request, key, done = std::move(done)](auto state) mutable {
                 absl::StatusOr<store::ShardRecordPtr> head = Head(key, std::move(state));
                 if (!head.ok()) {
                   done(head.status());
                   return;
                 }
                 const uint64_t newest = (*head)->manifest().version();
                 if (!request->has_version() || request->version() == newest) {
                   v1::GetManifestResponse response;
                   *response.mutable_manifest() = (*head)->manifest();
                   done(std::move(response));
                   return;
                 }
                 GetVersion(key, request->version(), newest, std::move(done));
               });
}

void Arbiter::GetVersion(const store::ShardKey& key, uint64_t version, uint64_t newest,
                         Callback<v1::GetManifestResponse> done) {
  store_->LoadVersion(key, version,
                      [key, version, newest, done = std::move(done)](auto record) mutable {
                        if (!record.ok()) {
                          done(record.status().code() == absl::StatusCode::kNotFound
                                   ? VersionNotFoundError(key, version, newest)
                                   : ReadFailure(key, record.status()));
                          return;
                        }
                        v1::GetManifestResponse response;
                        *response.mutable_manifest() = (*record)->manifest();
                        done(std::move(response));
                      });
}

void Arbiter::ListShards(const v1::ListShardsRequest* request,
                         Callback<v1::ListShardsResponse> done) {
  const std::string scope = ListScope(*request);
  store::ListQuery query{.table = request->table(), .results_max = PageSize(request->page_size())};
  if (!request->page_token().empty()) {
    const auto cursor = DecodePageToken(store_->TokenKey(), scope, request->page_token());
    const absl::StatusOr<base::Uuid> after = cursor.ok()
                                                 ? base::UuidFromBytes(cursor->after_shard_id())
                                                 : absl::StatusOr<base::Uuid>(cursor.status());
    if (!after.ok()) {
      done(InvalidPageTokenError(request->table(), ""));
      return;
    }
    query.after = *after;
  }
  query.filter = [request](const ShardRecord& record) {
    return Matches(*request, record.manifest());
  };
  store_->List(std::move(query), [this, request, scope, done = std::move(done)](auto page) mutable {
    if (!page.ok()) {
      done(StoreError(request->table(), "", page.status()));
      return;
    }
    v1::ListShardsResponse response;
    for (const store::ShardRecordPtr& record : page->records) {
      AddManifest(record->manifest(), request->view(), response.add_shards());
    }
    if (page->next_after.has_value()) {
      storage::v1::PageCursor cursor;
      cursor.set_scope(scope);
      cursor.set_after_shard_id(base::UuidBytes(*page->next_after));
      response.set_next_page_token(EncodePageToken(store_->TokenKey(), cursor));
    }
    done(std::move(response));
  });
}

void Arbiter::ListManifestVersions(const v1::ListManifestVersionsRequest* request,
                                   Callback<v1::ListManifestVersionsResponse> done) {
  store::ShardKey key = KeyOf(*request);
  const std::string scope = HistoryScope(kVersionsListing, key);
  const absl::StatusOr<uint64_t> before = Before(*request, key, store_->TokenKey(), scope);
  if (!before.ok()) {
    done(before.status());
    return;
  }
  store::HistoryQuery query{
      .key = key, .before = *before, .results_max = PageSize(request->page_size())};
  // First whether the shard is there at all: an empty history does not tell.
  store_->Load(
      key, /*request_id=*/"",
      [this, request, key, query = std::move(query), done = std::move(done)](auto state) mutable {
        const absl::StatusOr<store::ShardRecordPtr> head = Head(key, std::move(state));
        if (!head.ok()) {
          done(head.status());
          return;
        }
        ReadVersions(request, std::move(query), std::move(done));
      });
}

void Arbiter::ReadVersions(const v1::ListManifestVersionsRequest* request,
                           store::HistoryQuery query,
                           Callback<v1::ListManifestVersionsResponse> done) {
  store_->ListVersions(
      std::move(query), [this, request, done = std::move(done)](auto page) mutable {
        const store::ShardKey key = KeyOf(*request);
        if (!page.ok()) {
          done(ReadFailure(key, page.status()));
          return;
        }
        v1::ListManifestVersionsResponse response;
        for (const store::ShardRecordPtr& record : page->records) {
          AddManifest(record->manifest(), request->view(), response.add_manifests());
        }
        if (page->next_before != 0) {
          response.set_next_page_token(BeforeToken(
              store_->TokenKey(), HistoryScope(kVersionsListing, key), page->next_before));
        }
        done(std::move(response));
      });
}

void Arbiter::ListClaims(const v1::ListClaimsRequest* request,
                         Callback<v1::ListClaimsResponse> done) {
  store::ShardKey key = KeyOf(*request);
  const std::string scope = HistoryScope(kClaimsListing, key);
  const absl::StatusOr<uint64_t> before = Before(*request, key, store_->TokenKey(), scope);
  if (!before.ok()) {
    done(before.status());
    return;
  }
  store_->Load(key, /*request_id=*/"",
               [this, request, key, before = *before, done = std::move(done)](auto state) mutable {
                 if (!state.ok()) {
                   done(ReadFailure(key, state.status()));
                   return;
                 }
                 if (state->record == nullptr) {
                   done(ShardNotFoundError(key));
                   return;
                 }
                 ReadClaims(request, *state->record, before, std::move(done));
               });
}

void Arbiter::ReadClaims(const v1::ListClaimsRequest* request, const ShardRecord& head,
                         uint64_t before, Callback<v1::ListClaimsResponse> done) {
  store::HistoryQuery query{
      .key = KeyOf(*request), .before = before, .results_max = PageSize(request->page_size())};
  v1::ListClaimsResponse response;
  if (before == 0) {
    // The claim that is held has no history entry yet. Should it end meanwhile, it must not be
    // listed again.
    query.before = head.ended_claims() + 1;
    if (head.manifest().has_claim()) {
      *response.add_claims()->mutable_claim() = head.manifest().claim();
      --query.results_max;
    }
  }
  if (query.results_max == 0) {
    if (head.ended_claims() > 0) {
      response.set_next_page_token(
          BeforeToken(store_->TokenKey(), HistoryScope(kClaimsListing, query.key), query.before));
    }
    done(std::move(response));
    return;
  }
  store_->ListClaims(std::move(query), [this, request, response = std::move(response),
                                        done = std::move(done)](auto page) mutable {
    const store::ShardKey key = KeyOf(*request);
    if (!page.ok()) {
      done(ReadFailure(key, page.status()));
      return;
    }
    for (store::ClaimEntry& entry : page->claims) {
      *response.add_claims() = std::move(entry.record);
    }
    if (page->next_before != 0) {
      response.set_next_page_token(
          BeforeToken(store_->TokenKey(), HistoryScope(kClaimsListing, key), page->next_before));
    }
    done(std::move(response));
  });
}

}  // namespace claimd::arbiter
