#include "tests/e2e/replay_support.h"

#include <filesystem>
#include <stdexcept>

#include "tests/support/fixture.h"

namespace ztape::test {

std::string import_fixture(const TemporaryDirectory& folder, const std::string& fixture) {
  const auto file = folder.file(fixture + ".ztape");
  const auto imported = run({ztape(), "import", fixture_path(fixture), "-w", file});
  if (imported.status != 0) throw std::runtime_error(imported.err);
  return file;
}

std::string url_of(ChildProcess& server) {
  const std::string before = "listening on ";
  const auto line = server.line();
  if (!line.starts_with(before)) throw std::runtime_error("not listening: " + line);
  return "http://" + line.substr(before.size(), line.find(',') - before.size());
}

std::vector<std::string> serve_command(const std::string& capture, const std::vector<std::string>& more) {
  std::vector<std::string> words{ztape(), "serve", "-r", capture, "--listen", "127.0.0.1:0"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Replayed replay(const TemporaryDirectory& folder, const std::string& capture, const std::vector<std::string>& words) {
  const auto file = folder.file("report.json");
  std::vector<std::string> command{ztape(), "replay", "-r", capture, "-o", file, "--force"};
  command.insert(command.end(), words.begin(), words.end());
  auto finished = run(command);
  Replayed replayed{finished.status, std::move(finished.out), std::move(finished.err), nullptr};
  if (std::filesystem::exists(file) && std::filesystem::file_size(file) > 0) {
    replayed.report = nlohmann::json::parse(read_file(file));
  }
  return replayed;
}

}  // namespace ztape::test
