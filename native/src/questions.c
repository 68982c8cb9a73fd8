#include "questions.h"

#include "decide.h"

enum { NO_RULE = -1, RULE_OF_PYTHON = -2, MASK_OF_PYTHON = -1 };
enum { DOCUMENTED = 1, IN_RANGES = 2 }; /* semantics (aclog.authorizer.index.layout) */

PyObject *raise_damaged(void)
{
    PyErr_SetString(PyExc_ValueError, "the flat base is damaged: a position in its columns is out of bounds");
    return NULL;
}

PyObject *raise_count(const char *name, int expected, Py_ssize_t count)
{
    PyErr_Format(PyExc_TypeError, "%s() takes %d arguments, not %zd", name, expected, count);
    return NULL;
}

int take_text(PyObject *argument, text *value)
{
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(argument, &size);
    if (data == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return -1;
        PyErr_Clear(); /* a lone surrogate */
        return 0;
    }
    *value = (text){(const uint8_t *)data, (uint32_t)size};
    return size <= (Py_ssize_t)LONGEST_TEXT;
}

int take_number(PyObject *argument, int64_t *value)
{
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (overflow)
        return 0;
    return *value == -1 && PyErr_Occurred() ? -1 : 1;
}

void take_semantics(request *asked, int64_t semantics)
{
    asked->documented = (semantics & DOCUMENTED) != 0;
    asked->in_ranges = (semantics & IN_RANGES) != 0;
}

/* Takes the resource type, the name and the semantics: 1, or 0 for the Python path, or -1 with an exception. */
static int take_name(request *asked, PyObject *const *arguments)
{
    int64_t type, semantics;
    int taken = take_number(arguments[0], &type);
    if (taken <= 0)
        return taken;
    taken = take_text(arguments[1], &asked->name);
    if (taken <= 0)
        return taken;
    taken = take_number(arguments[2], &semantics);
    if (taken <= 0)
        return taken;
    take_semantics(asked, semantics);
    asked->type = (unsigned)type;
    return type >= 0 && type < TYPES;
}

int take_subject(request *asked, PyObject *const *arguments)
{
    int taken = take_text(arguments[0], &asked->principal);
    if (taken <= 0)
        return taken;
    taken = take_text(arguments[1], &asked->host);
    if (taken <= 0)
        return taken;
    text who = asked->principal;
    return memchr(who.data, ':', who.size) != NULL && !(who.size == 6 && memcmp(who.data, "User:*", 6) == 0);
}

int new_search(search *self, state asked, const request *wanted)
{
    *self = (search){
        .base = &asked.base->columns, .changes = asked.changes, .version = asked.version, .asked = wanted};
    if (!wanted->in_ranges)
        return 0;
    self->ranges = base_ranges(asked.base);
    self->seed = asked.base->ranges.seed;
    return self->ranges == NULL ? -1 : 0;
}

PyObject *ask_mask(state asked, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 5)
        return raise_count("mask", 5, count);
    request wanted;
    int taken = take_subject(&wanted, arguments);
    if (taken > 0)
        taken = take_name(&wanted, arguments + 2);
    if (taken <= 0)
        return taken < 0 ? NULL : PyLong_FromLong(MASK_OF_PYTHON);
    search found;
    if (new_search(&found, asked, &wanted) < 0)
        return NULL;
    int status = decide_mask(&found);
    if (status == DAMAGED)
        return raise_damaged();
    return status == ASK_PYTHON ? PyLong_FromLong(MASK_OF_PYTHON) : PyLong_FromUnsignedLong(found.mask);
}

PyObject *ask_candidate(state asked, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3)
        return raise_count("has_candidate", 3, count);
    request wanted;
    int taken = take_name(&wanted, arguments);
    if (taken <= 0)
        return taken < 0 ? NULL : PyLong_FromLong(MASK_OF_PYTHON);
    wanted.in_ranges = 0; /* whoever the ACLs are for */
    search found;
    if (new_search(&found, asked, &wanted) < 0)
        return NULL;
    int candidate = decide_candidate(&found);
    return candidate < 0 ? raise_damaged() : PyLong_FromLong(candidate);
}

PyObject *ask_rule(state asked, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 6)
        return raise_count("rule", 6, count);
    request wanted;
    int64_t operation;
    int taken = take_subject(&wanted, arguments);
    if (taken >= 0) {
        int known = take_number(arguments[2], &operation);
        taken = known < 0 ? -1 : taken;
        operation = known > 0 && operation >= 0 && operation < OPERATIONS ? operation : 0; /* UNKNOWN, to Kafka */
    }
    if (taken > 0)
        taken = take_name(&wanted, arguments + 3);
    if (taken <= 0)
        return taken < 0 ? NULL : PyLong_FromLong(RULE_OF_PYTHON);
    search found;
    if (new_search(&found, asked, &wanted) < 0)
        return NULL;
    found.operation = (int)operation;
    int32_t row = decide_rule(&found);
    if (row == DAMAGED)
        return raise_damaged();
    return PyLong_FromLong(row == ASK_PYTHON ? RULE_OF_PYTHON : row == ABSENT ? NO_RULE : row);
}
