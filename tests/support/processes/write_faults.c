/* Preloaded into a process: the nth change of a file kills it, or fails for want of space from then on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static long left = -1;
static int fails;

void fault_at(long nth, int how) { left = nth; fails = how; }
long fault_left(void) { return left; }

static int fault(void) {
    if (left < 0) return 0;
    if (left > 0 && --left > 0) return 0;
    if (fails) { errno = ENOSPC; return -1; }
    kill(getpid(), SIGKILL);
    return -1;
}

#define REAL(name) static typeof(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
ssize_t write(int fd, const void *data, size_t size) { REAL(write); return fd > 2 && fault() ? -1 : real(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { REAL(pwrite); return fault() ? -1 : real(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { REAL(pwrite64); return fault() ? -1 : real(fd, data, size, at); }
int fsync(int fd) { REAL(fsync); return !fails && fault() ? -1 : real(fd); }
int fdatasync(int fd) { REAL(fdatasync); return !fails && fault() ? -1 : real(fd); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return !fails && fault() ? -1 : real(fd, size); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return !fails && fault() ? -1 : real(fd, size); }
int unlink(const char *path) { REAL(unlink); return !fails && fault() ? -1 : real(path); }
