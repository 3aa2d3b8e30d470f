/* The time of each level of an environment: wrappers, vectors, and the environment inside.
 *
 * Only the outermost call of `step` has a span. One of LEVEL_PERIOD such calls also times the calls of `step` below
 * it. The period is a prime, so that a vector of 2, 4 or 8 environments is not always measured at the same one. */
#ifndef RLPROF_LEVELS_H
#define RLPROF_LEVELS_H

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#define LEVEL_PERIOD 17
#define LEVEL_MANY 2048 /* steps, after which the shares are known: a level that is timed takes 2 us longer */
#define LEVEL_LONG_PERIOD 211
#define MAX_LEVELS 32     /* classes */
#define MAX_LEVEL_DEPTH 24 /* calls of `step` inside each other */

typedef struct {
    PyTypeObject *type;
    int depth;     /* the smallest at which it was seen; 0: outermost */
    int64_t calls; /* that were timed */
    int64_t own;   /* ns, without the levels below */
} Level;

typedef struct {
    Level of[MAX_LEVELS];
    unsigned used;
    uint64_t entries; /* outermost steps */
    int steps;        /* open calls with a span */
    bool sampled;     /* the levels of the step under way are timed */
    int nest;         /* open calls, timed or not */
    int timed;        /* open calls that are timed */
    struct {
        Level *level;
        const PyObject *env; /* an address, never followed */
        int64_t entered, start, inner;
    } open[MAX_LEVEL_DEPTH];
} Levels;

#endif
