#ifndef CLAIMD_OPTIONS_H_
#define CLAIMD_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "claimd/types.h"

namespace claimd {

// When and how often a call is tried again.
//
// Tried again: UNAVAILABLE, RESOURCE_EXHAUSTED, and DEADLINE_EXCEEDED of a single attempt. Never:
// lost races, fences, mismatches, anything else. All attempts of a mutation carry one request id,
// so a lost answer costs neither a second epoch nor a second version.
struct RetryPolicy {
  // Bound of a whole call: attempts and waits together. CallOptions::timeout overrides it.
  absl::Duration total_budget = absl::Seconds(30);
  // Bound of one attempt.
  absl::Duration attempt_timeout = absl::Seconds(5);
  // The n-th wait is uniformly random between 0 and min(max_backoff, initial_backoff *
  // multiplier^n) ("full jitter"). A delay that the server asks for comes on top.
  absl::Duration initial_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  double multiplier = 2.0;
};

// Encrypts the connection, and proves who the client is if certificate and key are given.
struct TlsOptions {
  // PEM files. An empty 'ca_file' stands for the system's roots. Certificate and key go together.
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;
  // Name to expect in the server's certificate. Empty: the host of the target.
  std::string server_name;
};

// Finds dead connections. The server must allow pings at this rate.
struct KeepaliveOptions {
  absl::Duration time = absl::Seconds(30);
  absl::Duration timeout = absl::Seconds(10);
};

// How a client reaches claimd, and as whom.
struct ClientOptions {
  // At least one: "host:port" or another target that gRPC knows ("dns:///host:port",
  // "ipv4:10.0.0.1:7420", "unix:/run/claimd.sock"). Calls are spread over all of them and over all
  // addresses that a name has, and stay away from those that cannot be reached.
  std::vector<std::string> targets;
  // Absent: plaintext.
  std::optional<TlsOptions> tls;
  // Who claims, for people and logs; part of every claim.
  std::string claimant;
  std::map<std::string, std::string> labels;
  RetryPolicy retry;
  KeepaliveOptions keepalive;
};

// Options of one call.
struct CallOptions {
  // Bound of the whole call instead of RetryPolicy::total_budget.
  std::optional<absl::Duration> timeout;
  // Id of the mutation, up to 128 bytes. Empty: a fresh one. Give it to settle a mutation whose
  // outcome stayed unknown (ErrorDetails::request_id). Used by Claim, Seal, Unseal, Drop and
  // Release; a commit makes its own.
  std::string request_id;
};

// What to do about somebody who holds the shard.
enum class ClaimMode {
  // The newest claim wins; whoever held the shard is fenced.
  kPreempt,
  // Refuse with SHARD_HELD while somebody holds the shard.
  kIfFree,
};

// Options of one claim.
struct ClaimOptions {
  ClaimMode mode = ClaimMode::kPreempt;
  // Claim only if this is the stored epoch; 0 stands for a shard that is new or never claimed.
  std::optional<uint64_t> expected_epoch;
  // Largest epoch seen in the shard's own data; the epoch granted is larger.
  uint64_t epoch_floor = 0;
  // Stored if the claim makes the shard, compared if it is there.
  std::map<std::string, std::string> shard_field_values;
  std::string shard_spec_fingerprint;
  // Called once when a call on this claim learns that it is fenced, with that call's status. Runs
  // on the calling thread, under no lock, before the call returns. May do anything, also destroy
  // the claim.
  std::function<void(const absl::Status& fenced)> on_fenced;
};

// One shard of ClaimAll.
struct ClaimTarget {
  std::string table;
  std::string shard_id;
  // Absent means 0.
  std::optional<uint32_t> shard_spec_id;
  ClaimOptions options;
  // As CallOptions::request_id.
  std::string request_id;
};

// Options of Initialize.
struct InitializeOptions {
  std::map<std::string, std::string> shard_field_values;
  std::string shard_spec_fingerprint;
};

// How much of each manifest a listing answers.
enum class ShardView {
  // Without sstables.
  kBasic,
  kFull,
};

// Which shards a listing answers. Absent and empty: any; dropped shards only when asked for.
struct ListOptions {
  std::optional<ShardStatus> status;
  std::string claimant;
  std::optional<uint32_t> shard_spec_id;
  ShardView view = ShardView::kBasic;
  // Most shards to fetch in one call, 1 to 1,000.
  int page_size = 500;
};

}  // namespace claimd

#endif  // CLAIMD_OPTIONS_H_
