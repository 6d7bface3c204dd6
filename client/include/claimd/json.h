#ifndef CLAIMD_JSON_H_
#define CLAIMD_JSON_H_

#include <string>

#include "claimd/types.h"

// The JSON form of claimd's protocol buffers, on one line: lowerCamelCase names, 64-bit integers as
// strings, bytes in base64, times in RFC 3339.
//
//   std::cout << claimd::ToJson(*client.Get("orders", shard_id)) << "\n";
namespace claimd {

std::string ToJson(const ShardManifest& manifest);
std::string ToJson(const ClaimInfo& claim);
std::string ToJson(const ClaimRecord& record);
std::string ToJson(const ServerInfo& info);

}  // namespace claimd

#endif  // CLAIMD_JSON_H_
