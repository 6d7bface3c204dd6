#ifndef CLAIMD_CLIENT_CTL_LANCE_SCAN_H_
#define CLAIMD_CLIENT_CTL_LANCE_SCAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "claimd/v1/manifest.pb.h"

// Finds the newest manifest of each shard in the folders of Lance tables, and says what is wrong
// with them. Reads only.
namespace claimd::ctl {

// Something that is wrong with a file or folder.
struct Finding {
  std::string path;
  std::string problem;
};

// {table}.lance/_mem_wal/{shard_id} of one shard.
struct ShardFolder {
  std::string table;
  std::string shard_id;
  std::string path;
};

struct ShardFolders {
  // In the order of table and shard id.
  std::vector<ShardFolder> shards;
  // Folders that could not be read, so that shards may be missing.
  std::vector<Finding> unreadable;
  // Files that are no part of any shard.
  std::vector<Finding> notes;
};

// The shards of all tables in 'directory', or of the one table that it is itself.
// Errors: the directory cannot be read.
absl::StatusOr<ShardFolders> FindShardFolders(const std::string& directory);

// What one shard's folder holds.
struct ShardScan {
  // The newest manifest; absent if the shard is refused.
  std::optional<v1::ShardManifest> manifest;
  // Version of the newest file; absent if there is none.
  std::optional<uint64_t> newest_version;
  // Why the shard is refused: what it would be taken over as is not certain.
  std::vector<Finding> refusals;
  // Files that could not be used but decide nothing.
  std::vector<Finding> notes;
};

// Takes the newest manifest of a shard. The newest one is that of the largest version among the
// file names; Lance's hint is never asked. Temporary files are normal.
//
// Refused: no manifest at all; a newest file that is unreadable, empty, of unknown status, of
// another version or shard than its path says, or otherwise invalid (never an older one in its
// place); a version missing between two others; an older version with a status that nobody knows
// and that a later writer dropped; an older version with a larger epoch. Versions missing below the
// oldest file were trimmed, which decides nothing.
ShardScan ScanShard(const ShardFolder& folder);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_LANCE_SCAN_H_
