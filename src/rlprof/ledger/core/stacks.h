/* Samples of the Python stack: what ticker.c notes and stacks.c books. */
#ifndef RLPROF_STACKS_H
#define RLPROF_STACKS_H

#include "core.h"
#include "interpreter.h"

#define MOST_SPOTS 24
#define MOST_TICKS 16

/* One or more ticks at one place. */
typedef struct {
    const Node *node; /* innermost at the tick; NULL: unknown. Only compared, because it may be gone */
    int spots_used;
    Spot spots[MOST_SPOTS]; /* innermost first */
    int64_t time;           /* of the last tick */
    int64_t ns;
    int64_t memory; /* change of resident memory, bytes */
} Tick;

/* Shared by the thread that ticks, the ledger, and the calls on the main thread that are under way. The last of them
 * frees it. */
typedef struct {
    int references;
    int over;
    int requested; /* a call on the main thread is under way */
    int looking;   /* the thread reads `thread`: see ticker_watch */
    int held;      /* `ticks` and `ticks_used` are in use. Nobody waits for that: both sides try again later */
    int64_t cpu;   /* CPU time of the thread, ns */
    Clock clock;
    int64_t period;
    int statm; /* an open file, -1: none */

    /* Written with the GIL held. */
    Ledger *ledger;       /* NULL: it has ended the sampling, or is gone */
    const Thread *thread; /* whose stack is sampled; NULL: none that a call on the main thread can sample */
    PyThreadState *tstate;

    int ticks_used;
    Tick ticks[MOST_TICKS];
} Ticker;

typedef struct {
    PyCodeObject *code; /* held by `codes` */
    int line;
} CodeLine;

/* LOG ENCODING, 64-bit words. A sample: its length from here, time, node, ns, memory, then the numbers of its lines,
 * innermost first. A move: 0, since, from (-1: all nodes), to (-1: none). */
struct Stacks {
    Ticker *ticker; /* NULL: no thread ticks */
    unsigned long main;
    int statm;
    int64_t ticked, memory; /* at the last tick that stack_tick made */
    int64_t *log;
    size_t log_used, log_capacity;
    int64_t newest; /* time of the newest sample in the log */
    int64_t lost;   /* ns that did not fit */
    int64_t cpu;  /* of tickers that have ended */
    CodeLine *lines;
    uint32_t lines_used, lines_capacity, lines_drained;
    Map codes;           /* all code objects that were seen. They are held, so no other gets the same address */
    Map by_instruction;  /* number of the line + 1 */
    Map by_line;
};

/* ticker.c */
Ticker *ticker_start(Ledger *, int64_t period); /* NULL: no thread can be started */
void ticker_end(Ticker *);
void ticker_watch(Ticker *, const Thread *); /* NULL: none */
void ticker_release(Ticker *);
int ticker_take(Ticker *, Tick *ticks); /* returns how many */
int64_t ticker_memory(int statm);       /* resident memory in bytes; -1: unknown */
int ticker_open_statm(void);

/* stack_log.c */
int64_t stack_line(Stacks *, PyCodeObject *, int instruction); /* the number of a line; -1: there are too many */
int64_t *stack_log_room(Stacks *, size_t words);               /* NULL: it is full */

/* stacks.c */
int stacks_on_main(void *ticker);
void stacks_refresh(Ledger *); /* tells the ticker whom to watch */

#endif
