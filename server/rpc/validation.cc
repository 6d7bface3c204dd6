#include "server/rpc/validation.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/errors.h"
#include "server/base/text.h"
#include "server/base/uuid.h"

namespace claimd::rpc {
namespace {

constexpr size_t kTableMax = 512;
constexpr size_t kClaimantMax = 256;
constexpr size_t kRequestIdMax = 128;
constexpr size_t kFingerprintMax = 64;
constexpr size_t kPageTokenMax = 1'024;

// Bounds of a map.
struct MapLimits {
  int entries_max;
  size_t key_max;
  size_t value_max;
};
constexpr MapLimits kLabels = {.entries_max = 64, .key_max = 128, .value_max = 1'024};
constexpr MapLimits kFieldValues = {.entries_max = 64, .key_max = 256, .value_max = 4'096};

// Gathers what is wrong with one request.
class Checker {
 public:
  template <typename Request>
  explicit Checker(const Request& request) : table_(request.table()) {
    Text("table", request.table(), kTableMax);
    if (request.table().empty()) Add("table", "must not be empty");
  }

  Checker& ShardId(const std::string& shard_id) {
    shard_id_ = shard_id;
    const absl::StatusOr<base::Uuid> uuid = base::ParseUuid(shard_id);
    if (!uuid.ok()) Add("shard_id", uuid.status().message());
    return *this;
  }
  Checker& RequestId(const std::string& id) { return Text("request_id", id, kRequestIdMax); }
  Checker& Fingerprint(const std::string& fingerprint) {
    if (fingerprint.size() > kFingerprintMax) {
      Add("shard_spec_fingerprint", absl::StrCat("must be at most ", kFingerprintMax, " bytes"));
    }
    return *this;
  }

  Checker& Text(absl::string_view field, absl::string_view text, size_t length_max) {
    if (text.size() > length_max) {
      Add(field, absl::StrCat("must be at most ", length_max, " bytes"));
    } else if (!base::IsPlainText(text)) {
      Add(field, "must be UTF-8 without control characters");
    }
    return *this;
  }

  // Keys are plain text; 'plain_values' says whether values are, too.
  template <typename Map>
  Checker& Entries(absl::string_view field, const Map& map, const MapLimits& limits,
                   bool plain_values) {
    if (static_cast<int>(map.size()) > limits.entries_max) {
      Add(field, absl::StrCat("must have at most ", limits.entries_max, " entries"));
      return *this;
    }
    bool keys_fit = true;
    bool values_fit = true;
    for (const auto& [key, value] : map) {
      keys_fit = keys_fit && !key.empty() && key.size() <= limits.key_max && base::IsPlainText(key);
      values_fit = values_fit && value.size() <= limits.value_max &&
                   (!plain_values || base::IsPlainText(value));
    }
    if (!keys_fit) {
      Add(field, absl::StrCat("keys must be 1 to ", limits.key_max, " bytes of plain text"));
    }
    if (!values_fit) {
      Add(field, absl::StrCat("values must be at most ", limits.value_max, " bytes",
                              plain_values ? " of plain text" : ""));
    }
    return *this;
  }

  Checker& Page(int32_t page_size, const std::string& page_token) {
    if (page_size < 0) Add("page_size", "must not be negative");
    if (page_token.size() > kPageTokenMax) Add("page_token", "is not a token of this server");
    return *this;
  }

  Checker& Require(bool holds, absl::string_view field, absl::string_view description) {
    if (!holds) Add(field, description);
    return *this;
  }

  absl::Status Verdict() const {
    if (violations_.empty()) return absl::OkStatus();
    return arbiter::InvalidRequestError(violations_, table_, shard_id_);
  }

 private:
  void Add(absl::string_view field, absl::string_view description) {
    violations_.push_back({std::string(field), std::string(description)});
  }

  absl::string_view table_;
  absl::string_view shard_id_;
  std::vector<arbiter::FieldViolation> violations_;
};

// A request that names a shard.
template <typename Request>
Checker AboutShard(const Request& request) {
  Checker checker(request);
  checker.ShardId(request.shard_id());
  return checker;
}

// A mutation that has nothing but its shard and its id.
template <typename Request>
absl::Status ValidatePlainMutation(const Request& request) {
  return AboutShard(request).RequestId(request.request_id()).Verdict();
}

}  // namespace

absl::Status Validate(const v1::ClaimEpochRequest& request) {
  return AboutShard(request)
      .RequestId(request.request_id())
      .Text("claimant", request.claimant(), kClaimantMax)
      .Entries("labels", request.labels(), kLabels, /*plain_values=*/true)
      .Entries("shard_field_values", request.shard_field_values(), kFieldValues,
               /*plain_values=*/false)
      .Fingerprint(request.shard_spec_fingerprint())
      .Require(v1::ClaimMode_IsValid(request.mode()), "mode", "is not a known mode")
      .Require(!request.has_lease_duration(), "lease_duration",
               "must be absent: this server has no leases")
      .Verdict();
}

absl::Status Validate(const v1::BatchClaimEpochRequest& request) {
  if (request.requests_size() >= 1 && request.requests_size() <= kBatchItemsMax) {
    return absl::OkStatus();
  }
  return arbiter::InvalidRequestError(
      {{"requests",
        absl::StrCat("must hold 1 to ", kBatchItemsMax, " claims, not ", request.requests_size())}},
      "", "");
}

absl::Status Validate(const v1::InitializeShardRequest& request) {
  return AboutShard(request)
      .Entries("shard_field_values", request.shard_field_values(), kFieldValues,
               /*plain_values=*/false)
      .Fingerprint(request.shard_spec_fingerprint())
      .Verdict();
}

absl::Status Validate(const v1::CheckFenceRequest& request) {
  return AboutShard(request).Verdict();
}

absl::Status Validate(const v1::CommitManifestRequest& request) {
  return AboutShard(request)
      .RequestId(request.request_id())
      .Require(request.has_manifest(), "manifest", "must be given")
      .Verdict();
}

absl::Status Validate(const v1::ReleaseEpochRequest& request) {
  return ValidatePlainMutation(request);
}
absl::Status Validate(const v1::SealShardRequest& request) {
  return ValidatePlainMutation(request);
}
absl::Status Validate(const v1::UnsealShardRequest& request) {
  return ValidatePlainMutation(request);
}
absl::Status Validate(const v1::DropShardRequest& request) {
  return ValidatePlainMutation(request);
}

absl::Status Validate(const v1::GetManifestRequest& request) {
  return AboutShard(request)
      .Require(!request.has_version() || request.version() > 0, "version", "must be at least 1")
      .Verdict();
}

absl::Status Validate(const v1::ListShardsRequest& request) {
  return Checker(request)
      .Text("claimant", request.claimant(), kClaimantMax)
      .Page(request.page_size(), request.page_token())
      .Require(v1::ShardStatus_IsValid(request.status()), "status", "is not a known status")
      .Require(v1::ShardView_IsValid(request.view()), "view", "is not a known view")
      .Verdict();
}

absl::Status Validate(const v1::ListManifestVersionsRequest& request) {
  return AboutShard(request)
      .Page(request.page_size(), request.page_token())
      .Require(v1::ShardView_IsValid(request.view()), "view", "is not a known view")
      .Verdict();
}

absl::Status Validate(const v1::ListClaimsRequest& request) {
  return AboutShard(request).Page(request.page_size(), request.page_token()).Verdict();
}

}  // namespace claimd::rpc
