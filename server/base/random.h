#ifndef CLAIMD_SERVER_BASE_RANDOM_H_
#define CLAIMD_SERVER_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace claimd::base {

// The only source of randomness, so that tests can repeat a run. Thread-safe.
class RandomSource {
 public:
  virtual ~RandomSource() = default;

  // Sixteen unpredictable bytes.
  virtual std::array<uint8_t, 16> Bytes16() = 0;
};

// The operating system's generator. Never destroyed.
RandomSource* SystemRandom();

}  // namespace claimd::base

#endif  // CLAIMD_SERVER_BASE_RANDOM_H_
