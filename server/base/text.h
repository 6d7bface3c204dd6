#ifndef CLAIMD_SERVER_BASE_TEXT_H_
#define CLAIMD_SERVER_BASE_TEXT_H_

#include "absl/strings/string_view.h"

namespace claimd::base {

// Whether 'text' is valid UTF-8 without control characters (U+0000–001F, U+007F–009F), and so safe
// in keys, logs and terminals. Overlong forms and surrogates are not valid.
bool IsPlainText(absl::string_view text);

// Whether 'text' is valid UTF-8.
bool IsUtf8(absl::string_view text);

}  // namespace claimd::base

#endif  // CLAIMD_SERVER_BASE_TEXT_H_
