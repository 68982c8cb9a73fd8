/* What building a base does to every key of a million: without the interpreter's lock, and without an object each. */
#include "slices.h"

#include "hash.h"

/* ---- crc32 ---- */

PyObject *bulk_crc32(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    if (slices_take(&rows, arguments, count, "crc32") < 0)
        return NULL;
    PyObject *sums = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * rows.count));
    if (sums != NULL) {
        uint32_t *into = (uint32_t *)(void *)PyBytes_AsString(sums);
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < rows.count; row++)
            into[row] = ~crc_more(CRC_START, slice_data(&rows, row), slice_size(&rows, row));
        Py_END_ALLOW_THREADS
    }
    slices_release(&rows);
    return sums;
}

/* ---- cut: slices copied one after another ---- */

PyObject *bulk_cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    slices rows;
    if (slices_take(&rows, arguments, count, "cut") < 0)
        return NULL;
    uint64_t total = 0;
    for (size_t row = 0; row < rows.count; row++) {
        total += slice_size(&rows, row);
        if (total > PY_SSIZE_T_MAX)
            break;
    }
    PyObject *copy = total > PY_SSIZE_T_MAX ? PyErr_NoMemory() : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (copy != NULL) {
        char *into = PyBytes_AsString(copy);
        Py_BEGIN_ALLOW_THREADS
        for (size_t row = 0; row < rows.count; row++) {
            size_t size = slice_size(&rows, row);
            memcpy(into, slice_data(&rows, row), size);
            into += size;
        }
        Py_END_ALLOW_THREADS
    }
    slices_release(&rows);
    return copy;
}
