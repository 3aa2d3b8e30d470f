/* A page of shared memory, its lock and its slots: see sharing.h. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPINS 64              /* a holder that runs is out again by then */
#define PATIENCE_NS 200000000 /* for one that does not run: long for 50 ns of work, short for a training */
#define YIELDS 50             /* then the waiting ones sleep, so that the holder gets a core */
#define SLEEP_NS 100000

/* Written, not only made as long: on a full disk, a hole would end the process at the first access. */
static int
fill(int file)
{
    static const Page empty;
    ssize_t written = write(file, &empty, sizeof empty);
    if (written >= 0 && written < (ssize_t)sizeof empty) {
        errno = ENOSPC;
    }
    return written == (ssize_t)sizeof empty ? 0 : -1;
}

int
page_open(Membership *member, const char *path, bool create)
{
    int file = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0) {
        return -1;
    }
    if (create && fill(file) < 0) {
        int error = errno;
        close(file);
        unlink(path);
        errno = error;
        return -1;
    }
    off_t size = lseek(file, 0, SEEK_END);
    Page *page = size < (off_t)sizeof(Page)
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = size < (off_t)sizeof(Page) ? EINVAL : errno;
    close(file);
    if (page != MAP_FAILED && !create && __atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) != PAGE_MAGIC) {
        munmap(page, sizeof(Page));
        page = MAP_FAILED;
        error = EINVAL;
    }
    if (page == MAP_FAILED) {
        errno = error;
        return -1;
    }
    *member = (Membership){.page = page};
    if (page_take_slot(member) < 0) {
        munmap(page, sizeof(Page));
        *member = (Membership){0};
        errno = ENOSPC;
        return -1;
    }
    return 0;
}

void
page_close(Membership *member)
{
    if (member->page != NULL) {
        munmap(member->page, sizeof(Page));
    }
    *member = (Membership){0};
}

int
page_take_slot(Membership *member)
{
    int32_t pid = getpid();
    member->slot = NULL;
    member->pid = pid;
    member->depth = 0;
    for (Slot *slot = member->page->slots; slot < member->page->slots + PAGE_SLOTS; slot++) {
        int32_t free = 0;
        if (slot->pid == 0 &&
            __atomic_compare_exchange_n(&slot->pid, &free, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            slot->workers = slot->listens = 0;
            slot->answered = member->page->asked;
            member->slot = slot;
            return 0;
        }
    }
    return -1;
}

/* Whether a process has ended. One that nobody has waited for yet still has a number, but runs no more. */
bool
process_ended(int32_t pid)
{
    if (kill(pid, 0) < 0 && errno == ESRCH) {
        return true;
    }
    char path[32], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) {
        close(file);
    }
    if (length <= 0) {
        return false; /* no /proc here */
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name before it may hold anything */
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

static void
sleep_ns(int64_t ns)
{
    struct timespec pause = {ns / 1000000000, ns % 1000000000};
    nanosleep(&pause, NULL);
}

/* Nobody sleeps or runs Python inside, so whoever holds it for long is dead, stopped or without a core. */
static SLOW_PATH bool
lock_patiently(int32_t *lock, int32_t pid)
{
    int64_t since = clock_monotonic();
    for (int tries = 0;; tries++) {
        int32_t holder = 0;
        if (__atomic_compare_exchange_n(lock, &holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
        if (tries < YIELDS) {
            sched_yield();
            continue;
        }
        if (process_ended(holder) &&
            __atomic_compare_exchange_n(lock, &holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
        if (clock_monotonic() - since > PATIENCE_NS) {
            return false;
        }
        sleep_ns(SLEEP_NS);
    }
}

bool
page_lock(Membership *member)
{
    if (member->depth++ > 0) {
        return true;
    }
    int32_t *lock = &member->page->lock;
    for (int i = 0; i < SPINS; i++) {
        int32_t holder = 0;
        if (LIKELY(__atomic_compare_exchange_n(lock, &holder, member->pid, false, __ATOMIC_ACQUIRE,
                                               __ATOMIC_RELAXED))) {
            return true;
        }
    }
    return lock_patiently(lock, member->pid);
}

void
page_unlock(Membership *member)
{
    if (--member->depth == 0) {
        __atomic_store_n(&member->page->lock, 0, __ATOMIC_RELEASE);
    }
}
