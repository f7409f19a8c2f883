// Plain blocking TCP sockets for the peers that tests play. Every wait ends after kPatience with a std::runtime_error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace ztape::test {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;

  // "127.0.0.1:9067" or "[::1]:9067".
  static Socket connect(const std::string& address);

  void send(std::string_view bytes);
  // Sends what the kernel takes without waiting; how many bytes that was. 0 also after an error.
  std::size_t send_without_waiting(std::string_view bytes);
  // Exactly so many bytes; an end before that throws.
  std::string receive(std::size_t bytes);
  // At least one byte, at most so many; "" at the end.
  std::string receive_some(std::size_t most = 65536);
  // Everything up to the end. `error`: "" after a FIN, else "ECONNRESET", ....
  std::string receive_all(std::string* error = nullptr);

  void shutdown_write();
  void reset();  // RST now
  void close();
  void set_receive_buffer(int bytes);
  void set_nodelay();
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  [[nodiscard]] std::string local_text() const;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

class ListeningSocket {
 public:
  // Port 0 takes a free one.
  explicit ListeningSocket(const std::string& address = "127.0.0.1:0");
  Socket accept();
  [[nodiscard]] std::string address() const { return socket_.local_text(); }
  void close() { socket_.close(); }
  [[nodiscard]] int fd() const { return socket_.fd(); }
  void set_receive_buffer(int bytes) { socket_.set_receive_buffer(bytes); }  // of the sockets accepted from now on

 private:
  Socket socket_;
};

}  // namespace ztape::test
