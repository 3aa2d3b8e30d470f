/* What the processes of one session share: how many lanes work, and the clocks that share out the driver's waiting.
 *
 * A process alone has these for itself, under its GIL. Several have them in a page of shared memory, under a lock that is
 * held for some tens of nanoseconds at a time. */
#ifndef RLPROF_SHARING_H
#define RLPROF_SHARING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "clock.h"

typedef struct {
    int64_t waiting_mark;
    int64_t share_clock, share_rest; /* advances at 1/workers while the driver waits */
    int64_t wait_clock;              /* advances while the driver waits */
    int64_t given;                   /* all that the share clock has handed out */
    int32_t workers;                 /* lanes that work, the driver's own left out */
    int32_t waiting;                 /* whether the driver waits */
} Sharing;

/* When the training began: the accounts of before are the driver's start-up, see startup.c. */
enum { NOT_STARTING, STARTING, WORKERS_STEP, WORKERS_LEARN };
typedef struct {
    int32_t state;  /* STARTING: nobody trains yet; then, as far as workers train: what they have begun to do */
    int32_t open;   /* start-up is the driver's innermost span, or what it waits inside of */
    uint32_t count; /* counted up each time that is found out, or found to be later than was thought */
    Sharing then;   /* how the clocks stood; `waiting_mark` is when */
} Beginning;

#define PAGE_MAGIC UINT64_C(0x33656761706c72) /* "rlpage3" */
#define PAGE_SLOTS 1024

/* One process that takes part. */
typedef struct {
    int32_t pid;       /* 0: free */
    int32_t workers;   /* of Sharing.workers, those of this process */
    uint32_t answered; /* the last `asked` it has followed */
    int32_t listens;   /* a thread there waits for requests */
} Slot;

typedef struct {
    uint64_t magic;
    int32_t lock;       /* the process that holds it; 0: none */
    uint32_t iteration; /* iterations that the driver has ended */
    uint32_t epoch;     /* counted up when the driver's ledger forgets: then the others do too */
    uint32_t asked;     /* counted up when the driver requests the others' records */
    int32_t driver;     /* its process; 0: it shares no more */
    uint32_t stepped;   /* counted up with every step of an environment in another process than the driver's */
    Clock clock;        /* everybody's, so that everybody's times are comparable */
    Sharing sharing;
    Beginning beginning;
    Slot slots[PAGE_SLOTS];
} Page;

typedef struct {
    Page *page; /* NULL: alone */
    Slot *slot;
    int32_t pid;
    int depth; /* of the lock: it may be taken inside of itself */
    int file;  /* of a page that was created here, by which others join; -1: none */
    dev_t device;
    ino_t inode;
} Membership;

/* Maps the file; 0, or -1 with errno. `create` makes a page of it. */
int page_open(Membership *, const char *path, bool create);
void page_close(Membership *);
/* After a fork the child has no slot yet. Returns 0, or -1 where there is none left. */
int page_take_slot(Membership *);
/* False: it cannot be had, as a process died or was stopped inside; then the page must not be used any more. */
bool page_lock(Membership *);
bool process_ended(int32_t pid);
void page_unlock(Membership *);

#endif
