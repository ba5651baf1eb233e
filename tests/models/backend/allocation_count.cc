#include "tests/models/backend/allocation_count.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <sstream>

// The functions __libc_malloc() to __libc_memalign() of glibc allocate memory; the replacements of
// malloc and free in this file call them.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

constexpr std::size_t kKeptCallers = 16;

// The counter of allocations is global because an allocation function has no argument that could
// refer to it.
struct Counter {
  std::atomic<bool> counting{false};
  std::atomic<std::int64_t> calls{0};
  std::atomic<std::uintptr_t> code_begin{0};
  std::atomic<std::uintptr_t> code_end{0};
  std::array<std::atomic<std::uintptr_t>, kKeptCallers> callers{};
};
Counter counter;

void note(const void* return_address) {
  if (!counter.counting.load(std::memory_order_relaxed)) return;
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  if (address < counter.code_begin || address >= counter.code_end) return;
  const auto call = static_cast<std::size_t>(counter.calls.fetch_add(1));
  if (call < kKeptCallers) counter.callers[call] = address;
}

// Stores the address range of the program, which is the first object that the loader lists.
int note_code_range(dl_phdr_info* object, std::size_t /*size*/, void* base) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    counter.code_begin = object->dlpi_addr + segment.p_vaddr;
    counter.code_end = counter.code_begin + segment.p_memsz;
  }
  *static_cast<std::uintptr_t*>(base) = object->dlpi_addr;
  return 1;  // stop after the first object
}

std::uintptr_t find_program() {
  std::uintptr_t base = 0;
  dl_iterate_phdr(note_code_range, &base);
  return base;
}

void* allocate_or_throw(std::size_t alignment, std::size_t size, const void* return_address) {
  note(return_address);
  void* memory = alignment == 0 ? __libc_malloc(size) : __libc_memalign(alignment, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc uses reserved names.
extern "C" {
void* malloc(std::size_t size) {
  note(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  note(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  note(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

void* operator new(std::size_t size) {
  return allocate_or_throw(0, size, __builtin_return_address(0));
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(0, size, __builtin_return_address(0));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(static_cast<std::size_t>(alignment), size, __builtin_return_address(0));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(static_cast<std::size_t>(alignment), size, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*size*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/,
                       std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace syncopate {

AllocationCount::AllocationCount() {
  find_program();
  counter.calls = 0;
  counter.counting = true;
}

AllocationCount::~AllocationCount() { counter.counting = false; }

std::int64_t AllocationCount::calls() const { return counter.calls; }

std::string AllocationCount::callers() const {
  counter.counting = false;
  const std::uintptr_t base = find_program();
  const auto count = std::min(static_cast<std::size_t>(counter.calls), kKeptCallers);
  std::ostringstream text;
  for (std::size_t i = 0; i < count; ++i)
    text << "0x" << std::hex << counter.callers[i] - base << ' ';
  return text.str();
}

}  // namespace syncopate
