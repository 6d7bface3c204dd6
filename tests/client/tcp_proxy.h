#ifndef CLAIMD_TESTS_CLIENT_TCP_PROXY_H_
#define CLAIMD_TESTS_CLIENT_TCP_PROXY_H_

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "client/src/mutex.h"

namespace claimd::testing {

// A proxy on loopback in front of a server on loopback, which can reset connections. Thread-safe.
class TcpProxy {
 public:
  struct Options {
    int server_port = 0;
    // How many bytes a new connection may carry, in both directions together, before it is reset.
    // Null: any number. Called under no lock, on one thread.
    std::function<size_t()> bytes_before_reset;
  };
  explicit TcpProxy(Options options);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  std::string target() const;
  // Resets all connections that are open now.
  void ResetAll();
  // Where connections that are made from now on go.
  void set_server_port(int port);
  // How many were made so far.
  int connections() const;

 private:
  struct Connection {
    int client = -1;
    int server = -1;
    std::thread pump;
  };

  void Accept();
  void Pump(Connection* connection, size_t budget);

  const Options options_;
  int listener_ = -1;
  int stop_event_ = -1;
  int port_ = 0;
  mutable internal::Mutex mutex_;
  int server_port_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Kept until the end, so that every thread is joined.
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_CLIENT_TCP_PROXY_H_
