// A slow or failing disk for the processes that load this by LD_PRELOAD. FAULTY_DISK_FOLDER: the folder whose files are on that
// disk, absolute. FAULTY_DISK_CONTROL: a file with the numbers of `struct control`, which a test changes at any time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Failures are counted down; a negative number never ends.
struct control {
  int32_t syncDelayMs;
  int32_t syncFailures;
  int32_t writeFailures;
  int32_t failedSyncs;
  int32_t databaseSyncFailures; // Of files whose names end in ".db".
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

enum { ELSEWHERE, FILE_ON_DISK, DATABASE_ON_DISK };

static int is_on_disk(int fd) {
  char name[64], path[PATH_MAX];
  int saved = errno;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t bytes = control ? readlink(name, path, sizeof path) : -1;
  errno = saved;
  size_t length = control ? strlen(folder) : 0;
  if (bytes <= (ssize_t)length || strncmp(path, folder, length) != 0 || path[length] != '/') return ELSEWHERE;
  return strncmp(path + bytes - 3, ".db", 3) == 0 ? DATABASE_ON_DISK : FILE_ON_DISK;
}

static int fails(volatile int32_t *failures) {
  if (*failures == 0) return 0;
  if (*failures > 0) *failures -= 1;
  errno = EIO;
  return 1;
}

// A system that could not write pages marks them as clean, so that the next sync succeeds.
static int synced(int fd, int (*sync)(int)) {
  int place = is_on_disk(fd);
  if (place == ELSEWHERE) return sync(fd);
  if (control->syncDelayMs > 0) usleep((useconds_t)control->syncDelayMs * 1000);
  if (!fails(&control->syncFailures) && !(place == DATABASE_ON_DISK && fails(&control->databaseSyncFailures)))
    return sync(fd);
  control->failedSyncs += 1;
  return -1;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

#define DEFINE_PWRITE(name, offset_type)                                                          \
  ssize_t name(int fd, const void *data, size_t bytes, offset_type offset) {                      \
    if (control && control->writeFailures != 0 && is_on_disk(fd) && fails(&control->writeFailures)) return -1; \
    return REAL(name)(fd, data, bytes, offset);                                                   \
  }
DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)
