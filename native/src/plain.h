/* Loads from columns, and the words that all parts share. */
#ifndef ACLOG_PLAIN_H
#define ACLOG_PLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "columns are little-endian: use aclog without its native core on this machine"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(address) __builtin_prefetch(address)
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#else
#define PREFETCH(address) ((void)0)
#define LIKELY(condition) (condition)
#endif

/* A column may begin at any address: memcpy says so to the compiler, which makes one load of it. */
static inline uint32_t load_u32(const uint8_t *column, size_t index)
{
    uint32_t value;
    memcpy(&value, column + 4 * index, sizeof value);
    return value;
}

static inline int32_t load_i32(const uint8_t *column, size_t index)
{
    int32_t value;
    memcpy(&value, column + 4 * index, sizeof value);
    return value;
}

static inline uint64_t load_u64(const uint8_t *column, size_t index)
{
    uint64_t value;
    memcpy(&value, column + 8 * index, sizeof value);
    return value;
}

/* UTF-8 that somebody else owns. */
typedef struct {
    const uint8_t *data;
    uint32_t size;
} text;

#define LONGEST_TEXT (1u << 30) /* in bytes: the sizes of a few texts can be added in 32 bits */

enum { ABSENT = -1, DAMAGED = -2, ASK_PYTHON = -3 }; /* the last: what is rare is left to the Python path */

#endif
