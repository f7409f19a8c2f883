// The options of `ztape proxy`, a pair of functions a subject, each in a file of its own: one adds the options to the
// help text, one reads their words. Only the files cli/proxy_options*.cc include this.
#pragma once

#include <cxxopts.hpp>
#include <expected>
#include <memory>
#include <string>

#include "cli/proxy_options.h"
#include "proto/error.h"

namespace ztape::cli {

// Each returns usage or address errors, with the option's name as their subject.

// proxy_options_intake.cc: where connections come in and where they go.
void add_intake_options(cxxopts::Options& options);
Result<void> read_intake_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// proxy_options_sockets.cc: what is set on the sockets of both sides.
void add_socket_options(cxxopts::Options& options);
Result<void> read_socket_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// proxy_options_recorder.cc: the capture, its queue and its disk.
void add_recorder_options(cxxopts::Options& options);
Result<void> read_recorder_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// proxy_options_tls.cc: TLS on either side. Reads after the intake's options: the routes say where it is needed.
void add_tls_options(cxxopts::Options& options);
Result<void> read_tls_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// proxy_options_live.cc: what is to be seen while it records.
void add_live_options(cxxopts::Options& options);
Result<void> read_live_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// proxy_options_service.cc: when it ends, and as whom it runs.
void add_service_options(cxxopts::Options& options);
Result<void> read_service_options(const cxxopts::ParseResult& words, ProxyCommand& command);

// An option's word with its name, for an error that says which one it is.
std::unexpected<Error> bad_option(const std::string& option, const Error& error);
std::unexpected<Error> bad_option(const std::string& option, const std::string& message);
// One of two words: true for the second.
Result<bool> choose(const cxxopts::ParseResult& words, const std::string& option, const std::string& no,
                    const std::string& yes);
// An option that takes a word.
inline std::shared_ptr<cxxopts::Value> text_value() {
  return cxxopts::value<std::string>();
}

}  // namespace ztape::cli
