// Loaded into a redis-server (LD_PRELOAD), this notes how much of its log is on
// the disk: after each sync of a file *.aof, the size that the file had before
// it goes into the file of the same name in $FSYNCED. What a machine that loses
// its power keeps of the log is that much at least, and perhaps more.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int synced(const char *name, int fd) {
	int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	struct stat before;
	int known = fstat(fd, &before) == 0;
	const char *slow = getenv("SLOW_SYNC_US");
	if (slow) usleep(atoi(slow));
	int result = sync(fd);
	const char *dir = getenv("FSYNCED");
	char link[64], path[4096], note[8192];
	if (result != 0 || !known || !dir) return result;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 4) return result;
	path[n] = 0;
	char *base = strrchr(path, '/');
	if (!base || strcmp(path + n - 4, ".aof") != 0) return result;
	snprintf(note, sizeof note, "%s%s", dir, base);
	int out = open(note, O_WRONLY | O_CREAT, 0600);
	if (out >= 0) {
		char size[32];
		int length = snprintf(size, sizeof size, "%20lld", (long long)before.st_size);
		if (pwrite(out, size, length, 0) != length) abort();
		close(out);
	}
	return result;
}

int fdatasync(int fd) { return synced("fdatasync", fd); }
int fsync(int fd) { return synced("fsync", fd); }
