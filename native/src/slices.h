/* Slices of a buffer, given as two columns of int64. */
#ifndef ACLOG_SLICES_H
#define ACLOG_SLICES_H

#include "python.h"

#include "plain.h"

typedef struct {
    Py_buffer buffer, starts, ends;
    size_t count;
} slices;

/* Takes the three buffers from the arguments (buffer, starts, ends) and checks every slice; -1 with an exception. */
int slices_take(slices *self, PyObject *const *arguments, Py_ssize_t count, const char *function);
void slices_release(slices *self);

static inline const uint8_t *slice_data(const slices *self, size_t row)
{
    return (const uint8_t *)self->buffer.buf + load_u64(self->starts.buf, row);
}

static inline size_t slice_size(const slices *self, size_t row)
{
    return (size_t)(load_u64(self->ends.buf, row) - load_u64(self->starts.buf, row));
}

#endif
