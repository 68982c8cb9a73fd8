#include "python.h"

#include "plain.h"

uint64_t process_seed(void)
{
    PyObject *fixed = PyUnicode_FromString("aclog_native");
    Py_hash_t hash = fixed == NULL ? -1 : PyObject_Hash(fixed);
    Py_XDECREF(fixed);
    PyErr_Clear();
    return (uint64_t)hash * 0x9E3779B97F4A7C15u;
}
