#ifndef CLAIMD_SERVER_ARBITER_INVARIANTS_H_
#define CLAIMD_SERVER_ARBITER_INVARIANTS_H_

#include "absl/status/status.h"

#include "claimd/storage/v1/storage.pb.h"

#include "server/store/shard_key.h"

// The safety property, written once: checked before each write and on what is read back (DESIGN
// §2). Independent of the rules, so that a mistake there is stopped here.
namespace claimd::arbiter {

// OK if 'record' can be what is stored of 'key'. Errors: DataLoss, saying what is wrong.
absl::Status CheckRecord(const store::ShardKey& key, const storage::v1::ShardRecord& record);

// OK if a shard may go from 'before' (null: never made) to 'after' in one change: version without
// gap, epoch not back, identity unchanged within a life, progress not back.
// Errors: Internal, saying what is wrong.
absl::Status CheckTransition(const storage::v1::ShardRecord* before,
                             const storage::v1::ShardRecord& after);

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_INVARIANTS_H_
