// A slow or failing disk for the processes that load this by LD_PRELOAD. FAULTY_DISK_FOLDER: the folder whose files are on that
// disk, absolute. FAULTY_DISK_CONTROL: a file with the numbers of `struct control`, which a test changes at any time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Failures are counted down; a negative number never ends.
struct control {
  int32_t syncDelayMs;
  int32_t logSyncFailures; // Of files whose names end in "-wal".
  int32_t ledgerSyncFailures; // Of files whose names end in ".db".
  int32_t writeFailures;
  int32_t failedSyncs;
  int32_t failedWrites;
  int32_t coldReadDelayMs; // Of the first read of each page of a file whose name ends in ".db", while this is not 0.
  int32_t coldReadsOfMainThread;
  int32_t coldReadsOfOthers;
};

#define REAL(name) ((__typeof__(&name))real(#name))

static volatile struct control *control;
static const char *folder;

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

__attribute__((constructor)) static void start(void) {
  const char *file = getenv("FAULTY_DISK_CONTROL");
  folder = getenv("FAULTY_DISK_FOLDER");
  if (!file || !folder) return;
  int fd = open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (control == MAP_FAILED) abort();
  close(fd);
}

enum { ELSEWHERE, LEDGER, LOG, OTHER, PLACES };

// Whether something was written since the last sync. Without, a disk has nothing to fail at.
static _Atomic int is_unsynced[PLACES];

static int ends_in(const char *path, size_t length, const char *end) {
  size_t bytes = strlen(end);
  return length >= bytes && strcmp(path + length - bytes, end) == 0;
}

static int place_of(int fd) {
  if (!control) return ELSEWHERE;
  char name[64], path[PATH_MAX] = "";
  int saved = errno;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t bytes = readlink(name, path, sizeof path - 1);
  errno = saved;
  size_t length = strlen(folder);
  if (bytes <= (ssize_t)length || strncmp(path, folder, length) != 0 || path[length] != '/') return ELSEWHERE;
  if (ends_in(path, (size_t)bytes, "-wal")) return LOG;
  return ends_in(path, (size_t)bytes, ".db") ? LEDGER : OTHER;
}

static int fails(volatile int32_t *failures, volatile int32_t *failed) {
  if (*failures == 0) return 0;
  if (*failures > 0) *failures -= 1;
  *failed += 1;
  errno = EIO;
  return 1;
}

// A system that could not write pages marks them as clean, so that the next sync succeeds.
static int synced(int fd, int (*sync)(int)) {
  int place = place_of(fd);
  if (place == ELSEWHERE) return sync(fd);
  if (control->syncDelayMs > 0) usleep((useconds_t)control->syncDelayMs * 1000);
  if (!atomic_exchange(&is_unsynced[place], 0)) return sync(fd);
  if (place == LOG && fails(&control->logSyncFailures, &control->failedSyncs)) return -1;
  if (place == LEDGER && fails(&control->ledgerSyncFailures, &control->failedSyncs)) return -1;
  return sync(fd);
}

enum { PAGE_BYTES = 4096, MAX_PAGES = 1 << 20 };
static _Atomic char is_warm[MAX_PAGES];

static void read_page(int fd, int64_t offset) {
  if (!control || control->coldReadDelayMs <= 0 || place_of(fd) != LEDGER) return;
  int64_t page = offset / PAGE_BYTES;
  if (page >= MAX_PAGES || atomic_exchange(&is_warm[page], 1)) return;
  __atomic_add_fetch(gettid() == getpid() ? &control->coldReadsOfMainThread : &control->coldReadsOfOthers, 1, __ATOMIC_RELAXED);
  usleep((useconds_t)control->coldReadDelayMs * 1000);
}

#define DEFINE_PREAD(name, offset_type)                                  \
  ssize_t name(int fd, void *data, size_t bytes, offset_type offset) {   \
    read_page(fd, offset);                                               \
    return REAL(name)(fd, data, bytes, offset);                          \
  }
DEFINE_PREAD(pread, off_t)
DEFINE_PREAD(pread64, off64_t)

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

#define DEFINE_PWRITE(name, offset_type)                                                          \
  ssize_t name(int fd, const void *data, size_t bytes, offset_type offset) {                      \
    int place = place_of(fd);                                                                     \
    if (place != ELSEWHERE && fails(&control->writeFailures, &control->failedWrites)) return -1;  \
    is_unsynced[place] = 1;                                                                       \
    return REAL(name)(fd, data, bytes, offset);                                                   \
  }
DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)
