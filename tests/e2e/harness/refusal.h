#ifndef CLAIMD_TESTS_E2E_HARNESS_REFUSAL_H_
#define CLAIMD_TESTS_E2E_HARNESS_REFUSAL_H_

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "tests/e2e/harness/client.h"

namespace claimd::e2e {

// Reads google.rpc.Status out of what a call was refused with.

// The details that came with the status; empty if there are none or they do not parse.
google::rpc::Status DetailsOf(const grpc::Status& status);
// The first detail of this type, or a default one if there is none.
google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status);
google::rpc::BadRequest BadRequestOf(const grpc::Status& status);
// ErrorInfo's reason and metadata.
std::string Reason(const grpc::Status& status);
std::map<std::string, std::string> Metadata(const grpc::Status& status);
// Names of the fields that BadRequest complains about, in its order.
std::vector<std::string> BadFields(const grpc::Status& status);
// The same statuses inside answers (batches, imports).
grpc::Status AsGrpcStatus(const google::rpc::Status& status);

// Code, message and details, for failure texts.
std::string Describe(const grpc::Status& status);

// Whether a refusal has this code and reason and is well-formed: ErrorInfo of domain "claimd", the
// same code and message in the details, a message that is a sentence, and trailers far below the
// 8 KiB that break calls.
::testing::AssertionResult Refused(const grpc::Status& status, grpc::StatusCode code,
                                   const std::string& reason);
// The same, and its metadata names the shard.
::testing::AssertionResult Refused(const grpc::Status& status, grpc::StatusCode code,
                                   const std::string& reason, const Shard& shard);
// Whether the call was answered OK.
::testing::AssertionResult IsOk(const grpc::Status& status);

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_REFUSAL_H_
