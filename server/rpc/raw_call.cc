#include "server/rpc/raw_call.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include <glog/logging.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <grpcpp/support/slice.h>

#include "google/protobuf/message.h"
#include "server/arbiter/errors.h"
#include "server/rpc/wire_check.h"

namespace claimd::rpc {
namespace {

std::string Flatten(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string flat;
  if (!bytes.Dump(&slices).ok()) return flat;
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return flat;
}

}  // namespace

absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::Message* message) {
  // The reader takes the buffer by a non-const pointer, but only reads it.
  grpc::ByteBuffer readable = bytes;
  grpc::ProtoBufferReader reader(&readable);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
    message->DiscardUnknownFields();
    return absl::OkStatus();
  }
  return arbiter::InvalidRequestError(
      ExplainParseFailure(*message->GetDescriptor(), Flatten(bytes)), "", "");
}

void SerializeResponse(const google::protobuf::Message& message, grpc::ByteBuffer* bytes) {
  bool own_buffer = false;
  const grpc::Status status =
      grpc::GenericSerialize<grpc::ProtoBufferWriter, google::protobuf::Message>(message, bytes,
                                                                                 &own_buffer);
  CHECK(status.ok()) << status.error_message();
}

}  // namespace claimd::rpc
