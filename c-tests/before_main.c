// What a fork shares with the process that stands before main is as it was there in each execution: memory that is mapped shared, memfds, /dev/shm,
// segments of System V, the place in a file and its flags. `lost`: without the lock a count is lost.
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

static int *shared, fd = -1, again = -1, lost;
static FILE *group;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *how;

static int *mapped(int from)
{
	int seven = 7;

	assert(ftruncate(from, 4096) == 0 && pwrite(from, &seven, sizeof seven, 0) == sizeof seven);
	return mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, from, 0);
}

__attribute__((constructor)) static void begin(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "";
	lost = argc > 2;
	if (!strcmp(how, "anonymous")) {
		shared = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		*shared = 7;
	}
	if (!strcmp(how, "segment")) {
		int id = shmget(IPC_PRIVATE, 4096, 0600);
		shared = shmat(id, 0, 0);
		shmctl(id, IPC_RMID, 0);
		*shared = 7;
	}
	if (!strcmp(how, "unlinked")) {
		fd = shm_open("/before", O_CREAT | O_RDWR, 0600);
		shm_unlink("/before");
		shared = mapped(fd);
		close(fd);
	}
	if (!strcmp(how, "named")) {
		fd = shm_open("/before", O_CREAT | O_RDWR, 0600);
		mapped(fd);
		close(fd);
	}
	if (!strcmp(how, "memfd"))
		shared = mapped(memfd_create("before", 0));
	if (!strcmp(how, "written")) {
		fd = memfd_create("before", 0);
		mapped(fd);
	}
	if (!strcmp(how, "appended")) {
		// What is put back is not written where O_APPEND says.
		int seven = 7;
		again = memfd_create("before", 0);
		assert(write(again, &seven, sizeof seven) == sizeof seven && fcntl(again, F_SETFL, O_APPEND) == 0);
	}
	if (!strcmp(how, "place")) {
		again = open("/etc/passwd", O_RDONLY);
		group = fopen("/etc/group", "r");
		shared = mapped(memfd_create("before", 0));
	}
}

static void *adds(void *unused)
{
	if (!lost)
		pthread_mutex_lock(&lock);
	if (fd >= 0) {
		int count;
		assert(pread(fd, &count, sizeof count, 0) == sizeof count);
		count++;
		assert(pwrite(fd, &count, sizeof count, 0) == sizeof count);
	} else {
		++*(volatile int *)shared;
	}
	if (!lost)
		pthread_mutex_unlock(&lock);
	return unused;
}

static int count(void)
{
	int count = 0;

	if (fd < 0)
		return *shared;
	assert(pread(fd, &count, sizeof count, 0) == sizeof count);
	return count;
}

int main(void)
{
	pthread_t threads[2];
	char text[16];

	if (!strcmp(how, "unlinked"))
		fd = -1;
	if (!strcmp(how, "named")) {
		fd = shm_open("/before", O_RDWR, 0);
		assert(fd >= 0);
	}
	if (strcmp(how, "appended"))
		assert(count() == 7);
	if (!strcmp(how, "appended")) {
		assert(fcntl(again, F_GETFL) & O_APPEND && lseek(again, 0, SEEK_END) == sizeof(int));
		snprintf(text, sizeof text, "/dev/fd/%d", again);
		fd = open(text, O_RDWR);
		assert(count() == 7 && write(again, "more", 4) == 4);
	} else if (again >= 0) {
		assert(read(again, text, 4) == 4 && !memcmp(text, "root", 4));
		assert(fgets(text, sizeof text, group) && !memcmp(text, "root", 4));
		assert(!(fcntl(again, F_GETFL) & O_NONBLOCK));
		fcntl(again, F_SETFL, O_NONBLOCK);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, adds, 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
	assert(count() == 9);
	if (!strcmp(how, "named")) {
		assert(ftruncate(fd, 1) == 0 && shm_unlink("/before") == 0);
		assert(shm_open("/other", O_CREAT | O_EXCL | O_RDWR, 0600) >= 0);
	}
	return 0;
}
