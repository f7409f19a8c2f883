// A grpc++ client that knows no types: makes the calls of a file one after another on one channel and prints what came.
//
//   grpc_caller ADDRESS FILE
//
// A line of the file: the path, then each request message in hex ("-" for an empty one), separated by blanks. A line
// of stdout: the status code, each answered message in the same form, then '|' and the status text.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::string to_hex(const std::string& bytes) {
  if (bytes.empty()) return "-";
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    text += digits;
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  if (text == "-") return bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) throw std::runtime_error("a message that cannot be read");
  std::string bytes;
  for (const auto& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// Waits for the one operation that is under way.
bool wait(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  if (!queue.Next(&tag, &ok)) throw std::runtime_error("the completion queue is shut down");
  return ok;
}

void call(grpc::GenericStub& stub, const std::string& path, const std::vector<std::string>& requests) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  const auto stream = stub.PrepareCall(&context, path, &queue);
  stream->StartCall(nullptr);
  bool good = wait(queue);
  for (const auto& request : requests) {
    if (!good) break;
    const grpc::Slice slice(request);
    stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    good = wait(queue);
  }
  stream->WritesDone(nullptr);
  wait(queue);
  std::string answered;
  for (;;) {
    grpc::ByteBuffer message;
    stream->Read(&message, nullptr);
    if (!wait(queue)) break;
    answered += ' ' + to_hex(bytes_of(message));
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  wait(queue);
  std::printf("%d%s|%s\n", static_cast<int>(status.error_code()), answered.c_str(), status.error_message().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), arguments));
  std::ifstream file(argv[2]);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string path;
    words >> path;
    std::vector<std::string> requests;
    for (std::string word; words >> word;) requests.push_back(from_hex(word));
    call(stub, path, requests);
  }
  return 0;
}
