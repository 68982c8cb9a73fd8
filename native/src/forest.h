/* The prefixed names of a type as a forest (aclog.authorizer.index.layout): for names that have very many prefixes. */
#ifndef ACLOG_FOREST_H
#define ACLOG_FOREST_H

#include "search.h"

enum { MANY_LENGTHS = 512 }; /* with more distinct lengths, the forest is faster than a look-up at each */

/* Visits the prefixes of the name in the base, longest first: O(log n) comparisons, and one step for each of them. */
int forest_visit(search *self);

#endif
