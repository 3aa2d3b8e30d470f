/* A page of shared memory, its lock and its slots: see sharing.h. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/memfd.h>
#include <sys/syscall.h>
#endif

#define SPINS 64              /* a holder that runs gives the lock back within this */
#define PATIENCE_NS 200000000 /* for a holder that does not run: long for 50 ns of work, short for a training */
#define YIELDS 50             /* then a waiting process sleeps, so that the holder gets a core */
#define SLEEP_NS 100000

/* Writes the whole file instead of only extending it: on a full disk, the first access to a hole would end the
 * process. */
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

#if defined(__linux__) && defined(F_ADD_SEALS) && defined(SYS_memfd_create)
#define LEAST_FILE 64 /* low numbers are left to the program, which may expect to get the next one */

/* Creates memory that cannot be truncated, behind a symbolic link: truncating a mapped file would end every process
 * that maps it. The link leads to this process's descriptor, which must stay open. -1 if the system cannot do that. */
static int
create_sealed(const char *path)
{
    int low = (int)syscall(SYS_memfd_create, "rlprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int file = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, LEAST_FILE);
    if (file >= 0) {
        close(low);
    }
    else {
        file = low; /* fewer descriptors are allowed */
    }
    if (file < 0) {
        return -1;
    }
    char target[64];
    snprintf(target, sizeof target, "/proc/%d/fd/%d", (int)getpid(), file);
    if (fill(file) == 0 && fchmod(file, 0600) == 0 &&
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 && symlink(target, path) == 0) {
        if (access(path, R_OK | W_OK) == 0) {
            return file;
        }
        unlink(path); /* there is no /proc */
    }
    close(file);
    return -1;
}
#else
static int
create_sealed(const char *path)
{
    (void)path;
    return -1;
}
#endif

static int
create_file(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
    if (file >= 0 && fill(file) < 0) {
        int error = errno;
        close(file);
        unlink(path);
        errno = error;
        return -1;
    }
    return file;
}

/* If the driver's descriptor was closed, the link may lead to anything. So opening it must not block. */
static int
open_file(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat found;
    if (file >= 0 && (fstat(file, &found) < 0 || !S_ISREG(found.st_mode) || found.st_size < (off_t)sizeof(Page))) {
        close(file);
        errno = EINVAL;
        return -1;
    }
    return file;
}

int
page_open(Membership *member, const char *path, bool create)
{
    int sealed = create ? create_sealed(path) : -1;
    int file = sealed >= 0 ? sealed : create ? create_file(path) : open_file(path);
    if (file < 0) {
        return -1;
    }
    struct stat found = {0};
    Page *page = fstat(file, &found) < 0 ? MAP_FAILED
                                         : mmap(NULL, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = errno;
    if (page == MAP_FAILED || sealed < 0) {
        close(file);
    }
    if (page != MAP_FAILED && !create && __atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) != PAGE_MAGIC) {
        munmap(page, sizeof(Page));
        page = MAP_FAILED;
        error = EINVAL;
    }
    if (page == MAP_FAILED) {
        errno = error;
        return -1;
    }
    *member = (Membership){.page = page, .file = sealed, .device = found.st_dev, .inode = found.st_ino};
    if (page_take_slot(member) < 0) {
        page_close(member);
        errno = ENOSPC;
        return -1;
    }
    return 0;
}

/* The program may have closed the descriptor and opened another file that got its number. */
static void
close_file(Membership *member)
{
    struct stat found;
    if (member->file >= 0 && fstat(member->file, &found) == 0 && found.st_dev == member->device &&
        found.st_ino == member->inode) {
        close(member->file);
    }
    member->file = -1;
}

void
page_close(Membership *member)
{
    if (member->page != NULL) {
        munmap(member->page, sizeof(Page));
        close_file(member);
    }
    *member = (Membership){0};
}

int
page_take_slot(Membership *member)
{
    int32_t pid = getpid();
    if (member->pid != 0 && member->pid != pid) {
        close_file(member); /* forked: others join through the parent's descriptor */
    }
    member->slot = NULL;
    member->pid = pid;
    member->depth = 0;
    for (Slot *slot = member->page->slots; slot < member->page->slots + PAGE_SLOTS; slot++) {
        int32_t free = 0;
        if (slot->pid == 0 &&
            __atomic_compare_exchange_n(&slot->pid, &free, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            slot->workers = slot->listens = 0;
            slot->answered = member->page->requests;
            member->slot = slot;
            return 0;
        }
    }
    return -1;
}

/* True if a process has ended, also if its parent has not waited for it yet. */
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
        return false; /* there is no /proc */
    }
    text[length] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name may contain any character */
    return name_end != NULL && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

/* Takes the lock from `holder`, which is 0 if it is free. If another process holds it, `holder` becomes that process. */
static inline bool
take_lock(int32_t *lock, int32_t *holder, int32_t pid)
{
    return __atomic_compare_exchange_n(lock, holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* No process sleeps or runs Python while it holds the lock. One that holds it for long is dead, stopped or without a
 * core. */
static SLOW_PATH bool
lock_patiently(int32_t *lock, int32_t pid)
{
    int64_t since = clock_monotonic();
    for (int tries = 0;; tries++) {
        int32_t holder = 0;
        if (take_lock(lock, &holder, pid)) {
            return true;
        }
        if (tries < YIELDS) {
            sched_yield();
            continue;
        }
        if (process_ended(holder) && take_lock(lock, &holder, pid)) {
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
        if (LIKELY(take_lock(lock, &holder, member->pid))) {
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
