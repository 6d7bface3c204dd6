#ifndef CLAIMD_SERVER_STORE_WAL_CHECK_H_
#define CLAIMD_SERVER_STORE_WAL_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include <rocksdb/env.h>

namespace claimd::store {

// Checks that every write-ahead log of the RocksDB in 'directory' is whole up to its end or to a
// torn tail: the last record, cut short by a crash before it was synced and so never answered.
//
// RocksDB's own recovery takes a record whose length or type is damaged for the end of the log and
// silently drops all that follows it, which was answered.
//
// REQUIRES: nobody writes to the directory, and the logs were written with every write synced, in
// the non-recycled and uncompressed format.
// Errors: DataLoss when a log is broken elsewhere, Unavailable when it cannot be read.
absl::Status CheckWriteAheadLogs(rocksdb::Env* env, const std::string& directory);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_WAL_CHECK_H_
