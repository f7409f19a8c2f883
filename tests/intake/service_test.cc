// `ztape proxy` as a service: another user, sockets and words of a service manager, a drained end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/fixture.h"
#include "tests/support/proxy_process.h"
#include "tests/support/recorded_bytes.h"
#include "tests/support/sockets.h"
#include "tests/support/temporary_directory.h"

namespace ztape::test {
namespace {

// The value of a line of /proc/PID/status.
std::string status_line(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

class Service : public testing::Test {
 protected:
  void exchange(const std::string& address) {
    auto wallet = Socket::connect(address);
    auto server = server_.accept();
    wallet.send("question");
    ASSERT_EQ(server.receive(8), "question");
    server.send("answer");
    ASSERT_EQ(wallet.receive(6), "answer");
  }

  TemporaryDirectory folder_;
  std::string file_ = folder_.file("a.ztape");
  ListeningSocket server_;
};

TEST_F(Service, WhereTheFileOfThisSecondIsThereItTakesTheNextFreeName) {
  constexpr int kTaken = 300;  // longer than it takes to start
  const auto stem = [](std::time_t time) {
    std::tm utc{};
    gmtime_r(&time, &utc);
    char text[64];
    std::strftime(text, sizeof(text), "ztape-%Y%m%dT%H%M%SZ", &utc);
    return std::string(text);
  };
  const std::time_t now = std::time(nullptr);
  for (int i = 0; i < kTaken; ++i) {
    std::ofstream(folder_.file(stem(now + i) + (i % 2 ? ".ztape" : ".000001.ztape")));
  }
  ChildProcess proxy({"sh", "-c", "cd \"$0\" && exec \"$@\"", folder_.path(), ztape(), "proxy", "--upstream",
                      server_.address(), "--listen", "127.0.0.1:0"});
  const auto file = stem(now + kTaken) + ".ztape";
  EXPECT_TRUE(proxy.line().ends_with("recording to " + file)) << proxy.line();
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0) << proxy.stderr_text();
  EXPECT_TRUE(read_traffic(folder_.file(file)).whole);
}

TEST_F(Service, TheUserIsChangedForAllThreadsAndTheCaptureIsItsOwn) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const passwd* nobody = getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  const auto uid = std::to_string(nobody->pw_uid), gid = std::to_string(nobody->pw_gid);
  ProxyProcess proxy(server_.address(), file_, {"--user", "nobody"});
  const auto four = [](const std::string& id) { return id + "\t" + id + "\t" + id + "\t" + id; };
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(proxy.process().pid()) + "/task")) {
    const auto thread = static_cast<pid_t>(std::stol(entry.path().filename()));
    EXPECT_EQ(status_line(thread, "Uid"), four(uid));
    EXPECT_EQ(status_line(thread, "Gid"), four(gid));
    EXPECT_EQ(status_line(thread, "CapEff"), "0000000000000000");
  }
  EXPECT_EQ(status_line(proxy.process().pid(), "Groups"), gid + " ");
  exchange(proxy.address());
  EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
  struct stat status{};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, nobody->pw_uid);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(read_traffic(file_).connections.at(1).bytes[0], "question");
}

TEST_F(Service, AUserThatCannotBeIsOneLine) {
  const auto expect_refused = [&](const std::vector<std::string>& launcher, const std::string& user,
                                  const std::string& text) {
    auto words = launcher;
    words.insert(words.end(), {ztape(), "proxy", "--upstream", server_.address(), "--listen", "127.0.0.1:0", "-w",
                               folder_.file("b.ztape"), "--user", user});
    const auto ended = run(words);
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find("--user " + user + ": " + text), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(folder_.file("b.ztape")));
  };
  expect_refused({}, "no-such-user-here", "there is no such user");
  if (geteuid() == 0) {
    expect_refused({"setpriv", "--reuid=65534", "--clear-groups"}, "root", "only root can become another user");
  } else {
    expect_refused({}, "root", "only root can become another user");
  }
}

TEST_F(Service, SocketsThatAServiceManagerPassesOnAreUsedInTheOrderOfTheRoutes) {
  // The shell plays the service manager: its descriptors 3 and 4 are ours, LISTEN_PID is its own number.
  ListeningSocket first, second, other;
  const int third = fcntl(first.fd(), F_DUPFD, 100), fourth = fcntl(second.fd(), F_DUPFD, 100);
  const auto script =
      "exec 3<&" + std::to_string(third) + " 4<&" + std::to_string(fourth) + "; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\"";
  ChildProcess proxy({"bash", "-c", script, "bash", ztape(), "proxy", "--route", "127.0.0.1:1=" + server_.address(),
                      "--route", "127.0.0.1:1=" + other.address(), "-w", file_});
  close(third);
  close(fourth);
  EXPECT_TRUE(proxy.line(0).starts_with("listening on " + first.address() + ", upstream http://" + server_.address()));
  EXPECT_TRUE(proxy.line(1).starts_with("listening on " + second.address() + ", upstream http://" + other.address()));
  const auto address = first.address();
  first.close();
  exchange(address);
  auto wallet = Socket::connect(second.address());
  wallet.send("x");
  EXPECT_EQ(other.accept().receive(1), "x");
  proxy.signal(SIGTERM);
  EXPECT_EQ(proxy.wait(), 0) << proxy.stderr_text();
}

TEST_F(Service, PassedSocketsThatDoNotFitAreOneLine) {
  const auto expect_refused = [&](const std::string& script, const std::string& text) {
    const auto ended = run({"sh", "-c", script, "sh", ztape(), "proxy", "--upstream", server_.address(), "--listen",
                            "127.0.0.1:0", "-w", file_});
    EXPECT_EQ(ended.status, 2);
    EXPECT_NE(ended.err.find(text), std::string::npos) << ended.err;
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  };
  expect_refused("exec 3</dev/null 4</dev/null; LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\"",
                 "LISTEN_FDS: 2 sockets were passed on for 1 routes");
  expect_refused("exec 3</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"",
                 "descriptor 3: socket operation on non-socket");
}

TEST_F(Service, SocketsMeantForAnotherProcessAreLeftAlone) {
  ProxyProcess proxy(server_.address(), file_, {},
                     {"sh", "-c", "exec 3</dev/null; LISTEN_PID=1 LISTEN_FDS=1 exec \"$@\"", "sh"});
  exchange(proxy.address());
  EXPECT_EQ(proxy.stop(), 0);
}

TEST_F(Service, AServiceManagerHearsWhenItIsReadyAndWhenItStops) {
  const int heard = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto path = folder_.file("notify");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(heard, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
  setsockopt(heard, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const auto next = [&] {
    char text[64];
    const ssize_t size = recv(heard, text, sizeof(text), 0);
    return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  ProxyProcess proxy(server_.address(), file_, {}, {"env", "NOTIFY_SOCKET=" + path});
  EXPECT_EQ(next(), "READY=1");
  exchange(proxy.address());
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_EQ(next(), "STOPPING=1");
  close(heard);
}

TEST_F(Service, ADrainLetsConnectionsEndAndTakesNoNewOnes) {
  ProxyProcess proxy(server_.address(), file_, {"--drain", "10m"});
  auto wallet = Socket::connect(proxy.address());
  auto end = server_.accept();
  wallet.send("before");
  EXPECT_EQ(end.receive(6), "before");
  proxy.process().signal(SIGTERM);
  proxy.process().wait_for_stderr("takes no more connections");
  EXPECT_THROW(Socket::connect(proxy.address()), std::runtime_error);
  wallet.send(" and after");
  EXPECT_EQ(end.receive(10), " and after");
  end.send("answer");
  EXPECT_EQ(wallet.receive(6), "answer");
  wallet.close();
  EXPECT_EQ(end.receive_all(), "");
  end.close();
  EXPECT_EQ(proxy.process().wait(), 0);
  const auto connection = read_traffic(file_).connections.at(1);
  EXPECT_EQ(connection.bytes[0], "before and after");
  EXPECT_EQ(connection.bytes[1], "answer");
}

TEST_F(Service, ADrainWithoutConnectionsEndsAtOnce) {
  ProxyProcess proxy(server_.address(), file_, {"--drain", "10m"});
  EXPECT_EQ(proxy.stop(), 0);
}

TEST_F(Service, ADrainEndsWhenItsTimeIsUp) {
  ProxyProcess proxy(server_.address(), file_, {"--drain", "10ms"});
  auto wallet = Socket::connect(proxy.address());
  auto end = server_.accept();
  EXPECT_EQ(proxy.stop(), 0);
  EXPECT_TRUE(read_traffic(file_).whole);
}

TEST_F(Service, ASecondSignalEndsADrainCleanly) {
  ProxyProcess proxy(server_.address(), file_, {"--drain", "10m"});
  auto wallet = Socket::connect(proxy.address());
  auto end = server_.accept();
  proxy.process().signal(SIGTERM);
  proxy.process().wait_for_stderr("takes no more connections");
  EXPECT_EQ(proxy.stop(), 0);
  const auto traffic = read_traffic(file_);
  EXPECT_TRUE(traffic.whole);
  EXPECT_TRUE(traffic.connections.at(1).closed);
}

// What arrived at a peer was recorded, whenever the signal comes.
TEST_F(Service, TerminateDuringLoadLosesNothing) {
  for (int round = 0; round < 10; ++round) {
    const auto file = folder_.file("load" + std::to_string(round) + ".ztape");
    ProxyProcess proxy(server_.address(), file);
    auto wallet = Socket::connect(proxy.address());
    auto end = server_.accept();
    const auto pump = [](Socket& socket) {
      const std::string block(100'000, 'z');
      try {
        for (;;) socket.send(block);
      } catch (const std::runtime_error&) {  // the proxy has ended
      }
    };
    std::string received[2];
    const auto drain = [](Socket& socket, std::string& into) {
      std::string error;
      into += socket.receive_all(&error);
    };
    std::thread threads[4] = {std::thread(pump, std::ref(wallet)), std::thread(pump, std::ref(end)),
                              std::thread(drain, std::ref(end), std::ref(received[0])),
                              std::thread(drain, std::ref(wallet), std::ref(received[1]))};
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * round));  // any moment is as good as another
    EXPECT_EQ(proxy.stop(), 0) << proxy.process().stderr_text();
    for (auto& thread : threads) thread.join();
    const auto traffic = read_traffic(file);
    EXPECT_TRUE(traffic.whole);
    EXPECT_TRUE(traffic.gaps.empty());
    const auto& connection = traffic.connections.at(1);
    for (const int direction : {0, 1}) {
      EXPECT_EQ(connection.bytes[direction].size(), received[direction].size()) << "direction " << direction;
    }
    EXPECT_TRUE(connection.closed);
  }
}

}  // namespace
}  // namespace ztape::test
