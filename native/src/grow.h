/* Arrays that grow. */
#ifndef ACLOG_GROW_H
#define ACLOG_GROW_H

#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more item after `count`; -1 without memory, and then nothing has changed. */
static inline int grow(void **items, size_t *capacity, size_t count, size_t item_size)
{
    if (count < *capacity)
        return 0;
    size_t larger = *capacity ? 2 * *capacity : 16;
    void *moved = realloc(*items, larger * item_size);
    if (moved == NULL)
        return -1;
    *items = moved;
    *capacity = larger;
    return 0;
}

#endif
