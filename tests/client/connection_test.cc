#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <netinet/in.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.pb.h"

#include "claimd/client.h"
#include "client/src/channels.h"
#include "tests/client/scripted_server.h"

// The packaged c-ares (1.18) leaks the name whenever it resolves "localhost".
// The sanitizer looks for this name.
extern "C" const char* __lsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libcares.so";
}

namespace claimd {
namespace {

using ::claimd::internal::Grouping;
using ::claimd::internal::GrpcTargets;
using ::claimd::testing::Reply;
using ::claimd::testing::ScriptedServer;
using ::claimd::testing::SentCall;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Reply Info(const SentCall&) { return Reply::Answer(v1::GetServerInfoResponse()); }

// A loopback port that nobody listens on, kept as long as this lives.
class ClosedPort {
 public:
  ClosedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      abort();
    }
    port_ = ntohs(address.sin_port);
  }
  ~ClosedPort() { close(socket_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;

  int socket() const { return socket_; }
  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  static int socket(int domain, int type, int protocol) { return ::socket(domain, type, protocol); }
  const int socket_;
  int port_ = 0;
};

// A directory of its own.
class TempDir {
 public:
  TempDir() {
    std::string pattern = ::testing::TempDir() + "/claimd-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) abort();
    path_ = pattern;
  }
  ~TempDir() {
    if (std::system(absl::StrCat("rm -rf ", path_).c_str()) != 0) abort();
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string Join(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

ClientOptions OptionsFor(std::vector<std::string> targets) {
  ClientOptions options;
  options.targets = std::move(targets);
  options.retry.attempt_timeout = absl::Seconds(20);
  return options;
}

TEST(GrpcTargetsTest, LiteralAddressesOfOneFamilyShareATarget) {
  EXPECT_THAT(GrpcTargets({"10.0.0.1:1", "[::1]:2", "ipv4:10.0.0.2:3,10.0.0.3:4", "[::2]:5"},
                          Grouping::kAllowed)
                  .value(),
              ElementsAre("ipv4:10.0.0.1:1,10.0.0.2:3,10.0.0.3:4", "ipv6:[::1]:2,[::2]:5"));
}

TEST(GrpcTargetsTest, EachAddressIsATargetWhenItsCertificateIsChecked) {
  EXPECT_THAT(GrpcTargets({"10.0.0.1:1", "10.0.0.2:3"}, Grouping::kForbidden).value(),
              ElementsAre("ipv4:10.0.0.1:1", "ipv4:10.0.0.2:3"));
}

TEST(GrpcTargetsTest, NamesAreResolvedAndSchemesLeftAlone) {
  EXPECT_THAT(GrpcTargets({"claimd.svc:7420", "dns:///x:1", "unix:/run/c.sock", "xds:///y"},
                          Grouping::kAllowed)
                  .value(),
              ElementsAre("dns:///claimd.svc:7420", "dns:///x:1", "unix:/run/c.sock", "xds:///y"));
}

TEST(GrpcTargetsTest, TargetsThatMakeNoSenseAreNamed) {
  for (const char* target : {"", "claimd", "claimd:", "claimd:http", "claimd:0", "claimd:65536",
                             ":7420", "::1:7420", "[::1:7420", "a b:1"}) {
    const auto targets = GrpcTargets({"127.0.0.1:1", target}, Grouping::kAllowed);
    EXPECT_TRUE(absl::IsInvalidArgument(targets.status())) << target;
    EXPECT_THAT(std::string(targets.status().message()), HasSubstr(target));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(GrpcTargets({}, Grouping::kAllowed).status()));
}

TEST(ConnectTest, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](void (*change)(ClientOptions*)) {
    ClientOptions options = OptionsFor({"127.0.0.1:1"});
    change(&options);
    return absl::IsInvalidArgument(Client::Connect(options).status());
  };
  EXPECT_TRUE(refused([](ClientOptions* o) { o->targets.clear(); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.total_budget = absl::ZeroDuration(); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.attempt_timeout = -absl::Seconds(1); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.multiplier = 0.5; }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.initial_backoff = absl::ZeroDuration(); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->retry.max_backoff = absl::Nanoseconds(1); }));
  EXPECT_TRUE(refused([](ClientOptions* o) { o->keepalive.time = absl::InfiniteDuration(); }));
  EXPECT_TRUE(refused([](ClientOptions* o) {
    o->tls = TlsOptions{.ca_file = "", .certificate_file = "c", .key_file = "", .server_name = ""};
  }));
}

TEST(ConnectTest, AMissingTlsFileIsNamed) {
  ClientOptions options = OptionsFor({"127.0.0.1:1"});
  options.tls = TlsOptions{
      .ca_file = "/no/such/ca.pem", .certificate_file = "", .key_file = "", .server_name = ""};
  const absl::Status status = Client::Connect(options).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/ca.pem"));
}

TEST(ConnectTest, DoesNotWaitForAServer) {
  const ClosedPort nobody;
  EXPECT_TRUE(Client::Connect(OptionsFor({nobody.target()})).ok());
}

TEST(ConnectTest, AnUnreachableServerIsNamedWhenTheBudgetIsOver) {
  const ClosedPort nobody;
  const Client client = Client::Connect(OptionsFor({nobody.target()})).value();
  CallOptions call;
  call.timeout = absl::Seconds(1);
  const absl::Status status = client.GetServerInfo(call).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("Connection refused"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("gave up after"));
}

TEST(ConnectTest, InfiniteDeadlinesAreAccepted) {
  const ScriptedServer server(Info);
  ClientOptions options = OptionsFor({server.target()});
  options.retry.total_budget = absl::InfiniteDuration();
  options.retry.attempt_timeout = absl::InfiniteDuration();
  EXPECT_TRUE(Client::Connect(options).value().GetServerInfo().ok());
}

TEST(LoadBalancingTest, CallsAreSpreadOverAllAddresses) {
  const ScriptedServer a(Info);
  const ScriptedServer b(Info);
  const Client client = Client::Connect(OptionsFor({a.target(), b.target()})).value();
  // Until both are connected all calls go to one; then every second one goes to the other.
  while (a.calls().empty() || b.calls().empty()) ASSERT_TRUE(client.GetServerInfo().ok());
  const size_t before_a = a.calls().size();
  const size_t before_b = b.calls().size();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.GetServerInfo().ok());
  EXPECT_EQ(a.calls().size() - before_a, 10U);
  EXPECT_EQ(b.calls().size() - before_b, 10U);
}

TEST(LoadBalancingTest, ADeadAddressIsPassedOver) {
  const ClosedPort nobody;
  const ScriptedServer alive(Info);
  const Client client = Client::Connect(OptionsFor({nobody.target(), alive.target()})).value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.GetServerInfo().ok());
  EXPECT_THAT(alive.calls(), SizeIs(20));
}

TEST(LoadBalancingTest, NamesSocketsAndAddressesMix) {
  const TempDir dir;
  const ClosedPort nobody;
  const ScriptedServer alive(Info);
  const Client client =
      Client::Connect(OptionsFor({absl::StrCat("unix:", dir.Join("nobody.sock")), nobody.target(),
                                  absl::StrCat("localhost:", alive.port())}))
          .value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client.GetServerInfo().ok());
  EXPECT_THAT(alive.calls(), SizeIs(20));
}

TEST(ConnectTest, UnixSocketsWork) {
  const TempDir dir;
  const std::string address = absl::StrCat("unix:", dir.Join("claimd.sock"));
  const ScriptedServer server(Info, address);
  EXPECT_TRUE(Client::Connect(OptionsFor({address})).value().GetServerInfo().ok());
}

TEST(ConnectTest, CopiesShareConnectionsAndOutliveEachOther) {
  const ScriptedServer server(Info);
  std::optional<Client> first = Client::Connect(OptionsFor({server.target()})).value();
  const Client second = *first;  // NOLINT(performance-unnecessary-copy-initialization): the point.
  first.reset();
  EXPECT_TRUE(second.GetServerInfo().ok());
}

// Attempts to connect to a server that is not there come at most 2 s (and gRPC's fifth of jitter)
// apart; by itself gRPC would wait up to 120 s.
TEST(ConnectTest, ReconnectsAreNeverFarApart) {
  ClosedPort port;
  ASSERT_EQ(listen(port.socket(), SOMAXCONN), 0);
  const Client client = Client::Connect(OptionsFor({port.target()})).value();
  std::atomic<bool> done = false;
  std::thread caller([&] {
    CallOptions call;
    call.timeout = absl::Seconds(3);
    while (!done) client.GetServerInfo(call).status().IgnoreError();  // Only keeps it trying.
  });
  absl::Duration longest;
  auto last = std::chrono::steady_clock::now();
  for (int attempt = 0; attempt < 11; ++attempt) {
    // Ends the connection before gRPC's handshake, as a dying server would.
    const int connection = accept4(port.socket(), nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(connection, 0);
    close(connection);
    const auto now = std::chrono::steady_clock::now();
    if (attempt > 0) longest = std::max(longest, absl::FromChrono(now - last));
    last = now;
  }
  done = true;
  caller.join();
  EXPECT_LE(longest, absl::Milliseconds(2'900));
}

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v openssl >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "needs the openssl program to make certificates";
    }
    Openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem");
    for (const char* name : {"server", "client"}) {
      Openssl(absl::StrCat("req -newkey rsa:2048 -nodes -subj /CN=", name, " -keyout ", name,
                           ".key -out ", name, ".csr"));
      std::ofstream(dir_.Join("ext")) << "subjectAltName=DNS:claimd.test,IP:127.0.0.1\n";
      Openssl(absl::StrCat("x509 -req -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial -in ", name,
                           ".csr -extfile ext -out ", name, ".pem"));
    }
    grpc::SslServerCredentialsOptions ssl(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    ssl.pem_root_certs = Read("ca.pem");
    ssl.pem_key_cert_pairs.push_back({Read("server.key"), Read("server.pem")});
    server_ =
        std::make_unique<ScriptedServer>(Info, "127.0.0.1:0", grpc::SslServerCredentials(ssl));
  }

  void Openssl(const std::string& arguments) {
    const std::string command =
        absl::StrCat("cd ", dir_.Join("."), " && openssl ", arguments, " >openssl.log 2>&1");
    ASSERT_EQ(std::system(command.c_str()), 0) << Read("openssl.log");
  }
  std::string Read(const std::string& name) {
    std::ostringstream content;
    content << std::ifstream(dir_.Join(name)).rdbuf();
    return content.str();
  }
  absl::Status Call(const TlsOptions& tls) {
    ClientOptions options = OptionsFor({server_->target()});
    options.tls = tls;
    CallOptions call;
    call.timeout = absl::Seconds(2);
    return Client::Connect(options).value().GetServerInfo(call).status();
  }
  TlsOptions Trusted() const {
    return {.ca_file = dir_.Join("ca.pem"),
            .certificate_file = dir_.Join("client.pem"),
            .key_file = dir_.Join("client.key"),
            .server_name = ""};
  }

  TempDir dir_;
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(TlsTest, ACertificateProvesTheClient) { EXPECT_EQ(Call(Trusted()), absl::OkStatus()); }

TEST_F(TlsTest, WithoutCertificateTheServerRefuses) {
  TlsOptions tls = Trusted();
  tls.certificate_file.clear();
  tls.key_file.clear();
  EXPECT_TRUE(absl::IsUnavailable(Call(tls)));
}

TEST_F(TlsTest, AServerOfAnotherAuthorityIsNotTrusted) {
  TlsOptions tls = Trusted();
  tls.ca_file = dir_.Join("client.pem");
  EXPECT_FALSE(Call(tls).ok());
}

TEST_F(TlsTest, TheServersNameIsChecked) {
  TlsOptions tls = Trusted();
  tls.server_name = "claimd.test";
  EXPECT_EQ(Call(tls), absl::OkStatus());
  tls.server_name = "somebody.else";
  EXPECT_FALSE(Call(tls).ok());
}

}  // namespace
}  // namespace claimd
