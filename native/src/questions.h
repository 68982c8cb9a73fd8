/* The questions that a base, and a base with changes, answer alike. */
#ifndef ACLOG_QUESTIONS_H
#define ACLOG_QUESTIONS_H

#include "types.h"

#include "search.h"
#include "store.h"

/* What is asked: a base, and changes as of a version, or NULL. */
typedef struct {
    base_object *base;
    const store *changes;
    uint32_t version;
} state;

PyObject *ask_mask(state asked, PyObject *const *arguments, Py_ssize_t count);
PyObject *ask_candidate(state asked, PyObject *const *arguments, Py_ssize_t count);
PyObject *ask_rule(state asked, PyObject *const *arguments, Py_ssize_t count);
/* The decisions of one client; `core` is the object that `asked` is a part of. */
PyObject *ask_session(PyObject *core, state asked, PyObject *const *arguments, Py_ssize_t count);

PyObject *raise_count(const char *name, int expected, Py_ssize_t count);
/* Takes the principal and the host: 1, or 0 for the Python path, or -1 with an exception. Kafka throws on a principal
 * without a colon, and on `User:*`. */
int take_subject(request *asked, PyObject *const *arguments);
void take_semantics(request *asked, int64_t semantics);
/* Makes a search; -1 with an exception. */
int new_search(search *self, state asked, const request *wanted);

/* Takes a text as UTF-8: 1, or 0 if it cannot be encoded or is very long, or -1 with an exception. */
int take_text(PyObject *argument, text *value);
/* Takes a number: 1, or 0 if it is far out of bounds, or -1 with an exception. */
int take_number(PyObject *argument, int64_t *value);

#define MASK_DOC                                                                                                       \
    PyDoc_STR("mask(principal, host, resource_type, name, semantics) -> int\n\n"                                      \
              "Return denied << 16 | allowed of all ACLs that cover the name and match the subject; -1: ask the\n"     \
              "Python path. Semantics: 1: LITERAL `*` covers names that begin with `*`, too; 2: the host of an ACL\n"  \
              "may be a range; 3: both. Raises ValueError if the base is damaged.")
#define CANDIDATE_DOC                                                                                                  \
    PyDoc_STR("has_candidate(resource_type, name, semantics) -> int\n\n"                                              \
              "Return whether a resource pattern with ACLs covers the name, 1 or 0; -1: ask the Python path.")
#define RULE_DOC                                                                                                       \
    PyDoc_STR("rule(principal, host, operation, resource_type, name, semantics) -> int\n\n"                            \
              "Return the row of the base that Kafka names; -1: none matches; -2: ask the Python path.")
#define SESSION_DOC                                                                                                    \
    PyDoc_STR("session(principal, host, semantics, open, counts) -> Session\n\n"                                      \
              "Return the decisions of one client. `open`: a name that no ACL covers is left to the Python path;\n"    \
              "`counts`: two uint64 of an array, to which allowed and denied decisions are added.")
#define PUT_DOC                                                                                                        \
    PyDoc_STR("put(resource_type, name, literal, principal, host, mask, rules) -> Changes\n\n"                         \
              "Return the base with one more change: the mask of all ACLs of a cell now, the base's included (-1:\n"   \
              "nothing is left of it), and how many ACLs its resource pattern has.")

#endif
