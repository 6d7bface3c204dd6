#include "server/arbiter/request_key.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/base/text.h"
#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {

absl::StatusOr<store::ShardKey> ImportKey(const v1::ShardManifest& manifest) {
  constexpr size_t kTableLengthMax = 512;
  std::vector<FieldViolation> bad;
  if (manifest.table().empty() || manifest.table().size() > kTableLengthMax ||
      !base::IsPlainText(manifest.table())) {
    bad.push_back({"manifest.table", "must be 1 to 512 bytes of UTF-8 without control characters"});
  }
  const absl::StatusOr<base::Uuid> uuid = base::ParseUuid(manifest.shard_id());
  if (!uuid.ok()) bad.push_back({"manifest.shard_id", std::string(uuid.status().message())});
  if (!bad.empty()) return InvalidManifestError(manifest.table(), manifest.shard_id(), bad);
  return store::ShardKey{.table = manifest.table(), .shard_id = *uuid};
}

}  // namespace claimd::arbiter
