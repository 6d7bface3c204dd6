#include <iostream>
#include <string>

#include <claimd/client.h>
#include <claimd/json.h>

// Asks a port where nobody listens. Ends with 0 if the library says so.
int main() {
  claimd::ClientOptions options;
  options.targets = {"127.0.0.1:1"};
  options.claimant = "stranger";
  absl::StatusOr<claimd::Client> client = claimd::Client::Connect(options);
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 1;
  }
  claimd::CallOptions call;
  call.timeout = absl::Milliseconds(200);
  const absl::StatusOr<claimd::ShardClaim> claim =
      client->Claim("orders", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", 1, {}, call);
  const auto details = claimd::ErrorDetails::From(claim.status());
  std::cout << claim.status() << "\n" << claimd::ToJson(claimd::ShardManifest()) << "\n";
  return absl::IsUnavailable(claim.status()) && details.attempts > 0 ? 0 : 1;
}
