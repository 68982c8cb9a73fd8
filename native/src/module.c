/* aclog_native: the compiled core of aclog (README.md). */
#include "types.h"

#include "crc32c.h"
#include "hash.h"
#include "layout.h"

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
    {"crc32c", FUNCTION(bulk_crc32c),
     PyDoc_STR("crc32c(buffer, before) -> int\n\nReturn the CRC-32C of bytes, or of those before, whose sum is given, and\n"
               "these.")},
    {"batches", FUNCTION(bulk_batches),
     PyDoc_STR("batches(buffer, position, sums) -> (columns, damage)\n\n"
               "Return the whole batches from a position on, headers and, with `sums`, checksums checked, as seven columns of int64:\n"
               "position, end, base offset, leader epoch, largest timestamp, records, whether control batch. `damage` is\n"
               "where the first damaged one begins, -1 if there is none.")},
    {"values", FUNCTION(bulk_values),
     PyDoc_STR("values(buffer, starts, ends, counts) -> (starts, ends, batches)\n\n"
               "Return the slices of the record values of data batches, int64, given where the records of each batch\n"
               "begin and end and how many there are. Stops before the first batch with a record that is not plain;\n"
               "`batches` is the number of those before it.")},
    {"cut", FUNCTION(bulk_cut), PyDoc_STR("cut(buffer, starts, ends) -> bytes\n\nReturn the slices joined.")},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type != NULL && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int execute(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    crc_prepare();
    crc32c_prepare();
    state->base_type = add_type(module, &base_spec);
    state->changes_type = add_type(module, &changes_spec);
    state->session_type = add_type(module, &session_spec);
    state->maker_type = add_type(module, &maker_spec);
    if (state->base_type == NULL || state->changes_type == NULL || state->session_type == NULL || state->maker_type == NULL)
        return -1;
    if (PyModule_AddStringConstant(module, "VERSION", VERSION) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "LAYOUT", LAYOUT);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
    {0, NULL},
};

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = PyModule_GetState(module);
    Py_VISIT(state->base_type);
    Py_VISIT(state->changes_type);
    Py_VISIT(state->session_type);
    Py_VISIT(state->maker_type);
    return 0;
}

static int clear(PyObject *module)
{
    module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->base_type);
    Py_CLEAR(state->changes_type);
    Py_CLEAR(state->session_type);
    Py_CLEAR(state->maker_type);
    return 0;
}

static void release(void *module)
{
    clear(module);
}

static PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "aclog_native",
    .m_doc = PyDoc_STR("The compiled core of aclog: decisions over the columns of a flat base and its changes."),
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

PyMODINIT_FUNC PyInit_aclog_native(void)
{
    return PyModuleDef_Init(&native_module);
}
