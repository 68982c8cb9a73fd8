/* Varints of record batches. */
#ifndef ACLOG_VARINT_H
#define ACLOG_VARINT_H

#include "plain.h"

/* Reads an unsigned varint of up to 32 bits in its shortest form; returns how many bytes it has, 0 if it is malformed. */
static inline size_t read_unsigned(const uint8_t *data, size_t size, uint64_t *value)
{
    uint64_t read = 0;
    for (size_t at = 0; at < 5 && at < size; at++) {
        read |= (uint64_t)(data[at] & 0x7F) << 7 * at;
        if (data[at] < 0x80) {
            if ((at > 0 && data[at] == 0) || read > UINT32_MAX)
                return 0;
            *value = read;
            return at + 1;
        }
    }
    return 0;
}

#endif
