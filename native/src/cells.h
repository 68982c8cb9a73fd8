/* Finding a subject's pairs among the cells of a resource. */
#ifndef ACLOG_CELLS_H
#define ACLOG_CELLS_H

#include "search.h"

enum { NO_CELL = UINT32_MAX };

/* By pair: its cell among [low, high), or NO_CELL. Pairs that the base does not have are found nowhere. */
void cells_find(const flat *base, uint32_t low, uint32_t high, const int32_t pairs[PAIRS], uint32_t found[PAIRS]);

#endif
