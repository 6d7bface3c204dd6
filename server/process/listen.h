#ifndef CLAIMD_SERVER_PROCESS_LISTEN_H_
#define CLAIMD_SERVER_PROCESS_LISTEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// What gRPC leaves to us about addresses and files that tell them.
namespace claimd::process {

// OK if 'address' may be bound. gRPC replaces any unix socket that is there; that of a living
// server must stay. Errors: AlreadyExists if somebody listens, or something that is no socket is
// there.
absl::Status CheckUnixSocketFree(absl::string_view address);

// 'address' with the port that was really bound.
std::string WithPort(absl::string_view address, int port);

// Puts 'content' into a file so that readers see all of it or nothing.
// Errors: Internal, with the path and the system's reason; then nothing is left behind.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

}  // namespace claimd::process

#endif  // CLAIMD_SERVER_PROCESS_LISTEN_H_
