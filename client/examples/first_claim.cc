#include <cstdlib>
#include <iostream>

#include "claimd/client.h"

int main() {
  claimd::ClientOptions options;
  options.targets = {"127.0.0.1:7420"};
  options.claimant = "ingest-7";
  if (const char* target = std::getenv("CLAIMD_SERVER")) options.targets = {target};
  absl::StatusOr<claimd::Client> client = claimd::Client::Connect(options);
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return EXIT_FAILURE;
  }

  // The newest claim owns the shard; whoever held it before is fenced from now on.
  absl::StatusOr<claimd::ShardClaim> claim =
      client->Claim("orders", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", /*shard_spec_id=*/1);
  if (!claim.ok()) {
    const auto details = claimd::ErrorDetails::From(claim.status());
    if (details.reason == claimd::ErrorReason::kShardSpecMismatch) {
      std::cerr << "the shard belongs to spec " << *details.stored_shard_spec_id << "\n";
    }
    std::cerr << claim.status() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << "writing under epoch " << claim->epoch() << "\n";

  // After an entry is durable and before it is acknowledged: is this writer still the one?
  if (absl::Status fence = claim->CheckFence(); !fence.ok()) {
    std::cerr << "not acknowledged: " << fence << "\n";
    return EXIT_FAILURE;
  }

  // Publish a flushed generation. The function may run again on a newer manifest.
  absl::StatusOr<claimd::ShardManifest> committed =
      claim->Commit([](claimd::ShardManifest* manifest) {
        claimd::SsTable table;
        table.generation = manifest->current_generation++;
        table.path = "generation-" + std::to_string(table.generation);
        manifest->sstables.push_back(table);
        return absl::OkStatus();
      });
  if (!committed.ok()) {
    std::cerr << committed.status() << "\n";
    return EXIT_FAILURE;
  }
  std::cout << "committed version " << committed->version << "\n";
  return EXIT_SUCCESS;
}
