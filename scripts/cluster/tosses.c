/* threads lock, count, unlock, in every order, behind a choice of twenty: 20 * N! executions. */
#include <pthread.h>
#include <stdlib.h>
#include "vs.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *counts(void *unused)
{
	pthread_mutex_lock(&lock);
	count++;
	pthread_mutex_unlock(&lock);
	return unused;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 7;
	pthread_t all[16];

	VS_toss(19);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], NULL, counts, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	return count != threads;
}
