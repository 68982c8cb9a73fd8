#include "crc32c.h"

#include "plain.h"

static uint32_t tables[8][256];

static uint32_t by_tables(uint32_t state, const uint8_t *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = load_u32(data, 0) ^ state, high = load_u32(data, 1);
        state = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^
                tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^ tables[1][high >> 16 & 0xFF] ^
                tables[0][high >> 24];
    }
    while (size--)
        state = state >> 8 ^ tables[0][(state ^ *data++) & 0xFF];
    return state;
}

static uint32_t (*chosen)(uint32_t, const uint8_t *, size_t) = by_tables;

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state, const uint8_t *data, size_t size)
{
    uint64_t wide = state;
    for (; size >= 8; data += 8, size -= 8)
        wide = _mm_crc32_u64(wide, load_u64(data, 0));
    state = (uint32_t)wide;
    while (size--)
        state = _mm_crc32_u8(state, *data++);
    return state;
}

static void choose(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2"))
        chosen = by_instruction;
}
#else
static void choose(void) {}
#endif

void crc32c_prepare(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
        tables[0][byte] = value;
    }
    for (int table = 1; table < 8; table++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t value = tables[table - 1][byte];
            tables[table][byte] = value >> 8 ^ tables[0][value & 0xFF];
        }
    choose();
}

uint32_t crc32c(uint32_t before, const uint8_t *data, size_t size)
{
    return ~chosen(~before, data, size);
}
