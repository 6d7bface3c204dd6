#include "server/base/random.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <sys/random.h>

namespace claimd::base {
namespace {

class RealRandom final : public RandomSource {
 public:
  std::array<uint8_t, 16> Bytes16() override {
    std::array<uint8_t, 16> bytes{};
    // Requests of up to 256 bytes are never cut short once the pool is ready (getrandom(2)).
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      std::abort();
    }
    return bytes;
  }
};

}  // namespace

RandomSource* SystemRandom() {
  static auto* const random = new RealRandom();
  return random;
}

}  // namespace claimd::base
