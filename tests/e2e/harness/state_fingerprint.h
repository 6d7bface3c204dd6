#ifndef CLAIMD_TESTS_E2E_HARNESS_STATE_FINGERPRINT_H_
#define CLAIMD_TESTS_E2E_HARNESS_STATE_FINGERPRINT_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "claimd/v1/manifest.pb.h"

#include "tests/e2e/harness/client.h"

namespace claimd::e2e {

// The bytes of a message, the same for equal messages (maps in the order of their keys).
std::string Bytes(const google::protobuf::Message& message);

// Everything that can be seen of a shard, and the store's revision: two equal ones prove that
// nothing was written in between, to this shard or any other of the server.
struct StateFingerprint {
  // Bytes of the head; the refusal if there is none.
  std::string head;
  // Bytes of every kept version and of every kept claim, newest first.
  std::vector<std::string> versions;
  std::vector<std::string> claims;
  uint64_t revision = 0;

  friend bool operator==(const StateFingerprint& a, const StateFingerprint& b) {
    return a.head == b.head && a.versions == b.versions && a.claims == b.claims &&
           a.revision == b.revision;
  }
  friend void PrintTo(const StateFingerprint& state, std::ostream* out);
};

StateFingerprint FingerprintOf(const Client& client, const Shard& shard);

// All pages. Failing calls are test failures.
std::vector<v1::ShardManifest> AllVersions(const Client& client, const Shard& shard);
std::vector<v1::ClaimRecord> AllClaims(const Client& client, const Shard& shard);
uint64_t Revision(const Client& client);

// Checks at the end of a scope that nothing was written in it.
class NothingMoves {
 public:
  NothingMoves(const Client& client, Shard shard);
  ~NothingMoves();
  NothingMoves(const NothingMoves&) = delete;
  NothingMoves& operator=(const NothingMoves&) = delete;

 private:
  const Client& client_;
  const Shard shard_;
  const StateFingerprint before_;
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_STATE_FINGERPRINT_H_
