/* Bits of a word: where the lowest one is, how many there are, and those of a float. */
#ifndef CALIBRANT_BITS_H
#define CALIBRANT_BITS_H

#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
static inline int lowest_bit(uint64_t word) {
  unsigned long place;
  _BitScanForward64(&place, word);
  return (int)place;
}
#else
static inline int lowest_bit(uint64_t word) { return __builtin_ctzll(word); }
#endif

static inline int count_bits(uint64_t word) {
  word -= (word >> 1) & 0x5555555555555555ULL;
  word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
  word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0FULL;
  return (int)((word * 0x0101010101010101ULL) >> 56);
}

static inline uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#endif
