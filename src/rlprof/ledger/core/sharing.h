/* What the processes of one session share: how many lanes work, and the clocks that share out the driver's waiting.
 *
 * A single process protects them by its GIL. Several have them in a page of shared memory, under a lock that is held
 * for some tens of nanoseconds at a time. */
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
    int64_t given;                   /* total that the share clock has handed out */
    int32_t workers;                 /* lanes that work, without the driver's own */
    int32_t waiting;                 /* true while the driver waits */
} Sharing;

/* When the training began. Time before that is the driver's start-up: see startup.c. */
enum { NOT_STARTING, STARTING, WORKERS_STEP, WORKERS_LEARN };
typedef struct {
    int32_t state;  /* STARTING: no process trains yet; later, what workers have begun to do */
    int32_t open;   /* start-up is the driver's innermost span, or the driver waits inside of it */
    uint32_t count; /* increases each time that a beginning is noted, or a later one that replaces it */
    Sharing then;   /* the clocks at the beginning; `waiting_mark` is its time */
} Beginning;

#define PAGE_MAGIC UINT64_C(0x33656761706c72) /* "rlpage3" */
#define PAGE_SLOTS 1024

/* One process that takes part. */
typedef struct {
    int32_t pid;       /* 0: free */
    int32_t workers;   /* part of Sharing.workers in this process */
    uint32_t answered; /* the last `requests` that it has answered */
    int32_t listens;   /* a thread there waits for requests */
} Slot;

typedef struct {
    uint64_t magic;
    int32_t lock;       /* the process that holds it; 0: none */
    uint32_t iteration; /* iterations that the driver has ended */
    uint32_t epoch;     /* increases when the driver's ledger is reset: the others then reset theirs */
    uint32_t requests;  /* increases when the driver requests the others' records */
    int32_t driver;     /* its process; 0: it no longer shares */
    uint32_t stepped;   /* increases with every step of an environment in another process than the driver's */
    Clock clock;        /* used by every process, so that their times are comparable */
    Sharing sharing;
    Beginning beginning;
    Slot slots[PAGE_SLOTS];
} Page;

typedef struct {
    Page *page; /* NULL: not shared */
    Slot *slot;
    int32_t pid;
    int depth; /* how often this process has taken the lock, which is recursive */
    int file;  /* descriptor of a page that was created here, through which others join; -1: none */
    dev_t device;
    ino_t inode;
} Membership;

/* Maps the file, or creates it. Returns 0, or -1 with errno. */
int page_open(Membership *, const char *path, bool create);
void page_close(Membership *);
/* Takes a slot for this process, also in a forked child. Returns 0, or -1 if no slot is free. */
int page_take_slot(Membership *);
/* False: a process was stopped while it held the lock. The page must then no longer be used. */
bool page_lock(Membership *);
bool process_ended(int32_t pid);
void page_unlock(Membership *);

#endif
