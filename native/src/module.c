/* aclog_native: the compiled core of aclog (README.md). */
#include "python.h"

#include "hash.h"

#define FUNCTION(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef functions[] = {
    {"number", FUNCTION(bulk_number),
     PyDoc_STR("number(buffer, starts, ends) -> (numbers, firsts)\n\n"
               "Number the slices [start, end) of a buffer by first appearance: int32 by row, and by number the row\n"
               "where the value appears first. The positions are buffers of int64. Runs without the GIL.")},
    {"crc32", FUNCTION(bulk_crc32),
     PyDoc_STR("crc32(buffer, starts, ends) -> sums\n\nReturn zlib's CRC-32 of each slice, uint32 by row.")},
    {"order", FUNCTION(bulk_order),
     PyDoc_STR("order(buffer, starts, ends) -> rows\n\n"
               "Return the rows, int32, in the order of their bytes; equal ones stay in their order.")},
    {"walk", FUNCTION(bulk_walk),
     PyDoc_STR("walk(buffer, at, count) -> (starts, end)\n\n"
               "Return where each of `count` records of a batch begins, int64, each a varint of its length and as many\n"
               "bytes, and where the last one ends: -1 if a length is malformed or beyond the buffer.")},
    {"cut", FUNCTION(bulk_cut), PyDoc_STR("cut(buffer, starts, ends) -> bytes\n\nReturn the slices joined.")},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    crc_prepare();
    if (PyModule_AddStringConstant(module, "VERSION", VERSION) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "LAYOUT", LAYOUT);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
    {0, NULL},
};

PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "aclog_native",
    .m_doc = PyDoc_STR("The compiled core of aclog: decisions over the columns of a flat base and its changes."),
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_aclog_native(void)
{
    return PyModuleDef_Init(&native_module);
}
