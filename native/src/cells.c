#include "cells.h"

enum { FEW = 8 }; /* up to so many cells are read one after another: they lie in one cache line */

void cells_find(const flat *base, uint32_t low, uint32_t high, const int32_t pairs[PAIRS], uint32_t found[PAIRS])
{
    const uint8_t *column = base->cell_pairs;
    for (size_t at = 0; at < PAIRS; at++)
        found[at] = NO_CELL;
    if (high - low <= FEW) {
        for (uint32_t cell = low; cell < high; cell++) {
            int32_t pair = load_i32(column, cell);
            for (size_t at = 0; at < PAIRS; at++)
                if (pair == pairs[at] && pair >= 0)
                    found[at] = cell;
        }
        return;
    }
    /* Bisections in step, so that they wait for memory together. `starts` are the last known places where the pair, or
       what is below it, may be. */
    uint32_t starts[PAIRS] = {low, low, low, low};
    for (uint32_t count = high - low; count > 1;) {
        uint32_t half = count / 2;
        for (size_t at = 0; at < PAIRS; at++)
            starts[at] += load_i32(column, (size_t)starts[at] + half) <= pairs[at] ? half : 0;
        count -= half;
    }
    for (size_t at = 0; at < PAIRS; at++)
        if (pairs[at] >= 0 && load_i32(column, starts[at]) == pairs[at])
            found[at] = starts[at];
}
