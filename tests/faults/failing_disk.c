/* A disk that fails, between a program and the kernel: LD_PRELOAD of the shared object that this makes.
 *
 *   DISK_PATH   files whose path holds this text are on the disk
 *   DISK_CALL   read, write, fsync or truncate (both kinds of each)
 *   DISK_WHEN   the call that fails, counted from 1; 0: every call
 *   DISK_ERRNO  its error; 0: it is short instead (reads and writes of at most 7 bytes)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int on_disk(int fd) {
    const char *path = getenv("DISK_PATH");
    char link[64], name[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    if (path == NULL || n < 0) return 0;
    name[n] = 0;
    return strstr(name, path) != NULL;
}

/* 0: as usual; 1: short; -1: fails, with errno set. */
static int fault(int fd, const char *call) {
    static int count;
    const char *wanted = getenv("DISK_CALL"), *when = getenv("DISK_WHEN"), *error = getenv("DISK_ERRNO");
    if (!wanted || !when || !error || strcmp(wanted, call) || !on_disk(fd)) return 0;
    int number = __sync_add_and_fetch(&count, 1);
    if (atoi(when) && atoi(when) != number) return 0;
    if (atoi(error) == 0) return 1;
    errno = atoi(error);
    return -1;
}

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))
#define SHORT(n) ((n) < 7 ? (n) : 7)
#define FAULTY(call, ...)                                  \
    int f = fault(fd, call);                               \
    if (f < 0) return -1;                                  \
    if (f > 0) n = SHORT(n);                               \
    return __VA_ARGS__;

ssize_t read(int fd, void *b, size_t n) { FAULTY("read", REAL(read)(fd, b, n)) }
ssize_t pread(int fd, void *b, size_t n, off_t at) { FAULTY("read", REAL(pread)(fd, b, n, at)) }
ssize_t pread64(int fd, void *b, size_t n, off64_t at) { FAULTY("read", REAL(pread64)(fd, b, n, at)) }
ssize_t write(int fd, const void *b, size_t n) { FAULTY("write", REAL(write)(fd, b, n)) }
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) { FAULTY("write", REAL(pwrite)(fd, b, n, at)) }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) { FAULTY("write", REAL(pwrite64)(fd, b, n, at)) }
int fsync(int fd) { size_t n = 0; FAULTY("fsync", REAL(fsync)(fd)) }
int fdatasync(int fd) { size_t n = 0; FAULTY("fsync", REAL(fdatasync)(fd)) }
int ftruncate(int fd, off_t n) { return fault(fd, "truncate") < 0 ? -1 : REAL(ftruncate)(fd, n); }
int ftruncate64(int fd, off64_t n) { return fault(fd, "truncate") < 0 ? -1 : REAL(ftruncate64)(fd, n); }
