/* Records that leave the core packed: fields in this order, native byte order, no padding.
 *
 * rlprof.ledger.rows has the same layouts in Python. layout.c compares the two when the core is loaded. */
#ifndef RLPROF_RECORDS_H
#define RLPROF_RECORDS_H

#include <stddef.h>
#include <stdint.h>

/* One iteration, or several merged ones. */
#define MARK_FIELDS(FIELD)      \
    FIELD(int64_t, start)       \
    FIELD(int64_t, end)         \
    FIELD(uint32_t, first)      \
    FIELD(uint32_t, last)       \
    FIELD(int64_t, steps)       \
    FIELD(int64_t, episodes)

/* What one node gained in the iterations of one mark. */
#define GAIN_FIELDS(FIELD)      \
    FIELD(uint32_t, iteration)  \
    FIELD(uint32_t, node)       \
    FIELD(uint64_t, calls)      \
    FIELD(int64_t, self)        \
    FIELD(int64_t, ledger)      \
    FIELD(int64_t, overlapped)  \
    FIELD(int64_t, waited)      \
    FIELD(int64_t, off_cpu)

/* One span that has ended. */
#define EVENT_FIELDS(FIELD)     \
    FIELD(int64_t, start)       \
    FIELD(int64_t, duration)    \
    FIELD(uint32_t, node)       \
    FIELD(uint32_t, depth)

/* How an operation is slowed down, and what was measured of it: slowdown.c. */
#define SLOWDOWN_FIELDS(FIELD)                                                            \
    FIELD(double, spin)      /* fraction of a call's CPU time, computed once more */       \
    FIELD(double, held)      /* fraction of that, with the GIL */                          \
    FIELD(double, sleep)     /* fraction of a call's duration, slept */                    \
    FIELD(int64_t, calls)                                                                 \
    FIELD(int64_t, cpu)      /* of the calls, without the slowdown */                      \
    FIELD(int64_t, wall)                                                                  \
    FIELD(int64_t, added)    /* computed and slept */                                      \
    FIELD(int64_t, missed)   /* calls in asyncio tasks: others run on their thread meanwhile */ \
    FIELD(int64_t, sampled)  /* what rlprof.experiment.slowdown_memory has sampled */      \
    FIELD(int64_t, progress)

#define DECLARE(type, name) type name;
typedef struct { MARK_FIELDS(DECLARE) } IterationMark;
typedef struct { GAIN_FIELDS(DECLARE) } IterationGain;
typedef struct { EVENT_FIELDS(DECLARE) } TimelineEvent;
typedef struct { SLOWDOWN_FIELDS(DECLARE) } Slowdown;
#undef DECLARE

#define SIZE_OF(type, name) sizeof(type) +
#define IS_PACKED(record, fields) _Static_assert(sizeof(record) == fields(SIZE_OF) 0, #record " has padding")
IS_PACKED(IterationMark, MARK_FIELDS);
IS_PACKED(IterationGain, GAIN_FIELDS);
IS_PACKED(TimelineEvent, EVENT_FIELDS);
IS_PACKED(Slowdown, SLOWDOWN_FIELDS);
/* Sessions that other machines have written have these sizes. */
_Static_assert(sizeof(IterationMark) == 40 && sizeof(IterationGain) == 56 && sizeof(TimelineEvent) == 24,
               "the journals of a session have another layout");
_Static_assert(sizeof(Slowdown) == 80, "processes that share memory have another layout");

#endif
