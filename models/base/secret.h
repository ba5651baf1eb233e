// Random texts and numbers from the kernel's generator, which no other program can guess: the nonce
// of a job and the token of a session. Random numbers for training are in random.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace syncopate {

// Returns 128 random bits in hexadecimal. Throws FileError if the system provides no random bits.
std::string random_nonce();

// Returns a text that identifies a nonce in files and reports without revealing it: a hash of 64
// bits.
std::string name_of_nonce(std::string_view nonce);

// Part of messages about a task of another job: explains how the nonces of the two tasks differ,
// and what to do.
inline constexpr std::string_view kOtherNonce =
    "the two have different nonces, or one has none; give all tasks the same SYNCOPATE_NONCE "
    "(--nonce goes before it)";

// Returns 64 random bits, not all of them 0. Throws FileError if the system provides no random
// bits.
std::uint64_t random_token();

}  // namespace syncopate
