/* A preloaded library that fails, shortens, interrupts or kills at the n-th file-system call below one folder.
 *
 * Only calls on paths below the armed root count. `fault_arm` starts counting, `fault_disarm` stops and
 * returns how many calls there were. With a trace file, every change of a file is logged with its data, so
 * that the disk after a power cut at any call can be rebuilt from one run (see trace_disk.py).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { NONE, EIO_ONCE, FULL_FROM, SHORT, INTERRUPT, KILL, ABANDON };

static char root[4096];
static size_t root_length;
static long calls, fault_at;
static int fault_kind, trace_fd = -1;
static unsigned char tracked[1 << 16];

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* -- control, called through ctypes ------------------------------------------------------------------ */

void fault_arm(const char *folder, long at, int kind, int trace)
{
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    calls = 0;
    fault_at = at;
    fault_kind = kind;
    trace_fd = trace;
    memset(tracked, 0, sizeof tracked);
}

/* Start counting again, with files that are open still known. */
void fault_set(long at, int kind)
{
    calls = 0;
    fault_at = at;
    fault_kind = kind;
}

long fault_calls(void) { return calls; }

long fault_disarm(void)
{
    root_length = 0;
    trace_fd = -1;
    return calls;
}

/* -- deciding ---------------------------------------------------------------------------------------- */

static int below(const char *path)
{
    return root_length && path && !strncmp(path, root, root_length);
}

static int is_tracked(int fd)
{
    return root_length && fd >= 0 && fd < (int)sizeof tracked && tracked[fd];
}

/* Returns the error to fail with, 0 to go on, or -1 for a shortened write. */
static int counted(int writes)
{
    long now = ++calls;
    if (fault_kind == FULL_FROM) return writes && now >= fault_at ? ENOSPC : 0;
    if (fault_kind == ABANDON) return now >= fault_at ? EIO : 0; /* as if killed: no call reaches the disk */
    if (now != fault_at) return 0;
    if (fault_kind == EIO_ONCE) return EIO;
    if (fault_kind == SHORT) return writes ? -1 : 0;
    if (fault_kind == INTERRUPT) raise(SIGINT);
    if (fault_kind == KILL) raise(SIGKILL);
    return 0;
}

#define FAIL_IF(condition, writes, result) \
    do { \
        if (condition) { \
            int error = counted(writes); \
            if (error > 0) { errno = error; return result; } \
        } \
    } while (0)

/* -- the trace: op, two paths or an inode, offset, data ------------------------------------------------- */

struct entry { char op; char unused[7]; int64_t inode, offset, length, length2; };

static void emit(char op, int64_t inode, int64_t offset, const void *data, size_t length, const char *more)
{
    if (trace_fd < 0) return;
    REAL(write);
    struct entry entry = { .op = op, .inode = inode, .offset = offset, .length = (int64_t)length,
                           .length2 = more ? (int64_t)strlen(more) : 0 };
    int saved = errno;
    if (real(trace_fd, &entry, sizeof entry) < 0 || (length && real(trace_fd, data, length) < 0)
        || (more && real(trace_fd, more, strlen(more)) < 0))
        raise(SIGABRT);
    errno = saved;
}

static int64_t inode_of(int fd)
{
    struct stat info;
    return fstat(fd, &info) ? -1 : (int64_t)info.st_ino;
}

void fault_mark(const char *text) { emit('!', 0, calls, text, strlen(text), NULL); }

static int opened(int fd, int tracks, const char *path, int flags)
{
    if (fd >= 0 && fd < (int)sizeof tracked) {
        tracked[fd] = (unsigned char)tracks;
        if (below(path)) emit(flags & O_TRUNC ? 'T' : 'O', inode_of(fd), 0, path, strlen(path), NULL);
    }
    return fd;
}

/* -- the calls --------------------------------------------------------------------------------------- */

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
        REAL(name); \
        FAIL_IF(below(path), flags & O_CREAT, -1); \
        return opened(real(path, flags, mode), below(path), path, flags); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int at, const char *path, int flags, ...) \
    { \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
        REAL(name); \
        int tracks = below(path) || (is_tracked(at) && *path != '/'); /* rmtree opens folders in folders */ \
        FAIL_IF(tracks, flags & O_CREAT, -1); \
        return opened(real(at, path, flags, mode), tracks, path, flags); \
    }
OPENAT(openat)
OPENAT(openat64)

DIR *opendir(const char *path)
{
    REAL(opendir);
    FAIL_IF(below(path), 0, NULL);
    return real(path);
}

int close(int fd)
{
    REAL(close);
    if (fd >= 0 && fd < (int)sizeof tracked) tracked[fd] = 0;
    return real(fd);
}

ssize_t read(int fd, void *data, size_t size)
{
    REAL(read);
    FAIL_IF(is_tracked(fd), 0, -1);
    return real(fd, data, size);
}

#define PREAD(name, type) \
    ssize_t name(int fd, void *data, size_t size, type at) \
    { \
        REAL(name); \
        FAIL_IF(is_tracked(fd), 0, -1); \
        return real(fd, data, size, at); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    if (!is_tracked(fd)) return real(fd, data, size);
    int error = counted(1);
    if (error > 0) { errno = error; return -1; }
    ssize_t done = real(fd, data, error < 0 && size > 1 ? size / 2 : size);
    if (done > 0) emit('W', inode_of(fd), lseek(fd, 0, SEEK_CUR) - done, data, (size_t)done, NULL); /* O_APPEND */
    return done;
}

#define PWRITE(name, type) \
    ssize_t name(int fd, const void *data, size_t size, type at) \
    { \
        REAL(name); \
        if (!is_tracked(fd)) return real(fd, data, size, at); \
        int error = counted(1); \
        if (error > 0) { errno = error; return -1; } \
        ssize_t done = real(fd, data, error < 0 && size > 1 ? size / 2 : size, at); \
        if (done > 0) emit('W', inode_of(fd), (int64_t)at, data, (size_t)done, NULL); \
        return done; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define TRUNCATE(name, type) \
    int name(int fd, type size) \
    { \
        REAL(name); \
        FAIL_IF(is_tracked(fd), 1, -1); \
        int result = real(fd, size); \
        if (!result && is_tracked(fd)) emit('C', inode_of(fd), (int64_t)size, NULL, 0, NULL); \
        return result; \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define SYNC(name) \
    int name(int fd) \
    { \
        REAL(name); \
        FAIL_IF(is_tracked(fd), 1, -1); \
        int result = real(fd); \
        if (!result && is_tracked(fd)) emit('S', inode_of(fd), 0, NULL, 0, NULL); \
        return result; \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to)
{
    REAL(rename);
    FAIL_IF(below(from) || below(to), 1, -1);
    int result = real(from, to);
    if (!result && below(to)) emit('R', 0, 0, from, strlen(from), to);
    return result;
}

int link(const char *from, const char *to)
{
    REAL(link);
    FAIL_IF(below(from) || below(to), 1, -1);
    int result = real(from, to);
    if (!result && below(to)) emit('L', 0, 0, from, strlen(from), to);
    return result;
}

int unlink(const char *path)
{
    REAL(unlink);
    FAIL_IF(below(path), 0, -1);
    int result = real(path);
    if (!result && below(path)) emit('U', 0, 0, path, strlen(path), NULL);
    return result;
}

int unlinkat(int at, const char *path, int flags)
{
    REAL(unlinkat);
    FAIL_IF(is_tracked(at) || below(path), 0, -1);
    char whole[8192], link[64];
    ssize_t length = 0;
    if (is_tracked(at) && *path != '/') { /* as rmtree does: below an open folder */
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        length = readlink(link, whole, 4096);
        if (length > 0) whole[length++] = '/';
    }
    snprintf(whole + (length > 0 ? length : 0), 4096, "%s", path);
    int result = real(at, path, flags);
    if (!result && below(whole)) emit('U', 0, 0, whole, strlen(whole), NULL);
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir);
    FAIL_IF(below(path), 1, -1);
    int result = real(path, mode);
    if (!result && below(path)) emit('D', 0, 0, path, strlen(path), NULL);
    return result;
}

int rmdir(const char *path)
{
    REAL(rmdir);
    FAIL_IF(below(path), 0, -1);
    int result = real(path);
    if (!result && below(path)) emit('U', 0, 0, path, strlen(path), NULL);
    return result;
}

#define MMAP(name, type) \
    void *name(void *where, size_t size, int protection, int flags, int fd, type at) \
    { \
        REAL(name); \
        FAIL_IF(is_tracked(fd), 0, MAP_FAILED); \
        return real(where, size, protection, flags, fd, at); \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)
