/* CRC-32C (Castagnoli), the checksum of record batches: by an instruction where the processor has one. */
#ifndef ACLOG_CRC32C_H
#define ACLOG_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Fills the tables and chooses the way; does the same each time it is called. */
void crc32c_prepare(void);

/* The checksum of some bytes, or of those before, whose checksum is `before`, with these after them. */
uint32_t crc32c(uint32_t before, const uint8_t *data, size_t size);

#endif
