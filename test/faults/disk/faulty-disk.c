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

// The failures of each place, and how many of them a descriptor has reported.
enum { MAX_FDS = 4096 };
static _Atomic int failures_of[PLACES];
static _Atomic int reported_by[MAX_FDS];

// A system that could not write pages marks them as clean, so that the next sync succeeds. As Linux does, each descriptor reports
// a failure once.
static int synced(int fd, int (*sync)(int)) {
  int place = place_of(fd);
  if (place == ELSEWHERE) return sync(fd);
  if (control->syncDelayMs > 0) usleep((useconds_t)control->syncDelayMs * 1000);
  if (atomic_exchange(&is_unsynced[place], 0) &&
      ((place == LOG && fails(&control->logSyncFailures, &control->failedSyncs)) ||
       (place == LEDGER && fails(&control->ledgerSyncFailures, &control->failedSyncs))))
    atomic_fetch_add(&failures_of[place], 1);
  int failures = atomic_load(&failures_of[place]);
  if (fd >= MAX_FDS || atomic_exchange(&reported_by[fd], failures) == failures) return sync(fd);
  errno = EIO;
  return -1;
}

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
