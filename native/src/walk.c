/* walk: where the records of a batch begin. */
#include "python.h"

#include "plain.h"

/* Reads a zigzag varint of up to 32 bits in its shortest form; returns how many bytes it has, 0 if it is malformed. */
static size_t read_varint(const uint8_t *data, size_t size, int64_t *value)
{
    uint64_t read = 0;
    for (size_t at = 0; at < 5 && at < size; at++) {
        read |= (uint64_t)(data[at] & 0x7F) << 7 * at;
        if (data[at] < 0x80) {
            if ((at > 0 && data[at] == 0) || read > UINT32_MAX)
                return 0;
            *value = (int64_t)(read >> 1) ^ -(int64_t)(read & 1);
            return at + 1;
        }
    }
    return 0;
}

static int64_t walk(const uint8_t *data, size_t size, size_t at, size_t count, int64_t *starts, size_t *found)
{
    for (size_t row = 0; row < count; row++) {
        int64_t length;
        size_t head;
        if (at >= size || (head = read_varint(data + at, size - at, &length)) == 0)
            return -1;
        starts[(*found)++] = (int64_t)at;
        at += head + (length > 0 ? (size_t)length : 0);
    }
    return (int64_t)at;
}

PyObject *bulk_walk(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "walk takes 3 arguments, not %zd", count);
    Py_ssize_t at, rows;
    if (((at = PyLong_AsSsize_t(arguments[1])) == -1 && PyErr_Occurred()) ||
        ((rows = PyLong_AsSsize_t(arguments[2])) == -1 && PyErr_Occurred()))
        return NULL;
    Py_buffer data;
    if (PyObject_GetBuffer(arguments[0], &data, PyBUF_SIMPLE) < 0)
        return NULL;
    /* A record has at least one byte: more of them than bytes are left cannot be there. */
    PyObject *starts = NULL, *result = NULL;
    if (at < 0 || rows < 0 || at > data.len || rows > data.len - at)
        result = Py_BuildValue("(y#i)", "", (Py_ssize_t)0, -1);
    else if ((starts = PyBytes_FromStringAndSize(NULL, 8 * rows)) != NULL) {
        int64_t *into = (int64_t *)(void *)PyBytes_AsString(starts), end;
        size_t found = 0;
        Py_BEGIN_ALLOW_THREADS
        end = walk(data.buf, (size_t)data.len, (size_t)at, (size_t)rows, into, &found);
        Py_END_ALLOW_THREADS
        if ((Py_ssize_t)found < rows)
            result = Py_BuildValue("(y#L)", (const char *)into, (Py_ssize_t)(8 * found), (long long)end);
        else
            result = Py_BuildValue("(OL)", starts, (long long)end);
    }
    Py_XDECREF(starts);
    PyBuffer_Release(&data);
    return result;
}
