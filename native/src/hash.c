#include "hash.h"

uint32_t crc_tables[8][256];

void crc_prepare(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
        crc_tables[0][byte] = value;
    }
    for (int table = 1; table < 8; table++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t value = crc_tables[table - 1][byte];
            crc_tables[table][byte] = value >> 8 ^ crc_tables[0][value & 0xFF];
        }
}
