#include "tests/client/tcp_proxy.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "client/src/mutex.h"

namespace claimd::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Makes close() send a reset instead of an orderly end.
void ResetOnClose(int socket) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void NoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Moves what is there from one socket to the other. Answers the bytes moved, 0 at the end.
size_t Move(int from, int to, size_t limit) {
  std::array<char, 16'384> buffer;
  const ssize_t got = recv(from, buffer.data(), std::min(buffer.size(), limit), 0);
  if (got <= 0) return 0;
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t n = send(to, buffer.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (n <= 0) return 0;
    sent += n;
  }
  return static_cast<size_t>(got);
}

}  // namespace

TcpProxy::TcpProxy(Options options)
    : options_(std::move(options)), server_port_(options_.server_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  stop_event_ = eventfd(0, EFD_CLOEXEC);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (listener_ < 0 || stop_event_ < 0 ||
      bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

TcpProxy::~TcpProxy() {
  {
    const internal::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  if (write(stop_event_, &one, sizeof(one)) != sizeof(one)) abort();
  acceptor_.join();
  ResetAll();
  std::list<Connection> connections;
  {
    const internal::MutexLock lock(&mutex_);
    connections.swap(connections_);
  }
  for (Connection& connection : connections) connection.pump.join();
  close(listener_);
  close(stop_event_);
}

std::string TcpProxy::target() const { return absl::StrCat("127.0.0.1:", port_); }

void TcpProxy::ResetAll() {
  const internal::MutexLock lock(&mutex_);
  for (Connection& connection : connections_) {
    // Wakes the pump, which closes both; the linger setting makes that a reset.
    if (connection.client >= 0) shutdown(connection.client, SHUT_RD);
    if (connection.server >= 0) shutdown(connection.server, SHUT_RD);
  }
}

void TcpProxy::set_server_port(int port) {
  const internal::MutexLock lock(&mutex_);
  server_port_ = port;
}

int TcpProxy::connections() const {
  const internal::MutexLock lock(&mutex_);
  return static_cast<int>(connections_.size());
}

void TcpProxy::Accept() {
  while (true) {
    std::array<pollfd, 2> events = {{{listener_, POLLIN, 0}, {stop_event_, POLLIN, 0}}};
    if (poll(events.data(), events.size(), -1) < 0 && errno != EINTR) abort();
    if (events[1].revents != 0) return;
    if (events[0].revents == 0) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    const size_t budget = options_.bytes_before_reset ? options_.bytes_before_reset()
                                                      : std::numeric_limits<size_t>::max();
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const internal::MutexLock lock(&mutex_);
    const sockaddr_in address = Loopback(server_port_);
    ResetOnClose(client);
    if (stopping_ ||
        connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      close(client);
      close(server);
      continue;
    }
    ResetOnClose(server);
    NoDelay(client);
    NoDelay(server);
    Connection& connection = connections_.emplace_back();
    connection.client = client;
    connection.server = server;
    connection.pump = std::thread([this, &connection, budget] { Pump(&connection, budget); });
  }
}

void TcpProxy::Pump(Connection* connection, size_t budget) {
  int client = -1;
  int server = -1;
  {
    const internal::MutexLock lock(&mutex_);
    client = connection->client;
    server = connection->server;
  }
  std::array<pollfd, 2> events = {{{client, POLLIN, 0}, {server, POLLIN, 0}}};
  bool open = true;
  while (open && budget > 0) {
    if (poll(events.data(), events.size(), -1) < 0) break;
    for (size_t i = 0; i < events.size() && open && budget > 0; ++i) {
      if (events[i].revents == 0) continue;
      const size_t moved = Move(events[i].fd, events[1 - i].fd, budget);
      open = moved > 0;
      budget -= moved;
    }
  }
  const internal::MutexLock lock(&mutex_);
  connection->client = -1;
  connection->server = -1;
  close(client);
  close(server);
}

}  // namespace claimd::testing
