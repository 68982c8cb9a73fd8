#include "slices.h"

static int check(const slices *self)
{
    uint64_t size = (uint64_t)self->buffer.len;
    for (size_t row = 0; row < self->count; row++) {
        uint64_t start = load_u64(self->starts.buf, row), end = load_u64(self->ends.buf, row);
        if (start > end || end > size) {
            PyErr_Format(PyExc_ValueError, "slice %zu does not lie in the buffer of %zd bytes", row, self->buffer.len);
            return -1;
        }
    }
    return 0;
}

int slices_take(slices *self, PyObject *const *arguments, Py_ssize_t count, const char *function)
{
    memset(self, 0, sizeof *self);
    if (count != 3) {
        PyErr_Format(PyExc_TypeError, "%s() takes buffer, starts and ends, not %zd arguments", function, count);
        return -1;
    }
    if (PyObject_GetBuffer(arguments[0], &self->buffer, PyBUF_SIMPLE) < 0 ||
        PyObject_GetBuffer(arguments[1], &self->starts, PyBUF_SIMPLE) < 0 ||
        PyObject_GetBuffer(arguments[2], &self->ends, PyBUF_SIMPLE) < 0) {
        slices_release(self);
        return -1;
    }
    self->count = (size_t)self->starts.len / 8;
    if (self->starts.len % 8 || self->starts.len != self->ends.len || self->count > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s(): expected starts and ends of as many int64 each, below 2**31", function);
        slices_release(self);
        return -1;
    }
    if (check(self) < 0) {
        slices_release(self);
        return -1;
    }
    return 0;
}

void slices_release(slices *self)
{
    /* A Py_buffer that was never filled has no object: releasing it does nothing. */
    PyBuffer_Release(&self->buffer);
    PyBuffer_Release(&self->starts);
    PyBuffer_Release(&self->ends);
}
