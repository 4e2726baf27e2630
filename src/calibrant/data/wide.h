/* Loops that are compiled more than once, for registers of two, four and eight doubles; the machine takes
   the widest that it has. Nothing is contracted or added up in another order, so all give the same bits. */
#ifndef CALIBRANT_WIDE_H
#define CALIBRANT_WIDE_H

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define WIDE
#endif

#endif
