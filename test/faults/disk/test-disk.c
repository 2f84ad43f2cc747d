// The disk of a test, for the processes that load this by LD_PRELOAD. TEST_DISK_FOLDER: the folder whose files are on that disk,
// absolute. TEST_DISK_CONTROL: a file outside of it with the numbers of `struct control`, which a test changes at any time, so that
// the disk is slow or fails. TEST_DISK_LOG: a file outside of the folder, to which every change of files in it is recorded, in order,
// for the simulation of a power loss (storage-log.ts reads the record); without it, nothing is recorded. A lock makes the order of
// the record the order of the changes, for all processes.
// TEST_DISK_NO_LOCKS: files in the folder cannot be locked, as on NFS without its lock service.
// Memory-mapped files are not recorded: of a ledger, only the shared index of its WAL is mapped, and SQLite rebuilds it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPENED = 1, WRITTEN, TRUNCATED, SYNCED, RENAMED, UNLINKED, LINKED, SYNC_BEGUN, SYNC_FAILED };

// Numbers in the byte order of the machine, then `pathBytes` and `dataBytes` of content.
struct record {
  uint32_t kind;
  uint32_t pathBytes;
  uint64_t inode;
  uint64_t offset;
  uint64_t dataBytes;
};

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
#define MAX_FDS 65536
#define MAX_SYNC_US 20000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char *folder;
static size_t folder_bytes;
static volatile struct control *control;
static uint64_t inodes[MAX_FDS]; // Of open files below the folder; 0: another file.

enum { OTHER, LEDGER, LOG, PLACES };
static int places[MAX_FDS];
// Whether something was written since the last sync. Without, a disk has nothing to fail at.
static int is_unsynced[PLACES];
// The failed syncs of each place, and how many of them a descriptor has reported.
static int failures_of[PLACES];
static int reported_by[MAX_FDS];

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

static long system_call(long number, ...) {
  static long (*call)(long, ...);
  if (!call) call = real("syscall");
  va_list arguments;
  va_start(arguments, number);
  long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long),
       d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
  va_end(arguments);
  return call(number, a, b, c, d, e, f);
}

__attribute__((constructor)) static void start(void) {
  const char *control_file = getenv("TEST_DISK_CONTROL"), *log = getenv("TEST_DISK_LOG");
  const char *root = getenv("TEST_DISK_FOLDER");
  if (!control_file || !root) return;
  int fd = (int)system_call(SYS_openat, AT_FDCWD, control_file, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (control == MAP_FAILED) abort();
  REAL(close)(fd);
  if (log) {
    log_fd = (int)system_call(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0) abort();
  }
  folder = root;
  folder_bytes = strlen(folder);
}

static void lock(void) {
  pthread_mutex_lock(&mutex);
  if (log_fd >= 0) flock(log_fd, LOCK_EX);
}

static void unlock(void) {
  int saved = errno;
  if (log_fd >= 0) flock(log_fd, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = saved;
}

static int is_below(const char *path) {
  return folder && path && strncmp(path, folder, folder_bytes) == 0 &&
         (path[folder_bytes] == '/' || path[folder_bytes] == 0);
}

static uint64_t inode_of(int fd) { return folder && fd >= 0 && fd < MAX_FDS ? inodes[fd] : 0; }

// A record that is written in part would make the test wrong, so the process ends.
static void append(uint32_t kind, uint64_t inode, const char *path, uint64_t offset, const void *data, size_t bytes) {
  if (log_fd < 0) return;
  int saved = errno;
  struct record head = {kind, path ? (uint32_t)strlen(path) : 0, inode, offset, bytes};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)path, head.pathBytes}, {(void *)data, bytes}};
  ssize_t expected = (ssize_t)(sizeof head + head.pathBytes + bytes);
  if (system_call(SYS_writev, log_fd, parts, 3) != expected) abort();
  errno = saved;
}

static int ends_in(const char *path, const char *end) {
  size_t length = strlen(path), bytes = strlen(end);
  return length >= bytes && strcmp(path + length - bytes, end) == 0;
}

static int opened(int fd, const char *path, int flags) {
  if (fd < 0 || fd >= MAX_FDS) return fd;
  inodes[fd] = 0;
  if (!is_below(path)) return fd;
  struct stat found;
  if (fstat(fd, &found) != 0) abort();
  inodes[fd] = found.st_ino;
  places[fd] = ends_in(path, "-wal") ? LOG : ends_in(path, ".db") ? LEDGER : OTHER;
  reported_by[fd] = failures_of[places[fd]];
  append(OPENED, found.st_ino, path, S_ISDIR(found.st_mode) ? 1 : 0, NULL, 0);
  if (flags & O_TRUNC) append(TRUNCATED, found.st_ino, NULL, 0, NULL, 0);
  return fd;
}

static mode_t mode_of(int flags, va_list arguments) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

#define DEFINE_OPEN(name)                                  \
  int name(const char *path, int flags, ...) {             \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    mode_t mode = mode_of(flags, arguments);               \
    va_end(arguments);                                     \
    lock();                                                \
    int fd = opened(REAL(name)(path, flags, mode), path, flags); \
    unlock();                                              \
    return fd;                                             \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

int close(int fd) {
  // Not after the call: then another thread may have got the number for its file.
  if (fd >= 0 && fd < MAX_FDS) inodes[fd] = 0;
  return REAL(close)(fd);
}

static void written(int fd, const void *data, ssize_t bytes, off_t offset) {
  if (bytes > 0) append(WRITTEN, inode_of(fd), NULL, (uint64_t)offset, data, (size_t)bytes);
}

ssize_t write(int fd, const void *data, size_t bytes) {
  if (!inode_of(fd)) return REAL(write)(fd, data, bytes);
  lock();
  ssize_t done = REAL(write)(fd, data, bytes);
  written(fd, data, done, lseek(fd, 0, SEEK_CUR) - done);
  unlock();
  return done;
}

static int fails(volatile int32_t *failures, volatile int32_t *failed) {
  if (*failures == 0) return 0;
  if (*failures > 0) *failures -= 1;
  *failed += 1;
  return 1;
}

#define DEFINE_PWRITE(name)                                               \
  ssize_t name(int fd, const void *data, size_t bytes, off_t offset) {    \
    if (!inode_of(fd)) return REAL(name)(fd, data, bytes, offset);        \
    lock();                                                               \
    int has_failed = fails(&control->writeFailures, &control->failedWrites); \
    if (has_failed) errno = EIO;                                          \
    else is_unsynced[places[fd]] = 1;                                     \
    ssize_t done = has_failed ? -1 : REAL(name)(fd, data, bytes, offset); \
    written(fd, data, done, offset);                                      \
    unlock();                                                             \
    return done;                                                          \
  }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)

#define DEFINE_TRUNCATE(name)                                     \
  int name(int fd, off_t bytes) {                                 \
    if (!inode_of(fd)) return REAL(name)(fd, bytes);              \
    lock();                                                       \
    int result = REAL(name)(fd, bytes);                           \
    if (result == 0) append(TRUNCATED, inode_of(fd), NULL, (uint64_t)bytes, NULL, 0); \
    unlock();                                                     \
    return result;                                                \
  }
DEFINE_TRUNCATE(ftruncate)
DEFINE_TRUNCATE(ftruncate64)

// Returns whether a sync reports a failure. A system that could not write pages marks them as clean, so that the next sync succeeds.
// As Linux does, each descriptor reports a failure once.
static int sync_fails(int fd) {
  int place = places[fd];
  if (is_unsynced[place] && ((place == LOG && fails(&control->logSyncFailures, &control->failedSyncs)) ||
                             (place == LEDGER && fails(&control->ledgerSyncFailures, &control->failedSyncs))))
    failures_of[place] += 1;
  is_unsynced[place] = 0;
  if (reported_by[fd] == failures_of[place]) return 0;
  reported_by[fd] = failures_of[place];
  return 1;
}

// A sync makes safe what was written before it began, and takes as long as on a slow disk: other threads write meanwhile, and a
// process that acknowledges before the sync has ended is found out.
static int synced(int fd, int (*sync)(int)) {
  static _Atomic uint64_t begun;
  uint64_t inode = inode_of(fd), number = ((uint64_t)getpid() << 24) + ++begun;
  if (!inode) return sync(fd);
  lock();
  append(SYNC_BEGUN, inode, NULL, number, NULL, 0);
  unlock();
  if (log_fd >= 0) usleep((useconds_t)(number * 2654435761u % MAX_SYNC_US));
  usleep((useconds_t)control->syncDelayMs * 1000);
  lock();
  int has_failed = sync_fails(fd);
  if (has_failed) errno = EIO;
  int result = has_failed ? -1 : sync(fd);
  append(result == 0 ? SYNCED : SYNC_FAILED, inode, NULL, number, NULL, 0);
  unlock();
  return result;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

static int locks(int fd, int command) {
  if (!inode_of(fd) || !getenv("TEST_DISK_NO_LOCKS")) return 1;
  if (command != F_SETLK && command != F_SETLKW && command != F_GETLK) return 1;
  errno = ENOLCK;
  return 0;
}

#define DEFINE_FCNTL(name)                                               \
  int name(int fd, int command, ...) {                                  \
    va_list arguments;                                                  \
    va_start(arguments, command);                                       \
    void *argument = va_arg(arguments, void *);                         \
    va_end(arguments);                                                  \
    return locks(fd, command) ? REAL(name)(fd, command, argument) : -1; \
  }
DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

// Both paths are in one record, as its path and its data.
#define DEFINE_TWO_PATHS(name, kind)                                                          \
  int name(const char *from, const char *to) {                                                \
    lock();                                                                                   \
    int result = REAL(name)(from, to);                                                        \
    if (result == 0 && is_below(from)) append(kind, 0, from, 0, to, strlen(to));              \
    unlock();                                                                                 \
    return result;                                                                            \
  }
DEFINE_TWO_PATHS(rename, RENAMED)
DEFINE_TWO_PATHS(link, LINKED)

int unlink(const char *path) {
  lock();
  int result = REAL(unlink)(path);
  if (result == 0 && is_below(path)) append(UNLINKED, 0, path, 0, NULL, 0);
  unlock();
  return result;
}

// Node removes folders by paths relative to an open folder.
int unlinkat(int fd, const char *path, int flags) {
  char absolute[PATH_MAX * 2] = "", link_name[64];
  if (path[0] == '/') snprintf(absolute, sizeof absolute, "%s", path);
  else {
    snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", fd);
    ssize_t bytes = fd == AT_FDCWD ? -1 : readlink(link_name, absolute, PATH_MAX);
    if (bytes > 0) snprintf(absolute + bytes, sizeof absolute - (size_t)bytes, "/%s", path);
  }
  lock();
  int result = REAL(unlinkat)(fd, path, flags);
  if (result == 0 && is_below(absolute)) append(UNLINKED, 0, absolute, 0, NULL, 0);
  unlock();
  return result;
}

int remove(const char *path) {
  lock();
  int result = REAL(remove)(path);
  if (result == 0 && is_below(path)) append(UNLINKED, 0, path, 0, NULL, 0);
  unlock();
  return result;
}

// Records what was copied to a file, read back from it.
static void copied(int fd, off_t offset, ssize_t bytes) {
  if (bytes <= 0) return;
  char name[64], *data = malloc((size_t)bytes);
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  int again = (int)system_call(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
  if (!data || again < 0 || pread(again, data, (size_t)bytes, offset) != bytes) abort();
  written(fd, data, bytes, offset);
  free(data);
  REAL(close)(again);
}

ssize_t sendfile64(int to, int from, off_t *offset, size_t bytes) {
  if (!inode_of(to)) return REAL(sendfile64)(to, from, offset, bytes);
  lock();
  ssize_t done = REAL(sendfile64)(to, from, offset, bytes);
  copied(to, lseek(to, 0, SEEK_CUR) - done, done);
  unlock();
  return done;
}

// libuv calls copy_file_range by its number.
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long),
       d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
  va_end(arguments);
  if (number != SYS_copy_file_range || !inode_of((int)c)) return system_call(number, a, b, c, d, e, f);
  lock();
  off_t offset = d ? *(off_t *)d : lseek((int)c, 0, SEEK_CUR);
  long done = system_call(number, a, b, c, d, e, f);
  copied((int)c, offset, done);
  unlock();
  return done;
}
