/* Python's stable ABI, and what the types of this module share. */
#ifndef ACLOG_PYTHON_H
#define ACLOG_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#ifdef Py_GIL_DISABLED
#error "the stores of changes rely on the interpreter's lock: use aclog without its native core on this Python"
#endif

#define VERSION "0.4.0"

#define FUNCTION(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

/* Objects of one interpreter; the module has no other state. */
typedef struct {
    PyTypeObject *base_type;
    PyTypeObject *changes_type;
    PyTypeObject *session_type;
    PyTypeObject *maker_type;
} module_state;

/* The seed of hashes that nobody outside can foresee: it is made from Python's own secret. */
uint64_t process_seed(void);

PyObject *bulk_number(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_crc32(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_order(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_batches(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_crc32c(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_values(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *bulk_cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

#endif
