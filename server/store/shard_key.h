#ifndef CLAIMD_SERVER_STORE_SHARD_KEY_H_
#define CLAIMD_SERVER_STORE_SHARD_KEY_H_

#include <string>
#include <tuple>
#include <utility>

#include "server/base/uuid.h"

namespace claimd::store {

// Names one shard. A shard id alone names nothing: the same ids recur in every table (DESIGN §1).
struct ShardKey {
  std::string table;
  base::Uuid shard_id{};

  friend bool operator==(const ShardKey& a, const ShardKey& b) {
    return a.shard_id == b.shard_id && a.table == b.table;
  }
  friend bool operator<(const ShardKey& a, const ShardKey& b) {
    return std::tie(a.table, a.shard_id) < std::tie(b.table, b.shard_id);
  }
  template <typename H>
  friend H AbslHashValue(H h, const ShardKey& key) {
    return H::combine(std::move(h), key.table, key.shard_id);
  }
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_SHARD_KEY_H_
