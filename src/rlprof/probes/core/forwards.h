/* A small set of the kinds of forward passes that were seen: twice the leading dimension, plus one if gradients are
 * kept. A full set forgets the oldest. */
#ifndef RLPROF_FORWARDS_H
#define RLPROF_FORWARDS_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_FORWARDS 32
typedef struct {
    int64_t of[MAX_FORWARDS];
    unsigned used, next;
} Forwards;

static inline bool
forwards_have(const Forwards *forwards, int64_t kind)
{
    for (unsigned i = 0; i < forwards->used; i++) {
        if (forwards->of[i] == kind) {
            return true;
        }
    }
    return false;
}

static inline void
forwards_add(Forwards *forwards, int64_t kind)
{
    if (forwards_have(forwards, kind)) {
        return;
    }
    if (forwards->used < MAX_FORWARDS) {
        forwards->of[forwards->used++] = kind;
    }
    else {
        forwards->of[forwards->next++ % MAX_FORWARDS] = kind;
    }
}

static inline void
forwards_remove(Forwards *forwards, int64_t kind)
{
    for (unsigned i = 0; i < forwards->used; i++) {
        if (forwards->of[i] == kind) {
            forwards->of[i] = forwards->of[--forwards->used];
            return;
        }
    }
}

#endif
