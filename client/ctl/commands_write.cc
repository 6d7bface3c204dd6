#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/client.h"
#include "claimd/options.h"
#include "claimd/shard_claim.h"
#include "claimd/types.h"
#include "client/ctl/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/show.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"
#include "client/src/convert.h"

// The commands that change a shard, and check.
namespace claimd::ctl {
namespace {

absl::StatusOr<std::string> HexBytes(absl::string_view what, absl::string_view hex) {
  bool digits = hex.size() % 2 == 0;
  for (const char c : hex) digits = digits && absl::ascii_isxdigit(static_cast<unsigned char>(c));
  if (!digits) return UsageError(absl::StrCat(what, " must be pairs of hexadecimal digits"));
  return absl::HexStringToBytes(hex);
}

// --field: text, or bytes behind "hex:".
absl::StatusOr<std::map<std::string, std::string>> FieldValues(const Invocation& invocation) {
  auto values = invocation.Map("field");
  if (!values.ok()) return values.status();
  for (auto& [name, value] : *values) {
    absl::string_view hex = value;
    if (!absl::ConsumePrefix(&hex, "hex:")) continue;
    absl::StatusOr<std::string> bytes = HexBytes(absl::StrCat("--field ", name), hex);
    if (!bytes.ok()) return bytes.status();
    value = *std::move(bytes);
  }
  return values;
}

// What --field and --fingerprint say, for the options of a claim or an initialise.
template <typename Options>
absl::Status ReadIdentity(const Invocation& invocation, Options* options) {
  auto values = FieldValues(invocation);
  if (!values.ok()) return values.status();
  options->shard_field_values = *std::move(values);
  auto fingerprint = HexBytes("--fingerprint", invocation.Text("fingerprint"));
  if (!fingerprint.ok()) return fingerprint.status();
  options->shard_spec_fingerprint = *std::move(fingerprint);
  return absl::OkStatus();
}

absl::StatusOr<ClaimOptions> ReadClaimOptions(const Invocation& invocation) {
  ClaimOptions options;
  if (invocation.Text("mode") == "if-free") options.mode = ClaimMode::kIfFree;
  auto expected_epoch = invocation.Number("expected-epoch");
  if (!expected_epoch.ok()) return expected_epoch.status();
  options.expected_epoch = *expected_epoch;
  auto epoch_floor = invocation.Number("epoch-floor");
  if (!epoch_floor.ok()) return epoch_floor.status();
  options.epoch_floor = epoch_floor->value_or(0);
  if (absl::Status status = ReadIdentity(invocation, &options); !status.ok()) return status;
  return options;
}

void ShowClaim(const ShardClaim& claim, const Context& context) {
  if (context.format() != OutputFormat::kTable) {
    v1::ClaimEpochResponse response;
    response.set_writer_epoch(claim.epoch());
    *response.mutable_manifest() = internal::ToProto(claim.manifest());
    response.set_created(claim.created());
    if (claim.previous_claim().has_value()) {
      *response.mutable_previous_claim() = internal::ToProto(*claim.previous_claim());
    }
    context.out() << MessageJson(response, context.format()) << std::endl;
    return;
  }
  Details details;
  AddManifest(claim.manifest(), context, &details);
  if (const auto previous = claim.previous_claim()) {
    details.Add("fenced",
                absl::StrCat(HolderText(previous), " (epoch ", previous->writer_epoch, ", claimed ",
                             TimeText(previous->claim_time, context.time_style()), ")"));
  }
  context.out() << "Claimed under epoch " << claim.epoch()
                << (claim.created() ? "; this made the shard.\n\n" : ".\n\n");
  details.Write(&context.out());
}

// Writes what a mutation left, or passes its error on.
absl::StatusOr<ExitCode> ShowChanged(const absl::StatusOr<ShardManifest>& manifest,
                                     const Context& context) {
  if (!manifest.ok()) return manifest.status();
  ShowManifest(*manifest, context);
  return ExitCode::kOk;
}

// Shows what is about to be dropped and asks for its id. Answers the epoch that was shown, or
// nothing if the person typed anything else.
absl::StatusOr<std::optional<uint64_t>> ConfirmDrop(const Client& client, const Context& context) {
  const auto manifest =
      client.Get(context.invocation().argument(0), context.invocation().argument(1));
  if (!manifest.ok()) return manifest.status();
  Details details;
  AddManifest(*manifest, context, &details);
  details.Write(&context.err());
  context.err() << "\nDropping cannot be undone. Type the shard id to drop this shard: "
                << std::flush;
  std::string answer;
  std::getline(*context.terminal().in, answer);
  absl::StripAsciiWhitespace(&answer);
  if (absl::AsciiStrToLower(answer) != manifest->shard_id) return std::optional<uint64_t>();
  return std::optional<uint64_t>(manifest->writer_epoch);
}

}  // namespace

absl::StatusOr<ExitCode> RunClaim(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto spec = invocation.SmallNumber("spec");
  if (!spec.ok()) return spec.status();
  const auto options = ReadClaimOptions(invocation);
  if (!options.ok()) return options.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const auto claim = client->Claim(invocation.argument(0), invocation.argument(1), *spec, *options,
                                   context.call_options());
  if (!claim.ok()) return claim.status();
  ShowClaim(*claim, context);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunCheck(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto epoch = invocation.NumberArgument(2, "EPOCH");
  if (!epoch.ok()) return epoch.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const auto check = client->CheckFence(invocation.argument(0), invocation.argument(1), *epoch);
  if (!check.ok()) return check.status();
  if (context.format() == OutputFormat::kTable) {
    context.out() << "Epoch " << *epoch << " is the newest (version " << check->version
                  << ", held by " << Printable(HolderText(check->claim)) << ")." << std::endl;
    return ExitCode::kOk;
  }
  v1::CheckFenceResponse response;
  response.set_version(check->version);
  if (check->claim.has_value()) *response.mutable_claim() = internal::ToProto(*check->claim);
  context.out() << MessageJson(response, context.format()) << std::endl;
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunRelease(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto epoch = invocation.NumberArgument(2, "EPOCH");
  if (!epoch.ok()) return epoch.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  return ShowChanged(client->Release(invocation.argument(0), invocation.argument(1), *epoch,
                                     context.call_options()),
                     context);
}

absl::StatusOr<ExitCode> RunInit(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto spec = invocation.SmallNumber("spec");
  if (!spec.ok()) return spec.status();
  InitializeOptions identity;
  if (absl::Status status = ReadIdentity(invocation, &identity); !status.ok()) return status;
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  return ShowChanged(
      client->Initialize(invocation.argument(0), invocation.argument(1), *spec, identity), context);
}

absl::StatusOr<ExitCode> RunSeal(const Context& context) {
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  return ShowChanged(client->Seal(context.invocation().argument(0),
                                  context.invocation().argument(1), context.call_options()),
                     context);
}

absl::StatusOr<ExitCode> RunUnseal(const Context& context) {
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  return ShowChanged(client->Unseal(context.invocation().argument(0),
                                    context.invocation().argument(1), context.call_options()),
                     context);
}

absl::StatusOr<ExitCode> RunDrop(const Context& context) {
  const Invocation& invocation = context.invocation();
  auto expected_epoch = invocation.Number("expected-epoch");
  if (!expected_epoch.ok()) return expected_epoch.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  if (!invocation.Has("yes")) {
    const auto shown_epoch = ConfirmDrop(*client, context);
    if (!shown_epoch.ok()) return shown_epoch.status();
    if (!shown_epoch->has_value()) {
      context.err() << "claimctl: not dropped: that is not the shard's id" << std::endl;
      return ExitCode::kOther;
    }
    // What the person agreed to drop is the shard as it was shown.
    if (!expected_epoch->has_value()) *expected_epoch = **shown_epoch;
  }
  return ShowChanged(client->Drop(invocation.argument(0), invocation.argument(1), *expected_epoch,
                                  context.call_options()),
                     context);
}

}  // namespace claimd::ctl
