#include "tests/support/certificates.h"

#include <fstream>
#include <stdexcept>

#include "tests/support/child_process.h"

namespace ztape::test {
namespace {

void must_run(const std::vector<std::string>& arguments) {
  const auto finished = run(arguments);
  if (finished.status != 0) throw std::runtime_error("openssl: " + finished.err);
}

}  // namespace

Certificate make_ca(const std::string& directory, const std::string& name) {
  Certificate made{directory + "/" + name + ".pem", directory + "/" + name + "-key.pem"};
  must_run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
            "-subj", "/CN=" + name, "-keyout", made.key, "-out", made.certificate});
  return made;
}

Certificate make_certificate(const std::string& directory, const std::string& name, const Certificate& ca,
                             const std::string& alternative_names, int days) {
  Certificate made{directory + "/" + name + ".pem", directory + "/" + name + "-key.pem"};
  const std::string request = directory + "/" + name + ".csr";
  const std::string extensions = directory + "/" + name + ".ext";
  must_run({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
            "-keyout", made.key, "-out", request});
  std::ofstream(extensions) << "subjectAltName=" << alternative_names << "\nbasicConstraints=CA:FALSE\n";
  must_run({"openssl", "x509", "-req", "-in", request, "-CA", ca.certificate, "-CAkey", ca.key, "-days",
            std::to_string(days), "-extfile", extensions, "-out", made.certificate});
  return made;
}

}  // namespace ztape::test
