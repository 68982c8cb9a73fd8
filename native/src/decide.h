/* What ACLs say about a request. */
#ifndef ACLOG_DECIDE_H
#define ACLOG_DECIDE_H

#include "search.h"

/* The mask of all ACLs that cover the name and match the subject, in self->mask; 0, DAMAGED or ASK_PYTHON. */
int decide_mask(search *self);

/* Whether any resource pattern with ACLs covers the name: 1 or 0, or DAMAGED. */
int decide_candidate(search *self);

/* The row of the base that Kafka names, ABSENT, DAMAGED or ASK_PYTHON; for self->operation, 0..15. */
int32_t decide_rule(search *self);

#endif
