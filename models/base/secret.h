// Texts and numbers that no other program can guess, from the kernel's generator: the nonce of a
// job, the token of a session. Random numbers of a training are in random.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

// Returns 128 random bits in hexadecimal. Throws FileError if the system provides no random bits.
std::string random_nonce();

// Returns a text that names a nonce in files and reports but does not contain it: 64 bits of a
// hash.
std::string name_of_nonce(std::string_view nonce);

// A text for lines that report a task of another job: the difference between the two, and what to
// do.
inline constexpr std::string_view kOtherNonce =
    "the two have different nonces, or one has none; give all tasks the same SYNCOPATE_NONCE "
    "(--nonce goes before it)";

// Returns 64 random bits that are not all 0. Throws as random_nonce() does.
std::uint64_t random_token();

}  // namespace syncopate
