// Sleeping on a word of memory that other threads, or other processes that map the same page,
// change. (std::atomic::wait works inside one process only and has no time limit.)
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace syncopate {

// Returns when the word was woken, no longer holds `expected`, `patience` is over, or for no
// reason: look again. Source: futex(2).
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds patience) noexcept;

void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace syncopate
